//! Small copies of few packed rows: the runs of each piece by one call of a kernel, with no further decisions.

use super::machine::Machine;
use super::machine_constants::MANY_ROWS;
use super::nest::Axis;
use super::runs::Runs;
use super::vector::LANE_BYTES;
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
        && (rows == 1 || (rows < MANY_ROWS && !is_for_tiles(transfer, rows)))
}

/// Returns whether pieces have single units in each row, which tiles transpose.
fn is_for_tiles(transfer: &Transfer<'_>, rows: usize) -> bool {
    let unit = step_bytes(transfer);
    unit <= LANE_BYTES && transfer.bytes <= rows * transfer.parts.count() * unit
}

/// Returns the bytes of a step along the split axis, in each row.
fn step_bytes(transfer: &Transfer<'_>) -> usize {
    usize_of(transfer.geometry.inner) * (transfer.geometry.dtype.bits() / 8) as usize
}

/// Copies the runs of the first piece, then those of the next.
///
/// # Safety
/// As [`super::execute`].
#[inline]
pub(super) unsafe fn copy(transfer: &Transfer<'_>) {
    let geometry = &transfer.geometry;
    let kernels = Machine::kernels();
    let rows = usize_of(geometry.outer);
    let step = step_bytes(transfer);
    let row = usize_of(geometry.extent) * step;
    if rows == 1 {
        for part in transfer.parts.iter() {
            let source = transfer.source.wrapping_add(usize_of(part.offset) * step);
            // SAFETY: the piece of a packed input, and all of a packed output.
            unsafe { (kernels.copy_run)(source, part.target, usize_of(part.len) * step) };
        }
        return;
    }
    for part in transfer.parts.iter() {
        let run = usize_of(part.len) * step;
        let runs = Runs {
            source: transfer.source.wrapping_add(usize_of(part.offset) * step),
            target: part.target,
            bytes: run,
            count: rows,
            from: row.cast_signed(),
            to: run.cast_signed(),
            outer: Axis::ONE,
            readable_end: transfer.source.wrapping_add(rows * row),
        };
        // SAFETY: as above, row by row; the input is readable up to its end.
        unsafe { (kernels.copy_runs)(&runs) };
    }
}
