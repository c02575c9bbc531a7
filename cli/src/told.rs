//! What shard and join say about what they did, or would do.

use crate::args::Writing;
use crate::job::{Done, Job};
use crate::plan::{Place, Placed};
use crate::report::{bytes_text, kind, many, path_text, print, print_json, shown};
use crate::shards::Shards;
use anyhow::Result;
use libsplit_formats::safetensors::Tensor;
use serde::{Serialize, Serializer};
use serde_json::json;
use std::collections::HashMap;
use std::path::Path;

/// What is reported to the user.
pub struct Told<'a> {
    pub job: &'a Job<'a>,
    pub shards: &'a Shards,
    pub placed: Option<&'a Placed>,
    pub warnings: &'a [String],
    pub done: &'a Done,
}

impl Told<'_> {
    pub fn tell(&self) -> Result<()> {
        match self.job.writing {
            Writing { json: true, .. } => print_json(&self.json()),
            Writing { quiet: true, .. } => Ok(()),
            Writing { dry_run: true, .. } => print(&self.table()),
            _ => print(&self.line()),
        }
    }

    /// Each tensor of the whole, the pattern that matches it, and its new place.
    fn tensors(&self) -> impl Iterator<Item = (&Tensor, Option<&str>, Place)> {
        let places = self.placed.into_iter().flat_map(|placed| placed.tensors.iter().flatten());
        let places = places.map(Some).chain(std::iter::repeat(None));
        self.shards.model.tensors().zip(places).map(|((tensor, is_listed), found)| {
            let plan = &self.shards.plan;
            let entry = found.map_or_else(|| plan.entry(&tensor.name), |(entry, _)| *entry);
            let entry = entry.filter(|_| is_listed);
            let pattern = entry.map(|entry| plan.entries[entry].pattern.as_str());
            (tensor, pattern, found.map_or(Place::Whole, |(_, place)| place.clone()))
        })
    }

    fn json(&self) -> ToldJson<'_> {
        ToldJson {
            command: self.job.command,
            output: self.job.output.map(path_text),
            dry_run: self.job.writing.dry_run,
            tp: self.job.tp,
            tp_before: self.shards.ranks.len(),
            rank_bytes: self.placed.map(|placed| placed.rank_bytes.as_slice()),
            copied: &self.job.copied,
            not_copied: &self.job.left,
            warnings: self.warnings,
            bytes_read: self.done.read,
            bytes_written: self.done.written,
            tensors: TensorsJson(self),
        }
    }

    /// A line for each tensor, or for all that differ in a number in their names only.
    fn table(&self) -> String {
        let mut order = Vec::new();
        let mut alike: HashMap<(String, String), (&str, usize)> = HashMap::new();
        for (tensor, pattern, place) in self.tensors() {
            let key = (kind(&tensor.name), described(tensor, pattern, &place));
            let (_, count) = alike.entry(key.clone()).or_insert_with(|| {
                order.push(key);
                (&tensor.name, 0)
            });
            *count += 1;
        }
        let line = |key: &(String, String)| match alike[key] {
            (name, 1) => format!("{}  {}\n", shown(name), key.1),
            (_, count) => format!("{} ({count})  {}\n", shown(&key.0), key.1),
        };
        let mut text: String = order.iter().map(line).collect();
        if let Some(Placed { rank_bytes, .. }) = self.placed {
            let total = bytes_text(rank_bytes.iter().sum());
            let (least, most) = (rank_bytes.iter().min(), rank_bytes.iter().max());
            let each = match (least.copied().unwrap_or(0), most.copied().unwrap_or(0)) {
                (least, most) if least == most => bytes_text(most),
                (least, most) => format!("{} to {}", bytes_text(least), bytes_text(most)),
            };
            let (ranks, whole) =
                (many(rank_bytes.len(), "rank"), bytes_text(self.shards.model.bytes()));
            let line = format!("{ranks} of {each}, {total} in all; the whole is {whole}\n");
            text.push_str(&line);
        }
        text
    }

    fn line(&self) -> String {
        let ranks = |count| many(count, "rank");
        let tensors = many(self.shards.model.tensors().count(), "tensor");
        let (before, tp) = (ranks(self.shards.ranks.len()), self.job.tp.map(ranks));
        let what = match (self.job.command, tp) {
            ("shard", Some(tp)) => format!("sharded {tensors} for {tp}"),
            (_, Some(tp)) => format!("resharded {tensors} of {before} for {tp}"),
            (_, None) => format!("joined {tensors} of {before}"),
        };
        let output = self.job.output.unwrap_or(Path::new(".")).display();
        let (read, written) = (bytes_text(self.done.read), bytes_text(self.done.written));
        let copied = match self.job.copied.len() {
            0 => String::new(),
            count => format!(", {} copied", many(count, "small file")),
        };
        let left = match self.job.left.as_slice() {
            [] => String::new(),
            left => format!("not copied: {}\n", listed(left)),
        };
        format!("{what} into {output}: {read} read, {written} written{copied}\n{left}")
    }
}

/// Some names, and how many more there are.
fn listed(names: &[String]) -> String {
    const MOST: usize = 12;
    let shown: Vec<_> = names.iter().take(MOST).map(|name| shown(name)).collect();
    match names.len().saturating_sub(MOST) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// What a tensor is, and what becomes of it.
fn described(tensor: &Tensor, pattern: Option<&str>, place: &Place) -> String {
    let (dtype, shape) = (tensor.dtype.name, &tensor.shape);
    let what = match place {
        Place::Whole => "whole".into(),
        Place::Rank(rank) => format!("on rank {rank} only"),
        Place::Cut(cut) => {
            let zeros = cut.extent - cut.real;
            let padded =
                if zeros == 0 { String::new() } else { format!(", padded with {zeros} zeros") };
            let here = cut.shape_of(0, shape);
            format!("cut on axis {}{padded}, {here:?} per rank", cut.axis)
        }
    };
    let by = pattern.map_or(String::new(), |pattern| format!(", by {pattern:?}"));
    format!("{dtype} {shape:?}  {what}{by}")
}

/// What the user is told, as JSON.
#[derive(Serialize)]
struct ToldJson<'a> {
    command: &'a str,
    output: Option<String>,
    dry_run: bool,
    tp: Option<usize>,
    tp_before: usize,
    rank_bytes: Option<&'a [u64]>,
    copied: &'a [String],
    not_copied: &'a [String],
    warnings: &'a [String],
    bytes_read: u64,
    bytes_written: u64,
    tensors: TensorsJson<'a>,
}

/// All tensors, of which there may be many: one at a time is in memory.
struct TensorsJson<'a>(&'a Told<'a>);

impl Serialize for TensorsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.tensors().map(|(tensor, pattern, place)| {
            json!({
                "name": tensor.name,
                "dtype": tensor.dtype.name,
                "shape": tensor.shape,
                "pattern": pattern,
                "axis": place.cut().map(|cut| cut.axis),
                "rank": if let Place::Rank(rank) = place { Some(rank) } else { None },
                "rank_shape": place.shape(0, &tensor.shape),
            })
        }))
    }
}
