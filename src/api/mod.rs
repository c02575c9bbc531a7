//! The Rust API: a safe interface to the same calls.
//!
//! | file | what it holds |
//! |---|---|
//! | `element.rs` | the Rust types that may be elements of a tensor |
//! | `view.rs` | typed tensors over slices |
//! | `split.rs` | a split's parameters, and the calls that use them |
//! | `plan.rs` | a split that is prepared once |
//! | `whole.rs` | copying a whole view |
//! | `rayon.rs`, `ndarray.rs` | what the features of the same names add |

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
