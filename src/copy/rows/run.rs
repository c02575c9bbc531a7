//! A run: what a piece has of each row.

#![forbid(unsafe_code)]

use core::ptr::null_mut;

/// What a piece has of each row.
#[derive(Clone, Copy)]
pub(super) struct Run {
    /// Bytes from the begin of a row.
    pub offset: usize,
    pub bytes: usize,
    /// Where the run of the first row goes, one behind the other.
    pub target: *mut u8,
    /// The same of the first block of rows.
    pub first: *mut u8,
    /// Of the output.
    pub index: usize,
}

impl Run {
    pub(super) const NONE: Self =
        Self { offset: 0, bytes: 0, target: null_mut(), first: null_mut(), index: 0 };
}
