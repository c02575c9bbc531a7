//! The levels of x86-64, each a file: its registers as a [`super::vector::Vector`], its table of loops,
//! and its own tricks.

pub(super) mod avx2;
#[cfg(feature = "avx512")]
pub(super) mod avx512;
#[cfg(feature = "avx512")]
mod buffer;
#[cfg(feature = "avx512")]
mod equal_pieces;
#[cfg(feature = "avx512")]
mod equal_runs;
#[cfg(feature = "avx512")]
mod permute;
#[cfg(feature = "avx512")]
mod piece_loops;
#[cfg(feature = "avx512")]
mod seams;
#[cfg(feature = "avx512")]
mod unequal;
#[cfg(feature = "avx512")]
pub(super) mod vbmi;
#[cfg(feature = "avx512")]
mod weave;
