//! Headers of `.npy` and `.safetensors` files. They come from anywhere, so every number is checked,
//! and time and memory are in proportion to the header's length.

#![forbid(unsafe_code)]

mod literal;
pub mod npy;
pub mod safetensors;

/// What is wrong with a file, for people.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Invalid(pub String);

/// Gives up with a message.
macro_rules! invalid {
    ($($message:tt)*) => { return Err(crate::Invalid(format!($($message)*))) };
}
use invalid;

/// A result of reading a header.
pub type Result<T> = std::result::Result<T, Invalid>;
