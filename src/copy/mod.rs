//! The copy engine: checked pieces in, bytes moved.
//!
//! | file | what it holds |
//! |---|---|
//! | `check.rs` | what a copy checks before the first byte moves |
//! | `layout.rs` | the canonical form: which bytes of a piece go where, the element type gone |
//! | `kernel.rs` | the loops that move bytes, and the choice of one by width |
//! | `sub_byte.rs` | the same for 4-bit and 2-bit elements, which share bytes |
//! | `parallel.rs` | how the work of one call is cut into tasks |

pub(crate) mod check;
mod kernel;
mod layout;
mod parallel;
mod sub_byte;

pub use parallel::Executor;

use crate::error::Error;
use crate::memory::{Memory, Outputs};
use crate::plan::{Piece, Plan};
use crate::shape;
use core::ops::Range;

/// Copies every wanted piece of `input` into its output. [`check::copy`] has passed.
///
/// # Safety
/// `input` must be readable and every output writable over its span.
pub(crate) unsafe fn run<O: Outputs>(
    plan: &Plan<'_>,
    input: &Memory<'_>,
    outputs: &O,
    executor: Option<&dyn Executor>,
) -> Result<(), Error> {
    let job = Job { plan, input, outputs };
    let Some(executor) = executor else {
        // SAFETY: the caller's promise.
        unsafe { job.run(0..usize::MAX) };
        return Ok(());
    };
    // SAFETY: the caller's promise; the ranges of tasks do not meet, so neither do their writes.
    parallel::run(executor, job.bytes(), &|range| unsafe { job.run(range) })
}

/// One call's work, seen as the bytes of all wanted outputs one after another.
struct Job<'a, O> {
    plan: &'a Plan<'a>,
    input: &'a Memory<'a>,
    outputs: &'a O,
}

// SAFETY: tasks read the input and write ranges of outputs that do not meet.
unsafe impl<O: Sync> Sync for Job<'_, O> {}

impl<O: Outputs> Job<'_, O> {
    /// The wanted pieces that have elements, with their outputs and the bytes that they take.
    fn pieces(&self) -> impl Iterator<Item = (Piece, Memory<'_>, usize)> {
        let pieces = self.plan.pieces().filter_map(|piece| {
            let output = self.outputs.get(piece.index).ok().flatten()?;
            let elements: i64 = output.shape.iter().product();
            let bytes = shape::packed_bytes(elements, self.plan.dtype.bits());
            Some((piece, output, usize::try_from(bytes).unwrap_or(0)))
        });
        pieces.filter(|(_, _, bytes)| *bytes > 0)
    }

    fn bytes(&self) -> usize {
        self.pieces().map(|(_, _, bytes)| bytes).fold(0, usize::saturating_add)
    }

    /// Does the part of the work that falls in `range`.
    ///
    /// # Safety
    /// As [`run`]; ranges of concurrent calls must not meet.
    unsafe fn run(&self, range: Range<usize>) {
        let mut begin = 0usize;
        for (piece, output, bytes) in self.pieces() {
            let end = begin.saturating_add(bytes);
            if begin >= range.end {
                break;
            }
            if end > range.start {
                let part = range.start.max(begin) - begin..range.end.min(end) - begin;
                // SAFETY: the caller's promise.
                unsafe { self.copy_piece(piece, &output, part) };
            }
            begin = end;
        }
    }

    /// Copies the bytes `part` of one output, counted as if it were packed.
    ///
    /// # Safety
    /// As [`Job::run`].
    unsafe fn copy_piece(&self, piece: Piece, output: &Memory<'_>, part: Range<usize>) {
        // SAFETY: the layouts stay within the spans that were checked.
        unsafe {
            if self.plan.dtype.is_sub_byte() {
                sub_byte::Layout::new(self.plan, piece, self.input, output).copy(part);
            } else {
                layout::Layout::new(self.plan, piece, self.input, output).copy(part);
            }
        }
    }
}
