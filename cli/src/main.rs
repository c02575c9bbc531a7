//! The command-line tool of libsplit; see `libsplit --help`.
//!
//! | file | what it holds |
//! |---|---|
//! | `args.rs` | the command line |
//! | `npy.rs`, `reshard.rs`, `map.rs`, `info.rs`, `pages.rs` | the subcommands |
//! | `plan/` | plans: patterns and rules in, places of tensors out |
//! | `config.rs` | the model's config.json |
//! | `job.rs` | what shard, join and verify have in common: making one set of files from another |
//! | `told.rs` | their reports |
//! | `checkpoint.rs`, `shards.rs`, `order.rs` | safetensors files, whole and sharded, and which rank is which |
//! | `transfer.rs` | the bytes of one tensor, from ranks to ranks |
//! | `split.rs` | calls of libsplit's C functions |
//! | `staging.rs` | outputs have temporary names until all of them are complete |
//! | `failure.rs`, `report.rs`, `progress.rs`, `signals.rs` | messages to the user, and when to stop |

#[cfg(not(unix))]
compile_error!("the tool is for Unix systems: it is written for their files, limits and signals");

mod args;
mod checkpoint;
mod config;
mod failure;
mod info;
mod job;
mod map;
mod npy;
mod order;
mod pages;
mod plan;
mod progress;
mod report;
mod reshard;
mod shards;
mod signals;
mod split;
mod staging;
mod told;
mod transfer;

use args::{Cli, Command};
use clap::Parser;
use rustix::process::{getrlimit, setrlimit, Resource, Rlimit};
use std::process::ExitCode;

/// Raises the limit of open files: every rank has one, and the usual limit is far below what the system allows.
fn allow_open_files() {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

fn main() -> ExitCode {
    let is_json = std::env::args_os().any(|argument| argument == "--json");
    signals::handle(move || {
        staging::abandon();
        report::error(&signals::stopped(), is_json);
    });
    allow_open_files();
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) if is_json && error.use_stderr() => {
            report::json_error(error.to_string().trim_end(), failure::Kind::Usage as u8);
            return (failure::Kind::Usage as u8).into();
        }
        Err(error) => error.exit(),
    };
    let done = match command {
        Command::Npy(args) => npy::npy(&args),
        Command::Shard(args) => reshard::shard(&args),
        Command::Join(args) => reshard::join(&args),
        Command::Verify(args) => reshard::verify(&args),
        Command::Map(args) => map::map(&args),
        Command::Plan { name } => pages::plan(&name),
        Command::Info(args) => info::info(&args),
        Command::Completion { shell } => pages::completion(shell),
        Command::Man { directory } => pages::man(&directory),
    };
    match signals::finish(done) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report::error(&error, is_json);
            failure::exit_code(&error).into()
        }
    }
}
