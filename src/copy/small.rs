//! Small copies of few packed rows: runs one after the other, with no further decisions.

use super::machine::{Machine, MANY_ROWS};
use super::vector::LINE_BYTES;
use crate::parts::Transfer;
use crate::shape::usize_of;

/// Returns whether it is quickest to copy runs one after the other.
#[inline]
pub(super) fn is_small(transfer: &Transfer<'_>) -> bool {
    let geometry = &transfer.geometry;
    let rows = usize_of(geometry.outer);
    Machine::is_small(transfer.bytes)
        && transfer.strides.is_none()
        && transfer.output_strides.are_packed()
        && !geometry.dtype.is_sub_byte()
        && (rows == 1
            || (rows < MANY_ROWS && transfer.bytes >= rows * transfer.parts.count() * LINE_BYTES))
}

/// Copies the runs of the first piece, then those of the next.
///
/// # Safety
/// As [`super::run`].
#[inline]
pub(super) unsafe fn copy(transfer: &Transfer<'_>) {
    let geometry = &transfer.geometry;
    let copy = Machine::kernels().copy;
    let rows = usize_of(geometry.outer);
    let step = usize_of(geometry.inner) * (geometry.dtype.bits() / 8) as usize;
    let width = usize_of(geometry.extent) * step;
    for part in transfer.parts.iter() {
        let run = usize_of(part.len) * step;
        let (mut source, mut target) =
            (transfer.source.wrapping_add(usize_of(part.offset) * step), part.target);
        for _ in 0..rows {
            // SAFETY: the caller's promise.
            unsafe { copy(source, target, run) };
            (source, target) = (source.wrapping_add(width), target.wrapping_add(run));
        }
    }
}
