//! Pieces of 4-bit and 2-bit elements that are not whole bytes, or of inputs with strides of their
//! own: axes over runs of bits, which begin anywhere in a byte.

use super::kernel::bits::{Packed, Runs};
use super::kernel::combine::LINE;
use super::kernel::pick::{Elements, Slot, Units};
use super::kernel::sub_byte::SideBySide;
use super::kernel::NonTemporal;
use super::sub_byte_transpose::BitColumns;
use super::tuning::Tuning;
use crate::math::div_rem_signed;
use crate::parts::{Part, Transfer};
use crate::shape::{usize_of, MAX_RANK};
use core::ops::Range;

/// Whether all pieces of a packed input are whole bytes of every row: then it does not matter
/// what the bytes hold.
pub(super) fn is_whole_bytes(transfer: &Transfer<'_>) -> bool {
    let geometry = &transfer.geometry;
    let step = geometry.inner * i64::from(geometry.dtype.bits());
    let is_whole = |len: i64| len * step % 8 == 0;
    let are_whole = |part: Part| is_whole(part.offset) && is_whole(part.len);
    transfer.bit_offset.is_multiple_of(8)
        && (is_whole(1) || is_whole(geometry.extent) && transfer.parts.iter().all(are_whole))
}

/// As many rows make whole lines of every piece.
pub(super) const GRANULE: usize = 8 * LINE;
/// Shorter rows than this, in bits, have much of each line in common, or of what CPUs read at a time. Zen 4, 30 MiB
/// of four columns of 3,000 int4, past the caches, 2.2 ms for 2.8.
const SHORT_ROW: i64 = 8 * 4096;
/// Such rows are taken by about as many bytes, which stay in the second-level cache for all pieces: by blocks of
/// 64 KiB it takes longer to find out again how runs are picked than it takes to read all rows for each piece.
const BLOCK: i64 = 512 << 10;

/// How many rows to take at a time, where that is better than one piece after the other.
pub(super) fn block_of_rows(transfer: &Transfer<'_>, are_singles: bool) -> Option<usize> {
    let geometry = &transfer.geometry;
    let row = geometry.extent * geometry.inner * i64::from(geometry.dtype.bits());
    let least = if are_singles { LINE } else { GRANULE };
    if (row >= SHORT_ROW && !are_singles) || usize_of(geometry.outer) <= least {
        return None;
    }
    (8 * BLOCK).checked_div(row).map(|rows| usize_of(rows).next_multiple_of(GRANULE))
}

/// One axis of the input, outermost first: steps, and bits from one to the next.
#[derive(Clone, Copy, Default)]
struct BitAxis {
    extent: i64,
    bits: i64,
}

/// A piece as axes over runs of contiguous bits in the input; the output is packed.
pub(super) struct Layout<'a> {
    source: *const u8,
    /// Bits from `source` to the piece's first element.
    begin: i64,
    target: *mut u8,
    /// Bits of an element, and of a run.
    bits: i64,
    run: i64,
    /// Bits of the piece.
    total: i64,
    axes: &'a mut [BitAxis],
    rank: usize,
    /// As [`Runs::readable`]: a packed input may be read to its end.
    readable: usize,
    tuning: Tuning,
}

/// Fewer rows side by side are packed one by one, and fewer than as many for each place in a byte where they begin within
/// bytes. Zen 4, GB/s for packed: 4-bit 551 × 3,129 7.0, .55, 3,470 × 15 .86, .19, 2-bit 182 × 1,651 1.1, .31.
const LEAST_TRANSPOSED: i64 = 4;
/// Of shorter columns, in bits, only those of whole bytes are transposed.
const SHORT_COLUMN: i64 = 16;
/// Long rows of elements nearer to each other than so many bits, times the square of those of an element, are packed
/// one by one too: registers hold many such elements, and smaller ones take more permutes.
const NEAR: i64 = 7;
const LONG_ROW: i64 = 768;
/// So many runs, or single elements, which loops take eight at a time, are worth finding out how they are picked.
const MANY_RUNS: i64 = 80;
const MANY_ELEMENTS: i64 = 384;
/// Fewer runs are packed one by one, even if that is known.
const FEW_RUNS: i64 = 16;

/// Copies some bytes of a checked piece that has elements, counted as if it were packed.
///
/// # Safety
/// As [`Layout::copy`].
#[inline(never)] // which takes much of the stack
pub(super) unsafe fn copy(
    transfer: &Transfer<'_>,
    part: &Part,
    tuning: &Tuning,
    bytes: Range<usize>,
) {
    let mut axes = [BitAxis::default(); MAX_RANK];
    // SAFETY: the caller's promise.
    unsafe { Layout::new(transfer, part, tuning, &mut axes).copy(bytes) };
}

impl<'a> Layout<'a> {
    /// The layout of a checked piece that has elements, of a sub-byte type.
    fn new(transfer: &Transfer<'_>, part: &Part, tuning: &Tuning, axes: &'a mut [BitAxis]) -> Self {
        let geometry = &transfer.geometry;
        let bits = i64::from(geometry.dtype.bits());
        let mut layout = Self {
            source: transfer.source,
            begin: transfer.bit_offset.into(),
            target: part.target,
            bits,
            run: bits,
            total: bits,
            axes,
            rank: 0,
            readable: 0,
            tuning: *tuning,
        };
        if transfer.is_packed() {
            let bytes = usize_of((layout.begin + geometry.elements * bits + 7) / 8);
            layout.readable = transfer.source as usize + bytes;
        }
        let mut packed = bits;
        for (axis, &input_extent) in geometry.shape.iter().enumerate().rev() {
            let is_split = axis == geometry.axis;
            let extent = if is_split { part.len } else { input_extent };
            let own = transfer.strides.and_then(|strides| strides.get(axis));
            // Only strides of extent-1 axes may overflow, and those are not used.
            let step = own.map_or(packed, |stride| stride.wrapping_mul(bits));
            if is_split {
                layout.begin = layout.begin.wrapping_add(part.offset.wrapping_mul(step));
            }
            packed = packed.wrapping_mul(input_extent);
            layout.push(BitAxis { extent, bits: step });
            layout.total *= extent;
        }
        if let Some(axes) = layout.axes.get_mut(..layout.rank) {
            axes.reverse();
        }
        layout
    }

    /// Adds an axis outside of those there, or lengthens the run or the axis that it continues.
    fn push(&mut self, axis: BitAxis) {
        if axis.extent == 1 {
            return;
        }
        if self.rank == 0 && axis.bits == self.run {
            self.run *= axis.extent;
            return;
        }
        match self.rank.checked_sub(1).and_then(|inner| self.axes.get_mut(inner)) {
            Some(inner) if inner.bits.checked_mul(inner.extent) == Some(axis.bits) => {
                inner.extent *= axis.extent;
                return;
            }
            _ => {}
        }
        if let Some(slot) = self.axes.get_mut(self.rank) {
            *slot = axis;
            self.rank += 1;
        }
    }

    /// Copies the bytes `part` of the packed output.
    ///
    /// # Safety
    /// The input must be readable and the output writable over the piece.
    pub(super) unsafe fn copy(&self, part: Range<usize>) {
        let mut at = part.start;
        while at < part.end {
            let target = self.target.wrapping_add(at);
            // SAFETY: the caller's promise.
            at += unsafe {
                if let Some((matrix, bytes)) = self.matrix(at..part.end) {
                    matrix.copy(target, &self.tuning);
                    bytes
                } else {
                    let bytes = self.up_to_matrix(at..part.end);
                    self.pack(at..at + bytes, target);
                    bytes
                }
            };
        }
        self.tuning.finish();
    }

    /// The rows of the output that lie side by side in the input, and what each is of, if any do.
    #[inline(never)] // once in the library
    fn side_by_side(&self) -> Option<(BitAxis, BitAxis)> {
        let [.., column, row] = self.axes() else { return None };
        let are_picked =
            row.extent >= LONG_ROW && row.bits.wrapping_abs() < NEAR * self.bits * self.bits;
        let is_transposed = self.run == self.bits && column.bits == self.bits && !are_picked;
        let bits = row.extent * self.bits;
        (is_transposed && (bits % 8 == 0 || bits >= SHORT_COLUMN)).then_some((*column, *row))
    }

    /// The matrix that some bytes of the output begin with, and how many bytes it becomes.
    fn matrix(&self, part: Range<usize>) -> Option<(BitColumns, usize)> {
        let (column, row) = self.side_by_side()?;
        let bits = row.extent * self.bits;
        let [start, end] = [part.start, part.end].map(|byte| self.bit_of(byte));
        // Up to seven bits of the first column are in the byte before.
        let (first, before) = div_rem_signed(start, bits);
        let left = column.extent - div_rem_signed(first, column.extent).1;
        let columns = left.min(div_rem_signed(end, bits).0 - first);
        let shared = 3 - self.bits.trailing_zeros();
        let least = if bits % 8 == 0 { LEAST_TRANSPOSED } else { LEAST_TRANSPOSED << shared };
        if before >= 8 || columns < least {
            return None;
        }
        let rows = SideBySide {
            source: self.source,
            begin: self.run_begin(first * row.extent),
            step: row.bits,
            rows: usize_of(row.extent),
            bits: usize_of(columns * self.bits),
        };
        let columns = BitColumns { shared, rows, bits, before };
        let bytes = columns.bytes();
        Some((columns, bytes))
    }

    /// How many bytes come before a matrix might begin.
    fn up_to_matrix(&self, part: Range<usize>) -> usize {
        let Some((_, row)) = self.side_by_side() else { return part.len() };
        let bits = row.extent * self.bits;
        let start = self.bit_of(part.start);
        let next = start + bits - div_rem_signed(start, bits).1;
        usize_of((next + 7) >> 3).saturating_sub(part.start).min(part.len())
    }

    /// The bit of the output that a byte begins with, no more than it has.
    #[inline(never)] // once in the library
    fn bit_of(&self, byte: usize) -> i64 {
        i64::try_from(byte).map_or(self.total, |byte| byte * 8).min(self.total)
    }

    /// Puts the bytes `part` of the packed output at `target`.
    ///
    /// # Safety
    /// As [`Layout::copy`]; there must be room for them.
    #[inline(never)] // which takes some of the stack
    unsafe fn pack(&self, part: Range<usize>, target: *mut u8) {
        let mut slot = Slot::NEW;
        // How to pick runs, and the bit of a byte that they begin at.
        let (mut elements, mut known) = (None, None);
        let (mut bit, end) = (self.bit_of(part.start), self.bit_of(part.end));
        let inner = self.axes().last().copied().unwrap_or(BitAxis { extent: 1, bits: 0 });
        let kernels = self.tuning.kernels;
        // Zen 4 sees the next ones coming: time without, 4-bit rows of many lengths .81 to .89, some 1.06.
        let stores = kernels.non_temporal.as_ref().filter(|_| !kernels.by_second);
        let mut packed = Packed::new(target, part.len());
        while bit < end {
            let (run, within) = div_rem_signed(bit, self.run);
            let left = end - bit;
            let (len, count) = if within > 0 || left < self.run {
                ((self.run - within).min(left), 1)
            } else {
                let rest = inner.extent - div_rem_signed(run, inner.extent).1;
                (self.run, rest.min(div_rem_signed(left, self.run).0))
            };
            let mut runs = Runs {
                source: self.source,
                begin: self.run_begin(run) + within,
                step: inner.bits,
                count,
                len,
                readable: self.readable,
                stores,
            };
            if count >= FEW_RUNS {
                // SAFETY: the bits lie within the piece; of many runs, the first few make whole bytes.
                unsafe { self.up_to_whole(&mut packed, &mut runs) };
                let first = runs.begin & 7;
                // What is found out for the first row serves all that begin there in a byte.
                let many = if known.is_none() { div_rem_signed(left, self.run).0 } else { count };
                let are_single = self.run == self.bits;
                let least = if are_single { MANY_ELEMENTS } else { MANY_RUNS };
                if known != Some(first) && many >= least {
                    (known, elements) = (Some(first), self.elements(&mut slot, &runs));
                }
                if let Some(elements) = elements.filter(|_| known == Some(first)) {
                    // SAFETY: as above.
                    unsafe { packed.push_picked(&elements, &mut runs) };
                }
            }
            // SAFETY: as above.
            unsafe {
                if let Some(past) = self.tuning.of_bits().filter(|_| runs.are_lines()) {
                    self.send(past, &mut packed, &mut runs);
                }
                (kernels.pack)(&mut packed, &runs);
            }
            bit += len * count;
        }
        // SAFETY: as above; `end` is at the end of a byte or of the output.
        unsafe { packed.finish() };
    }

    /// Packs all but the last bits of long runs, whole lines past the caches.
    ///
    /// # Safety
    /// As [`Layout::copy`]; there must be room for them.
    #[inline(never)] // off the way of short runs
    unsafe fn send(&self, past: &NonTemporal, packed: &mut Packed, runs: &mut Runs) {
        let head = packed.up_to_line();
        // SAFETY: the caller's promise; the runs are longer than a line.
        unsafe {
            if head > 0 {
                (self.tuning.kernels.pack)(packed, &Runs { count: 1, len: head, ..*runs });
            }
            packed.push_lines(past, runs, head);
        }
    }

    /// Packs the first of many runs until there are whole bytes.
    ///
    /// # Safety
    /// As [`Layout::copy`]; there must be room for them.
    #[inline(never)] // for few runs
    unsafe fn up_to_whole(&self, packed: &mut Packed, runs: &mut Runs) {
        while !packed.is_whole() {
            // SAFETY: the caller's promise.
            unsafe { (self.tuning.kernels.pack)(packed, &Runs { count: 1, ..*runs }) };
            runs.skip(1);
        }
    }

    /// How to pick whole runs by registers, if they can be.
    #[inline(never)] // off the way of few runs
    fn elements<'s>(&self, slot: &'s mut Slot, runs: &Runs) -> Option<Elements<'s>> {
        let fields = |bits: i64| div_rem_signed(bits, self.bits).0;
        let step = isize::try_from(fields(runs.step)).ok()?;
        let units = Units::whole(usize_of(fields(runs.len)), step);
        // Of which as many are picked as are whole bytes.
        let (first, count) = (usize_of(fields(runs.begin & 7)), usize_of(runs.count) & !3);
        Elements::new(slot, self.tuning.kernels, self.bits, units, first, count)
    }

    fn axes(&self) -> &[BitAxis] {
        self.axes.get(..self.rank).unwrap_or_default()
    }

    /// Bits from `source` to a run.
    #[inline(never)] // once in the library
    fn run_begin(&self, mut run: i64) -> i64 {
        let mut begin = self.begin;
        for axis in self.axes().iter().rev() {
            let (rest, index) = div_rem_signed(run, axis.extent);
            begin = begin.wrapping_add(axis.bits.wrapping_mul(index));
            run = rest;
        }
        begin
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::{BitAxis, Layout, Part, Transfer, Tuning, MAX_RANK};
    use crate::copy::testing::transfer;
    use crate::dtype::DType;

    const MEMORY: usize = 64 << 10;

    /// How the rows of the input lie.
    #[derive(Debug, Clone, Copy)]
    enum Rows {
        Packed,
        Padded,
        Reversed,
        Transposed,
    }

    fn bit(bytes: &[u8], at: usize) -> bool {
        bytes[at / 8] >> (at % 8) & 1 == 1
    }

    /// The piece `before..before + len` of rows of `before + len + after` elements, cut in two
    /// anywhere: compared with its bits picked one by one. The source is at the very begin or end of
    /// what may be touched, and the target has margins.
    fn check(
        memory: &Guarded,
        dtype: DType,
        [before, len, after]: [i64; 3],
        rows: i64,
        lead: i64,
        lay: Rows,
    ) {
        const MARGIN: usize = 16;
        let size = |count: i64| usize::try_from(count).unwrap();
        let bits = i64::from(dtype.bits());
        let extent = before + len + after;
        let (row_step, step, first) = match lay {
            Rows::Packed => (extent, 1, 0),
            Rows::Padded => (extent + 3, 1, 0),
            Rows::Reversed => (extent, -1, extent - 1),
            Rows::Transposed => (1, rows, 0),
        };
        let origin = (lead + first) * bits;
        let last = lead
            + match lay {
                Rows::Reversed => rows * extent - 1,
                _ => (rows - 1) * row_step + (extent - 1) * step,
            };
        let source: Vec<u8> = (0..size((last + 1) * bits).div_ceil(8))
            .map(|i| ((i * 2_654_435_761) >> 11).to_le_bytes()[0])
            .collect();
        let total = size(rows * len * bits);
        let mut expected = vec![0xEE; total.div_ceil(8) + 2 * MARGIN];
        expected[MARGIN..MARGIN + total.div_ceil(8)].fill(0);
        for at in 0..total {
            let (element, within) = (i64::try_from(at).unwrap() / bits, at % size(bits));
            let (row, column) = (element / len, before + element % len);
            let from = size(origin + (row * row_step + column * step) * bits) + within;
            expected[MARGIN + at / 8] |= u8::from(bit(&source, from)) << (at % 8);
        }

        let lengths = [before, len, after];
        let (shape, strides) = ([rows, extent], [row_step, step]);
        let is_packed = matches!(lay, Rows::Packed);
        let place = memory.place(source.len(), lead % 2 == 0);
        // SAFETY: there is room for it.
        unsafe { place.copy_from(source.as_ptr(), source.len()) };
        let transfer = Transfer {
            strides: Some(&strides[..]).filter(|_| !is_packed),
            bit_offset: u32::try_from(origin).unwrap(),
            ..transfer(dtype, &shape, 1, place, &[])
        };
        let cut = (total / 8 * 5 / 8, total.div_ceil(8));
        for tuning in Tuning::all() {
            let mut target = vec![0xEE; expected.len()];
            let data = target.as_mut_ptr().wrapping_add(MARGIN);
            let part = Part { index: 1, offset: before, len, target: data };
            let mut axes = [BitAxis::default(); MAX_RANK];
            let layout = Layout::new(&transfer, &part, &tuning, &mut axes);
            // SAFETY: source and target are as long as the plan says.
            unsafe {
                layout.copy(cut.0..cut.1);
                layout.copy(0..cut.0);
            }
            assert!(target == expected, "{dtype:?} {lengths:?} x {rows}, lead {lead}, {lay:?}");
        }
    }

    #[test]
    fn runs_of_any_length_at_any_bit_of_rows_of_any_length() {
        let memory = Guarded::filled(MEMORY);
        for dtype in [DType::Uint4, DType::Uint2] {
            let each = i64::from(8 / dtype.bits());
            for len in 1..=130 / i64::from(dtype.bits()) {
                for after in 0..2 * each {
                    for lead in 0..each {
                        check(&memory, dtype, [len % 3, len, after], 37, lead, Rows::Packed);
                    }
                }
            }
        }
    }

    #[test]
    fn rows_with_strides_of_their_own() {
        let memory = Guarded::filled(MEMORY);
        for dtype in [DType::Int4, DType::Int2] {
            for layout in [Rows::Padded, Rows::Reversed, Rows::Transposed] {
                for len in (1..30).chain([64, 65, 131, 300, 511, 513, 774, 1027]) {
                    for lead in 0..4 {
                        check(&memory, dtype, [lead + 1, len, len % 4], 21, lead, layout);
                    }
                }
            }
        }
    }

    #[test]
    fn more_than_a_stage() {
        let memory = Guarded::filled(MEMORY);
        for dtype in [DType::Float4E2M1, DType::Int2] {
            for len in [1, 2, 3, 5, 8, 13, 27, 28, 29, 255, 257, 515, 1024, 2047, 5003] {
                for (rows, lead) in [(1, 1), (2, 3), (1 + 9000 / len, 1)] {
                    check(&memory, dtype, [1, len, 2], rows, lead, Rows::Packed);
                    check(&memory, dtype, [0, len, 0], rows, lead, Rows::Packed);
                }
            }
        }
    }
}
