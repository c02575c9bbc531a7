//! What the outputs of a call have in common: all extents but the one on the split axis, and strides.

use crate::plan::Geometry;
use crate::shape::{DIM_UNKNOWN, MAX_RANK};
use core::mem::MaybeUninit;

/// Room for an entry an axis of an output.
pub(super) type Room = [MaybeUninit<i64>; MAX_RANK];

pub(super) fn room() -> Room {
    [const { MaybeUninit::uninit() }; MAX_RANK]
}

/// An input's entries as outputs have them: where they begin.
#[inline(always)] // on the way of every call
pub(super) fn kept(geometry: &Geometry<'_>, input: &[i64], room: &mut Room) -> *const i64 {
    if geometry.keeps_axis {
        return input.as_ptr();
    }
    without_axis(geometry, input, room)
}

#[cold]
#[inline(never)]
fn without_axis(geometry: &Geometry<'_>, input: &[i64], room: &mut Room) -> *const i64 {
    let (outer, inner) = geometry.around_axis(input);
    for (slot, entry) in room.iter_mut().zip(outer.iter().chain(inner)) {
        slot.write(*entry);
    }
    room.as_ptr().cast()
}

/// The packed strides of the input's shape with `extent` on the split axis, as far as extents are known:
/// where they begin.
#[inline(never)]
pub(super) fn packed(geometry: &Geometry<'_>, extent: i64, room: &mut Room) -> *const i64 {
    let mut next = room.as_mut_ptr().cast::<i64>().wrapping_add(geometry.output_rank());
    let mut stride = 1i64;
    for (axis, given) in geometry.shape.iter().enumerate().rev() {
        let is_split = axis == geometry.axis;
        if geometry.keeps_axis || !is_split {
            next = next.wrapping_sub(1);
            // SAFETY: there are as many entries as axes that are kept.
            unsafe { next.write(stride) };
        }
        stride = times(stride, if is_split { extent } else { *given });
    }
    room.as_ptr().cast()
}

/// The product, as far as it is known.
#[inline(always)] // as above
fn times(stride: i64, extent: i64) -> i64 {
    if stride | extent < 0 {
        return DIM_UNKNOWN;
    }
    // What is known fits, as has been checked.
    stride.wrapping_mul(extent.max(1))
}
