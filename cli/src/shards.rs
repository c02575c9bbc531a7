//! Shards on disk: a directory for each rank, and a manifest that tells how they were made.

use crate::checkpoint::{is_plain, Checkpoint};
use crate::failure::{invalid, refuse};
use crate::plan::{place, Placed, Plan, Tensors, Values};
use crate::staging::MANIFEST;
use anyhow::{Context, Result};
use libsplit_formats::safetensors::Header;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// What `libsplit.json` says.
#[derive(Serialize, Deserialize)]
pub struct Manifest {
    /// Of the manifest itself.
    pub version: u32,
    pub tp: usize,
    /// The text of the plan, and the numbers that it took by name.
    pub plan: String,
    pub values: Values,
    /// The files of the checkpoint as it was, so that it can be as it was again.
    pub files: Vec<WholeFile>,
    pub index: Option<WholeIndex>,
}

/// A file of the checkpoint as it was.
#[derive(Clone, Serialize, Deserialize)]
pub struct WholeFile {
    pub name: String,
    pub header: String,
    pub data_bytes: u64,
}

/// Its index.
#[derive(Clone, Serialize, Deserialize)]
pub struct WholeIndex {
    pub name: String,
    pub text: String,
}

/// The only version so far.
pub const VERSION: u32 = 1;

impl Manifest {
    /// Reads that of a directory, if it has one.
    pub fn read(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(MANIFEST);
        if !path.is_file() {
            return Ok(None);
        }
        Self::parse(&path).with_context(|| path.display().to_string()).map(Some)
    }

    fn parse(path: &Path) -> Result<Self> {
        let manifest: Self = match serde_json::from_str(&fs::read_to_string(path)?) {
            Ok(manifest) => manifest,
            Err(error) => invalid!("not what 'libsplit shard' writes: {error}"),
        };
        if manifest.version != VERSION {
            invalid!("version {}; this program knows version {VERSION}", manifest.version);
        }
        if manifest.tp == 0 || manifest.tp > u16::MAX.into() {
            invalid!("tp {} is outside of 1 to {}", manifest.tp, u16::MAX);
        }
        let mut names = manifest.files.iter().map(|file| &file.name);
        let mut index = manifest.index.iter().map(|index| &index.name);
        if let Some(name) =
            names.find(|name| !is_plain(name)).or(index.find(|name| !is_plain(name)))
        {
            invalid!("{name:?} is no name of a file");
        }
        Ok(manifest)
    }

    /// The plan with its numbers.
    pub fn plan(&self) -> Result<Plan> {
        Plan::parse(&self.plan, &self.values, &serde_json::Value::Null)
            .with_context(|| format!("plan in {MANIFEST}"))
    }
}

/// The name of a rank's directory.
pub fn rank_name(rank: usize) -> String {
    format!("rank-{rank}")
}

/// Ranks with all that is known of them.
pub struct Shards {
    pub ranks: Vec<Checkpoint>,
    pub plan: Plan,
    pub plan_text: String,
    /// The files as they were, in the order of those of each rank.
    pub files: Vec<WholeFile>,
    pub index: Option<WholeIndex>,
    pub placed: Placed,
    /// Shapes of the whole tensors.
    pub whole: Tensors,
}

impl Shards {
    /// A checkpoint as the only rank of all, which has every tensor as a whole.
    pub fn of_whole(checkpoint: Checkpoint, plan: Plan, plan_text: String) -> Self {
        let file = |part: &crate::checkpoint::Part| WholeFile {
            name: part.name.clone(),
            header: part.text.clone(),
            data_bytes: part.header.tensors.last().map_or(0, |tensor| tensor.end),
        };
        let files = checkpoint.parts.iter().map(file).collect();
        let index = checkpoint.index.as_ref();
        let index =
            index.map(|index| WholeIndex { name: index.name.clone(), text: index.text.clone() });
        let whole = checkpoint.shapes();
        let placed = Placed::default();
        Self { ranks: vec![checkpoint], plan, plan_text, files, index, placed, whole }
    }

    /// What 'libsplit shard' made.
    pub fn open(directory: &Path, manifest: Manifest) -> Result<Self> {
        let plan = manifest.plan()?;
        let mut whole = Tensors::new();
        for file in &manifest.files {
            let header = Header::parse(file.header.as_bytes(), file.data_bytes)
                .with_context(|| format!("{MANIFEST}: {}", file.name))?;
            whole.extend(header.tensors.into_iter().map(|tensor| (tensor.name, tensor.shape)));
        }
        let start = manifest.index.as_ref().map(|index| &index.name);
        let Some(start) = start.or(manifest.files.first().map(|file| &file.name)) else {
            invalid!("{MANIFEST}: there are no files");
        };
        let ranks = (0..manifest.tp)
            .map(|rank| Checkpoint::open(&directory.join(rank_name(rank)).join(start)))
            .collect::<Result<Vec<_>>>()?;
        let placed = place(&plan, &whole, manifest.tp)?;
        let Manifest { plan: plan_text, files, index, .. } = manifest;
        let shards = Self { ranks, plan, plan_text, files, index, placed, whole };
        shards.check()?;
        Ok(shards)
    }

    /// Ranks that somebody else made, by this plan.
    pub fn of_ranks(
        ranks: Vec<Checkpoint>,
        plan: Plan,
        plan_text: String,
        whole: Tensors,
    ) -> Result<Self> {
        let placed = place(&plan, &whole, ranks.len())?;
        let Some(first) = ranks.first() else { refuse!("there are no ranks") };
        let mut files = Vec::new();
        for part in &first.parts {
            let mut header = part.header.clone();
            let shapes = header.tensors.iter().map(|tensor| whole[&tensor.name].clone());
            let shapes = shapes.collect::<Vec<_>>();
            let data_bytes = lay_out(&mut header, shapes)?;
            let text = String::from_utf8(header.to_bytes().split_off(8))?;
            files.push(WholeFile { name: part.name.clone(), header: text, data_bytes });
        }
        let index = first.index.as_ref().map(|index| {
            let total: u64 = files.iter().map(|file| file.data_bytes).sum();
            WholeIndex { name: index.name.clone(), text: with_total(&index.json, total) }
        });
        let shards = Self { ranks, plan, plan_text, files, index, placed, whole };
        shards.check()?;
        Ok(shards)
    }

    /// Every rank has the same files with the same tensors, of the shapes that the plan gives.
    fn check(&self) -> Result<()> {
        for (rank, checkpoint) in self.ranks.iter().enumerate() {
            let of_rank = || format!("rank {rank}, {}", checkpoint.directory.display());
            if checkpoint.parts.len() != self.files.len() {
                let (here, there) = (checkpoint.parts.len(), self.files.len());
                invalid!("{}: {here} files, and the whole has {there}", of_rank());
            }
            for (part, file) in checkpoint.parts.iter().zip(&self.files) {
                let whole = Header::parse(file.header.as_bytes(), file.data_bytes)?;
                self.check_part(rank, &part.header, &whole)
                    .with_context(|| format!("{}: {}", of_rank(), part.name))?;
            }
        }
        Ok(())
    }

    fn check_part(&self, rank: usize, part: &Header, whole: &Header) -> Result<()> {
        if part.tensors.len() != whole.tensors.len() {
            invalid!("{} tensors, and the whole has {}", part.tensors.len(), whole.tensors.len());
        }
        let named: HashMap<_, _> = part.tensors.iter().map(|here| (&here.name, here)).collect();
        for tensor in &whole.tensors {
            let name = &tensor.name;
            let Some(here) = named.get(name) else {
                invalid!("there is no tensor {name}");
            };
            let cut = self.placed.tensors.get(name).and_then(|(_, cut)| cut.as_ref());
            let expected = match cut {
                Some(cut) => cut.shape_of(rank, &tensor.shape),
                None => tensor.shape.clone(),
            };
            if here.dtype != tensor.dtype || here.shape != expected {
                invalid!(
                    "tensor {name} is {} {:?}; by the plan it is {} {expected:?}",
                    here.dtype.name,
                    here.shape,
                    tensor.dtype.name
                );
            }
        }
        Ok(())
    }
}

/// Gives tensors other shapes, one after the other; gives the bytes of all.
pub fn lay_out(header: &mut Header, shapes: Vec<Vec<u64>>) -> Result<u64> {
    let mut end = 0_u64;
    for (tensor, shape) in header.tensors.iter_mut().zip(shapes) {
        let bytes =
            tensor.dtype.bytes(&shape).and_then(|bytes| Some((bytes, end.checked_add(bytes)?)));
        let Some((bytes, next)) = bytes else {
            refuse!(
                "tensor {}: {} of shape {shape:?} is no whole number of bytes, or more than can be \
                 numbered: replicate it, or use another --tp",
                tensor.name,
                tensor.dtype.name
            );
        };
        (tensor.begin, tensor.end) = (next - bytes, next);
        tensor.shape = shape;
        end = next;
    }
    Ok(end)
}

/// An index with another size of all tensors, where it tells one.
pub fn with_total(index: &serde_json::Value, bytes: u64) -> String {
    let mut index = index.clone();
    if let Some(total) = index.pointer_mut("/metadata/total_size") {
        *total = bytes.into();
    }
    format!("{index:#}\n")
}
