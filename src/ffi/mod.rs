//! The C boundary: everything that `libsplit.h` declares.
//!
//! | file | what it holds |
//! |---|---|
//! | `types.rs` | the structures and constants, as C sees them |
//! | `exports.rs` | the functions: the manual, and a line each |
//! | `parse.rs` | raw pointers in, checked borrows out |
//! | `axes.rs` | what the shapes and strides of outputs have in common |
//! | `describe.rs` | `count`, `infer` and `view`: what is written into output descriptors |
//! | `copies.rs` | `copy`: the outputs' descriptors checked, and the engine set to work |
//! | `plans.rs` | plans: how they lie in memory, made and run |
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
//! 3. Memory that begins with `plans::MAGIC` is a plan that `plans::init` of this very library has
//!    made, or a copy of one.
//! 4. An `error` that is not NULL is aligned, and as large as this version's at least:
//!    `guard::refuse` has seen to it.
//! 5. What has been checked of a tensor holds: its arrays have as many entries as its rank says, and its
//!    elements lie where it says.
//!
//! `include/libsplit.h` is generated from `types.rs` and `exports.rs`, comments included, so
//! those are written for C readers.

// C names, prose for C readers, and functions whose results C need not use.
#![allow(non_camel_case_types, clippy::doc_markdown, clippy::must_use_candidate)]

mod axes;
pub(crate) mod copies;
mod describe;
mod executor;
mod exports;
mod guard;
pub(crate) mod parse;
pub(crate) mod plans;
pub(crate) mod reads;
mod types;

pub use exports::*;
pub use types::*;
