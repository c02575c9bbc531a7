//! The C boundary: everything that `libsplit.h` declares.
//!
//! | file | what it holds |
//! |---|---|
//! | `types.rs` | the structures and constants, as C sees them |
//! | `exports.rs` | the functions: the manual, and a line each |
//! | `parse.rs` | raw pointers in, checked borrows out |
//! | `infer.rs` | `count`, `infer` and `view`: what is written into output descriptors |
//! | `outputs.rs` | what a copy asks of its outputs |
//! | `copy.rs` | `copy`: the outputs checked, and the engine set to work |
//! | `plan.rs` | plans: how they lie in memory, made and run |
//! | `reads.rs` | the caller's memory that nothing written may lie over |
//! | `executor.rs` | the caller's threads |
//! | `guard.rs` | what became of a call, as a status and in detail |
//!
//! # Promises
//!
//! What `unsafe` relies on here, and is cited by number:
//!
//! 1. Each pointer is NULL or valid for what its structure says, for the length of the call (`'a`):
//!    what `libsplit.h` asks of callers.
//! 2. No structure or array is written while it is borrowed: outputs are written only where `reads.rs`
//!    has found nothing else.
//! 3. Memory that begins with `plan::MAGIC` is a plan that `plan::plan_init` of this very library has
//!    made, or a copy of one.
//! 4. An `error` that is not NULL is aligned, and as large as this version's at least:
//!    `guard::guard` has seen to it.
//! 5. What has been checked of a tensor holds: its arrays have as many entries as its rank says, and its
//!    elements lie where it says.
//!
//! `include/libsplit.h` is generated from `types.rs` and `exports.rs`, comments included, so
//! those are written for C readers.

// C names, prose for C readers, functions whose results C need not use, and what `calls` says once for all of them.
#![allow(non_camel_case_types, clippy::doc_markdown, clippy::must_use_candidate)]
#![allow(clippy::missing_errors_doc, clippy::missing_safety_doc)]

pub(crate) mod copy;
mod executor;
mod exports;
mod guard;
mod infer;
mod outputs;
pub(crate) mod parse;
pub(crate) mod plan;
pub(crate) mod reads;
mod types;

/// The fallible C functions for Rust callers who speak to people by another door: the same arguments, and
/// an [`Error`](crate::Error) in place of a status, which has a message in the words of every door; `error` is only
/// memory that nothing may be written over.
///
/// # Errors
/// As the functions of these names.
///
/// # Safety
/// As those.
pub mod calls {
    pub use super::copy::copy;
    pub use super::infer::{count, infer, view};
    pub use super::plan::{plan_copy, plan_init, plan_view};
}

pub use exports::*;
pub use types::*;
