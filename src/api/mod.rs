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

pub(crate) mod element;
#[cfg(all(feature = "ndarray", not(feature = "capi")))]
mod ndarray;
#[cfg(all(feature = "alloc", not(feature = "capi")))]
pub(crate) mod plan;
#[cfg(all(feature = "rayon", not(feature = "capi")))]
pub(crate) mod rayon;
#[cfg(all(feature = "alloc", not(feature = "capi")))]
pub(crate) mod split;
#[cfg(all(feature = "alloc", not(feature = "capi")))]
pub(crate) mod view;
#[cfg(all(feature = "alloc", not(feature = "capi")))]
mod whole;
