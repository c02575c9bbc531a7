//! The levels of x86-64, each a file: its registers as a [`super::vector::Vector`], its table of loops,
//! and its own tricks.

pub(super) mod avx2;
pub(super) mod avx512;
mod permute;
mod piece_loops;
mod unequal;
pub(super) mod vbmi;
mod weave;
