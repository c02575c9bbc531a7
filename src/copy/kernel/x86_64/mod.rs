//! The levels of x86-64, each a file: its registers as a [`super::vector::Vector`], its table of loops,
//! and its own tricks.
//!
//! | file | what it holds |
//! |---|---|
//! | `avx2.rs`, `avx512.rs`, `vbmi.rs` | the levels |
//! | `equal_runs.rs`, `piece_loops.rs` | runs of half a line and more, row by row: equal ones, any |
//! | `halves.rs` | the same by registers of half a line: equal ones, long ones |
//! | `half_lines.rs` | units of 4-byte elements by whole halves of lines |
//! | `few.rs` | rows of few units, where registers of a line are loaded and stored as two halves |
//! | `part_lines.rs` | equal ones of less than a line by registers of half a line |
//! | `ordered.rs` | units a step apart of rows that a plan knows |
//! | `apart.rs` | units that lie apart in the output |
//! | `permute.rs` | short runs by byte permutes |
//! | `equal_pieces.rs`, `unequal.rs`, `blocks.rs` | groups of them: equal ones, any, rows of many blocks |
//! | `interleave.rs` | the way back: streams interleaved by permutes |
//! | `interleave_runs.rs` | runs of few streams by turns |
//! | `transpose_past.rs` | transposes past the caches to targets off their lines |
//! | `runs_past.rs` | past the caches: long runs that lie apart, by turns |
//! | `buffer.rs` | write-combining buffers, by this level's vectors |

#[cfg(feature = "avx512")]
mod apart;
pub(super) mod avx2;
#[cfg(feature = "avx512")]
pub(super) mod avx512;
#[cfg(feature = "avx512")]
mod blocks;
#[cfg(feature = "avx512")]
mod buffer;
#[cfg(feature = "avx512")]
mod equal_pieces;
#[cfg(feature = "avx512")]
mod equal_runs;
#[cfg(feature = "avx512")]
mod few;
#[cfg(feature = "avx512")]
mod half_lines;
#[cfg(feature = "avx512")]
mod halves;
#[cfg(feature = "avx512")]
mod interleave;
#[cfg(feature = "avx512")]
mod interleave_runs;
#[cfg(feature = "avx512")]
mod ordered;
#[cfg(feature = "avx512")]
mod part_lines;
#[cfg(feature = "avx512")]
mod permute;
#[cfg(feature = "avx512")]
mod piece_loops;
#[cfg(feature = "avx512")]
mod runs_past;
#[cfg(feature = "avx512")]
mod transpose_past;
#[cfg(feature = "avx512")]
mod unequal;
#[cfg(feature = "avx512")]
pub(super) mod vbmi;
