//! The command line; help, completions and the manual page come from here.

use crate::config::Number;
use clap::{value_parser, ArgGroup, Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::path::PathBuf;

/// Splits .npy files, and shards and joins safetensors checkpoints for tensor parallelism
#[derive(Parser)]
#[command(name = "libsplit", version, after_long_help = EXIT_CODES, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

const EXIT_CODES: &str = "\
Exit codes:
  0    done
  1    a file cannot be read or written
  2    the command line is wrong, whatever the input contains
  3    an input is corrupt, or not of the expected kind
  4    the operator's rules or the plan do not allow the split
  5    an output already exists
  130  stopped by a signal

Outputs appear under their names once all of them are complete. After an error or a signal there are
none. A process that is killed leaves a directory .libsplit-... beside them, which you can delete.

With --json, an error is one line of JSON on standard error. The environment variable NO_COLOR turns
colours off. Progress is shown only on a terminal.";

#[derive(Subcommand)]
pub enum Command {
    /// Split an .npy file into OUTDIR/<name>_0.npy, OUTDIR/<name>_1.npy and so on
    Npy(Npy),
    /// Shard a checkpoint into a directory of safetensors files for each rank
    Shard(Shard),
    /// Join shards into the checkpoint they were made from, or reshard them for another --tp
    Join(Join),
    /// Check shards against the checksum of every tensor
    Verify(Verify),
    /// List the bytes of a checkpoint that each rank needs, for a loader that reads them itself
    Map(Map),
    /// Print a ready plan, as a starting point for your own
    Plan {
        /// Its name, or a model type
        name: String,
    },
    /// Show what a .safetensors or .npy file, an index or a directory of shards contains
    Info(Info),
    /// Write shell completions to standard output
    Completion {
        /// The shell
        shell: Shell,
    },
    /// Write the manual pages into a directory
    Man {
        /// The directory; it is created if it does not exist
        directory: PathBuf,
    },
}

/// Options of every subcommand that writes files.
#[derive(Args)]
#[allow(clippy::struct_excessive_bools)] // flags of a command line
pub struct Writing {
    /// Replace existing outputs; in a directory of shards, only the files that its manifest lists
    #[arg(long)]
    pub force: bool,
    /// Check everything and report what would be done, but write nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Write results and errors as JSON
    #[arg(long)]
    pub json: bool,
    /// Show no progress, and write nothing to standard output
    #[arg(long, short, conflicts_with = "json")]
    pub quiet: bool,
}

#[derive(Args)]
#[command(after_long_help = NPY_NOTES)]
pub struct Npy {
    /// The array to split, in C or Fortran order, of any dtype except object; - for standard input
    pub input: PathBuf,
    /// The directory for the pieces; it is created if it does not exist
    pub outdir: PathBuf,
    /// The operator whose rules apply
    #[arg(long, value_enum, default_value_t = Op::Split)]
    pub op: Op,
    /// Opset of the ONNX operators, which selects their version [default: the newest]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub opset: Option<i32>,
    /// Axis to split; a negative number counts from the last axis
    #[arg(long, default_value_t = 0, allow_negative_numbers = true)]
    pub axis: i64,
    /// Number of pieces
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub parts: Option<i64>,
    /// Length of each piece
    #[arg(long, value_name = "A,B,...", value_delimiter = ',', allow_hyphen_values = true,
          value_parser = length)]
    pub lengths: Option<Vec<i64>>,
    /// Length of every piece; the last may be shorter (split-to-sequence)
    #[arg(long, value_name = "N", conflicts_with = "lengths", allow_negative_numbers = true)]
    pub each: Option<i64>,
    /// Whether pieces keep the axis (split-to-sequence without lengths)
    #[arg(long, value_name = "0|1", default_value_t = 1, value_parser = value_parser!(u8).range(..2))]
    pub keepdims: u8,
    /// Shorten the last pieces where the axis is too short for --parts (split, opset 18 or newer)
    #[arg(long)]
    pub clamp_uneven: bool,
    /// Make the lengths of --parts differ by at most one, the longer ones first
    #[arg(long, conflicts_with = "clamp_uneven")]
    pub balanced: bool,
    /// Print how the library will move the bytes of this split
    #[arg(long)]
    pub explain: bool,
    /// Threads that copy [default: one per processor]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    #[command(flatten)]
    pub writing: Writing,
}

const NPY_NOTES: &str = "\
The operator's rules for element types apply to bool, integers, float16, float32, float64, complex64
and complex128, of either byte order. An item of any other dtype (strings, times, structures, long
doubles) is treated as that many elements of UINT8. Python objects are pickled and cannot be split.

The pieces are written in C order. Files are mapped into memory and may be larger than it. A pipe is
first copied to a temporary file, in the directory that TMPDIR names.";

/// The operators.
#[derive(Clone, Copy, ValueEnum)]
pub enum Op {
    Split,
    SplitToSequence,
    VariadicSplit,
    OpenvinoSplit,
}

/// A plan, and numbers for it.
#[derive(Args)]
pub struct PlanArgs {
    /// A plan.toml, auto (chosen by the model type in config.json), or a ready plan: llama, phi,
    /// gpt-neox, falcon, deepseek, gpt-oss, gpt2, or one of their model types
    #[arg(long, value_name = "FILE|NAME")]
    pub plan: Option<String>,
    /// A number for {NAME} in the plan, or a list such as A,B [default: the one in config.json]
    #[arg(long, value_name = "NAME=N", value_parser = name_and_number)]
    pub set: Vec<(String, Number)>,
    /// Copy tensors that match no pattern to every rank, and accept patterns that match nothing
    #[arg(long)]
    pub allow_unmatched: bool,
}

/// How tensors are copied.
#[derive(Args)]
pub struct Copying {
    /// How much of a tensor each thread holds in memory at a time
    #[arg(long, value_name = "SIZE", default_value = "1M", value_parser = size)]
    pub chunk: u64,
    /// Threads that copy [default: one per processor]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Do not copy the config, the tokenizer and other small files found beside config.json
    #[arg(long)]
    pub no_copy: bool,
}

#[derive(Args)]
pub struct Shard {
    /// A .safetensors file, a .safetensors.index.json, or a directory with one of them
    pub input: PathBuf,
    /// Number of ranks; each gets its part of every tensor
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub tp: u16,
    #[command(flatten)]
    pub plan: PlanArgs,
    /// The directory for the shards: rank-0, rank-1 and so on, and libsplit.json
    #[arg(long, short, value_name = "DIR", required_unless_present = "dry_run")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub copying: Copying,
    #[command(flatten)]
    pub writing: Writing,
}

#[derive(Args)]
#[command(group = ArgGroup::new("what").args(["output", "dry_run"]).required(true).multiple(true))]
pub struct Join {
    /// A directory made by 'libsplit shard', or the checkpoint of every rank together with --plan
    #[arg(required = true)]
    pub shards: Vec<PathBuf>,
    /// The ranks are given in their order, whatever their names are; for shards that do not say which
    /// rank they are
    #[arg(long)]
    pub in_order: bool,
    /// Reshard for this number of ranks instead of joining
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub tp: Option<u16>,
    #[command(flatten)]
    pub plan: PlanArgs,
    /// The directory for the joined files, which get their original names; or, for a checkpoint of a
    /// single file, a name that ends in .safetensors. With --tp, the directory for the shards
    #[arg(long, short, value_name = "PATH")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub copying: Copying,
    #[command(flatten)]
    pub writing: Writing,
}

#[derive(Args)]
pub struct Verify {
    /// A directory made by 'libsplit shard'
    pub shards: PathBuf,
    /// Threads that read [default: one per processor]
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub threads: Option<u16>,
    /// Write the result and errors as JSON
    #[arg(long)]
    pub json: bool,
    /// Show no progress, and write nothing to standard output
    #[arg(long, short, conflicts_with = "json")]
    pub quiet: bool,
}

#[derive(Args)]
pub struct Map {
    /// A .safetensors file, a .safetensors.index.json, or a directory with one of them
    pub input: PathBuf,
    /// Number of ranks; each needs its part of every tensor
    #[arg(long, value_name = "N", value_parser = value_parser!(u16).range(1..))]
    pub tp: u16,
    #[command(flatten)]
    pub plan: PlanArgs,
    /// Only this rank
    #[arg(long, value_name = "N")]
    pub rank: Option<u16>,
    /// Write the map as JSON, for programs
    #[arg(long)]
    pub json: bool,
}

#[derive(Args)]
pub struct Info {
    /// The file or directory
    pub input: PathBuf,
    /// Write it as JSON
    #[arg(long)]
    pub json: bool,
}

fn name_and_number(text: &str) -> Result<(String, Number), String> {
    let (name, numbers) = text.split_once('=').ok_or("expected NAME=N")?;
    let number =
        |text: &str| text.parse::<i64>().map_err(|_| format!("{text:?} is not a whole number"));
    let numbers = numbers.split(',').map(number).collect::<Result<Vec<_>, _>>()?;
    let number = if let [one] = numbers[..] { Number::One(one) } else { Number::List(numbers) };
    Ok((name.into(), number))
}

/// A length, which may have spaces around it.
fn length(text: &str) -> Result<i64, String> {
    text.trim().parse().map_err(|_| format!("{text:?} is not a whole number"))
}

/// A number of bytes, KiB, MiB or GiB, such as 8M.
fn size(text: &str) -> Result<u64, String> {
    let short = text.strip_suffix("iB").unwrap_or(text);
    let units = [('K', 10), ('k', 10), ('M', 20), ('m', 20), ('G', 30), ('g', 30)];
    let with_unit =
        units.iter().find_map(|(unit, shift)| Some((short.strip_suffix(*unit)?, *shift)));
    let (digits, shift) = with_unit.unwrap_or((text, 0));
    let number: u64 = digits.parse().map_err(|_| format!("{digits:?} is not a whole number"))?;
    match number.checked_mul(1 << shift) {
        Some(bytes @ 64..=0x4000_0000) => Ok(bytes),
        _ => Err("must be from 64 bytes to 1 GiB".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::{size, Cli};
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes() {
        for (text, bytes) in [("64", 64), ("8M", 8 << 20), ("1GiB", 1 << 30), ("3k", 3 << 10)] {
            assert_eq!(size(text).unwrap(), bytes);
        }
        for text in ["", "M", "63", "2G", "8T", "-1", "1e9", "99999999999999999999"] {
            assert!(size(text).is_err(), "{text}");
        }
    }
}
