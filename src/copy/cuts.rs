//! What a range of a call's work has of each piece: of the bytes of all wanted outputs one after another, for
//! what is cut between tasks anywhere, or of rows.

#![forbid(unsafe_code)]

use super::kernel::combine::LINE;
use super::old::{Fault, Report};
use super::parallel::{self, Executor, Work, WALK};
use crate::error::number;
use crate::math::parts;
use crate::parts::{Part, Transfer};
use crate::shape::{packed_bytes, usize_of};
use core::ops::Range;

/// Copies some bytes of one output, counted as if it were packed. Ranges of concurrent calls do not meet.
pub(super) type CopyPart<'a> = dyn Fn(&Part, Range<usize>) + Sync + 'a;

/// Runs `work` over the bytes of all outputs, one after another.
pub(super) fn run_bytes(
    transfer: &Transfer<'_>,
    work: &(dyn Fn(Range<usize>) + Sync),
    executor: Option<&dyn Executor>,
    report: &mut Report,
) -> Result<(), Fault> {
    let bytes = transfer.bytes;
    let least = transfer.parts.count().saturating_mul(WALK);
    let work_size = Work { bytes, units: bytes, granule: LINE, least };
    parallel::run(executor, &work_size, work, report)
}

/// Copies the bytes of all outputs.
pub(super) fn run_parts(
    transfer: &Transfer<'_>,
    copy: &CopyPart<'_>,
    executor: Option<&dyn Executor>,
    report: &mut Report,
) -> Result<(), Fault> {
    run_bytes(transfer, &|range| copy_bytes(transfer, copy, range), executor, report)
}

#[inline(never)] // or it is in the library twice, as the shims of closures are
fn copy_bytes(transfer: &Transfer<'_>, copy: &CopyPart<'_>, range: Range<usize>) {
    let mut begin = 0usize;
    let mut parts = transfer.parts.iter();
    // Where it is: moved, it would be loaded by wider registers than it was stored by, which waits for all stores
    // before it.
    while let Some(part) = &parts.next() {
        if begin >= range.end {
            break;
        }
        let end = begin.saturating_add(transfer.geometry.piece_bytes(part.len));
        if end > range.start && end > begin {
            copy(part, range.start.max(begin) - begin..range.end.min(end) - begin);
        }
        begin = end;
    }
}

/// Copies what all pieces have in a range of rows (steps outside of the split axis), block by block. Its begin
/// and `block` are such that they make whole bytes.
#[inline(never)] // for its stack
pub(super) fn copy_rows(
    transfer: &Transfer<'_>,
    copy: &CopyPart<'_>,
    rows: Range<usize>,
    block: usize,
) {
    let geometry = &transfer.geometry;
    for rows in parts(rows, block) {
        for part in transfer.parts.iter() {
            let bytes = |rows: usize| {
                let elements = number(rows) * part.len * geometry.inner;
                usize_of(packed_bytes(elements, geometry.dtype.bits()))
            };
            copy(&part, bytes(rows.start)..bytes(rows.end));
        }
    }
}
