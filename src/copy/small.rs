//! Small copies of few packed rows: the runs of each piece by one call of a kernel, with no further decisions.

use super::machine::Machine;
use super::machine_constants::MANY_ROWS;
use super::runs::Runs;
use super::vector::LANE_BYTES;
use crate::geometry::Geometry;
use crate::parts::Transfer;
use crate::shape::usize_of;

/// Returns whether it is quickest to copy runs one after the other.
#[inline]
pub(super) fn is_small(transfer: &Transfer<'_>) -> bool {
    let rows = usize_of(transfer.geometry.outer);
    Machine::is_small(transfer.bytes)
        && transfer.strides.is_none()
        && transfer.output_strides.are_packed()
        && !transfer.geometry.dtype.is_sub_byte()
        && (rows == 1 || (rows < MANY_ROWS && !is_for_tiles(transfer)))
}

/// Returns whether most pieces are single steps, short enough for tiles to transpose them.
fn is_for_tiles(transfer: &Transfer<'_>) -> bool {
    transfer.geometry.extent <= transfer.parts.pieces.count()
        && step_bytes(transfer.geometry) <= LANE_BYTES
}

/// Returns the bytes of a step along the split axis, in each row.
fn step_bytes(geometry: &Geometry<'_>) -> usize {
    usize_of(geometry.inner) * (geometry.dtype.bits() / 8) as usize
}

/// Copies the runs of the first piece, then those of the next.
///
/// # Safety
/// As [`super::execute`].
#[inline]
pub(super) unsafe fn copy(transfer: &Transfer<'_>) {
    let geometry = transfer.geometry;
    let kernels = Machine::kernels();
    let count = usize_of(geometry.outer);
    if count == 1 {
        let step = usize_of(geometry.step_bits) / 8;
        for part in transfer.parts.iter() {
            let source = transfer.source.wrapping_add(usize_of(part.offset) * step);
            // SAFETY: the piece of a packed input, and all of a packed output.
            unsafe { (kernels.copy_run)(source, part.target, usize_of(part.len) * step) };
        }
        return;
    }
    let step = step_bytes(geometry);
    let row = usize_of(geometry.extent) * step;
    let readable_end = transfer.source.wrapping_add(count * row);
    for part in transfer.parts.iter() {
        let source = transfer.source.wrapping_add(usize_of(part.offset) * step);
        let bytes = usize_of(part.len) * step;
        let (from, to) = (row.cast_signed(), bytes.cast_signed());
        let runs = Runs { count, from, to, readable_end, ..Runs::one(source, part.target, bytes) };
        // SAFETY: as above, row by row; the input is readable up to its end.
        unsafe { (kernels.copy_runs)(&runs) };
    }
}
