//! TODO docs

#![warn(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod copy;
mod dtype;
mod error;
pub mod ffi;
mod lengths;
mod memory;
mod operator;
mod overlap;
mod plan;
mod rules;
mod shape;

pub use copy::Executor;
pub use dtype::DType;
pub use error::{Error, ErrorKind, Which};
pub use lengths::{Length, Lengths};
pub use operator::Operator;
pub use shape::{DIM_UNKNOWN, MAX_RANK};
