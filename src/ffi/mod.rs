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
