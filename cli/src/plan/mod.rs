//! Plans: which rule each tensor of a checkpoint follows, and what comes of it.
//!
//! | file | what it holds |
//! |---|---|
//! | `text.rs` | `plan.toml`: patterns and rules |
//! | `numbers.rs` | numbers by name |
//! | `ready.rs` | the plans that come with the tool |
//! | `cut.rs` | one axis among ranks: parts, heads, layouts |
//! | `place.rs` | every tensor of a checkpoint with its place |
//! | `scales.rs` | scales of quantized weights |
//! | `pairs.rs` | tensors that are computed with each other are cut alike |

mod cut;
mod numbers;
mod pairs;
mod place;
mod ready;
mod scales;
mod text;

pub use cut::{Cut, Segment};
pub use place::{place, whole_shape, Given, Place, Placed};
pub use ready::{names as ready_names, plan_text, ready};
pub use text::{Plan, Values};
