//! The copy engine: it takes checked pieces and moves their bytes.
//!
//! | file | what it holds |
//! |---|---|
//! | `mod.rs` | the ways of a copy, tried in this order: small, rows that pieces share, piece by piece |
//! | `small.rs` | small copies of few packed rows |
//! | `call.rs` | what is decided once per call, and what each task works with |
//! | `rows.rs`, `bands.rs`, `blocks.rs` | packed pieces that share their rows: what rows are, how pieces form bands, and how blocks of rows are moved |
//! | `rounds.rs`, `joined.rs` | any other pieces, in rounds; those that continue each other are joined |
//! | `nest.rs`, `piece.rs` | the normal form of such a piece, and how it is moved |
//! | `cost.rs`, `describe.rs` | the choice of a method, and its description as text |
//! | `bits.rs`, `bit_tile.rs`, `bit_runs.rs` | pieces of sub-byte elements, of 4 or 2 bits: as runs of bits; rows of columns, brought together; and the loops that pack runs |
//! | `parallel.rs` | how work is shared among the caller's threads |
//! | `deliver.rs`, `groups.rs` | how runs and groups are delivered to their targets: directly, by way of stages, and near the ends |
//! | `stage.rs` | buffers in which lines are completed before they are streamed |
//! | `ahead.rs` | what is prefetched, and when |
//! | **kernels** | |
//! | `runs.rs`, `stream.rs` | copy runs of bytes, and stream them |
//! | `program.rs`, `program/`, `shuffle.rs`, `pick_dwords.rs` | arrange short units within registers: how programs are built, and the loops that run them |
//! | `tile.rs` | transposes |
//! | `opaque.rs` | keeps compilers from unrolling loops, and unrolls them |
//! | **machines** | |
//! | `vector.rs`, `neon.rs`, `avx2.rs`, `avx512.rs` | what kernels are written in, for each level of CPU features |
//! | `kernels.rs`, `level.rs` | the table of kernels, and the table of each level |
//! | `cpu.rs`, `machine.rs`, `machine_constants.rs` | what the CPU has, and what was measured |
//! | `tests/` | for tests: other machines than this one, what several files' tests need, the methods that are chosen, and violations of assertions |
//!
//! Each layer has verbs of its own, so that names tell where one is:
//!
//! | layer | verbs |
//! |---|---|
//! | the transfer | `execute`; `share_out` among tasks |
//! | rows and pieces | `move_rows`, `move_block`, `move_ranges`, `move_some`, `move_nest`, and by which method: `block_by_runs`, `nest_by_program` … |
//! | sub-byte elements | `pack_piece`, `pack_columns`, `pack_run` |
//! | delivery | `deliver_runs`, `deliver_groups`, `deliver_block`, and how: `stream_step`, `stage_turns`, `run_turns` … |
//! | kernels | `copy_run`, `copy_runs`, `stream_runs`, `shuffle`, `pick_dwords`, `transpose`, `stream_lines` |
//!
//! Words that mean the same in all files:
//!
//! | word | means |
//! |---|---|
//! | piece, part | an output of the split; a piece that is wanted and has elements, with the address it goes to |
//! | row | what lies side by side in the input and has something for every target: the whole split axis and everything inward of it; where units are transposed, a unit for each column |
//! | run, unit | bytes that are contiguous in the input and in the output: all that a piece has of a row; or one of many, so short that they are arranged within registers |
//! | group | units contiguous in the output |
//! | band | neighbouring pieces of equal length, which one kernel moves together |
//! | stretch | rows at equal distances, for one band or piece |
//! | program, turn | the picks that arrange units within registers; one iteration of its loop |
//! | line, lane | 64 bytes of the caches; 16 bytes of a register |
//! | word, dword | 64 bits of a register, in which bits are shifted; 32 bits, which are picked |
//! | to stream | to store past the caches, with non-temporal stores of whole lines; a fence must follow the last one |
//! | sub-byte | of 4 or 2 bits: elements that share bytes |
//! | to make | to move units into groups, as a program does; objects are made by `new`, `of` and `from` |
//!
//! # Safety
//! For everything unsafe in these files, beside what each function says: what is to be copied must be readable and
//! writable, and written by nobody else.

// Where there is only the portable level, nothing streams or transposes.
#![cfg_attr(not(any(target_arch = "x86_64", target_arch = "aarch64")), allow(dead_code))]

mod ahead;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(all(target_arch = "x86_64", feature = "avx512"))]
mod avx512;
mod bands;
mod bit_runs;
mod bit_tile;
mod bits;
mod blocks;
mod call;
mod cost;
mod cpu;
mod deliver;
mod describe;
mod groups;
mod joined;
mod kernels;
mod level;
mod machine;
mod machine_constants;
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod neon;
mod nest;
mod opaque;
mod parallel;
mod pick_dwords;
mod piece;
mod program;
mod rounds;
mod rows;
mod runs;
mod shuffle;
mod small;
mod stage;
mod stream;
#[cfg(any(test, libsplit_test_switch))]
pub(crate) mod tests;
mod tile;
mod vector;

pub(crate) use describe::{cpu_string, describe};
pub(crate) use joined::are_one_tensor;
#[cfg(feature = "tune")]
pub use machine::tune;
pub use parallel::{Executor, Streaming};
#[cfg(all(test, unix))]
pub(crate) use tests::Guarded;

use crate::error::Error;
use crate::parts::{Parts, Transfer};
use bands::Bands;
use call::{Call, Scratch};
use machine::Machine;
use machine_constants::{MANY_ROWS, TASK_BYTES, TASK_PIECE_BYTES, WALK_BYTES};
use parallel::{Ranges, Shared, Work};
use rows::Rows;
use vector::LINE_BYTES;

/// Copies every part of a checked transfer to its target.
///
/// # Safety
/// The input must be readable and every output writable over what was checked.
#[inline]
pub(crate) unsafe fn execute(
    transfer: &Transfer<'_>,
    executor: Option<&dyn Executor>,
) -> Result<(), Error> {
    // SAFETY: the same transfer.
    unsafe {
        if small::is_small(transfer) {
            small::copy(transfer);
            return Ok(());
        }
        execute_on(Machine::here(), transfer, executor)
    }
}

/// Does what [`execute`] does, for a machine that may differ from this one if this CPU has its level.
///
/// # Safety
/// As for [`execute`].
#[inline(never)] // small copies, which do without, would pay for its registers
unsafe fn execute_on(
    machine: Machine,
    transfer: &Transfer<'_>,
    executor: Option<&dyn Executor>,
) -> Result<(), Error> {
    if transfer.bytes == 0 {
        return Ok(());
    }
    debug_assert!(transfer.parts.are_alike(), "pieces and targets differ in number");
    let call = Call::new(machine, transfer, executor);
    let has_threads = executor.is_some_and(|executor| executor.max_tasks() != 1)
        && parallel::are_of_use(&machine, transfer.bytes);
    let rows = Rows::of(transfer, call);
    let work = work_of(transfer, rows.as_ref(), has_threads);
    parallel::share_out(executor, &machine, &work, &|ranges| {
        // SAFETY: the ranges of tasks are disjoint, and so are their writes.
        unsafe {
            match (&rows, work.of) {
                (Some(rows), Shared::Rows | Shared::Pieces) => {
                    share_rows(transfer, &call, rows, work.of, ranges);
                }
                _ => rounds::move_ranges(transfer, &call, ranges),
            }
        }
    })
}

/// Moves ranges of the rows that pieces share, or ranges of the pieces.
///
/// # Safety
/// The runs must be readable and writable; concurrent calls must have other ranges.
unsafe fn share_rows(
    transfer: &Transfer<'_>,
    call: &Call,
    rows: &Rows,
    of: Shared,
    ranges: Ranges<'_>,
) {
    let mut bands = Bands::new();
    let task = |scratch: &mut Scratch<'_>| {
        for range in ranges {
            let (pieces, range) = match of {
                Shared::Pieces => (range, 0..rows.count),
                Shared::Rows | Shared::Bytes => (0..transfer.parts.count(), range),
            };
            // SAFETY: these runs are some of the ranges.
            unsafe { rows.move_rows(scratch, &mut bands, transfer.parts.some(pieces), range) };
        }
    };
    // SAFETY: the targets belong to the pieces.
    unsafe { Scratch::lend(call, task) };
}

/// Decides what tasks take ranges of: of rows, if pieces share them, unless there are too few for threads; of pieces, if
/// there are so many that a task would get little of each; or of the bytes of all pieces.
fn work_of(transfer: &Transfer<'_>, rows: Option<&Rows>, has_threads: bool) -> Work {
    let bytes = transfer.bytes;
    let pieces = transfer.parts.count();
    let is_sub_byte = transfer.geometry.dtype.is_sub_byte();
    match rows {
        Some(rows) if !has_threads || rows.count >= MANY_ROWS || is_sub_byte => {
            let least = pieces.saturating_mul(TASK_PIECE_BYTES);
            if has_threads && bytes / 2 < least {
                let granule = LINE_BYTES / 4;
                return Work { of: Shared::Pieces, bytes, units: pieces, granule, least: 0 };
            }
            // So many rows end lines of all pieces; where that is more than a task needs, a range may end anywhere.
            let granule = if rows.row_bytes <= TASK_BYTES / LINE_BYTES { LINE_BYTES } else { 1 };
            Work { of: Shared::Rows, bytes, units: rows.count, granule, least }
        }
        _ => {
            let least = pieces.saturating_mul(WALK_BYTES);
            Work { of: Shared::Bytes, bytes, units: bytes, granule: LINE_BYTES, least }
        }
    }
}

// SAFETY: tasks read the input and write disjoint ranges of the outputs.
unsafe impl Sync for Transfer<'_> {}
// SAFETY: only read; the engine takes care of what they point to.
unsafe impl Sync for Parts<'_> {}
// SAFETY: only read; its pointer is compared, not followed.
unsafe impl Sync for Call {}
// SAFETY: only read; the engine takes care of what they point to.
unsafe impl Sync for Rows {}
