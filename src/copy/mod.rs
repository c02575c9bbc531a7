//! The copy engine: it takes checked pieces and moves their bytes.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | the kinds of copy, tried in this order: small, rows that pieces share, piece by piece |
//! | `call.rs` | what is decided once per call, and how runs are copied, through the caches or past them |
//! | `groups.rs` | how a program makes groups: by turns, past the caches, and near the ends |
//! | `rows.rs` | packed pieces that share their rows |
//! | `nest.rs`, `piece.rs` | the normal form of any other piece, and how it is copied |
//! | `cost.rs`, `describe.rs` | the choice of a method, and its description as text |
//! | `bits.rs`, `bit_rows.rs`, `bit_columns.rs` | elements of 4 or 2 bits, which share bytes |
//! | `parallel.rs` | how work is shared among the caller's threads |
//! | `stage.rs` | buffers in which lines are completed before they are sent past the caches |
//! | **kernels** | |
//! | `runs.rs`, `stream.rs` | copy runs of bytes, through the caches and past them |
//! | `program.rs`, `picks.rs`, `shuffle.rs` | arrange short units within registers |
//! | `pick_words.rs` | does so for units of a few words |
//! | `opaque.rs` | keeps compilers from unrolling loops, and unrolls them |
//! | `tile.rs` | transposes |
//! | **machines** | |
//! | `vector.rs`, `neon.rs`, `avx2.rs`, `avx512.rs` | what kernels are written in, for each level of CPU features |
//! | `level.rs`, `cpu.rs`, `machine.rs` | the kernels of a level, what the CPU has, and what was measured |
//! | `switch.rs` | pretends to be on another machine, for tests |
//!
//! Words that mean the same in all of them:
//!
//! | word | means |
//! |---|---|
//! | piece, part | an output of the split; a piece that is wanted and has elements, with the address it goes to |
//! | row, run | the whole split axis and everything inward of it; the bytes of a row that belong to one piece |
//! | unit, group | bytes that are contiguous in the input and in the output; units contiguous in the output |
//! | band | neighbouring pieces of equal length, which one kernel moves together |
//! | program, turn | the picks that arrange units within registers; one iteration of its loop |
//! | line, lane | 64 bytes of the caches; 16 bytes of a register |
//! | past the caches | with non-temporal stores of whole lines; a fence must follow the last one |
//!
//! # Safety
//! For everything unsafe in these files, beside what each of them says: what is to be copied must be readable and
//! writable, and written by nobody else.

// Where there is only the portable level, nothing streams or transposes.
#![cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(all(target_arch = "x86_64", feature = "avx512"))]
mod avx512;
mod bit_columns;
mod bit_rows;
mod bits;
mod call;
mod cost;
mod cpu;
mod describe;
mod groups;
#[cfg(all(test, unix))]
mod guarded;
mod level;
mod machine;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod nest;
mod opaque;
mod parallel;
mod pick_words;
mod picks;
mod piece;
mod program;
mod rows;
mod runs;
mod shuffle;
mod small;
mod stage;
mod stream;
#[cfg(libsplit_test_switch)]
mod switch;
#[cfg(test)]
pub(crate) mod testing;
mod tile;
mod vector;

pub(crate) use describe::{cpu_string, describe};
#[cfg(all(test, unix))]
pub(crate) use guarded::Guarded;
#[cfg(feature = "tune")]
pub use machine::tune;
pub use parallel::{Executor, Streaming};

use crate::error::Error;
use crate::math::{div, isize_of};
use crate::parts::{Part, Parts, Transfer};
use crate::shape::usize_of;
use call::Call;
use core::ops::Range;
use machine::{Machine, LEAST_ROUND_BYTES, MANY_ROWS, TASK_PIECE_BYTES, WALK_BYTES};
use nest::Nest;
use parallel::Work;
use piece::{Choice, Mover};
use program::Program;
use rows::Rows;
use stage::Stages;
use vector::LINE_BYTES;

/// Copies every part of a checked transfer to its target.
///
/// # Safety
/// The input must be readable and every output writable over what was checked.
#[inline]
pub(crate) unsafe fn run(
    transfer: &Transfer<'_>,
    executor: Option<&dyn Executor>,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe {
        if small::is_small(transfer) {
            small::copy(transfer);
            return Ok(());
        }
        run_on(Machine::here(), transfer, executor)
    }
}

/// Does what [`run`] does, for a machine that may differ from this one if this CPU has its level.
#[inline(never)]
unsafe fn run_on(
    machine: Machine,
    transfer: &Transfer<'_>,
    executor: Option<&dyn Executor>,
) -> Result<(), Error> {
    if transfer.bytes == 0 {
        return Ok(());
    }
    let call = Call::new(machine, transfer, executor);
    // SAFETY: the caller's promise; the ranges of tasks are disjoint, and so are their writes.
    unsafe {
        if let Some(result) = run_rows(transfer, call, executor) {
            return result;
        }
        run_pieces(transfer, &call, executor)
    }
}

/// Copies pieces that share rows; returns `None` if they do not, or if there are too few rows to share among threads.
/// Tasks take ranges of rows, or of pieces if there are so many that a task would get little of each.
#[inline(never)]
unsafe fn run_rows(
    transfer: &Transfer<'_>,
    call: Call,
    executor: Option<&dyn Executor>,
) -> Option<Result<(), Error>> {
    let &Transfer { bytes, ref parts, .. } = transfer;
    let has_threads = parallel::is_of_use(executor, bytes);
    let mut rows = Rows::new(call);
    rows.make(transfer)?;
    let (rows, count) = (&rows, parts.count());
    if has_threads && rows.count < MANY_ROWS && !transfer.geometry.dtype.is_sub_byte() {
        return None;
    }
    let least = count.saturating_mul(TASK_PIECE_BYTES);
    let by_piece = has_threads && bytes / 2 < least;
    let work = |range: Range<usize>| {
        // SAFETY: the caller's promise.
        unsafe {
            if by_piece {
                rows.copy(parts.some(range), 0..rows.count);
            } else {
                rows.copy(parts.iter(), range);
            }
        }
    };
    let size = if by_piece {
        Work { bytes, units: count, granule: LINE_BYTES / 4, least: 0 }
    } else {
        Work { bytes, units: rows.count, granule: LINE_BYTES.min(rows.count), least }
    };
    Some(parallel::run(executor, &size, &work))
}

/// Copies pieces one after the other. Tasks take ranges of the bytes of all pieces.
#[inline(never)]
unsafe fn run_pieces(
    transfer: &Transfer<'_>,
    call: &Call,
    executor: Option<&dyn Executor>,
) -> Result<(), Error> {
    let bytes = transfer.bytes;
    let count = transfer.parts.count();
    let round = round_bytes(transfer, call, count);
    let is_sub_byte = transfer.geometry.dtype.is_sub_byte();
    let work = |range: Range<usize>| {
        // SAFETY: the caller's promise; the ranges of tasks are disjoint, and so are their writes.
        unsafe {
            if is_sub_byte {
                in_rounds(transfer, range, round, &mut |piece, bytes| {
                    bits::copy(transfer, &piece.part, call, bytes);
                });
            } else {
                copy_range(transfer, call, range, round);
            }
        }
    };
    let least = count.saturating_mul(WALK_BYTES);
    parallel::run(executor, &Work { bytes, units: bytes, granule: LINE_BYTES, least }, &work)
}

/// Copies a range of the bytes of all pieces, whose elements are whole bytes.
#[inline(never)] // for its stack
unsafe fn copy_range(transfer: &Transfer<'_>, call: &Call, range: Range<usize>, round: usize) {
    let mut program = Program::new();
    let mut stages = Stages::new();
    in_rounds(transfer, range, round, &mut |piece, bytes| {
        // SAFETY: the caller's promise.
        unsafe { copy_some(transfer, piece, (call, &mut program, &mut stages), bytes) };
    });
    // SAFETY: the caller's promise.
    unsafe { stages.finish(call.machine.kernels) };
    call.finish();
}

/// Calls `visit` for each piece with the range of its bytes that belongs to a range of the bytes of all, in rounds.
fn in_rounds(
    transfer: &Transfer<'_>,
    range: Range<usize>,
    round: usize,
    visit: &mut dyn FnMut(&Joined, Range<usize>),
) {
    let mut start = range.start;
    while start < range.end {
        let end =
            if range.end - start < round.saturating_mul(2) { range.end } else { start + round };
        for piece in joined(transfer) {
            let own = usize_of(transfer.geometry.output_bytes(piece.part.len)) as u128;
            let [begin, end] = [start, end].map(|at| div_wide(at as u128 * own, transfer.bytes));
            if begin < end {
                visit(&piece, begin..end);
            }
        }
        start = end;
    }
}

/// Returns how many bytes of all pieces a round has. Rounds are short because pieces may share lines of the input,
/// which are then still in the caches; but a transpose is best done in one round.
#[inline(never)]
fn round_bytes(transfer: &Transfer<'_>, call: &Call, count: usize) -> usize {
    let mut pieces = joined(transfer);
    let (Some(first), Some(_)) = (pieces.next(), pieces.next()) else { return usize::MAX };
    if !transfer.geometry.dtype.is_sub_byte() {
        let mut nest = Nest::NONE;
        nest.make(transfer, &first.part, first.step);
        let unit = nest.unit.cast_signed();
        if nest.axes().iter().any(|axis| axis.from == unit) {
            return usize::MAX;
        }
    }
    call.machine.second_bytes.max(count.saturating_mul(LEAST_ROUND_BYTES)) / 2
}

/// A piece, or several whose outputs continue each other along the split axis; its steps are then `step` bytes apart.
struct Joined {
    part: Part,
    step: Option<isize>,
}

/// Returns the pieces of a transfer; those that continue each other are joined, so each line is written only once.
fn joined<'a>(transfer: &'a Transfer<'a>) -> impl Iterator<Item = Joined> + 'a {
    let mut parts = transfer.parts.iter().peekable();
    core::iter::from_fn(move || {
        let mut piece = Joined { part: parts.next()?, step: None };
        if !transfer.output_strides.are_packed() {
            while let Some(step) = parts.peek().and_then(|next| continues(transfer, &piece, next)) {
                piece.step = Some(step);
                piece.part.len += parts.next()?.len;
            }
        }
        Some(piece)
    })
}

/// Returns the bytes between steps along the split axis if a part continues a piece along it and is otherwise alike.
fn continues(transfer: &Transfer<'_>, piece: &Joined, next: &Part) -> Option<isize> {
    let (geometry, first) = (&transfer.geometry, &piece.part);
    let strides = [first.index, next.index].map(|index| transfer.output_strides.get(index));
    let (Some(one), Some(other)) = (strides[0], strides[1]) else { return None };
    let size = isize_of(i64::from(geometry.dtype.bits() / 8));
    if size == 0 || next.offset != first.offset + first.len {
        return None;
    }
    let own = |strides: &[i64], len: i64| {
        let stride = strides.get(geometry.axis).filter(|_| geometry.keeps_axis && len > 1);
        stride.map(|stride| isize_of(*stride).wrapping_mul(size))
    };
    let distance = (next.target as isize).wrapping_sub(first.target as isize);
    let step = piece.step.or(own(one, first.len)).or(distance.checked_div(isize_of(first.len)))?;
    let is_split = |axis: usize| geometry.keeps_axis && axis == geometry.axis;
    let mut axes = one.iter().zip(other).enumerate();
    let are_alike = axes.all(|(axis, (one, other))| is_split(axis) || one == other);
    let is_next = distance == step.wrapping_mul(isize_of(first.len))
        && own(other, next.len).is_none_or(|own| own == step);
    (are_alike && is_next).then_some(step)
}

#[allow(clippy::cast_possible_truncation)] // no more than the bytes of a piece
fn div_wide(a: u128, b: usize) -> usize {
    a.checked_div(b as u128).unwrap_or(0) as usize
}

/// Copies a range of a piece's bytes: the steps of its outer axes that begin within it.
#[inline(never)]
unsafe fn copy_some(
    transfer: &Transfer<'_>,
    piece: &Joined,
    (call, program, stages): (&Call, &mut Program, &mut Stages),
    range: Range<usize>,
) {
    let mut nest = Nest::NONE;
    nest.make(transfer, &piece.part, piece.step);
    let choice = Choice::new(call, &nest, program);
    choice.arrange(&mut nest);
    let mut mover = Mover { call, choice: &choice, program, stages };
    // SAFETY: the caller's promise.
    unsafe {
        if range.len() == nest.bytes() {
            mover.copy(&mut nest);
        } else if nest.axes().is_empty() {
            nest.source = nest.source.wrapping_add(range.start);
            nest.target = nest.target.wrapping_add(range.start);
            nest.unit = range.len();
            mover.copy(&mut nest);
        } else {
            copy_boxes(&nest, &mut mover, range);
        }
    }
}

/// Copies a range of the bytes of a piece that has axes.
#[inline(never)]
unsafe fn copy_boxes(nest: &Nest, mover: &mut Mover<'_>, range: Range<usize>) {
    let first = nest.axes().first().copied().unwrap_or_default();
    // Groups are made whole.
    let can_be_cut = first.extent < MANY_ROWS && nest.axes().len() > mover.choice.axes;
    let second = nest.axes().get(1).filter(|_| can_be_cut).copied();
    let inner = second.map_or(1, |axis| axis.extent);
    let step = div(nest.bytes(), first.extent * inner).max(1);
    let [begin, end] = [range.start, range.end].map(|at| at.div_ceil(step));
    each_box(begin..end, inner, &mut |outer, within| {
        let mut some = nest.clone();
        some.restrict(0, outer.start, outer.end);
        if second.is_some() {
            some.restrict(1, within.start, within.end);
        }
        // SAFETY: the caller's promise.
        unsafe { mover.copy(&mut some) };
    });
}

/// Cuts a range of combined steps of two axes into boxes: the rest of a step, whole steps, and the first part of one.
fn each_box(range: Range<usize>, inner: usize, visit: &mut dyn FnMut(Range<usize>, Range<usize>)) {
    let Range { mut start, end } = range;
    while start < end {
        let (outer, within) = (div(start, inner), start % inner.max(1));
        let whole = div(end - start, inner);
        if within == 0 && whole > 0 {
            visit(outer..outer + whole, 0..inner);
            start += whole * inner;
        } else {
            let some = (inner - within).min(end - start);
            visit(outer..outer + 1, within..within + some);
            start += some;
        }
    }
}

// SAFETY: tasks read the input and write disjoint ranges of the outputs.
unsafe impl Sync for Transfer<'_> {}
// SAFETY: only read; the engine takes care of what they point to.
unsafe impl Sync for Parts<'_> {}
// SAFETY: as above.
unsafe impl Sync for Call {}
// SAFETY: as above.
unsafe impl Sync for Rows {}
