//! The numbers found by measuring that concern more than one file. Machines of different makes agree on them well enough;
//! what differs from one model to the next is in the table of `machine.rs`.

/// Tasks, and the ranges that they take, have at least this much: less is not worth handing to another thread.
pub(super) const TASK_BYTES: usize = 256 << 10;
/// The number of tasks if the caller leaves it to the library.
pub(super) const DEFAULT_TASKS: usize = 16;
/// A task that has less of each piece spends its time on setting pieces up.
pub(super) const TASK_PIECE_BYTES: usize = 2 << 10;
/// Passing over a piece takes as long as copying this much.
pub(super) const WALK_BYTES: usize = 64;
/// Fewer rows than this are few: small copies are made run by run, and tasks and rounds may end within a row. With more,
/// they end only between rows, and columns may be moved together.
pub(super) const MANY_ROWS: usize = 64;

/// Up to this many bytes of few packed rows are copied run by run, with no further decisions.
pub(super) const SMALL_BYTES: usize = 128 << 10;
/// Up to this many bytes of output stay in the caches, however small these say they are.
pub(super) const LEAST_STREAMED_CALL_BYTES: usize = 1 << 20;
/// The prefetch distance of what is streamed.
pub(super) const PREFETCH_BYTES: usize = 2 << 10;
/// How many runs are interleaved when they are streamed, and bytes of each: as many places as CPUs prefetch from.
pub(super) const INTERLEAVED_RUNS: usize = 8;
pub(super) const INTERLEAVED_BYTES: usize = 256;
/// A block has at least so many rows of streamed runs.
pub(super) const LEAST_STREAMED_ROWS: usize = 16;
/// Shorter runs that follow each other in the output are joined in a stage before they are streamed.
pub(super) const LEAST_STREAMED_RUN_BYTES: usize = 128;

/// Bytes of input in a block of rows, so that pieces that share lines find them in the first-level cache.
pub(super) const BLOCK_BYTES: usize = 16 << 10;
/// The same if bands have at least [`LONG_RUN_BYTES`] of a row on average, so that they share few lines, or if a program
/// reads each line only once.
pub(super) const LONG_BLOCK_BYTES: usize = 256 << 10;
pub(super) const LONG_RUN_BYTES: usize = 1 << 10;
/// Bytes of each column that are transposed in a block: several whole lines.
pub(super) const COLUMN_BYTES: usize = 1024;
/// A round has at least half of this for each piece, if pieces may share lines.
pub(super) const LEAST_ROUND_BYTES: usize = 32 << 10;

/// Fewer units are not worth the tables of a program, which take about as many cycles to make.
pub(super) const LEAST_PROGRAM_UNITS: usize = 1 << 10;
/// Units of this size and longer are copied as runs.
pub(super) const LONGEST_UNIT_BYTES: usize = 128;

/// How many turns of a program a set runs before the next one does: indices stay, and lines are read nearly in order.
pub(super) const TURNS_OF_SET: usize = 4;

/// Costs are in sixteenths of a cycle for a line of output.
pub(super) const CYCLE: usize = 16;
/// Starting on some units.
pub(super) const CALL_COST: usize = 20 * CYCLE;
/// A load and a store of a run shorter than a line; a store takes more than a cycle for the same reason as a
/// window.
pub(super) const RUN_COST: usize = 26;
/// A load of a window, which takes more than a cycle because those that lie across two lines take two; and a pick from
/// it.
pub(super) const LOAD_COST: usize = 26;
pub(super) const PICK_COST: usize = 16;
/// A program that costs no more for a line is not compared with others.
pub(super) const CHEAP_LINE: usize = 96;
/// A store of a register.
pub(super) const STORE_COST: usize = 16;
/// The detour by way of a stage, for a line that is not made whole.
pub(super) const STAGE_COST: usize = 128;
/// Transposes whose registers are half a line, if they are streamed.
pub(super) const HALF_LINES_COST: usize = 80;
