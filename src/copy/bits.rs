//! Pieces of sub-byte elements, of 4 or 2 bits. A piece is a nest of axes over runs: bits that are contiguous in the
//! input and in the output. The output is one stream of bits, of which a call writes some whole bytes. (If all runs are
//! whole bytes, `rows.rs` moves them as such.)
//!
//! All runs along the innermost axis form a series, which `bit_runs.rs` packs: long runs by chunks that are shifted into
//! place, short ones by groups that are whole bytes, and single elements by loops over the bytes of the output. If the
//! elements of the next axis lie side by side, so that series are columns, `bit_columns.rs` transposes tiles of them.

// Numbers of bits in a word and of bytes in memory fit into whatever they are cast to.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use super::bit_columns::{Columns, LEAST_COLUMNS};
use super::bit_runs::{BitRuns, Source, Writer};
use super::call::{Call, PAGE_BYTES};
use super::kernels::Kernels;
use super::nest::{Axis, Nest};
use crate::math::div_rem_signed;
use crate::parts::{Part, Transfer};
use core::ops::Range;

/// A piece as series of runs.
struct Layout {
    /// The axes outward of the innermost one, which lead to the first run of each series. Their distances are counted
    /// in elements; those below, in bits.
    outer: Nest,
    /// From the first byte of the input to its first element.
    bit_offset: i64,
    /// The extent of the innermost axis, bits from one run to the next, and bits of each.
    extent: i64,
    step: i64,
    run: i64,
    /// Bits of an element.
    size: i64,
    /// Bits of the piece.
    total: i64,
}

impl Layout {
    fn new(transfer: &Transfer<'_>, part: &Part) -> Self {
        let size = i64::from(transfer.geometry.dtype.bits());
        let mut outer = Nest::in_elements(transfer, part);
        let total = outer.total() as i64 * size;
        let run = outer.unit as i64 * size;
        let inner = outer.pop().unwrap_or(Axis::ONE);
        Self {
            outer,
            bit_offset: transfer.bit_offset.into(),
            extent: inner.extent as i64,
            step: (inner.from as i64).wrapping_mul(size),
            run,
            size,
            total,
        }
    }

    /// Returns the bits of a series.
    fn series_bits(&self) -> i64 {
        self.extent * self.run
    }

    /// Returns the columns that begin with series `index` of the output, and have up to `bits` bits, if they are worth
    /// transposing.
    fn columns(&self, source: Source, call: &Call, index: i64, bits: i64) -> Option<Columns> {
        let column = self.outer.axes().last()?;
        if self.run != self.size || column.from != 1 || self.series_bits() < 8 {
            return None;
        }
        let left = column.extent as i64 - div_rem_signed(index, column.extent as i64).1;
        let count = left.min(div_rem_signed(bits, self.series_bits()).0);
        (count >= LEAST_COLUMNS).then(|| Columns {
            source,
            begin: self.begin_of(index),
            step: self.step,
            rows: self.extent,
            count,
            has_holes: call.has_holes,
        })
    }

    /// Returns a series, and what may be read of it: everything between runs that are less than a page apart.
    fn series(&self, mut source: Source, call: &Call, index: i64) -> BitRuns {
        let begin = self.begin_of(index);
        let last = begin.wrapping_add(self.step.wrapping_mul(self.extent - 1));
        if call.has_holes {
            source.readable = source.byte(begin.max(last) + self.run + 7) as usize;
        }
        BitRuns {
            source,
            begin,
            step: self.step,
            bits: self.run,
            size: self.size,
            are_far: call.has_holes && self.step.unsigned_abs() >= 8 * PAGE_BYTES as u64,
        }
    }

    /// Returns the bits from the first byte of the input to the first run of a series.
    fn begin_of(&self, series: i64) -> i64 {
        let element = self.outer.input_at(series as usize) as i64;
        element.wrapping_mul(self.size).wrapping_add(self.bit_offset)
    }
}

/// Packs the bytes `bytes` of a piece, counted as if it were packed.
///
/// # Safety
/// The elements in them must be readable, and the bytes writable.
pub(super) unsafe fn pack_piece(
    transfer: &Transfer<'_>,
    part: &Part,
    call: &Call,
    bytes: Range<usize>,
) {
    let layout = Layout::new(transfer, part);
    let series_bits = layout.series_bits();
    let kernels = call.machine.kernels;
    let target = |at: usize| part.target.wrapping_add(at);
    let mut out = Writer::new(target(bytes.start), target(bytes.end));
    let source = Source { bytes: transfer.source, readable: call.readable_end as usize };
    let (mut bit, end) = (8 * bytes.start as i64, layout.total.min(8 * bytes.end as i64));
    while bit < end {
        let (index, within) = div_rem_signed(bit, series_bits);
        let columns =
            if within == 0 { layout.columns(source, call, index, end - bit) } else { None };
        // SAFETY: these bits are in the bytes that the caller speaks of, and `layout` says what may be read.
        bit += unsafe {
            if let Some(columns) = columns {
                (kernels.of_bits(layout.size).pack_columns)(&columns, &mut out);
                columns.count * series_bits
            } else {
                let range = within..series_bits.min(within + end - bit);
                let series = layout.series(source, call, index);
                pack_series(&series, kernels, &mut out, range.clone());
                range.end - range.start
            }
        };
    }
    // SAFETY: the last byte is one of the bytes.
    unsafe { out.finish() };
}

/// Packs some bits of a series, counted as if it were packed: single elements by whole bytes of the output, if there
/// are any.
///
/// # Safety
/// As for [`BitRuns::pack_runs`].
unsafe fn pack_series(series: &BitRuns, kernels: &Kernels, out: &mut Writer, range: Range<i64>) {
    let mut start = range.start;
    let head = -out.held_bits() & 7;
    // SAFETY: these are some of the bits; and single elements are packed into whole bytes for which there is room.
    unsafe {
        if series.bits == series.size && range.end - start >= head + 8 {
            (kernels.pack_runs)(series, out, start..start + head);
            start += head;
            let bytes = (range.end - start) >> 3;
            let pack_elements = kernels.of_bits(series.size).pack_elements;
            pack_elements(series, out.target(), start, bytes as usize);
            out.advance(bytes as usize);
            start += 8 * bytes;
        }
        (kernels.pack_runs)(series, out, start..range.end);
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::similar_names)] // cut, cuts
mod tests {
    use super::super::call::Call;
    use super::super::level;
    use super::super::machine::{levels, Machine};
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
            bytes: total,
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
                    pack_piece(&transfer, &part, &call, cuts[at]..cuts[at + 1]);
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
