//! The canonical form of packed outputs of an input in whose memory the steps on the split axis are
//! what lies side by side, as in a transposed matrix or the channels of an image: matrices, of
//! which each piece takes some columns and makes them rows.

use super::columns::{Columns, Targets, LEAST_AGAIN};
use super::kernel::combine::LINE;
use super::kernel::interleave::MAX_INTERLEAVED;
use super::kernel::strided::Axis;
use super::kernel::{LANE, MAX_DEINTERLEAVED};
use super::layout::stride;
use super::tuning::Tuning;
use crate::math::{div, div_rem, rem, signed, wrapped};
use crate::parts::{Part, Transfer};
use crate::shape::usize_of;
use core::ops::Range;

/// Matrices of fewer bytes, with those that are copied with them, are not worth the way to the loops.
const LEAST: usize = 1 << 10;
/// The same of those that would be copied each for itself, for pieces are of several lengths, where loops take many
/// such of one piece.
const LEAST_EACH: usize = 3 << 10;

/// Matrices of so many bytes are picked, each by some registers.
const PICKED: usize = 4 * LINE;

/// An input as matrices.
pub(super) struct Matrices<'a> {
    transfer: &'a Transfer<'a>,
    tuning: Tuning,
    /// How many.
    count: usize,
    /// How many of them are inward of the split axis, for each step outward of it.
    inner: usize,
    /// Rows of each, `step` bytes apart in the input.
    rows: usize,
    step: isize,
    /// Bytes of a column, one after another in every row.
    unit: usize,
    /// The first of the axes that are in the rows and columns, but for the split axis.
    transposed: usize,
    /// The innermost of the others, if it is the same way from one of its matrices to the next in all outputs.
    planes: Axis,
}

// SAFETY: the input is only read.
unsafe impl Sync for Matrices<'_> {}

impl<'a> Matrices<'a> {
    /// The form of a checked split of packed outputs, if it is one and has loops.
    pub(super) fn new(transfer: &'a Transfer<'a>, tuning: Tuning) -> Option<Self> {
        let Transfer { geometry, strides, .. } = transfer;
        let size = geometry.dtype.bits() as usize / 8;
        let (mut unit, mut rows, mut step) = (size, 1, 0isize);
        let mut transposed = geometry.shape.len();
        while transposed - 1 > geometry.axis {
            let axis = transposed - 1;
            let extent = usize_of(*geometry.shape.get(axis)?);
            let from = stride(*strides, axis, size)?;
            if extent > 1 && rows > 1 && step.checked_mul(signed(rows)) == Some(from) {
                rows *= extent;
            } else if extent > 1 && rows == 1 && from == signed(unit) {
                unit *= extent;
            } else if extent > 1 && rows == 1 {
                (rows, step) = (extent, from);
            } else if extent > 1 {
                break;
            }
            transposed = axis;
        }
        let bytes = usize_of(geometry.outer * geometry.inner) * size;
        let inner = bytes.checked_div(rows * unit)?.checked_div(usize_of(geometry.outer))?;
        let mut parts = transfer.parts.iter();
        let len = parts.next().map_or(1, |part| part.len);
        let apart = if inner > 1 { 1 } else { usize_of(len) };
        let mut planes = Axis::ONE;
        while let Some(axis) = transposed.checked_sub(1) {
            let extent = usize_of(*geometry.shape.get(axis)?);
            if axis != geometry.axis && extent > 1 {
                // Outputs of pieces that are not as long as each other are not as far apart.
                if inner == 1 && !parts.all(|part| part.len == len) {
                    break;
                }
                let from = stride(*strides, axis, size)?;
                planes = Axis { extent, from, to: signed(apart * rows * unit) };
                if apart > 1 || inner > 1 || step.checked_mul(signed(rows)) != Some(from) {
                    break;
                }
                // All pieces are single steps: these rows continue the others.
                (rows, planes) = (rows * extent, Axis::ONE);
            }
            transposed = axis;
        }
        let count = bytes.checked_div(rows * unit)?;
        let form = Self { transfer, tuning, count, inner, rows, step, unit, transposed, planes };
        let is_side_by_side =
            geometry.extent > 1 && stride(*strides, geometry.axis, size)? == signed(unit);
        let columns = usize_of(geometry.extent);
        let bytes = rows * columns * unit;
        // Few rows are better cut between columns, and short ones of few matrices copied unit by unit.
        let are_joined = step.checked_mul(signed(rows)) == Some(planes.from)
            && planes.extent >= LEAST_AGAIN
            && columns <= MAX_DEINTERLEAVED
            && rows * unit >= LANE
            && unit < LANE
            && bytes > PICKED;
        let makes_lines = are_joined || (rows * unit >= LINE && rows > MAX_INTERLEAVED);
        let is_each = count > 1 && planes.extent == 1 && tuning.kernels.takes_blocks(1, unit);
        let least = if is_each { LEAST_EACH } else { LEAST };
        let is_large = step != 0 && bytes.saturating_mul(planes.extent) >= least;
        (is_side_by_side && makes_lines && is_large && Columns::turns(unit)).then_some(form)
    }

    /// The rows of all matrices.
    pub(super) fn all_rows(&self) -> usize {
        self.count * self.rows
    }

    /// How many rows to cut at: so many that columns make whole lines.
    pub(super) fn granule(&self) -> usize {
        LINE.checked_div(self.unit).unwrap_or(1)
    }

    /// Copies what all pieces have in a range of the rows of all matrices.
    ///
    /// # Safety
    /// The input must be readable and the outputs writable over the pieces.
    pub(super) unsafe fn copy(&self, range: Range<usize>) {
        let mut at = range.start;
        while at < range.end {
            let (matrix, first) = div_rem(at, self.rows);
            let rows = (self.rows - first).min(range.end - at);
            let whole = div(range.end - at, self.rows);
            let along = self.planes.extent - rem(matrix, self.planes.extent);
            let extent = if first == 0 { whole.min(along).max(1) } else { 1 };
            // SAFETY: the caller's promise.
            unsafe { self.copy_rows(matrix, first..first + rows, Axis { extent, ..self.planes }) };
            at += rows * extent;
        }
        self.tuning.finish();
    }

    /// Copies what all pieces have in some rows of matrices.
    ///
    /// # Safety
    /// As [`Matrices::copy`].
    unsafe fn copy_rows(&self, matrix: usize, rows: Range<usize>, planes: Axis) {
        let column = self.rows * self.unit;
        let (outer, inner) = div_rem(matrix, self.inner);
        let of_part = |part: Part| {
            let count = usize_of(part.len);
            let ahead = (outer * count * self.inner + inner) * column + rows.start * self.unit;
            let first = Some(part.target.wrapping_add(ahead));
            Targets { first, apart: self.inner * column, count }
        };
        let parts = self.transfer.parts.iter();
        let targets = Targets::of(&parts, 0, of_part, 1);
        let source = self.source(matrix);
        let columns = Columns {
            source: source.wrapping_offset(self.step.wrapping_mul(signed(rows.start))),
            step: wrapped(self.step),
            rows: rows.len(),
            unit: self.unit,
            count: usize_of(self.transfer.geometry.extent),
            targets: &targets,
        };
        // SAFETY: the caller's promise.
        unsafe { columns.copy_planes(planes, self.tuning) };
    }

    /// Where a matrix begins.
    fn source(&self, mut matrix: usize) -> *const u8 {
        let Transfer { geometry, strides, .. } = self.transfer;
        let size = geometry.dtype.bits() as usize / 8;
        let mut source = self.transfer.source;
        let outward = geometry.shape.iter().enumerate().take(self.transposed).rev();
        for (axis, extent) in outward.filter(|(axis, _)| *axis != geometry.axis) {
            let (rest, index) = div_rem(matrix, usize_of(*extent));
            matrix = rest;
            let step = stride(*strides, axis, size).unwrap_or(0);
            source = source.wrapping_offset(step.wrapping_mul(signed(index)));
        }
        source
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::{Matrices, Transfer, Tuning};
    use crate::copy::testing::{parts, transfer};
    use crate::dtype::DType;
    use core::ptr::dangling_mut;
    use proptest::prelude::*;

    const TYPES: [DType; 5] =
        [DType::Uint8, DType::Float16, DType::Float, DType::Int64, DType::Complex128];
    /// No byte of the input.
    const UNTOUCHED: u8 = 0xEE;
    const MARGIN: usize = 130;

    /// A split whose steps lie side by side: the extents outward of its axis, the wanted pieces'
    /// and the others' lengths, the extents inward of it, of which the last may be in the units.
    #[derive(Debug, Clone)]
    struct Case {
        dtype: DType,
        outward: Vec<i64>,
        pieces: Vec<(i64, bool)>,
        inward: Vec<i64>,
        unit: i64,
        /// In which order axes other than these lie in memory, and how many elements more than
        /// needed each is apart, and whether it is forwards (1), backwards (-1) or repeated (0).
        order: Vec<usize>,
        gaps: Vec<(i64, i64)>,
    }

    fn case() -> impl Strategy<Value = Case> {
        let len = prop_oneof![3 => 0i64..4, 2 => 4i64..40, 1 => 100i64..300];
        let pieces = prop::collection::vec((len, prop::bool::weighted(0.8)), 1..8);
        let outward = prop_oneof![3 => 1i64..4, 1 => 8i64..20];
        let outward = prop::collection::vec(outward, 0..=2);
        let inward = prop::collection::vec(prop_oneof![1i64..9, 9i64..40, 100i64..500], 1..=3);
        let dtype = prop::sample::select(TYPES.to_vec());
        let unit = prop_oneof![3 => Just(1i64), 1 => Just(2i64), 1 => Just(4i64)];
        (dtype, outward, pieces, inward, unit)
            .prop_filter("not too many", |(_, outward, pieces, inward, unit)| {
                let extents = outward.iter().chain(inward).product::<i64>() * unit;
                extents * pieces.iter().map(|(len, _)| len).sum::<i64>().max(1) <= 20_000
            })
            .prop_flat_map(|(dtype, outward, pieces, inward, unit)| {
                let rank = outward.len() + inward.len();
                // Mostly as they are counted: then they are one.
                let order = Just((0..rank).collect::<Vec<_>>());
                let order = prop_oneof![2 => order.clone(), 1 => order.prop_shuffle()];
                let gap = prop_oneof![6 => Just(0i64), 1 => 1i64..20, 1 => Just(700i64)];
                let sign = prop_oneof![8 => Just(1i64), 1 => Just(-1), 1 => Just(0)];
                let gaps = prop::collection::vec((gap, sign), rank);
                (order, gaps).prop_map(move |(order, gaps)| {
                    let (outward, pieces, inward) =
                        (outward.clone(), pieces.clone(), inward.clone());
                    Case { dtype, outward, pieces, inward, unit, order, gaps }
                })
            })
    }

    impl Case {
        /// Extents and strides in elements, outermost first, and how many lie before and from the
        /// first element on.
        fn layout(&self) -> (Vec<i64>, Vec<i64>, i64, i64) {
            let extent: i64 = self.pieces.iter().map(|(len, _)| len).sum();
            let axis = self.outward.len();
            let others: Vec<i64> = self.outward.iter().chain(&self.inward).copied().collect();
            let mut strides = vec![0; others.len()];
            let (mut step, mut before, mut after) = (self.unit * extent, 0, self.unit * extent);
            for at in self.order.iter().rev() {
                let (gap, sign) = self.gaps[*at];
                step += gap;
                strides[*at] = sign * step;
                *(if sign < 0 { &mut before } else { &mut after }) +=
                    sign.abs() * step * (others[*at] - 1);
                step *= others[*at];
            }
            let mut shape = others;
            shape.insert(axis, extent);
            strides.insert(axis, self.unit);
            if self.unit > 1 {
                shape.push(self.unit);
                strides.push(1);
            }
            (shape, strides, before, after)
        }

        fn bytes(&self, elements: i64) -> usize {
            usize::try_from(elements).unwrap() * self.dtype.bits() as usize / 8
        }

        /// What an output must be, element by element.
        fn expected(
            &self,
            first: *const u8,
            shape: &[i64],
            strides: &[i64],
            offset: i64,
        ) -> Vec<u8> {
            let (axis, mut bytes) = (self.outward.len(), Vec::new());
            for element in 0..shape.iter().product::<i64>() {
                let (mut rest, mut at) = (element, 0);
                for d in (0..shape.len()).rev() {
                    let index = rest % shape[d] + if d == axis { offset } else { 0 };
                    at += index * strides[d];
                    rest /= shape[d];
                }
                let size = self.bytes(1);
                let at = isize::try_from(at).unwrap() * isize::try_from(size).unwrap();
                // SAFETY: within what the strides span.
                bytes.extend(unsafe { std::slice::from_raw_parts(first.offset(at), size) });
            }
            bytes
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..Default::default() })]

        /// In two parts, at every level, past the caches or not, each output anywhere in its line,
        /// the input at the end or the begin of what may be touched.
        #[test]
        fn columns_of_matrices_in_parts(
            case in case(),
            ahead in prop::collection::vec(prop_oneof![Just(0usize), 0usize..70], 8),
            cut in any::<prop::sample::Index>(),
            at_end in any::<bool>(),
        ) {
            let (shape, strides, before, after) = case.layout();
            let lengths: Vec<i64> = case.pieces.iter().map(|(len, _)| *len).collect();
            let source = Guarded::filled(case.bytes(before + after).next_multiple_of(64 << 10));
            let first = source.place(case.bytes(before + after), at_end);
            for at in 0..case.bytes(before + after) {
                // SAFETY: that many bytes are there.
                unsafe { *first.add(at) &= 0x7F };
            }
            let first = first.wrapping_add(case.bytes(before)).cast_const();
            let axis = case.outward.len();
            let mut offset = 0;
            let expected: Vec<Option<Vec<u8>>> = (case.pieces.iter())
                .map(|(len, is_wanted)| {
                    let (mut shape, begin) = (shape.clone(), offset);
                    shape[axis] = *len;
                    offset += len;
                    is_wanted.then(|| case.expected(first, &shape, &strides, begin))
                })
                .collect();
            let wanted = expected.iter().map(|bytes| bytes.as_ref().map(|_| dangling_mut()));
            let wanted = parts(&lengths, wanted);
            for tuning in Tuning::all() {
                    let packed = transfer(case.dtype, &shape, axis, first, &wanted);
                    let packed = Transfer { strides: Some(&strides), ..packed };
                    let Some(form) = Matrices::new(&packed, tuning) else {
                        return Err(TestCaseError::reject("no matrices"));
                    };
                    let all_rows = form.all_rows();
                    let cut = cut.index(all_rows + 1);
                    let copy_part = |rows| {
                        let mut buffers: Vec<Vec<u8>> = (expected.iter().zip(&ahead))
                            .map(|(bytes, ahead)| {
                                let bytes = bytes.as_ref().map_or(0, Vec::len);
                                vec![UNTOUCHED; bytes + 2 * MARGIN + ahead]
                            })
                            .collect();
                        let targets = (buffers.iter_mut().zip(&expected).zip(&ahead))
                            .map(|((buffer, bytes), ahead)| {
                                let data = buffer.as_mut_ptr().wrapping_add(MARGIN + ahead);
                                bytes.as_ref().map(|_| data)
                            });
                        let parts = parts(&lengths, targets);
                        let packed = transfer(case.dtype, &shape, axis, first, &parts);
                        let strided = Transfer { strides: Some(&strides), ..packed };
                        let form = Matrices::new(&strided, tuning).unwrap();
                        // SAFETY: buffers and source are as large as the shape says.
                        unsafe { form.copy(rows) };
                        buffers
                    };
                    let parts = copy_part(0..cut).into_iter().zip(copy_part(cut..all_rows));
                    for (((first, second), bytes), ahead) in parts.zip(&expected).zip(&ahead) {
                        let is_of_both = |(a, b): (&u8, &u8)| *a != UNTOUCHED && *b != UNTOUCHED;
                        prop_assert!(!first.iter().zip(&second).any(is_of_both));
                        let both: Vec<u8> =
                            first.iter().zip(&second).map(|(a, b)| *a.min(b)).collect();
                        let mut whole = vec![UNTOUCHED; MARGIN + ahead];
                        whole.extend(bytes.iter().flatten());
                        whole.resize(both.len(), UNTOUCHED);
                        prop_assert!(both == whole, "past {}, cut at {cut}", tuning.non_temporal.is_some());
                    }
            }
        }
    }
}
