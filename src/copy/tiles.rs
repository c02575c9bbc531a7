//! Planes of short rows that go on in the output with those of another axis: some of both are put behind each other
//! in the first-level cache, and become rows of their own from there.

use super::columns::{EachTargets, TakeTargets, Targets};
use super::kernel::combine::Scratch;
use super::kernel::strided::{Axis, Block};
use super::plane::Plane;
use super::tuning::Tuning;
use crate::math::{div, div_ceil, parts, signed, wrapped};
use core::mem;
use core::ptr::null_mut;

/// Bytes of a tile, and how many columns it has: the runs of these are two lines then.
const ROOM: usize = 8 << 10;
const MOST: usize = 64;

/// Where columns of two axes go to, outermost first.
pub(super) struct JointTargets {
    pub first: *mut u8,
    pub axes: [Axis; 2],
}

impl EachTargets for JointTargets {
    fn each(&self, visit: &mut TakeTargets<'_>) {
        let &Self { first, axes: [outer, inner] } = self;
        let [outer, inner] = if inner.extent > 1 { [outer, inner] } else { [Axis::ONE, outer] };
        let (mut first, apart, count) = (first, wrapped(inner.to), inner.extent);
        for _ in 0..outer.extent {
            if !visit.visit(Targets { first: Some(first), apart, count }) {
                return;
            }
            first = first.wrapping_offset(outer.to);
        }
    }
}

impl Plane {
    /// Copies the plane and what its rows go on with, a tile at a time.
    ///
    /// # Safety
    /// As [`Plane::copy`].
    #[inline(never)] // which takes much of the stack
    pub(super) unsafe fn copy_tiles(&self, tuning: Tuning) {
        let mut scratch = Scratch::<ROOM>::NEW;
        let scratch = scratch.as_mut_ptr();
        let mut tile = *self;
        // Of columns of two axes, steps of the outer one are taken.
        if tile.beside.extent == 1 {
            mem::swap(&mut tile.beside, &mut tile.column);
        }
        let Self { source, target, unit, row, column, more, beside, .. } = tile;
        let count = beside.extent * column.extent;
        let each = div_ceil(beside.extent, count / MOST + 1);
        let steps = div(ROOM, each * column.extent * row.extent * unit);
        for columns in parts(0..beside.extent, each) {
            let place = beside.moved((source, target), signed(columns.start));
            tile.beside.extent = columns.len();
            for rows in parts(0..more.extent, steps) {
                (tile.source, tile.target) = more.moved(place, signed(rows.start));
                tile.more.extent = rows.len();
                // SAFETY: the caller's promise; fewer than 128 columns of fewer than 32 bytes leave room for two steps.
                unsafe { tile.copy_tile(scratch, tuning) };
            }
        }
    }

    /// Copies a tile by way of a scratch.
    ///
    /// # Safety
    /// As [`Plane::copy`]; the scratch must have room for it.
    #[inline(never)] // once in the library
    unsafe fn copy_tile(&self, scratch: *mut u8, tuning: Tuning) {
        let &Self { unit, row, more, .. } = self;
        let (targets, through) = (self.targets(), tuning.through_caches());
        let mut columns = self.columns(&targets);
        let step = columns.count * unit;
        let mut block = Block {
            unit: step,
            axes: [
                Axis { to: signed(step), ..row },
                Axis { to: signed(step * row.extent), ..more },
            ],
        };
        if row.from == signed(step) {
            (block.unit, block.axes[0]) = (step * row.extent, Axis::ONE);
        }
        let rows = row.extent * more.extent;
        (columns.source, columns.step, columns.rows) = (scratch, step, rows);
        // SAFETY: the caller's promise.
        unsafe {
            block.copy((self.source, scratch), Axis::ONE, tuning.kernels);
            if columns.are_deinterleaved(Axis::ONE, through) {
                columns.deinterleave(Axis::ONE, through, null_mut());
            } else {
                columns.with_scratch::<0>(0..rows, Axis::ONE, false, through);
            }
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::super::strided;
    use super::super::testing::{parts, transfer};
    use super::super::tuning::Tuning;
    use crate::dtype::DType;
    use crate::parts::Transfer;
    use proptest::prelude::*;

    const UNTOUCHED: u8 = 0xEE;
    const TYPES: [DType; 5] =
        [DType::Uint8, DType::Float16, DType::Float, DType::Int64, DType::Complex128];

    /// Extents, short ones for the most part, and the axes in the order that they lie in memory, outermost first.
    fn permuted() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
        let extent = prop_oneof![4 => 2usize..6, 2 => 6usize..20, 1 => 20usize..90];
        prop::collection::vec(extent, 3..=5)
            .prop_filter("not too many", |shape| shape.iter().product::<usize>() <= 30_000)
            .prop_flat_map(|shape| {
                let order = Just((0..shape.len()).collect::<Vec<_>>()).prop_shuffle();
                (Just(shape), order)
            })
    }

    /// The bytes of a permuted tensor's elements in row-major order, from one on.
    fn elements(
        source: &[u8],
        shape: &[usize],
        strides: &[usize],
        from: usize,
        size: usize,
    ) -> Vec<u8> {
        let place = |element: usize| {
            let (mut rest, mut at) = (element, from);
            for (extent, stride) in shape.iter().zip(strides).rev() {
                at += rest % extent * stride;
                rest /= extent;
            }
            at
        };
        let all = 0..shape.iter().product::<usize>();
        all.flat_map(|element| source[place(element) * size..][..size].to_vec()).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..Default::default() })]

        /// Two pieces of a permuted tensor, at the begin and the end of what may be touched, at every level, past the
        /// caches or not.
        #[test]
        fn permuted_axes_that_are_short(
            (shape, order) in permuted(),
            axis in any::<prop::sample::Index>(),
            dtype in prop::sample::select(TYPES.to_vec()),
            first in any::<prop::sample::Index>(),
            [ahead, at_end] in [0usize..2, 0usize..2],
        ) {
            let (axis, size) = (axis.index(shape.len()), dtype.bits() as usize / 8);
            let mut strides = vec![0; shape.len()];
            let mut count = 1;
            for at in order.iter().rev() {
                strides[*at] = count;
                count *= shape[*at];
            }
            let memory = Guarded::filled((count * size).next_multiple_of(64 << 10));
            let begin = memory.place(count * size, at_end > 0).cast_const();
            // SAFETY: as many bytes are there.
            let source = unsafe { std::slice::from_raw_parts(begin, count * size) };
            let first = first.index(shape[axis]);
            let lengths = [first, shape[axis] - first];
            let expected = [0, first].into_iter().zip(lengths).map(|(from, len)| {
                let mut shape = shape.clone();
                shape[axis] = len;
                let mut bytes = vec![UNTOUCHED; ahead];
                bytes.extend(elements(source, &shape, &strides, from * strides[axis], size));
                bytes.push(UNTOUCHED);
                bytes
            });
            let expected: Vec<_> = expected.collect();
            let number = |count: &usize| i64::try_from(*count).unwrap();
            let [dims, steps] = [&shape, &strides].map(|all| all.iter().map(number).collect::<Vec<_>>());
            let lengths = lengths.map(|len| number(&len));
            for tuning in Tuning::all() {
                let mut outputs: Vec<_> =
                    expected.iter().map(|bytes| vec![UNTOUCHED; bytes.len()]).collect();
                let targets = outputs.iter_mut().map(|output| Some(output.as_mut_ptr().wrapping_add(ahead)));
                let parts = parts(&lengths, targets);
                let packed = transfer(dtype, &dims, axis, begin, &parts);
                let all = Transfer { strides: Some(&steps), ..packed };
                // SAFETY: the input and the outputs are as large as the shapes say.
                unsafe { strided::copy(&all, &tuning, 0..all.bytes) };
                prop_assert!(outputs == expected);
            }
        }
    }
}
