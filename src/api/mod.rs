//! The Rust API: a safe interface to the same calls.

#[allow(unsafe_code)]
pub(crate) mod element;
#[cfg(feature = "ndarray")]
mod ndarray;
#[allow(unsafe_code)]
pub(crate) mod plan;
#[cfg(feature = "rayon")]
pub(crate) mod rayon;
#[allow(unsafe_code)]
pub(crate) mod split;
#[allow(unsafe_code)]
pub(crate) mod view;
mod whole;
