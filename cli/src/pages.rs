//! What is printed as it is: ready plans, and completions and manual pages generated from the command
//! line.

use crate::args::Cli;
use crate::failure::usage;
use crate::plan::{ready, ready_names};
use crate::report::print;
use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;
use std::fs;
use std::path::Path;

/// Writes the completions of a shell.
pub fn completion(shell: Shell) -> Result<()> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "libsplit", &mut text);
    print(&String::from_utf8(text)?)
}

/// Prints a ready plan.
pub fn plan(name: &str) -> Result<()> {
    let Some(text) = ready(name) else {
        usage!("there is no ready plan {name:?}: there are {}", ready_names());
    };
    print(text)
}

/// Writes libsplit.1, and a page for each subcommand.
pub fn man(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory)
        .and_then(|()| clap_mangen::generate_to(Cli::command(), directory))
        .with_context(|| format!("cannot write to {}", directory.display()))
}
