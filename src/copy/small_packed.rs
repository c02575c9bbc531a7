//! Few rows of a packed input, copied into packed outputs piece by piece and run by run: small copies, and
//! larger ones of many pieces that have few short runs each.

use super::kernel::opaque::opaque;
use super::kernel::rules::LOW_THRESHOLDS;
use super::kernel::strided::Axis;
use super::kernel::{CopyBytes, Deinterleave, Gather, Kernels, MAX_DEINTERLEAVED};
use super::old::{FEW_PARTS, ROOM};
use super::{tuning, ROW_MAJOR};
use crate::geometry::Geometry;
use crate::math::div;
use crate::parts::{Part, Transfer};
use crate::shape::usize_of;
use core::ptr::null_mut;

/// Fewer bytes than this are neither for threads nor for going past the caches; of rows that have no other way.
pub(super) const SMALL: usize = 128 << 10;
pub(super) const SMALL_ROWS: usize = if LOW_THRESHOLDS { SMALL } else { 511 << 10 };
/// From this many rows on, blocks of them are deinterleaved to all pieces.
pub(super) const MANY_ROWS: usize = 64;

/// Whether a copy of packed tensors is so small that runs one after another are the quickest.
#[inline(always)]
pub(crate) fn is_small(geometry: &Geometry<'_>, bytes: usize) -> bool {
    let rows = usize_of(geometry.outer);
    rows < MANY_ROWS
        && (bytes <= SMALL || rows < ROW_MAJOR && bytes <= SMALL_ROWS)
        && !geometry.dtype.is_sub_byte()
}

/// Few rows of a packed input, which are copied into packed outputs run by run.
pub(crate) struct SmallPacked {
    copy: CopyBytes,
    /// Bytes of one step on the split axis, and of a row.
    step: usize,
    row: usize,
    pub(crate) count: usize,
}

/// Loops for several rows.
#[derive(Clone, Copy)]
pub(crate) struct Loops(&'static Kernels);

impl SmallPacked {
    #[inline(always)]
    pub(crate) fn new(geometry: &Geometry<'_>, bytes: usize) -> Self {
        Self::with(tuning::contiguous(bytes), geometry)
    }

    /// The same of several rows, with their loops.
    #[inline(always)]
    pub(crate) fn several(geometry: &Geometry<'_>, bytes: usize) -> (Self, Loops) {
        let kernels = tuning::kernels_of_few(bytes);
        (Self::with(kernels.copy, geometry), Loops(kernels))
    }

    #[inline(always)]
    fn with(copy: CopyBytes, geometry: &Geometry<'_>) -> Self {
        let step = usize_of(geometry.inner) * (geometry.dtype.bits() / 8) as usize;
        let row = usize_of(geometry.extent) * step;
        Self { copy, step, row, count: usize_of(geometry.outer) }
    }

    /// Bytes that a piece has of a row.
    #[inline(always)]
    pub(crate) fn run(&self, len: i64) -> usize {
        usize_of(len) * self.step
    }

    #[inline(always)]
    pub(crate) fn is_one(&self) -> bool {
        self.count == 1
    }

    /// Whether so many pieces have runs that are better copied row by row.
    #[inline(always)]
    pub(crate) fn are_long(&self, pieces: usize) -> bool {
        self.row >= pieces.saturating_mul(LONG_RUN) && tuning::has_strings()
    }

    /// Copies a run of a row; the first ones are at `source` and `target`.
    ///
    /// # Safety
    /// As [`super::run`].
    #[inline(always)]
    pub(crate) unsafe fn copy_run(
        &self,
        row: usize,
        source: *const u8,
        target: *mut u8,
        run: usize,
    ) {
        let (source, target) =
            (source.wrapping_add(row * self.row), target.wrapping_add(row * run));
        // SAFETY: the caller's promise.
        unsafe { (self.copy)(source, target, run) }
    }

    /// Copies a run of each row by its loops.
    ///
    /// # Safety
    /// As [`super::run`]; there must be a row.
    #[inline(always)]
    pub(crate) unsafe fn copy(&self, loops: Loops, source: *const u8, target: *mut u8, run: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.count >= SEVERAL_ROWS {
                self.copy_several(loops.0, source, target, run);
            } else {
                self.copy_each(source, target, run);
            }
        }
    }

    /// # Safety
    /// As [`SmallPacked::copy`].
    #[inline(always)]
    unsafe fn copy_each(&self, source: *const u8, target: *mut u8, run: usize) {
        let mut row = 0;
        while row < self.count {
            // SAFETY: the caller's promise.
            unsafe { self.copy_run(row, source, target, run) };
            row += 1;
        }
    }

    /// # Safety
    /// As [`SmallPacked::copy`].
    #[inline(never)]
    unsafe fn copy_several(
        &self,
        kernels: &Kernels,
        source: *const u8,
        target: *mut u8,
        run: usize,
    ) {
        let &Self { copy, row, count, .. } = self;
        let rows = Gather { source, step: row, target, count, unit: run };
        // SAFETY: the caller's promise.
        unsafe {
            match run {
                // The only piece: its runs continue each other.
                _ if run == row => copy(source, target, run * count),
                1..LEAST_UNIT => (kernels.gather(run))(rows),
                LEAST_UNIT..=SHORT => kernels.gather_units(rows),
                _ => match kernels.gather_long {
                    Some(gather) => gather(rows),
                    None => self.copy_each(source, target, run),
                },
            }
        }
    }
}

/// As many runs of so few bytes are worth the way to a loop for them. Zen 5, ns before and after: 63 rows of 4
/// and 4 bytes 279, 62; 16 of 64 and 64 100, 52; 8 of 40 and 100 57, 56; 3 of 16, 20 and 9 50, 56.
const SEVERAL_ROWS: usize = 4;
const SHORT: usize = 128;
/// Those of so many are whole halves of lines and a tail.
const LEAST_UNIT: usize = 33;
/// Runs of so many bytes on average go row by row: Zen 5, 10 rows of three of 4 KiB, median of 31 turns, 1,220 ns for
/// 1,430; 4 of 16 of 4 KiB 2,630 for 3,350.
const LONG_RUN: usize = if LOW_THRESHOLDS { 32 } else { 3 << 10 };

/// Copies each part by itself, run by run, or deinterleaves few that are alike.
///
/// # Safety
/// As [`super::run`].
#[inline(never)] // off the way of other copies
pub(super) unsafe fn copy_each_part(transfer: &Transfer<'_>, kernels: &'static Kernels) {
    let rows = SmallPacked::with(kernels.copy, &transfer.geometry);
    let count = rows.count;
    let (mut all, mut room) = (transfer.parts.iter(), ROOM);
    loop {
        let parts = all.list(&mut room);
        if parts.is_empty() {
            return;
        }
        // SAFETY: the caller's promise; there are elements, and so rows.
        unsafe {
            let is_all = cfg!(feature = "avx512") && parts.len() == transfer.parts.count();
            let done = if is_all { rows.deinterleave(kernels, transfer.source, parts) } else { 0 };
            if done == count {
                return;
            }
            let rest = SmallPacked { count: rows.count - done, ..rows };
            for part in parts {
                let run = rows.run(part.len);
                let source = transfer.source.wrapping_add(rows.run(part.offset) + done * rows.row);
                let target = part.target.wrapping_add(done * run);
                rest.copy(Loops(kernels), source, target, run);
            }
        }
        if parts.len() < FEW_PARTS {
            return;
        }
    }
}

impl SmallPacked {
    /// Deinterleaves pieces that are alike; as many rows as it can.
    ///
    /// # Safety
    /// As [`super::run`].
    #[inline(never)] // which takes some of the stack
    unsafe fn deinterleave(&self, kernels: &Kernels, source: *const u8, parts: &[Part]) -> usize {
        let [first, _, ..] = parts else { return 0 };
        let (len, width, step) = (parts.len(), self.run(first.len), self.row);
        let mut next = first.offset;
        let follows = |part: &Part| {
            let is_next = part.offset == next && part.len == first.len;
            next += part.len;
            is_next
        };
        if !parts.iter().all(follows) {
            return 0;
        }
        let (source, count) = (source.wrapping_add(self.run(first.offset)), self.count);
        // SAFETY: the caller's promise.
        unsafe {
            let mut targets = [null_mut(); MAX_DEINTERLEAVED];
            for (slot, part) in targets.iter_mut().zip(parts) {
                *slot = opaque(part.target);
            }
            let all = targets.get(..len).unwrap_or_default();
            if step == len * width && (kernels.columns)(source, all, width, count) {
                return count;
            }
            let is_worth_it = (width < LONG || len * count * width > LITTLE) && len * count > FEW;
            let deinterleaves = is_worth_it && kernels.deinterleaves(len, width);
            let Some(deinterleave) = kernels.deinterleave_lines.filter(|_| deinterleaves) else {
                return 0;
            };
            let mut rows = Deinterleave {
                source,
                step,
                targets,
                count,
                after: 0,
                prefetch: 0,
                more: Axis::NONE,
            };
            let mut done = 0;
            deinterleave(&mut rows, len, width, false, &mut |_, some| {
                done = some;
                false
            });
            done
        }
    }
}

/// Whether few packed pieces have so little, in the first-level cache with the input, that it is not worth asking
/// how it goes. Zen 5, ns a plan's call before and after: 64 rows of 2 and 32 bytes 147, 65, of 2, 2, 12 and
/// 128 396, 143; 480 of 2 and 2 bytes 153, 35; 1,024 of 3 single ones 172, 102; 64 of 96, 96 and 96 300, 121.
pub(super) fn are_little(transfer: &Transfer<'_>) -> bool {
    let &Transfer { ref geometry, bytes, ref parts, .. } = transfer;
    let is_little = (1..=LITTLE).contains(&bytes) && parts.count() <= FEW_PARTS;
    (is_little || are_columns(transfer)) && !geometry.dtype.is_sub_byte()
}

/// The same of more, in few columns that loops take all rows of. Zen 4, ns before and after: 4,724 rows of two of 4 bytes
/// 1,020, 750, 2,806 of four 1,010, 870, 8,935 of four of a byte 850, 720.
#[inline(never)] // for its size
fn are_columns(transfer: &Transfer<'_>) -> bool {
    let &Transfer { ref geometry, bytes, ref parts, .. } = transfer;
    let (count, extent) = (parts.count(), geometry.extent);
    let width = div(bytes, usize_of(geometry.outer) * count);
    (LITTLE..=SMALL).contains(&bytes)
        && count > 1
        && tuning::kernels(bytes).takes_blocks(count, width)
        && usize_of(parts.iter().longest(extent)) * count == usize_of(extent)
}

const LITTLE: usize = if LOW_THRESHOLDS { 64 } else { 24 << 10 };
/// Longer elements are as quickly copied one by one, and so are fewer. Zen 5, ns: 64 rows of four of 16 bytes
/// deinterleaved 124, one by one 88, of five of 4 bytes 121, 98, of eight 116, 160.
const LONG: usize = 16;
const FEW: usize = 450;

/// Whether pieces are the quickest one after another, as those of small copies: they have few runs each, and short
/// ones, or all have but one, in the second-level cache. Zen 5, µs before and after: 10,000 pieces of 4 rows of
/// 16 bytes 312, 117, of 16 rows 577, 150; 2,000 of 8 rows of 64 bytes 57, 36; 63 rows of 20 bytes 145, 71, of
/// 4 bytes 43, 44. 236 rows of 3,072 bytes and 12 of 16 16.1, 13.0; 506 of 1,120 and 35 of 8 23.2, 15.2; 300 of 256
/// and four of 8 2.4, 1.3; but 1,691 of 1,000 and eight of 3, 1.6 MiB, 47, 69.
pub(super) fn has_short_runs(transfer: &Transfer<'_>, kernels: &Kernels) -> bool {
    let &Transfer { ref geometry, bytes, ref parts, .. } = transfer;
    let (rows, pieces) = (usize_of(geometry.outer), parts.count());
    let runs = pieces.saturating_mul(rows);
    let are_equal = || {
        let longest = usize_of(parts.iter().longest(geometry.extent));
        longest.saturating_mul(pieces) == usize_of(geometry.extent)
    };
    let are_few = match rows {
        ..MANY_ROWS => true,
        MANY_ROWS..EQUAL_ROWS => bytes <= 2 * NEAR,
        EQUAL_ROWS..UNEQUAL_ROWS => bytes <= 2 * NEAR && !are_equal(),
        _ => false,
    };
    if are_few && bytes <= runs.saturating_mul(if rows < ROW_MAJOR { LONG_RUN } else { SHORT }) {
        return true;
    }
    let may_be = cfg!(feature = "avx512") && kernels.pair.is_some() && pieces > 2;
    if !may_be || bytes > NEAR || bytes < rows * HEAD {
        return false;
    }
    let longest = geometry.piece_bytes(parts.iter().longest(geometry.extent));
    let others = bytes.saturating_sub(longest);
    longest >= others.max(rows * HEAD) && others <= runs * TAIL
}

/// Fewer rows of short runs are few, of equal ones, which loops take many of, and of others; fewer than [`ROW_MAJOR`]
/// are of longer ones too. Zen 4, µs before and after: 17 pieces of 90 rows of 4 bytes .93, .57, but 100 of 250 of 2
/// 3.6, 5.9; 400 unequal ones of 251 rows of a byte on average 61, 16, 16 of 168 of 20 3.7, 1.7, but of 906 of 6 5.5,
/// 9.4; 10,413 of a row of 156 227, 68.
const EQUAL_ROWS: usize = 96;
const UNEQUAL_ROWS: usize = 512;
const NEAR: usize = if LOW_THRESHOLDS { 4 << 10 } else { 1 << 20 };
/// Bytes of a run of the one, at the least, and of the others, on average.
const HEAD: usize = 256;
const TAIL: usize = 32;

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::super::kernel;
    use super::super::testing::{parts, steps, transfer};
    use super::copy_each_part;
    use crate::dtype::DType;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

        /// At every level; input and outputs end, or begin, where nothing may be touched.
        #[test]
        fn each_part_of_few_bytes(
            lengths in prop_oneof![
                (1i64..20, 1usize..18).prop_map(|(len, pieces)| vec![len; pieces]),
                prop::collection::vec(prop_oneof![0i64..20, Just(4), 100i64..200], 1..20),
            ],
            rows in prop_oneof![1i64..10, 60i64..300],
            left_out in prop::option::of(0usize..18),
            at_end in any::<bool>(),
        ) {
            let row: i64 = lengths.iter().sum();
            prop_assume!(row > 0);
            let size = |len: i64| usize::try_from(rows * len).unwrap();
            let guarded = |len| Guarded::filled(size(len).next_multiple_of(64 << 10));
            let input = guarded(row);
            let source = input.place(size(row), at_end);
            let memory: Vec<_> = lengths.iter().map(|len| guarded(*len)).collect();
            let target = |(at, memory): (usize, &Guarded)| {
                (left_out != Some(at)).then(|| memory.place(size(lengths[at]), at_end))
            };
            let parts = parts(&lengths, memory.iter().enumerate().map(target));
            let shape = [rows, row];
            for kernels in kernel::levels() {
                // SAFETY: memory is as large as the shape says.
                unsafe {
                    for part in &parts {
                        part.target.write_bytes(0xEE, size(part.len));
                    }
                    copy_each_part(&transfer(DType::Uint8, &shape, 1, source, &parts), kernels);
                    let input = std::slice::from_raw_parts(source, size(row));
                    for part in &parts {
                        let copied = std::slice::from_raw_parts(part.target, size(part.len));
                        let rows = input.chunks(usize::try_from(row).unwrap());
                        let expected: Vec<u8> =
                            rows.flat_map(|row| &row[steps(part)]).copied().collect();
                        prop_assert!(copied == expected, "piece {} of {lengths:?}", part.index);
                    }
                }
            }
        }
    }
}
