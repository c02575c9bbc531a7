//! Few rows become columns: they are interleaved, straight into outputs that are no wider, and by way of
//! the first-level cache into wider ones, whose other columns are not ours to write.

use super::columns::{Columns, Targets};
use super::kernel::combine::LINE;
use super::kernel::interleave::{are_quick, Interleave, MAX_INTERLEAVED};
use super::kernel::strided::{self, Axis, Row};
use super::kernel::LANE;
use super::tuning::Tuning;
use crate::math::signed;
use core::mem::MaybeUninit;

/// Bytes on the way into wider rows.
const SCRATCH: usize = 2048;
/// Outputs of fewer lines than this are not worth going past the caches for, on Zen 4 and elsewhere. Zen 4, GB/s of 12 MB
/// past the caches and through them: 8 x 784 bytes 5.6, 10.9, 3 x 3,136 9.4, 16, 4 x 784 of 4 bytes 13, 19, but 8 x 784
/// of these 17, 15.
const LEAST_BY_SECOND: usize = 256;
const MIN_STREAMED: usize = 64;
/// Of more rows those of a line are not worth it. Zen 4, GB/s of many matrices interleaved for transposed: 8 rows of 33 of
/// 2 bytes 23 for 3.7, of 4 26 for 18, 4 of 8 bytes 32 for 22, but 12 of 2 bytes 11 for 13, 16 of 4 19 for 24.
const MOST_SHORT: usize = 9;

impl Columns<'_> {
    /// Whether the rows are so few, and long enough, to be interleaved.
    #[inline(never)] // once in the library
    pub(super) fn are_interleaved(&self, tuning: Tuning) -> bool {
        let &Self { rows, unit, count, .. } = self;
        let is_short = rows <= MOST_SHORT && tuning.kernels.by_second;
        let least = if is_short { unit } else { 1 };
        (2..=MAX_INTERLEAVED).contains(&rows)
            && count * least >= LINE
            && Columns::turns(unit)
            && (tuning.kernels.interleave)(rows, unit).is_some()
            && if self.are_beside() {
                tuning.apart.is_some() || are_quick(rows, unit)
            } else {
                // What fills lanes is transposed more quickly.
                rows * unit < LANE
            }
    }

    /// Whether rows become rows without others beside them.
    fn are_beside(&self) -> bool {
        let mut are_beside = true;
        self.targets.each(&mut |Targets { first, apart, .. }: Targets| {
            are_beside = first.is_none() || apart == self.rows * self.unit;
            are_beside
        });
        are_beside
    }

    /// Interleaves the rows, past the caches or not, and of as many matrices like it.
    ///
    /// # Safety
    /// As [`Columns::copy`], of all of them; [`Columns::are_interleaved`] must say so.
    pub(super) unsafe fn interleave(&self, planes: Axis, tuning: Tuning) {
        let &Self { source, step, rows, unit, .. } = self;
        let mut column = 0;
        self.targets.each(&mut |Targets { first, apart, count }: Targets| {
            let source = source.wrapping_add(column * unit);
            column += count;
            let Some(target) = first else { return true };
            let (row, bytes) = (rows * unit, count * rows * unit);
            let least = if tuning.kernels.by_second { LEAST_BY_SECOND } else { MIN_STREAMED };
            let past = tuning.apart.filter(|_| bytes >= least * LINE);
            let are_one = row == apart && past.is_none();
            let (one, all) = if are_one { (planes, Axis::ONE) } else { (Axis::ONE, planes) };
            let mut next = all.places((source, target));
            while let Some((source, target)) = next() {
                let streams = Interleave { source, apart: step, len: rows, unit, count, target };
                // SAFETY: the caller's promise.
                unsafe {
                    if row == apart {
                        streams.run(one, tuning.kernels, past.map(|_| tuning.prefetch));
                    } else {
                        in_groups(streams, apart, tuning);
                    }
                }
            }
            true
        });
    }
}

/// The most of so many streams that make a group: numbers without other factors than 2 and 3, and no stream
/// is left alone.
fn group(streams: usize) -> usize {
    let fits = |group: &usize| *group <= streams && streams - group != 1;
    [16, 8, 6, 4, 3].into_iter().find(fits).unwrap_or(2)
}

/// Interleaves into rows that begin `apart` bytes (backwards: wrapped) from each other, a group of streams
/// at a time.
///
/// # Safety
/// As [`Interleave::run`].
unsafe fn in_groups(mut streams: Interleave, apart: usize, tuning: Tuning) {
    let mut left = streams.len;
    while left > 0 {
        let len = group(left);
        // SAFETY: the caller's promise.
        unsafe { into_wider_rows(Interleave { len, ..streams }, apart, tuning) };
        streams.source = streams.source.wrapping_add(streams.apart.wrapping_mul(len));
        streams.target = streams.target.wrapping_add(len * streams.unit);
        left -= len;
    }
}

/// Interleaves into rows that begin `apart` bytes (backwards: wrapped) from each other.
///
/// # Safety
/// As [`Interleave::run`].
#[inline(never)] // which takes some of the stack
unsafe fn into_wider_rows(mut streams: Interleave, apart: usize, tuning: Tuning) {
    let mut scratch = [const { MaybeUninit::<u8>::uninit() }; SCRATCH];
    let scratch = scratch.as_mut_ptr().cast::<u8>();
    let (mut target, mut left) = (streams.target, streams.count);
    let row = streams.len * streams.unit;
    let most = SCRATCH.checked_div(row).unwrap_or(1);
    while left > 0 {
        let count = left.min(most);
        let some = Interleave { count, target: scratch, ..streams };
        let target_step = signed(apart);
        let rows = Row {
            source: scratch,
            source_step: signed(row),
            target,
            target_step,
            count,
            unit: row,
        };
        // SAFETY: the caller's promise; scratch has room for so many rows.
        unsafe {
            some.run(Axis::ONE, tuning.kernels, None);
            strided::copy(tuning.kernels, rows);
        }
        streams.source = streams.source.wrapping_add(count * streams.unit);
        target = target.wrapping_add(apart.wrapping_mul(count));
        left -= count;
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::super::kernel::interleave::{Interleave, MAX_INTERLEAVED};
    use super::super::kernel::levels;
    use super::super::kernel::strided::Axis;

    const BYTES: usize = 256 << 10;
    /// What streams get behind each other.
    const GAP: usize = 7;

    /// At every level, past the caches or not, at the very end or the very begin of memory that may be
    /// touched; compared unit by unit.
    fn check(memory: &[Guarded; 2], unit: usize, len: usize, count: usize) {
        let [from, to] = memory;
        let (stream, all) = (count * unit, len * count * unit);
        let (at_end, backwards) = (count.is_multiple_of(2), count.is_multiple_of(3));
        let first = from.place(len * (stream + GAP) - GAP, at_end);
        let streams: Vec<*const u8> =
            (0..len).map(|at| first.wrapping_add(at * (stream + GAP)).cast_const()).collect();
        let streams: Vec<_> = if backwards { streams.into_iter().rev().collect() } else { streams };
        let mut expected = Vec::new();
        for row in 0..count {
            for stream in &streams {
                // SAFETY: that many bytes are there.
                expected.extend_from_slice(unsafe {
                    std::slice::from_raw_parts(stream.add(row * unit), unit)
                });
            }
        }
        // Where a unit of a line begins, and where none does.
        let after = if at_end { count % 2 } else { 0 };
        let target = to.place(all + after, at_end);
        let apart = (streams[1] as usize).wrapping_sub(streams[0] as usize);
        let interleave = Interleave { source: streams[0], apart, len, unit, count, target };
        for kernels in levels() {
            for past in [None, Some(1024)] {
                let past = past.filter(|_| kernels.non_temporal.is_some());
                // SAFETY: source and target have that many rows.
                let copied = unsafe {
                    target.write_bytes(0xEE, all);
                    interleave.run(Axis::ONE, kernels, past);
                    if let Some(stores) = &kernels.non_temporal {
                        (stores.fence)();
                    }
                    std::slice::from_raw_parts(target, all)
                };
                assert!(copied == expected, "{unit} B × {len}, {count} rows");
            }
        }
    }

    #[test]
    fn every_number_of_streams_of_every_width_and_up_to_200_rows() {
        let memory = [Guarded::filled(BYTES), Guarded::filled(BYTES)];
        for unit in [1, 2, 4, 8, 16] {
            for len in 2..=MAX_INTERLEAVED {
                for count in 1..=200 {
                    check(&memory, unit, len, count);
                }
            }
        }
    }
}
