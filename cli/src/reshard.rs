//! The subcommands shard, join and verify: all take shards of one kind (a whole checkpoint is the only
//! shard of one), and the first two make shards of another.

use crate::args::{Copying, Join, PlanArgs, Shard, Verify, Writing};
use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::failure::{invalid, usage};
use crate::job::Job;
use crate::order::Named;
use crate::plan::{plan_text, ready_names, Plan, Values};
use crate::report::{bytes_text, many, print, print_json};
use crate::shards::{Chosen, Manifest, Shards};
use crate::staging::MANIFEST;
use anyhow::{Context, Result};
use serde_json::json;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;

/// 'libsplit shard'.
pub fn shard(args: &Shard) -> Result<()> {
    let shards = open_whole(&args.input, &args.plan)?;
    let beside = if args.copying.no_copy { Beside::default() } else { Beside::of(&shards)? };
    let job = Job {
        command: "shard",
        tp: Some(args.tp.into()),
        output: output(args.output.as_ref()),
        is_new_plan: true,
        allow_unmatched: args.plan.allow_unmatched,
        copied: beside.copied,
        left: beside.left,
        chunk: args.copying.chunk,
        threads: threads(args.copying.threads),
        writing: &args.writing,
    };
    job.run(&shards)
}

/// 'libsplit join'.
pub fn join(args: &Join) -> Result<()> {
    let Copying { chunk, threads: count, no_copy } = args.copying;
    let shards = open_shards(args)?;
    let is_there = |name: &&String| shards.directory.join(name).is_file();
    let copied =
        if no_copy { Vec::new() } else { shards.copied.iter().filter(is_there).cloned().collect() };
    let job = Job {
        command: "join",
        tp: args.tp.map(usize::from),
        output: output(args.output.as_ref()),
        is_new_plan: args.plan.plan.is_some(),
        allow_unmatched: args.plan.allow_unmatched,
        copied,
        left: Vec::new(),
        chunk,
        threads: threads(count),
        writing: &args.writing,
    };
    job.run(&shards)
}

/// 'libsplit verify'.
pub fn verify(args: &Verify) -> Result<()> {
    let shown = args.shards.display();
    let Some(manifest) = Manifest::read(&args.shards)? else {
        invalid!("{shown}: it contains no {MANIFEST}: give a directory made by 'libsplit shard'");
    };
    let shards = Shards::open(&args.shards, manifest)?;
    let writing = Writing { force: false, dry_run: true, json: args.json, quiet: args.quiet };
    let job = Job {
        command: "verify",
        tp: None,
        output: None,
        is_new_plan: false,
        allow_unmatched: false,
        copied: Vec::new(),
        left: Vec::new(),
        chunk: 1 << 20,
        threads: threads(args.threads),
        writing: &writing,
    };
    let read = job.verify(&shards)?;
    let tensors = shards.model.tensors().count();
    if args.json {
        return print_json(&json!({
            "command": "verify",
            "tp": shards.ranks.len(),
            "tensors": tensors,
            "bytes_read": read,
        }));
    }
    if args.quiet {
        return Ok(());
    }
    let (tensors, ranks) = (many(tensors, "tensor"), many(shards.ranks.len(), "rank"));
    print(&format!(
        "{shown}: {tensors} of {ranks} match their checksums, {} read\n",
        bytes_text(read)
    ))
}

/// The output without slashes at its end, which would lead through a link.
fn output(given: Option<&PathBuf>) -> Option<&Path> {
    given.map(|path| path.components().as_path())
}

fn threads(given: Option<u16>) -> usize {
    let processors = || thread::available_parallelism().map_or(1, usize::from);
    given.map_or_else(processors, usize::from)
}

/// A whole checkpoint with its plan.
pub fn open_whole(input: &Path, args: &PlanArgs) -> Result<Shards> {
    if input.join(MANIFEST).is_file() {
        usage!("{} contains shards: reshard them with 'libsplit join --tp N'", input.display());
    }
    let plan = plan_name(args)?;
    let checkpoint = Checkpoint::open(input)?;
    let chosen = Chosen::read(plan, args, &checkpoint.directory)?;
    Shards::of_whole(checkpoint, chosen)
}

fn open_shards(args: &Join) -> Result<Shards> {
    if let [directory] = args.shards.as_slice() {
        if let Some(manifest) = Manifest::read(directory)? {
            if args.plan.plan.is_some() || !args.plan.set.is_empty() {
                let shown = directory.display();
                usage!(
                    "{shown} has its plan and numbers in {MANIFEST}: leave out --plan and --set"
                );
            }
            if args.in_order {
                usage!("--in-order: the shards say which rank they are: leave it out");
            }
            return Shards::open(directory, manifest);
        }
    }
    if args.plan.plan.is_none() {
        let above = args.shards[0].parent().map(|above| above.join(MANIFEST));
        if let Some(above) = above.filter(|above| above.is_file()) {
            usage!("give the directory that contains {}, not the ranks in it", above.display());
        }
        usage!(
            "{}: it contains no {MANIFEST}: give the directory made by 'libsplit shard', or every \
             rank together with --plan",
            args.shards[0].display()
        );
    }
    let ranks = args.shards.iter().map(|path| Named::open(path));
    let ranks = ranks.collect::<Result<Vec<_>>>()?;
    let chosen = Chosen::read(plan_name(&args.plan)?, &args.plan, &ranks[0].directory)?;
    Shards::of_ranks(ranks, args.in_order, chosen)
}

fn plan_name(args: &PlanArgs) -> Result<&str> {
    let Some(plan) = &args.plan else {
        usage!(
            "no plan is given: use --plan auto to have one chosen by config.json, a ready one \
             (--plan \
             {}), or a file of your own",
            ready_names()
        );
    };
    Ok(plan)
}

impl Chosen {
    /// Reads the plan that is asked for.
    fn read(plan: &str, args: &PlanArgs, directory: &Path) -> Result<Self> {
        let config = Config::read(directory)?;
        let (text, is_ready) = plan_text(plan, &config)?;
        let mut values = Values::new();
        for (name, number) in &args.set {
            if values.insert(name.clone(), number.clone()).is_some() {
                usage!("--set {name} is given twice");
            }
        }
        let quantization = config.quantization()?;
        let mut plan =
            Plan::parse(&text, quantization.as_deref()).with_context(|| format!("plan {plan}"))?;
        plan.is_ready = is_ready;
        plan.check_names(&values)?;
        Ok(Self { plan, values, config, quantization })
    }
}

/// The files beside a model's weights: which are copied, and which are left where they are.
#[derive(Default)]
pub struct Beside {
    pub copied: Vec<String>,
    pub left: Vec<String>,
}

impl Beside {
    /// What lies beside a config.json: small files of known kinds are copied.
    fn of(checkpoint: &Shards) -> Result<Self> {
        let directory = &checkpoint.directory;
        let mut beside = Self::default();
        if !directory.join("config.json").is_file() {
            return Ok(beside);
        }
        let is_part = |name: &str| checkpoint.model.files.iter().any(|file| file.name == name);
        for entry in fs::read_dir(directory).with_context(|| directory.display().to_string())? {
            let name = entry?.file_name();
            let Some(name) = name.to_str() else {
                beside.left.push(name.to_string_lossy().into_owned());
                continue;
            };
            // Outputs of an earlier run lie beside the model, too.
            let path = directory.join(name);
            let is_shards = name == MANIFEST || path.join(MANIFEST).is_file();
            if name.starts_with('.') || name.ends_with(".index.json") || is_part(name) || is_shards
            {
                continue;
            }
            let list = if is_small(name, &path) { &mut beside.copied } else { &mut beside.left };
            list.push(name.into());
        }
        beside.copied.sort();
        beside.left.sort();
        Ok(beside)
    }
}

/// Whether a file is one of those that a model needs beside its weights.
fn is_small(name: &str, path: &Path) -> bool {
    const LARGEST_BYTES: u64 = 64 << 20;
    const ENDINGS: [&str; 10] =
        ["json", "txt", "model", "jinja", "py", "tiktoken", "md", "spm", "bpe", "vocab"];
    const BEGINNINGS: [&str; 6] = ["tokenizer", "LICENSE", "LICENCE", "NOTICE", "vocab", "merges"];
    let ending = Path::new(name).extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    let is_known = ENDINGS.contains(&ending) || BEGINNINGS.iter().any(|it| name.starts_with(it));
    is_known && fs::metadata(path).is_ok_and(|it| it.is_file() && it.len() <= LARGEST_BYTES)
}
