//! The C boundary: everything that `libsplit.h` declares.
//!
//! | file | what it holds |
//! |---|---|
//! | `types.rs` | the structures and constants, as C sees them |
//! | `exports.rs` | the functions: their manual, and a line of code each |
//! | `parse.rs` | raw pointers in, checked borrows out |
//! | `infer.rs` | `count`, `infer` and `view`, which fill in the descriptors of outputs |
//! | `copy.rs` | `copy`: checks outputs, and starts the engine |
//! | `plan.rs` | plans: their layout in memory, how they are made, and how they are run |
//! | `reads.rs` | the memory that a call reads, which nothing that it writes may overlap |
//! | `executor.rs` | the caller's threads |
//! | `guard.rs` | how a call ended, as a status and in detail |
//!
//! # Promises
//!
//! What `unsafe` code here relies on. Comments refer to these promises by number:
//!
//! 1. Each pointer is NULL or valid for what its structure says until the call returns (`'a`), as
//!    `libsplit.h` demands of callers.
//! 2. No structure or array is written while it is borrowed: outputs are written only where `reads.rs`
//!    has found nothing else.
//! 3. Memory that begins with `plan::MAGIC` is a plan that `plan::plan_init` of this build of the library
//!    has made, or a copy of one.
//! 4. An `error` that is not NULL is aligned, and at least as large as in the first version: `guard::guard`
//!    has checked that.
//! 5. What has been checked of a tensor holds: its arrays have as many entries as its rank says, and its
//!    elements lie where it says.
//!
//! `include/libsplit.h` is generated from `types.rs` and `exports.rs`, comments included, so
//! those are written for C readers.

// C names, comments for C readers, functions whose results C need not use, and sections that `calls` has once for all.
#![allow(non_camel_case_types, clippy::doc_markdown, clippy::must_use_candidate)]
#![allow(clippy::missing_errors_doc, clippy::missing_safety_doc)]

pub(crate) mod copy;
mod executor;
mod exports;
mod guard;
mod infer;
pub(crate) mod parse;
pub(crate) mod plan;
pub(crate) mod reads;
mod types;

/// The fallible C functions for Rust callers that report errors in other words than C's. They take the same arguments
/// and return an [`Error`](crate::Error) in place of a status. `error` is not written to: it is memory that outputs
/// must not overlap.
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

pub use exports::*;
pub use types::*;
