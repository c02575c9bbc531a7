//! The C boundary: everything that `libsplit.h` declares. Structures grow with that header: make them from their `INIT`
//! or `init`, and set the fields that matter.
//!
//! # Promises
//!
//! What `unsafe` code here relies on. Comments refer to these by number:
//!
//! 1. Each pointer is NULL or valid for what its structure says until the call returns (`'a`), as `libsplit.h` demands.
//! 2. Nothing is written while it is borrowed: outputs are written only where `src/reads.rs` has found nothing else.
//! 3. Memory that begins with `crate::plan::MAGIC` is a plan that `plan_init` of this build of the library made, or a copy.
//! 4. An `error` that is not NULL is aligned, and at least as large as in the first version: `guard::guard` checks it.
//! 5. What has been checked of a tensor holds: its arrays have `rank` entries, and its elements lie where it says.
//!
//! `include/libsplit.h` is generated from `src/types.rs` and `exports.rs`; their comments are for C readers.

// C names, comments for C readers, functions whose results C need not use, and sections that `calls` has once for all.
#![allow(non_camel_case_types, clippy::doc_markdown, clippy::must_use_candidate)]
#![allow(clippy::missing_errors_doc, clippy::missing_safety_doc)]

mod copy;
mod executor;
mod exports;
mod guard;
mod infer;
mod parse;
pub(crate) mod plan;

/// The fallible C functions for Rust callers that report errors in other words than C's: they return an
/// [`Error`](crate::Error) in place of a status. `error` is not written to: it is memory that outputs must not overlap.
///
/// # Errors
/// Those of the C functions of the same names.
///
/// # Safety
/// As for those.
pub mod calls {
    pub use super::copy::copy;
    pub use super::infer::{count, infer, view};
    pub use super::plan::{plan_copy, plan_init, plan_view};
}

pub use crate::types::*;
pub use exports::*;
