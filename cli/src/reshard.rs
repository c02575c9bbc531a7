//! The subcommands shard and join: both take shards of one kind (a whole checkpoint is the only
//! shard of one) and make shards of another.

use crate::args::{Join, PlanArgs, Shard};
use crate::checkpoint::Checkpoint;
use crate::failure::{invalid, refuse};
use crate::job::Job;
use crate::plan::{ready, whole_shapes, Plan, Values, READY};
use crate::shards::{Manifest, Shards};
use crate::staging::MANIFEST;
use anyhow::{Context, Result};
use std::fs;

/// 'libsplit shard'.
pub fn shard(args: &Shard) -> Result<()> {
    if args.input.join(MANIFEST).is_file() {
        refuse!("{} holds shards: use 'libsplit join --tp N' on them", args.input.display());
    }
    let checkpoint = Checkpoint::open(&args.input)?;
    let (plan, text) = read_plan(&args.plan, &checkpoint)?;
    let shards = Shards::of_whole(checkpoint, plan, text);
    let job = Job {
        command: "shard",
        tp: Some(args.tp.into()),
        output: args.output.as_deref(),
        is_new_plan: true,
        strict: args.plan.strict,
        chunk: args.chunk,
        writing: &args.writing,
    };
    job.run(&shards)
}

/// 'libsplit join'.
pub fn join(args: &Join) -> Result<()> {
    let shards = open_shards(args)?;
    let job = Job {
        command: "join",
        tp: args.tp.map(usize::from),
        output: args.output.as_deref(),
        is_new_plan: args.plan.plan.is_some(),
        strict: args.plan.strict,
        chunk: args.chunk,
        writing: &args.writing,
    };
    job.run(&shards)
}

fn open_shards(args: &Join) -> Result<Shards> {
    if let [directory] = args.shards.as_slice() {
        if let Some(manifest) = Manifest::read(directory)? {
            if args.plan.plan.is_some() {
                refuse!("{} has its plan in {MANIFEST}: leave --plan out", directory.display());
            }
            return Shards::open(directory, manifest);
        }
        if args.plan.plan.is_none() {
            let shown = directory.display();
            invalid!(
                "{shown}: no {MANIFEST} in it: give the directory that 'libsplit shard' made, \
                      or all ranks in turn and --plan"
            );
        }
    }
    let ranks = args.shards.iter().map(|path| Checkpoint::open(path));
    let ranks = ranks.collect::<Result<Vec<_>>>()?;
    let (plan, text) = read_plan(&args.plan, &ranks[0])?;
    let whole = whole_shapes(&plan, &ranks[0].shapes(), ranks.len())?;
    Shards::of_ranks(ranks, plan, text, whole)
}

/// The plan that is asked for, and its text.
fn read_plan(args: &PlanArgs, checkpoint: &Checkpoint) -> Result<(Plan, String)> {
    let names = || READY.map(|(name, _)| name).join(", ");
    let Some(plan) = &args.plan else {
        refuse!("there is no plan: give --plan FILE, or the name of a ready one: {}", names());
    };
    let text = match ready(plan) {
        Some(text) => text.to_owned(),
        None => fs::read_to_string(plan)
            .with_context(|| format!("plan {plan} (ready plans are {})", names()))?,
    };
    let values: Values = args.set.iter().cloned().collect();
    let plan = Plan::parse(&text, &values, &checkpoint.config()?)
        .with_context(|| format!("plan {plan}"))?;
    Ok((plan, text))
}
