//! Pieces of sub-byte elements, of 4 or 2 bits. A piece is a nest of axes over runs: bits that are contiguous in the
//! input and in the output. The output is one stream of bits, of which a call writes some whole bytes. (If all runs are
//! whole bytes, `rows.rs` moves them as such.)
//!
//! All runs along the innermost axis form a series, which `bit_runs.rs` packs. If the elements of neighbouring series
//! lie side by side, so that series are columns, they are brought together by `bit_tile.rs`, and packed step by step:
//!
//! ```text
//! stream of bits     |0 1 2 3 4|0 1 2 3 4|0 1 2 3 4|     steps 0 to 4 of three columns
//! packed first        ^         ^         ^               then all steps 1, and so on
//! ```

// Numbers of bits in a word and of bytes in memory fit into whatever they are cast to.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use super::bit_runs::{BitRuns, Writer};
use super::bit_tile::{Tile, ROW_BITS, STEP_ROWS};
use super::call::Call;
use super::nest::{Axis, Nest};
use crate::math::div_rem_signed;
use crate::parts::{Part, Transfer};
use core::ops::Range;
use core::ptr::null;

/// Fewer columns, and columns of fewer bits, are not worth being brought together.
const LEAST_COLUMNS: i64 = 16;
const LEAST_COLUMN_BITS: i64 = 64;

/// Packs the bytes `bytes` of a piece, counted as if it were packed.
///
/// # Safety
/// The elements of the piece must be readable, and the bytes writable.
pub(super) unsafe fn pack_piece(
    transfer: &Transfer<'_>,
    part: &Part,
    call: &Call,
    bytes: Range<usize>,
) {
    let layout = Layout::new(transfer, part, call);
    // SAFETY: as the caller says.
    unsafe {
        match layout.columns(&bytes) {
            Some(count) => layout.pack_columns(count, bytes),
            None => layout.pack(None, bytes),
        }
    }
}

/// A piece as series of runs.
struct Layout {
    target: *mut u8,
    /// The axes outward of the innermost one, which lead from one series to the next. Their distances are counted in
    /// elements; those below, in bits.
    outer: Nest,
    /// From the first byte of the input to its first element.
    bit_offset: i64,
    /// The first series, but for where it begins.
    series: BitRuns,
    series_bits: i64,
    /// Bits of the piece.
    total: i64,
}

impl Layout {
    fn new(transfer: &Transfer<'_>, part: &Part, call: &Call) -> Self {
        let size = i64::from(transfer.geometry.dtype.bits());
        let mut outer = Nest::EMPTY;
        outer.set_up(transfer, part, None);
        let total = outer.total() as i64 * size;
        let inner = outer.pop().unwrap_or(Axis::ONE);
        let series = BitRuns {
            source: transfer.source,
            readable_end: if call.has_holes { null() } else { call.readable_end },
            begin: 0,
            step: (inner.from as i64).wrapping_mul(size),
            run: outer.unit as i64 * size,
            size,
        };
        let series_bits = inner.extent as i64 * series.run;
        let bit_offset = transfer.bit_offset.into();
        Self { target: part.target, outer, bit_offset, series, series_bits, total }
    }

    /// Returns a series.
    fn series(&self, index: i64) -> BitRuns {
        let element = self.outer.input_at(index as usize) as i64;
        let begin = element.wrapping_mul(self.series.size).wrapping_add(self.bit_offset);
        BitRuns { begin, ..self.series }
    }

    /// Returns how many neighbouring series are columns, if those in some bytes are worth being brought together.
    fn columns(&self, bytes: &Range<usize>) -> Option<i64> {
        let BitRuns { step, run, size, .. } = self.series;
        let column = self.outer.axes().last()?;
        let are_columns = run == size && column.from == 1 && step.unsigned_abs() >= ROW_BITS as u64;
        let count = div_rem_signed(8 * bytes.len() as i64, self.series_bits).0;
        let are_many = count.min(column.extent as i64) >= LEAST_COLUMNS;
        (are_columns && are_many && self.series_bits >= LEAST_COLUMN_BITS)
            .then_some(column.extent as i64)
    }

    /// Packs some bytes of a piece of columns, of which `count` are neighbours.
    ///
    /// # Safety
    /// As for [`pack_piece`].
    #[inline(never)] // no other way of a copy needs stack for a tile
    unsafe fn pack_columns(&self, count: i64, bytes: Range<usize>) {
        let (column_bits, size) = (self.series_bits, self.series.size);
        let (rows, most) = (div_rem_signed(column_bits, size).0, div_rem_signed(ROW_BITS, size).0);
        let index_at = |byte: usize| div_rem_signed(8 * byte as i64, column_bits).0;
        // A byte is packed with its first bit.
        let byte_at =
            |bit: i64| ((bit + 7) >> 3).max(bytes.start as i64).min(bytes.end as i64) as usize;
        let (mut first, end) = (index_at(bytes.start), index_at(bytes.end - 1) + 1);
        let mut tile = Tile::new();
        while first < end {
            let left = count - div_rem_signed(first, count).1;
            let columns = first..end.min(first + left.min(most));
            for row in (0..rows).step_by(STEP_ROWS as usize) {
                let next = rows.min(row + STEP_ROWS);
                // SAFETY: elements of the piece, and some of the bytes.
                unsafe {
                    tile.fill(&self.series(first), columns.clone(), row..rows);
                    for column in columns.clone() {
                        let [from, to] =
                            [row, next].map(|row| byte_at(column * column_bits + row * size));
                        self.pack(Some(&tile), from..to);
                    }
                }
            }
            first = columns.end;
        }
    }

    /// Packs some bytes in the order of the output, from a tile what it has.
    ///
    /// # Safety
    /// As for [`pack_piece`].
    unsafe fn pack(&self, tile: Option<&Tile>, bytes: Range<usize>) {
        let target = |at: usize| self.target.wrapping_add(at);
        let mut out = Writer::new(target(bytes.start), target(bytes.end));
        let (mut bit, end) = (8 * bytes.start as i64, self.total.min(8 * bytes.end as i64));
        while bit < end {
            let (index, within) = div_rem_signed(bit, self.series_bits);
            let range = within..self.series_bits.min(within + end - bit);
            bit += range.end - range.start;
            let near = tile.and_then(|tile| tile.column(index, &range));
            let runs = near.unwrap_or_else(|| self.series(index));
            // SAFETY: these bits are in the bytes, and what is behind them there is written later.
            unsafe { runs.pack(&mut out, range) };
        }
        // SAFETY: the last byte is one of the bytes.
        unsafe { out.finish() };
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::similar_names)] // cut, cuts
mod tests {
    use super::super::call::Call;
    use super::super::machine::Machine;
    use super::super::tests::transfer;
    use super::super::tests::Guarded;
    use super::{pack_piece, Part, Transfer};
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

    /// Copies a piece in three ranges, the last one first, between pages that nobody may touch, and
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
            bytes: total,
            ..transfer(case.dtype, &shape, case.split, place.wrapping_add(first / 8))
        };
        let call = Call::new(Machine::here(), &transfer, None);
        assert!(call.has_holes || case.far.is_none());
        let [a, b] = case.cuts.map(|cut| cut.index(total + 1));
        let cuts = [0, a.min(b), a.max(b), total];
        let target = memory[2].place(total, !case.at_end);
        // SAFETY: that many bytes are there, and the input is as the transfer says.
        unsafe {
            target.write_bytes(0xEE, total);
            let part = Part { index: 0, offset: case.offset, len: case.len, target };
            for at in [2, 1, 0] {
                if cuts[at] < cuts[at + 1] {
                    pack_piece(&transfer, &part, &call, cuts[at]..cuts[at + 1]);
                }
                let done = std::slice::from_raw_parts(target, total);
                assert!(done[cuts[at]..] == expected[cuts[at]..], "from {} on", cuts[at]);
                assert!(done[..cuts[at]].iter().all(|byte| *byte == 0xEE), "before {}", cuts[at]);
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
