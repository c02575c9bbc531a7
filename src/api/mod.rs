//! The Rust API: safe doors to the same calls.
//!
//! | file | what it holds |
//! |---|---|
//! | `element.rs` | the Rust types that tensors may have elements of |
//! | `view.rs` | typed tensors over slices |
//! | `split.rs` | parameters, and what to do with an input |
//! | `plan.rs` | a split prepared once |
//! | `whole.rs` | a view copied as a whole |
//! | `rayon.rs`, `ndarray.rs` | what the features of these names add |

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
