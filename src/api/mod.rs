//! The Rust API: a safe interface to the same calls.

#![allow(unsafe_code)] // where borrows become pointers

pub(crate) mod element;
mod lengths;
#[cfg(feature = "ndarray")]
mod ndarray;
pub(crate) mod plan;
#[cfg(feature = "rayon")]
pub(crate) mod rayon;
pub(crate) mod split;
pub(crate) mod view;
