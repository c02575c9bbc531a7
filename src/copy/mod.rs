//! The copy engine: checked pieces in, bytes moved.
//!
//! | file | what it holds |
//! |---|---|
//! | `check.rs` | what a copy checks before the first byte moves |
//! | `tuning.rs` | which loops, and whether past the caches, by the rules in `kernel/` |
//! | `rows/` | the canonical form of packed tensors: rows, of which each piece takes a run |
//! | `matrices.rs` | the same where the split axis is innermost in memory: of each row, columns |
//! | `strided.rs` | the canonical form of any other piece: axes over units of bytes |
//! | `sub_byte.rs` | the same for 4-bit and 2-bit elements, which share bytes |
//! | `region.rs` | units of a strided piece that make whole axes: planes to transpose, and rows |
//! | `columns.rs` | columns become rows of their own: dealt out where they are few, else transposed |
//! | `kernel/` | the loops that move bytes, by level of CPU features, and the choice among them |
//! | `parallel.rs` | how the work of one call is cut into tasks |
//! | `guarded.rs` | for tests: memory that ends where nothing may be touched |

pub(crate) mod check;
mod columns;
#[cfg(all(test, unix))]
mod guarded;
mod kernel;
mod matrices;
mod parallel;
mod region;
mod rows;
mod strided;
mod sub_byte;
mod tuning;

use kernel::combine::LINE;
use kernel::rules::LOW_THRESHOLDS;
use parallel::Work;
pub use parallel::{Executor, Streaming};

use crate::error::{number, Error};
use crate::memory::{Memory, Outputs};
use crate::plan::{Piece, Plan};
use crate::shape::{packed_bytes, usize_of};
use check::Checked;
use core::ops::Range;
use matrices::Matrices;
use rows::Rows;
use tuning::Tuning;

/// Copies every wanted piece of `input` into its output, as [`check::copy`] has found them.
///
/// # Safety
/// `input` must be readable and every output writable over its span.
pub(crate) unsafe fn run<O: Outputs>(
    plan: &Plan<'_>,
    input: &Memory<'_>,
    outputs: &O,
    checked: &Checked,
    executor: Option<&dyn Executor>,
) -> Result<(), Error> {
    if checked.bytes == 0 {
        return Ok(());
    }
    let tuning = Tuning::new(checked.bytes, executor);
    let sub_byte = plan.dtype.is_sub_byte();
    let pieces = usize_of(plan.count());
    if checked.outputs_packed && !checked.input_packed && !sub_byte {
        if let Some(matrices) = Matrices::new(plan, input, tuning) {
            // SAFETY: the caller's promise; ranges of tasks do not meet.
            let work = |range| unsafe { matrices.copy(outputs, range) };
            let (units, granule) = (matrices.all_rows(), matrices.granule());
            let size = Work { bytes: checked.bytes, units, granule, pieces };
            return parallel::run(executor, &size, &work);
        }
    }
    let form = if checked.input_packed
        && checked.outputs_packed
        && (!sub_byte || sub_byte::is_whole_bytes(plan, input))
    {
        let source = input.data.wrapping_add(input.bit_offset as usize / 8);
        Form::Rows(Rows::new(plan, source, tuning))
    } else if sub_byte {
        Form::SubByte(if checked.bytes > SUB_BYTE_PAST { tuning } else { tuning.through_caches() })
    } else {
        Form::Strided(tuning)
    };
    match form {
        // Many rows are cut between rows, few long ones anywhere.
        Form::Rows(rows) if rows.count >= MANY_ROWS => {
            // SAFETY: the caller's promise; ranges of tasks do not meet, nor do their writes.
            let work = |range| unsafe { rows.copy_all(plan, outputs, range) };
            let granule = rows.granule();
            let size = Work { bytes: checked.bytes, units: rows.count, granule, pieces };
            parallel::run(executor, &size, &work)
        }
        Form::Rows(rows) if rows.is_cached() && !parallel::is_of_use(executor, checked.bytes) => {
            if rows.count >= ROW_MAJOR && tuning.kernels.row_major.is_some() {
                // SAFETY: the caller's promise.
                unsafe { rows.copy_all(plan, outputs, 0..rows.count) };
                return Ok(());
            }
            for piece in plan.pieces() {
                let target = outputs.data(piece.index).filter(|_| piece.len > 0);
                let Some(target) = target else { continue };
                // SAFETY: the caller's promise.
                unsafe { rows.copy_runs(piece, target) };
            }
            Ok(())
        }
        form => {
            let job = Job { plan, input, outputs, form };
            if let (Form::SubByte(_), Some(block)) = (&job.form, sub_byte::block_of_rows(plan)) {
                // SAFETY: as above.
                let work = |rows| unsafe { job.run_rows(rows, block) };
                let (units, granule) = (usize_of(plan.outer), sub_byte::GRANULE);
                let size = Work { bytes: checked.bytes, units, granule, pieces };
                return parallel::run(executor, &size, &work);
            }
            // SAFETY: as above.
            let work = |range| unsafe { job.run(range) };
            let bytes = checked.bytes;
            parallel::run(executor, &Work { bytes, units: bytes, granule: LINE, pieces }, &work)
        }
    }
}

/// The loop that copies contiguous bytes.
pub(crate) fn contiguous() -> unsafe fn(*const u8, *mut u8, usize) {
    tuning::contiguous()
}

/// Outputs of fewer bytes are made faster by shifts in the caches than by way of a stage past them.
const SUB_BYTE_PAST: usize = if LOW_THRESHOLDS { 0 } else { 8 << 20 };

/// From this many rows on they are copied row by row, where there are loops for that.
const ROW_MAJOR: usize = 4;

/// From this many rows on, blocks of them are dealt out to all pieces.
const MANY_ROWS: usize = 64;

/// One call's work, seen as the bytes of all wanted outputs one after another.
struct Job<'a, O> {
    plan: &'a Plan<'a>,
    input: &'a Memory<'a>,
    outputs: &'a O,
    form: Form,
}

/// Which kind of copy the pieces of a call are.
enum Form {
    /// Input and outputs are packed.
    Rows(Rows),
    /// One of them has strides of its own.
    Strided(Tuning),
    /// Elements share bytes with those of other pieces; outputs are packed.
    SubByte(Tuning),
}

// SAFETY: tasks read the input and write ranges of outputs that do not meet.
unsafe impl<O: Sync> Sync for Job<'_, O> {}

impl<O: Outputs> Job<'_, O> {
    /// Does the part of the work that falls in `range`.
    ///
    /// # Safety
    /// As [`run`]; ranges of concurrent calls must not meet.
    unsafe fn run(&self, range: Range<usize>) {
        let mut begin = 0usize;
        for piece in self.plan.pieces() {
            if begin >= range.end {
                break;
            }
            let Some(target) = self.outputs.data(piece.index) else { continue };
            let end = begin.saturating_add(self.plan.piece_bytes(piece));
            if end > range.start && end > begin {
                let part = range.start.max(begin) - begin..range.end.min(end) - begin;
                // SAFETY: the caller's promise.
                unsafe { self.copy_piece(piece, target, part) };
            }
            begin = end;
        }
    }

    /// Copies what all pieces have in a range of rows (steps outside of the split axis), block by
    /// block. Its begin and `block` are such that they make whole bytes.
    ///
    /// # Safety
    /// As [`Job::run`].
    unsafe fn run_rows(&self, rows: Range<usize>, block: usize) {
        for first in rows.clone().step_by(block) {
            let last = rows.end.min(first.saturating_add(block));
            for piece in self.plan.pieces().filter(|piece| piece.len > 0) {
                let Some(target) = self.outputs.data(piece.index) else { continue };
                let bytes = |rows: usize| {
                    let elements = number(rows) * piece.len * self.plan.inner;
                    usize_of(packed_bytes(elements, self.plan.dtype.bits()))
                };
                // SAFETY: the caller's promise.
                unsafe { self.copy_piece(piece, target, bytes(first)..bytes(last)) };
            }
        }
    }

    /// Copies the bytes `part` of one output, counted as if it were packed.
    ///
    /// # Safety
    /// As [`Job::run`].
    unsafe fn copy_piece(&self, piece: Piece, target: *mut u8, part: Range<usize>) {
        // All of them have been had before, in the checks.
        let output = || self.outputs.get(piece.index).ok().flatten();
        let Self { plan, input, .. } = *self;
        // SAFETY: what is read and written stays within the spans that were checked.
        unsafe {
            match &self.form {
                Form::Rows(rows) => rows.copy(piece, target, part),
                Form::Strided(tuning) => {
                    let Some(output) = output() else { return };
                    strided::Layout::new(plan, piece, input, &output, *tuning).copy(part);
                }
                Form::SubByte(tuning) => {
                    let Some(output) = output() else { return };
                    sub_byte::Layout::new(plan, piece, input, &output, *tuning).copy(part);
                }
            }
        }
    }
}

/// A count as a signed one: no object in memory has more than `isize::MAX` bytes.
#[allow(clippy::cast_possible_wrap)]
fn signed(count: usize) -> isize {
    count as isize
}

/// A step that may be negative, for arithmetic that wraps.
#[allow(clippy::cast_sign_loss)]
fn wrapped(step: isize) -> usize {
    step as usize
}
