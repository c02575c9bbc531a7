//! Few bytes of few packed rows: runs one after the other, without a look at anything else.

use super::machine::{Machine, MANY_ROWS, SMALL_BYTES};
use super::vector::LINE_BYTES;
use crate::parts::Transfer;
use crate::shape::usize_of;

/// Whether runs one after the other are the quickest way.
#[inline]
pub(super) fn is_small(transfer: &Transfer<'_>) -> bool {
    let geometry = &transfer.geometry;
    let rows = usize_of(geometry.outer);
    transfer.bytes <= SMALL_BYTES
        && transfer.strides.is_none()
        && transfer.output_strides.are_packed()
        && !geometry.dtype.is_sub_byte()
        && (rows == 1
            || (rows < MANY_ROWS && transfer.bytes >= rows * transfer.parts.count() * LINE_BYTES))
}

/// Copies each piece's run of the first row, then of the next.
///
/// # Safety
/// As [`super::run`].
#[inline]
pub(super) unsafe fn copy(transfer: &Transfer<'_>) {
    let geometry = &transfer.geometry;
    let copy = Machine::kernels().copy;
    let step = usize_of(geometry.inner) * (geometry.dtype.bits() / 8) as usize;
    let width = usize_of(geometry.extent) * step;
    for row in 0..usize_of(geometry.outer) {
        let source = transfer.source.wrapping_add(row * width);
        for part in transfer.parts.iter() {
            let run = usize_of(part.len) * step;
            let source = source.wrapping_add(usize_of(part.offset) * step);
            // SAFETY: the caller's promise.
            unsafe { copy(source, part.target.wrapping_add(row * run), run) };
        }
    }
}
