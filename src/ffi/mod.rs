//! The C boundary: everything that `libsplit.h` declares.
//!
//! | file | what it holds |
//! |---|---|
//! | `types.rs` | the structures and constants, as C sees them |
//! | `exports.rs` | the functions |
//! | `usual.rs` | the calls that are made all day, at their least cost |
//! | `parse.rs` | raw pointers in, checked borrows out |
//! | `describe.rs` | what `infer` and `view` write into output descriptors |
//! | `guard.rs` | errors and panics become a status |
//!
//! `include/libsplit.h` is generated from `types.rs` and `exports.rs`, comments included, so
//! those are written for C readers.

#![allow(non_camel_case_types, clippy::doc_markdown)]

mod describe;
mod exports;
mod guard;
mod parse;
mod types;
mod usual;

pub use exports::*;
pub use types::*;
