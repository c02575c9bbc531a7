//! `make tune`: measures on this machine what the rules of `src/copy/kernel/rules.rs` decide, and prints
//! what they say beside what was found. For a CPU without rules of its own: run it a few times on an
//! idle machine, and write down what it finds as a rule, with its figures in the comment.
//!
//! All ways of doing a thing take turns on the same buffers; figures are medians of GB/s of input.

// Of the kernels not all is used here; and a measurement is no library.
#![allow(dead_code, unused_imports, clippy::pedantic)]

mod copy;
#[path = "../../src/math.rs"]
mod math;

fn main() {
    copy::tune();
}
