//! One call's work as the bytes of all wanted outputs one after another: for what is cut between tasks anywhere.

use super::kernel::combine::LINE;
use super::parallel::{self, Executor, Work, WALK};
use super::rows::Nest;
use super::tuning::Tuning;
use super::{singles, sub_byte};
use crate::error::{number, Fault, Report};
use crate::parts::{Part, Transfer};
use crate::shape::{packed_bytes, usize_of};
use core::ops::Range;

/// A call's work.
pub(super) struct Job<'a> {
    pub transfer: &'a Transfer<'a>,
    pub form: Form<'a>,
}

/// Which kind of copy the pieces of a call are.
pub(super) enum Form<'a> {
    /// Everything from the split axis inward is contiguous, in the input and in the outputs.
    Rows(&'a Nest<'a>),
    /// Elements share bytes with those of other pieces; outputs are packed.
    SubByte(Tuning),
}

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

impl Job<'_> {
    /// Does all of the work.
    ///
    /// # Safety
    /// As [`super::run`].
    pub(super) unsafe fn run_all(
        &self,
        executor: Option<&dyn Executor>,
        report: &mut Report,
    ) -> Result<(), Fault> {
        // SAFETY: the caller's promise; ranges of tasks do not meet.
        let work = |range| unsafe { self.run(range) };
        run_bytes(self.transfer, &work, executor, report)
    }

    /// Does the part of the work that falls in `range`.
    ///
    /// # Safety
    /// As [`super::run`]; ranges of concurrent calls must not meet.
    #[inline(never)] // or it is in the library twice, as the shims of closures are
    unsafe fn run(&self, range: Range<usize>) {
        let mut begin = 0usize;
        for part in self.transfer.parts.iter() {
            if begin >= range.end {
                break;
            }
            let end = begin.saturating_add(self.transfer.geometry.piece_bytes(part.len));
            if end > range.start && end > begin {
                let bytes = range.start.max(begin) - begin..range.end.min(end) - begin;
                // SAFETY: the caller's promise.
                unsafe { self.copy_part(&part, bytes) };
            }
            begin = end;
        }
    }

    /// Copies what all pieces have in a range of rows (steps outside of the split axis), block by
    /// block. Its begin and `block` are such that they make whole bytes.
    ///
    /// # Safety
    /// As [`Job::run`].
    pub(super) unsafe fn run_rows(
        &self,
        rows: Range<usize>,
        block: usize,
        singles: Option<singles::Way>,
    ) {
        let geometry = &self.transfer.geometry;
        let mut first = rows.start;
        if let (Form::SubByte(tuning), Some(way)) = (&self.form, singles) {
            // SAFETY: the caller's promise.
            first = unsafe { singles::copy(self.transfer, *tuning, way, rows.clone()) };
        }
        while first < rows.end {
            let last = rows.end.min(first.saturating_add(block));
            for part in self.transfer.parts.iter() {
                let bytes = |rows: usize| {
                    let elements = number(rows) * part.len * geometry.inner;
                    usize_of(packed_bytes(elements, geometry.dtype.bits()))
                };
                // SAFETY: the caller's promise.
                unsafe { self.copy_part(&part, bytes(first)..bytes(last)) };
            }
            first = last;
        }
    }

    /// Copies some bytes of one output, counted as if it were packed.
    ///
    /// # Safety
    /// As [`Job::run`].
    unsafe fn copy_part(&self, part: &Part, bytes: Range<usize>) {
        // SAFETY: what is read and written stays within the spans that were checked.
        unsafe {
            match &self.form {
                Form::Rows(rows) => rows.copy(part, bytes),
                Form::SubByte(tuning) => sub_byte::copy(self.transfer, part, *tuning, bytes),
            }
        }
    }
}
