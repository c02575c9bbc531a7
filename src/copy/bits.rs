//! Elements that share bytes. A piece is a nest of axes over runs: bits that are contiguous in the input and in the
//! output. The output is one stream of bits, of which a call writes some whole bytes. (If all runs are whole bytes,
//! `rows.rs` copies them as such.)
//!
//! A row, which is all runs along the innermost axis, is copied by `bit_rows.rs`: long runs by chunks that are shifted
//! into place, short ones by groups that are whole bytes, and single elements by loops over the bytes of the output. If
//! the elements of the next axis lie side by side, `bit_columns.rs` transposes tiles.

// Numbers of bits in a word and of bytes in memory fit into whatever they are cast to.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use super::bit_columns::{Columns, LEAST_COLUMNS};
use super::bit_rows::{pack, Row, Source, Writer};
use super::call::{Call, PAGE_BYTES};
use super::nest::{Axis, Nest};
use crate::math::{div, div_rem_signed};
use crate::parts::{Part, Transfer};
use core::ops::Range;
use core::ptr::null;

/// A piece as rows of runs.
struct Layout {
    /// The axes outward of the row, which lead to its first run. Their steps are elements; those below are bits.
    rows: Nest,
    /// The extent of the innermost axis, bits from one run to the next, and bits of each.
    extent: i64,
    step: i64,
    run: i64,
    size: i64,
    /// Bits of the piece.
    total: i64,
}

impl Layout {
    fn new(transfer: &Transfer<'_>, part: &Part) -> Self {
        let size = i64::from(transfer.geometry.dtype.bits());
        let mut rows = Nest::NONE;
        let source = null::<u8>().wrapping_add(div(transfer.bit_offset as usize, size as usize));
        rows.make(&Transfer { source, ..*transfer }, part, None);
        let (total, run) = (rows.bytes() as i64 * size, rows.unit as i64 * size);
        let row = if rows.axes().is_empty() { Axis::ONE } else { rows.pop() };
        let (extent, step) = (row.extent as i64, (row.from as i64).wrapping_mul(size));
        Self { rows, extent, step, run, size, total }
    }

    /// Returns the columns that begin with row `index` of the output, in up to `bits` bits, if they are worth
    /// transposing.
    fn columns(
        &self,
        source: Source,
        has_holes: bool,
        (index, bits): (i64, i64),
    ) -> Option<Columns> {
        let column = self.rows.axes().last()?;
        let row_bits = self.extent * self.size;
        if self.run != self.size || column.from != 1 || row_bits < 8 {
            return None;
        }
        let left = column.extent as i64 - div_rem_signed(index, column.extent as i64).1;
        let count = left.min(div_rem_signed(bits, row_bits).0);
        let (begin, step) = (self.row_begin(index), self.step);
        let columns = Columns { source, begin, step, rows: self.extent, count, has_holes };
        (columns.count >= LEAST_COLUMNS).then_some(columns)
    }

    /// Returns a row, and what may be read of it: everything between runs that are less than a page apart.
    fn row(&self, mut source: Source, has_holes: bool, index: i64) -> Row {
        let &Self { extent, step, run, size, .. } = self;
        let begin = self.row_begin(index);
        let last = begin.wrapping_add(step.wrapping_mul(extent - 1));
        if has_holes {
            source.readable = source.byte(begin.max(last) + run + 7) as usize;
        }
        let are_far = has_holes && step.unsigned_abs() >= 8 * PAGE_BYTES as u64;
        Row { source, begin, step, run, size, are_far }
    }

    /// Returns the bits from the source to the first run of a row.
    fn row_begin(&self, row: i64) -> i64 {
        let element = self.rows.source_at(row as usize) as isize;
        (element as i64).wrapping_mul(self.size)
    }
}

/// Copies the bytes `bytes` of a piece, counted as if it were packed.
///
/// # Safety
/// The elements in them must be readable, and the bytes writable.
#[inline(never)] // for its stack
pub(super) unsafe fn copy(transfer: &Transfer<'_>, part: &Part, call: &Call, bytes: Range<usize>) {
    let layout = Layout::new(transfer, part);
    let row_bits = layout.extent * layout.run;
    let (target, end) =
        (part.target.wrapping_add(bytes.start), part.target.wrapping_add(bytes.end));
    let mut out = Writer { target, end, held: 0, bits: 0 };
    let source = Source { bytes: transfer.source, readable: call.readable_end as usize };
    let (mut bit, end) = (8 * bytes.start as i64, layout.total.min(8 * bytes.end as i64));
    while bit < end {
        let (index, within) = div_rem_signed(bit, row_bits);
        let columns = layout.columns(source, call.has_holes, (index, end - bit));
        // SAFETY: the caller's promise.
        bit += unsafe {
            if let Some(columns) = columns.filter(|_| within == 0) {
                let [of_4, of_2] = call.machine.kernels.transpose_bits;
                (if layout.size == 4 { of_4 } else { of_2 })(&columns, &mut out);
                columns.count * row_bits
            } else {
                let bits = within..row_bits.min(within + end - bit);
                let row = layout.row(source, call.has_holes, index);
                let count = bits.end - bits.start;
                pack(&row, call.machine.kernels, &mut out, bits);
                count
            }
        };
    }
    // SAFETY: as above.
    unsafe { out.finish() };
}

#[cfg(all(test, unix))]
#[allow(clippy::similar_names)] // cut, cuts
mod tests {
    use super::super::call::Call;
    use super::super::guarded::Guarded;
    use super::super::level;
    use super::super::machine::{levels, Machine};
    use super::super::testing::transfer;
    use super::{copy, Part, Transfer};
    use crate::dtype::DType;
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;
    use proptest::test_runner::TestRunner;

    const MEMORY_BYTES: usize = 64 << 10;

    /// A piece: extents and strides from the outermost axis inward, which axis is split and where, and how many
    /// elements come before the lowest.
    #[derive(Debug, Clone)]
    struct Case {
        dtype: DType,
        axes: Vec<(i64, i64)>,
        split: usize,
        offset: i64,
        len: i64,
        lead: i64,
        /// Whether there is one more axis, outermost or innermost, of two steps with unmapped pages between them.
        far: Option<bool>,
        cuts: [Index; 2],
        at_end: bool,
    }

    impl Case {
        /// The elements of the piece, counted from element [0, …, 0], in the order of the output.
        fn elements(&self) -> Vec<i64> {
            self.axes.iter().enumerate().fold(vec![0], |all, (at, &(extent, stride))| {
                let steps =
                    if at == self.split { self.offset..self.offset + self.len } else { 0..extent };
                all.iter()
                    .flat_map(|&from| steps.clone().map(move |step| from + step * stride))
                    .collect()
            })
        }

        fn add_far(&mut self, elements: i64) {
            if let Some(is_inner) = self.far {
                let at = if is_inner { self.axes.len() } else { 0 };
                self.split += usize::from(!is_inner);
                self.axes.insert(at, (2, elements));
            }
        }
    }

    /// Copies a piece in three ranges, the last one first, at each level, between pages that nobody may touch, and
    /// compares it with its elements moved one by one.
    fn check(memory: &[Guarded; 3], mut case: Case) {
        let bits = usize::try_from(case.dtype.bits()).unwrap();
        let of = |elements: i64| usize::try_from(elements).unwrap() * bits;
        let ends = case.axes.iter().map(|(extent, stride)| (extent - 1) * stride);
        let (low, high): (i64, i64) =
            (ends.clone().map(|end| end.min(0)).sum(), ends.map(|end| end.max(0)).sum());
        let bytes = of(case.lead + high - low + 1).div_ceil(8);
        if bytes > MEMORY_BYTES {
            return;
        }
        let [place, far] = [0, 1].map(|at| memory[at].place(bytes, case.at_end));
        let first = of(case.lead - low);
        case.add_far((far as i64 - place as i64) * 8 / i64::from(case.dtype.bits()));
        let elements = case.elements();
        let total = (elements.len() * bits).div_ceil(8);
        if total > MEMORY_BYTES {
            return;
        }
        let mut expected = vec![0u8; total];
        for (to, from) in elements.iter().enumerate() {
            let bit =
                isize::try_from(first).unwrap() + isize::try_from(*from).unwrap() * bits as isize;
            // SAFETY: the element is in one of the two memories.
            let byte = unsafe { place.wrapping_offset(bit.div_euclid(8)).read() };
            let element = byte >> bit.rem_euclid(8) & ((1 << bits) - 1);
            expected[to * bits / 8] |= element << (to * bits % 8);
        }

        let (shape, strides): (Vec<_>, Vec<_>) = case.axes.iter().copied().unzip();
        let transfer = Transfer {
            strides: Some(&strides),
            bit_offset: u32::try_from(first % 8).unwrap(),
            ..transfer(case.dtype, &shape, case.split, place.wrapping_add(first / 8))
        };
        let mut call = Call::new(Machine::here(), &transfer, None);
        assert!(call.has_holes || case.far.is_none());
        let [a, b] = case.cuts.map(|cut| cut.index(total + 1));
        let cuts = [0, a.min(b), a.max(b), total];
        for level in levels() {
            call.machine.kernels = level::kernels_of(level);
            let target = memory[2].place(total, !case.at_end);
            // SAFETY: that many bytes are there, and the input is as the transfer says.
            unsafe {
                target.write_bytes(0xEE, total);
                let part = Part { index: 0, offset: case.offset, len: case.len, target };
                for at in [2, 1, 0] {
                    copy(&transfer, &part, &call, cuts[at]..cuts[at + 1]);
                    let done = std::slice::from_raw_parts(target, total);
                    assert!(
                        done[cuts[at]..] == expected[cuts[at]..],
                        "{level:?}, from {} on",
                        cuts[at]
                    );
                    assert!(
                        done[..cuts[at]].iter().all(|byte| *byte == 0xEE),
                        "{level:?}, before {}",
                        cuts[at]
                    );
                }
            }
        }
    }

    /// Axes that are contiguous or not, repeat, or go backwards, in the order of the output or the reverse.
    fn cases() -> impl Strategy<Value = Case> {
        let stride =
            prop_oneof![4 => Just(1), 2 => 2..10i64, 1 => Just(-1), 1 => -9..0i64, 1 => Just(0)];
        let axis = (prop_oneof![1..6i64, 1..40i64, 60..300i64], stride, 0..4i64);
        let piece = (any::<Index>(), any::<Index>(), any::<Index>(), 0..9i64);
        let rest = (any::<[Index; 2]>(), any::<[bool; 3]>(), any::<Option<bool>>());
        (vec(axis, 1..4), piece, rest).prop_map(
            |(axes, (split, offset, len, lead), (cuts, [at_end, is_2, turn], far))| {
                let mut packed = 1;
                let next = |(extent, step, gap): (i64, i64, i64)| {
                    let stride = packed * step;
                    packed *= extent * step.abs().max(1);
                    packed += gap;
                    (extent, stride)
                };
                let mut axes: Vec<_> = axes.into_iter().map(next).collect();
                if !turn {
                    axes.reverse();
                }
                let split = split.index(axes.len());
                let extent = usize::try_from(axes[split].0).unwrap();
                let offset = offset.index(extent);
                let len = 1 + len.index(extent - offset) as i64;
                let dtype = if is_2 { DType::Int2 } else { DType::Uint4 };
                Case { dtype, axes, split, offset: offset as i64, len, lead, far, cuts, at_end }
            },
        )
    }

    #[test]
    fn any_piece_is_as_its_elements_moved_one_by_one() {
        let memory = [(); 3].map(|()| Guarded::filled(MEMORY_BYTES));
        let config =
            ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(1500) };
        let run = |case| {
            check(&memory, case);
            Ok(())
        };
        TestRunner::new(config).run(&cases(), run).unwrap();
    }
}
