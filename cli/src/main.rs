//! The command-line tool of libsplit; see `libsplit --help`.
//!
//! | file | what it holds |
//! |---|---|
//! | `args.rs` | the command line |
//! | `npy.rs`, `reshard.rs`, `info.rs`, `pages.rs` | the subcommands |
//! | `plan/` | plans: patterns and rules in, cuts out |
//! | `job.rs` | what shard and join have in common: one set of files made of another |
//! | `checkpoint.rs`, `shards.rs` | safetensors files and sets of them, whole and sharded |
//! | `transfer.rs` | the bytes of one tensor, from ranks to ranks |
//! | `split.rs` | the door to libsplit's C functions |
//! | `staging.rs` | temporary names, then the outputs' own |
//! | `failure.rs`, `report.rs`, `progress.rs`, `signals.rs` | what the user is told, and when to stop |

mod args;
mod checkpoint;
mod failure;
mod info;
mod job;
mod npy;
mod pages;
mod plan;
mod progress;
mod report;
mod reshard;
mod shards;
mod signals;
mod split;
mod staging;
mod transfer;

use args::{Cli, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    signals::handle();
    let done = match Cli::parse().command {
        Command::Npy(args) => npy::npy(&args),
        Command::Shard(args) => reshard::shard(&args),
        Command::Join(args) => reshard::join(&args),
        Command::Info(args) => info::info(&args),
        Command::Completion { shell } => pages::completion(shell),
        Command::Man { directory } => pages::man(&directory),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::error(&error);
            failure::exit_code(&error).into()
        }
    }
}
