//! `make tune`: measures on this machine what the rules of `src/copy/kernel/rules.rs` decide, and prints
//! what they say beside what was found. For a CPU without rules of its own: run it a few times on an
//! idle machine, and write down what it finds as a rule, with its figures in the comment.
//!
//! What is measured is the library, with all the loops that this CPU's rules give it: each way of doing a
//! thing is a rule with another value. All take turns on the same buffers; figures are medians of GB/s of
//! input. A word behind `make tune RULES=` chooses the tables that have it in their names.
//!
//! | file | what it holds |
//! |---|---|
//! | `case.rs` | what is split, and where it lies |
//! | `measure.rs` | ways that take turns; tables, and what is found in them |
//! | `choices.rs` | rules that are one of a few values |
//! | `past.rs` | from which size on outputs go past the caches: of one thread and of two |
//! | `strings.rs` | string instructions |
//! | `threads.rs`, `pool.rs` | from which size on two threads win, and the threads |

#![allow(clippy::pedantic)] // a measurement is no library

mod case;
mod choices;
mod measure;
mod past;
mod pool;
mod strings;
mod threads;

use case::Memory;
use libsplit::tune::{rule, NAMES};

fn main() {
    // Cargo has words of its own, which begin with a dash.
    let wanted: Vec<String> =
        std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let is_wanted =
        |title: &str| wanted.is_empty() || wanted.iter().any(|word| title.contains(word));
    println!(
        "level {}, as the CPU and the system have it: {}",
        NAMES[rule("level")],
        NAMES[libsplit::tune::highest()]
    );
    let memory = &mut Memory::new();
    choices::measure(memory, &is_wanted);
    past::measure(memory, &is_wanted);
    strings::measure(memory, &is_wanted);
    threads::measure(memory, &is_wanted);
}
