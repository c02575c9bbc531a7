//! The copy engine: checked pieces in, bytes moved.
//!
//! | file | what it holds |
//! |---|---|
//! | **what is decided once a call** | |
//! | `tuning.rs` | which loops, and whether past the caches, by the rules in `kernel/` |
//! | `parallel.rs`, `cuts.rs` | how the work is cut into tasks; what a range of all bytes, or of rows, has of each piece |
//! | `reversed.rs` | steps of an axis that lies backwards |
//! | **small copies** | |
//! | `small_packed.rs`, `short_runs.rs` | few rows of packed tensors, run by run; equal short ones, of plans |
//! | `small_strided.rs` | pieces with strides, unit by unit |
//! | **what is packed from the split axis inward** | |
//! | `rows/` | blocks of rows, of which each piece takes a run |
//! | **what is split along its innermost axis in memory** | |
//! | `matrices.rs`, `planes.rs` | of each row, columns; the same of many small matrices |
//! | `columns.rs` | columns become rows of their own: deinterleaved where they are few, else transposed |
//! | `interleaved.rs`, `interleaved_runs.rs` | the way back: few rows of units, or of runs, become columns |
//! | **any other piece** | |
//! | `strided.rs`, `layout.rs` | axes over units of bytes |
//! | `region.rs`, `plane.rs`, `odometer.rs` | units that make whole axes: rows that are picked, planes, and what lies under them |
//! | `tiles.rs` | planes of short rows, taken with what these go on with |
//! | `runs.rs` | long runs that lie apart |
//! | **elements that share bytes** | |
//! | `sub_byte.rs` | runs of 4-bit and 2-bit elements |
//! | `sub_byte_singles.rs`, `sub_byte_transpose.rs` | single ones; those of a transposed matrix |
//! | **below all of them** | |
//! | `kernel/` | the loops that move bytes, by level of CPU features, and the choice among them |
//! | `visit.rs` | functions that are called by address |
//! | `guarded.rs`, `testing.rs` | for tests: memory that ends where nothing may be touched, and transfers |
//!
//! In all of them:
//!
//! | word | means |
//! |---|---|
//! | piece, part | what the split gives; a piece that is wanted and has elements, with its target |
//! | row, run | the whole split axis and what is inward of it; what a piece has of a row |
//! | unit | bytes that lie together in the input and in the output: an element or more |
//! | line, lane | 64 bytes of the caches; 16 bytes of a register |
//! | deinterleave, interleave | take rows of a few short units apart by registers; put them together |
//! | by turns | several streams in rotation, each some lines at a time |
//! | pick | put units a step apart together by registers |
//! | merge, combine | put short runs together to lines: in registers; in a buffer |
//! | past the caches | by non-temporal stores, of whole lines; a fence must follow the last one |

// Until the new engine takes the place of all this.
#![allow(dead_code)]

mod columns;
mod cuts;
#[cfg(all(test, unix))]
mod guarded;
mod interleaved;
mod interleaved_runs;
mod kernel;
mod layout;
mod matrices;
mod odometer;
mod old;
mod parallel;
mod plane;
mod planes;
mod region;
mod reversed;
mod rows;
mod runs;
mod small_packed;
mod strided;
mod sub_byte;
mod sub_byte_singles;
mod sub_byte_transpose;
#[cfg(test)]
pub(crate) mod testing;
mod tiles;
mod tuning;
mod visit;

#[cfg(all(test, unix))]
pub(crate) use guarded::Guarded;
use kernel::combine::LINE;
#[cfg(feature = "tune")]
pub use kernel::rules::tune;
use kernel::rules::LONG_RUN;
pub use parallel::{Executor, Streaming};
use parallel::{Work, OF_EACH, SET_UP, SET_UP_AGAIN, TASK_AGAIN, WALK};

use crate::error::Error;
use crate::math::div;
use crate::parts::{Part, Parts, Transfer};
use crate::shape::usize_of;
use core::ops::Range;
use matrices::Matrices;
use old::{Fault, Report, FEW_PARTS};
use reversed::Reversed;
use rows::Nest;
use tuning::Tuning;

/// Copies every part of a checked transfer to its target.
///
/// # Safety
/// The input must be readable and every output writable over what was checked.
#[inline(never)]
pub(crate) unsafe fn run(
    transfer: &Transfer<'_>,
    executor: Option<&dyn Executor>,
) -> Result<(), Error> {
    let mut report = Report::default();
    let count = transfer.parts.iter().count();
    // SAFETY: the caller's promise.
    let copied = unsafe { run_counted(transfer, count, executor, &mut report) };
    copied.map_err(|fault| report.error(fault))
}

/// Copies every part of a checked transfer, of which there are `count`, to its target.
///
/// # Safety
/// The input must be readable and every output writable over what was checked.
unsafe fn run_counted(
    transfer: &Transfer<'_>,
    count: usize,
    executor: Option<&dyn Executor>,
    report: &mut Report,
) -> Result<(), Fault> {
    // SAFETY: the caller's promise.
    unsafe {
        let all = transfer.parts.count();
        if all == count || (count > FEW_PARTS && all / 4 < count) {
            run_form(transfer, executor, report)
        } else {
            run_listed(transfer, executor, report)
        }
    }
}

/// Copies parts of more outputs, which are listed first, a few at a time.
///
/// # Safety
/// As [`run`].
#[inline(never)] // which takes some of the stack
unsafe fn run_listed(
    transfer: &Transfer<'_>,
    executor: Option<&dyn Executor>,
    report: &mut Report,
) -> Result<(), Fault> {
    let mut all = transfer.parts.iter();
    loop {
        let mut room = old::ROOM;
        let parts = all.list(&mut room);
        if parts.is_empty() {
            return Ok(());
        }
        let each = parts.iter().map(|part| transfer.geometry.piece_bytes(part.len));
        let (bytes, parts) = (each.sum(), Parts::Listed(parts));
        let some = Transfer { parts, bytes, ..*transfer };
        // SAFETY: the caller's promise.
        unsafe {
            run_form(&some, executor, report)?;
        }
    }
}

/// Copies in the first form that suits the layouts, on threads where there are any. What takes much of the
/// stack is left before the copy, unless the copy needs it.
///
/// # Safety
/// As [`run`].
#[inline(never)] // once in the library
unsafe fn run_form(
    transfer: &Transfer<'_>,
    executor: Option<&dyn Executor>,
    report: &mut Report,
) -> Result<(), Fault> {
    if transfer.bytes == 0 {
        return Ok(());
    }
    // SAFETY: the caller's promise.
    unsafe {
        if !(transfer.is_packed() && transfer.output_strides.are_packed()) {
            if Reversed::is_backwards(transfer) {
                if let Some(result) = run_reversed(transfer, executor, report) {
                    return result;
                }
            }
        } else if cfg!(feature = "avx512") && small_packed::are_little(transfer) {
            small_packed::copy_each_part(transfer, tuning::kernels(transfer.bytes));
            return Ok(());
        }
        let are_long = || are_long_on_lines(transfer);
        let tuning = Tuning::new(transfer.bytes, bytes_read(transfer), executor, &are_long);
        if let Some(result) = run_rows(transfer, &tuning, executor, report) {
            return result;
        }
        if let Some(result) = run_matrices(transfer, &tuning, executor, report) {
            return result;
        }
        run_pieces(transfer, &tuning, executor, report)
    }
}

/// Copies pieces of an axis that lies backwards, if they are such.
///
/// # Safety
/// As [`run`].
#[inline(never)] // which takes some of the stack
unsafe fn run_reversed(
    transfer: &Transfer<'_>,
    executor: Option<&dyn Executor>,
    report: &mut Report,
) -> Option<Result<(), Fault>> {
    let mut form = Reversed::NONE;
    form.reverse(transfer)?;
    // SAFETY: the caller's promise.
    Some(unsafe { run_form(&form.transfer(transfer), executor, report) })
}

/// Copies rows that are contiguous from the split axis inward.
///
/// # Safety
/// As [`run`].
#[inline(never)] // which takes some of the stack
unsafe fn run_rows(
    transfer: &Transfer<'_>,
    tuning: &Tuning,
    executor: Option<&dyn Executor>,
    report: &mut Report,
) -> Option<Result<(), Fault>> {
    let &Transfer { bytes, ref parts, .. } = transfer;
    let is_packed = transfer.is_packed() && transfer.output_strides.are_packed();
    let sub_byte = transfer.geometry.dtype.is_sub_byte();
    if sub_byte && !(is_packed && sub_byte::is_whole_bytes(transfer)) {
        return None;
    }
    let has_threads = parallel::is_of_use(executor, bytes);
    let is_cached = tuning.non_temporal.is_none() && !has_threads;
    if is_packed && !sub_byte && is_cached && small_packed::has_short_runs(transfer, tuning.kernels)
    {
        // SAFETY: the caller's promise.
        unsafe { small_packed::copy_each_part(transfer, tuning.kernels) };
        return Some(Ok(()));
    }
    let nest = Nest::new(transfer, tuning);
    let nest = nest.as_ref()?;
    let rows = nest.all_rows();
    // Few long rows are cut anywhere.
    if !is_packed && rows < small_packed::MANY_ROWS && has_threads {
        return None;
    }
    // Many rows are cut between rows, short pieces between pieces, few long rows anywhere.
    let count = parts.count();
    let is_again = has_threads && nest.times().is_some();
    let (set_up, fewest, pieces) =
        if is_again { (SET_UP_AGAIN, TASK_AGAIN, 1) } else { (SET_UP, 0, PIECES) };
    let least = count.saturating_mul(set_up);
    let by_piece = has_threads && div(bytes, parallel::threads(executor, bytes)) < least;
    if by_piece || rows >= small_packed::MANY_ROWS || !is_packed {
        // SAFETY: the caller's promise; ranges of tasks do not meet, nor do their writes.
        let work = |range| unsafe {
            if by_piece {
                nest.copy_all(&parts.some(range), 0..rows);
            } else {
                nest.copy_all(&parts.iter(), range);
            }
        };
        let (units, granule, least) =
            if by_piece { (count, pieces, 0) } else { (rows, nest.granule(), least) };
        let work_size = Work { bytes, units, granule, least: least.max(fewest) };
        return Some(parallel::run(executor, &work_size, &work, report));
    }
    if rows >= ROW_MAJOR && nest.is_row_major() && !has_threads {
        // SAFETY: the caller's promise.
        unsafe { nest.copy_all(&parts.iter(), 0..rows) };
        return Some(Ok(()));
    }
    // SAFETY: as above; what is read and written stays within the spans that were checked.
    let copy = |part: &Part, bytes| unsafe { nest.block.copy(part, bytes) };
    Some(cuts::run_parts(transfer, &copy, executor, report))
}

/// Copies matrices whose columns are the steps on the split axis.
///
/// # Safety
/// As [`run`].
#[inline(never)] // which takes some of the stack
unsafe fn run_matrices(
    transfer: &Transfer<'_>,
    tuning: &Tuning,
    executor: Option<&dyn Executor>,
    report: &mut Report,
) -> Option<Result<(), Fault>> {
    let are_some = transfer.output_strides.are_packed()
        && !transfer.is_packed()
        && !transfer.geometry.dtype.is_sub_byte();
    let matrices = if are_some { Matrices::new(transfer, *tuning) } else { None };
    let matrices = matrices.as_ref()?;
    // SAFETY: the caller's promise; ranges of tasks do not meet.
    let work = |range| unsafe { matrices.copy(range) };
    let (units, granule) = (matrices.all_rows(), matrices.granule());
    let least = usize_of(transfer.geometry.extent).saturating_mul(OF_EACH);
    let work_size = Work { bytes: transfer.bytes, units, granule, least };
    Some(parallel::run(executor, &work_size, &work, report))
}

/// Copies pieces each for itself, or some rows of them.
///
/// # Safety
/// As [`run`].
unsafe fn run_pieces(
    transfer: &Transfer<'_>,
    tuning: &Tuning,
    executor: Option<&dyn Executor>,
    report: &mut Report,
) -> Result<(), Fault> {
    let bytes = transfer.bytes;
    if !transfer.geometry.dtype.is_sub_byte() {
        // SAFETY: the caller's promise; ranges of tasks do not meet.
        let work = |range| unsafe { strided::copy(transfer, tuning, range) };
        return cuts::run_bytes(transfer, &work, executor, report);
    }
    // SAFETY: as above; what is read and written stays within the spans that were checked.
    let copy = |part: &Part, bytes| unsafe { sub_byte::copy(transfer, part, tuning, bytes) };
    let singles = sub_byte_singles::way(transfer);
    let Some(block) = sub_byte::block_of_rows(transfer, singles.is_some()) else {
        return cuts::run_parts(transfer, &copy, executor, report);
    };
    let work = |rows: Range<usize>| {
        // SAFETY: as above; ranges of tasks do not meet.
        let taken = |way| unsafe { sub_byte_singles::copy(transfer, tuning, way, rows.clone()) };
        let rest = singles.map_or(rows.start, taken)..rows.end;
        cuts::copy_rows(transfer, &copy, rest, block);
    };
    let units = usize_of(transfer.geometry.outer);
    let least = transfer.parts.count().saturating_mul(WALK);
    let work_size = Work { bytes, units, granule: sub_byte::GRANULE, least };
    parallel::run(executor, &work_size, &work, report)
}

/// Bytes of input: those that are repeated count once, and of elements that are apart lines are read. Zen 4, µs past
/// the caches and through them, 12 MiB of a row that is repeated: of 300 bytes 508, 211, of 2,100 451, 183.
fn bytes_read(transfer: &Transfer<'_>) -> usize {
    let geometry = &transfer.geometry;
    let strides = transfer.strides.unwrap_or_default();
    let repeated = geometry.shape.iter().zip(strides).filter(|(_, stride)| **stride == 0);
    let once = |bytes, (extent, _): (&i64, &i64)| div(bytes, usize_of(*extent));
    let elements = LINE * 8 / geometry.dtype.bits().max(1) as usize;
    repeated.fold(transfer.bytes, once).saturating_mul(transfer.apart().min(elements))
}

/// Whether pieces have long runs, and each begins a line.
fn are_long_on_lines(transfer: &Transfer<'_>) -> bool {
    let rows = usize_of(transfer.geometry.outer);
    transfer.parts.iter().all(|part| {
        let bytes = transfer.geometry.piece_bytes(part.len);
        let run = div(bytes, rows);
        run >= LONG_RUN
            && (part.target as usize | if rows > 1 { run } else { 0 }).is_multiple_of(LINE)
    })
}

/// How many pieces to cut at: columns of 4 bytes then have whole lines of a row.
const PIECES: usize = LINE / 4;

/// From this many rows on they are copied row by row, where there are loops for that.
const ROW_MAJOR: usize = 4;

// SAFETY: tasks read the input and write ranges of outputs that do not meet.
unsafe impl Sync for Transfer<'_> {}
// SAFETY: only read; what they point to is the engine's care.
unsafe impl Sync for Parts<'_> {}
