//! Plans: which rule each tensor of a checkpoint follows, and what comes of it.
//!
//! | file | what it holds |
//! |---|---|
//! | `text.rs` | `plan.toml`: patterns, rules, and numbers by name |
//! | `cut.rs` | one axis among ranks: parts, heads, layouts |
//! | `placed.rs` | every tensor of a checkpoint with its cut |

mod cut;
mod placed;
mod text;

pub use cut::{Cut, Segment};
pub use placed::{place, whole_shapes, Placed, Tensors};
pub use text::{ready, Plan, Values, READY};
