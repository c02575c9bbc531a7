//! Shards on disk: a directory for each rank, and a manifest that says how they were made.

use crate::checkpoint::{
    is_plain, Checkpoint, Index, Model, ModelFile, Source, LARGEST_TEXT_BYTES,
};
use crate::config::Config;
use crate::failure::{failure, invalid, refuse, Kind};
use crate::order::{check_order, Mark, Named};
use crate::plan::{place, whole_shape, Given, Place, Placed, Plan, Values};
use crate::staging::MANIFEST;
use anyhow::{Context, Result};
use libsplit_formats::safetensors::{Header, Tensor};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use twox_hash::XxHash3_64;

/// What `libsplit.json` says; README.md describes each field.
#[derive(Serialize, Deserialize)]
pub struct Manifest {
    pub format: String,
    pub version: u32,
    /// The program that wrote it.
    pub written_by: String,
    pub tp: usize,
    /// The text of the plan, the quantization that it was for, and the numbers that it took by name.
    pub plan: String,
    pub quantization: Option<String>,
    pub values: Values,
    /// The files of the checkpoint as it was, so that it can be as it was again.
    pub files: Vec<WholeFile>,
    pub index: Option<Index>,
    /// Small files that lie beside the manifest, as they lay beside the checkpoint.
    pub copied: Vec<String>,
    /// XXH3 of all of the above, as JSON without white space, with this as an empty string.
    pub xxh3: String,
}

/// Checksums by the names of tensors.
pub type Checksums = BTreeMap<String, String>;

/// A file of the checkpoint as it was.
#[derive(Serialize, Deserialize)]
pub struct WholeFile {
    pub name: String,
    pub header: String,
    pub data_bytes: u64,
    /// Of each tensor, XXH3 of its bytes, 64 bits, in hexadecimal.
    pub xxh3: Checksums,
}

/// The name of the format.
pub const FORMAT: &str = "libsplit-shards";

/// The version that this program writes and reads. It changes with the meaning of any field, and of any rule
/// of a plan, as 'join' applies the plan again; then what reads this version stays.
pub const VERSION: u32 = 1;

/// What every version of the manifest has.
#[derive(Deserialize)]
struct Identity {
    format: String,
    version: u32,
}

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
        let text = fs::read_to_string(path)?;
        let not_one = |error| {
            let message = format!("not a manifest written by 'libsplit shard': {error}");
            failure(Kind::Invalid, message)
        };
        serde_json::from_str::<Identity>(&text).map_err(not_one)?.check()?;
        let mut manifest: Self = serde_json::from_str(&text).map_err(not_one)?;
        manifest.check()?;
        let expected = std::mem::take(&mut manifest.xxh3);
        let found = manifest.checksum()?;
        if found != expected {
            invalid!(
                "its checksum is {found}, but it says {expected}: it has been damaged or edited"
            );
        }
        Ok(manifest)
    }

    /// The checksum of one that does not have it yet.
    pub fn checksum(&self) -> Result<String> {
        Ok(format!("{:016x}", XxHash3_64::oneshot(&serde_json::to_vec(self)?)))
    }

    fn check(&self) -> Result<()> {
        if self.tp == 0 || self.tp > u16::MAX.into() {
            invalid!("tp {} is outside 1 to {}", self.tp, u16::MAX);
        }
        if let Some(name) = self.names().chain(&self.copied).find(|name| !is_plain(name)) {
            invalid!("{name:?} is not a plain file name");
        }
        Ok(())
    }

    /// The names of a rank's files.
    fn names(&self) -> impl Iterator<Item = &String> {
        let index = self.index.iter().map(|index| &index.name);
        self.files.iter().map(|file| &file.name).chain(index)
    }

    /// Whether a path below the directory is that of a file which the manifest lists.
    pub fn lists(&self, path: &Path) -> bool {
        let components: Option<Vec<_>> = path.iter().map(|component| component.to_str()).collect();
        match components.as_deref() {
            Some([name]) => *name == MANIFEST || self.copied.iter().any(|copied| copied == name),
            Some([rank, name]) => {
                let number = rank.strip_prefix("rank-").and_then(|number| number.parse().ok());
                let is_rank = number.is_some_and(|it| it < self.tp && rank_name(it) == *rank);
                is_rank && self.names().any(|known| known == name)
            }
            _ => false,
        }
    }
}

impl Identity {
    fn check(&self) -> Result<()> {
        if self.format != FORMAT {
            invalid!("its format is {:?}, and not {FORMAT:?}", self.format);
        }
        if self.version != VERSION {
            invalid!(
                "it has version {}, and this program reads version {VERSION}: use a newer libsplit",
                self.version
            );
        }
        Ok(())
    }
}

/// The name of a rank's directory.
pub fn rank_name(rank: usize) -> String {
    format!("rank-{rank}")
}

/// A file of one rank.
pub struct RankFile {
    pub source: Source,
    /// Where each of the model's tensors in this file begins; 0 if the rank does not have it.
    pub begins: Vec<u64>,
}

/// A plan, and where it finds its numbers.
pub struct Chosen {
    pub plan: Plan,
    pub values: Values,
    pub config: Config,
    pub quantization: Option<String>,
}

/// Ranks with all that is known of them. A whole checkpoint is the only rank of one.
pub struct Shards {
    pub model: Model,
    pub plan: Plan,
    /// Where the plan finds its numbers.
    pub values: Values,
    pub config: Config,
    pub quantization: Option<String>,
    /// Where tensors are now; none if the only rank has the whole.
    pub placed: Option<Placed>,
    /// For each rank its files, in the model's order.
    pub ranks: Vec<Vec<RankFile>>,
    pub checksums: Option<Vec<Checksums>>,
    /// What the shards say of themselves which model they are of, file by file.
    pub models: Option<Vec<String>>,
    /// The directory with the small files, and their names.
    pub directory: PathBuf,
    pub copied: Vec<String>,
}

impl Shards {
    /// A whole checkpoint.
    pub fn of_whole(checkpoint: Checkpoint, chosen: Chosen) -> Result<Self> {
        let Chosen { plan, values, config, quantization } = chosen;
        let Checkpoint { model, sources, directory } = checkpoint;
        let mut files = Vec::new();
        for (file, source) in model.files.iter().zip(sources) {
            if let Some(mark) = Mark::of(&file.header)? {
                refuse!(
                    "{}: it is rank {} of {} from 'libsplit shard', not a whole checkpoint: join \
                     the shards first, or reshard them with 'libsplit join --tp N'",
                    source.path.display(),
                    mark.rank,
                    mark.ranks
                );
            }
            let begin = |tensor: &Tensor| source.data_begin + tensor.begin;
            files
                .push(RankFile { begins: file.header.tensors.iter().map(begin).collect(), source });
        }
        Ok(Self {
            model,
            plan,
            values,
            config,
            quantization,
            placed: None,
            ranks: vec![files],
            checksums: None,
            models: None,
            directory,
            copied: Vec::new(),
        })
    }

    /// What 'libsplit shard' made.
    pub fn open(directory: &Path, manifest: Manifest) -> Result<Self> {
        let Manifest { tp, plan, quantization, values, files, index, copied, .. } = manifest;
        let plan = Plan::parse(&plan, quantization.as_deref())
            .with_context(|| format!("plan in {MANIFEST}"))?;
        let (mut whole, mut checksums) = (Vec::new(), Vec::new());
        for WholeFile { name, header: text, data_bytes, xxh3 } in files {
            let header = Header::parse(text.as_bytes(), data_bytes)
                .with_context(|| format!("{MANIFEST}: {name}"))?;
            whole.push(ModelFile { name, header, text, unlisted: HashSet::new() });
            checksums.push(xxh3);
        }
        let model = Model::new(whole, index).context(MANIFEST)?;
        let config = Config::default();
        let is_quantized = quantization.is_some();
        let given = Given { values: &values, config: &config, is_quantized };
        let placed = place(&plan, &model, tp, &given)?;
        let mut ranks = Vec::new();
        for rank in 0..tp {
            let mut files = Vec::new();
            for (file, places) in model.files.iter().zip(&placed.tensors) {
                let path = directory.join(rank_name(rank)).join(&file.name);
                let (here, source) = crate::checkpoint::open_file(&path)?;
                let plan = fingerprint(&plan, &values);
                let expected = Mark { rank, ranks: tp, plan, model: String::new() };
                let checked = expected.check(&here.header).and_then(|()| {
                    begins(rank, &here.header, &file.header, places, source.data_begin)
                });
                let begins = checked.with_context(|| path.display().to_string())?;
                files.push(RankFile { source, begins });
            }
            ranks.push(files);
        }
        Ok(Self {
            model,
            plan,
            values,
            config,
            quantization,
            placed: Some(placed),
            ranks,
            checksums: Some(checksums),
            models: None,
            directory: directory.into(),
            copied,
        })
    }

    /// Ranks that are named one by one, by this plan.
    pub fn of_ranks(mut ranks: Vec<Named>, is_in_order: bool, chosen: Chosen) -> Result<Self> {
        let Chosen { plan, values, config, quantization } = chosen;
        let tp = ranks.len();
        let is_quantized = quantization.is_some();
        let given = Given { values: &values, config: &config, is_quantized };
        check_order(&mut ranks, is_in_order)?;
        let first = Checkpoint::open(&ranks[0].path)?;
        let by_name = first.model.by_name();
        let mut files = Vec::new();
        for file in &first.model.files {
            let mut header = Mark::without(&file.header);
            for tensor in header.tensors.iter_mut().filter(|tensor| file.lists(tensor)) {
                let whole = whole_shape(&plan, &by_name, tensor, tp, &given);
                tensor.shape = whole.with_context(|| {
                    format!("tensor {}, shape {:?} on a rank", tensor.name, tensor.shape)
                })?;
            }
            lay_out(&mut header)?;
            let bytes = bytes_of(&header, &file.name)?;
            let text = String::from_utf8(bytes[8..].to_vec())?;
            let (name, unlisted) = (file.name.clone(), file.unlisted.clone());
            files.push(ModelFile { name, header, text, unlisted });
        }
        let expected = models(&first)?;
        let before = Totals::of(&first.model, |tensor| Some(tensor.shape.clone()));
        let mut model = Model { files, index: first.model.index };
        if let Some(mut index) = model.index.take() {
            let now = Totals::of(&model, |tensor| Some(tensor.shape.clone()));
            index.text = index_text(&index.text, &before, &now, |_| true)?;
            model.index = Some(index);
        }
        let placed = place(&plan, &model, tp, &given)?;
        let mark = ranks[0].mark.as_ref();
        if let Some(mark) = mark.filter(|mark| mark.plan != fingerprint(&plan, &placed.values)) {
            refuse!(
                "the shards were made with a different plan or different numbers (their \
                 libsplit.plan is {}, and that of this plan is {}): give the plan they were made \
                 with, or the directory with {MANIFEST}",
                mark.plan,
                fingerprint(&plan, &placed.values)
            );
        }
        let mut found = Vec::new();
        for (rank, named) in ranks.iter().enumerate() {
            let checkpoint = Checkpoint::open(&named.path)?;
            let of_rank = format!("rank {rank}, {}", checkpoint.directory.display());
            if checkpoint.model.files.len() != model.files.len() {
                let (here, there) = (checkpoint.model.files.len(), model.files.len());
                invalid!("{of_rank}: it has {here} files, and rank 0 has {there}");
            }
            if models(&checkpoint)? != expected {
                invalid!(
                    "{of_rank}: it is a shard of a different model from rank 0 (their \
                     libsplit.model differs)"
                );
            }
            let parts = checkpoint.model.files.iter().zip(checkpoint.sources);
            let mut files = Vec::new();
            for ((here, source), (file, places)) in
                parts.zip(model.files.iter().zip(&placed.tensors))
            {
                let begins = begins(rank, &here.header, &file.header, places, source.data_begin)
                    .with_context(|| format!("{of_rank}: {}", here.name))?;
                files.push(RankFile { source, begins });
            }
            found.push(files);
        }
        Ok(Self {
            model,
            plan,
            values,
            config,
            quantization,
            placed: Some(placed),
            ranks: found,
            checksums: None,
            models: expected,
            directory: PathBuf::new(),
            copied: Vec::new(),
        })
    }

    /// Where the plan looks up what it does not say itself.
    pub fn given(&self) -> Given<'_> {
        let is_quantized = self.quantization.is_some();
        Given { values: &self.values, config: &self.config, is_quantized }
    }

    /// All files that are read.
    pub fn sources(&self) -> impl Iterator<Item = &Source> {
        self.ranks.iter().flatten().map(|file| &file.source)
    }
}

/// A fingerprint of a plan with its numbers.
pub fn fingerprint(plan: &Plan, values: &Values) -> String {
    let text = format!("{}\n{}", plan.text, serde_json::json!(values));
    format!("{:016x}", XxHash3_64::oneshot(text.as_bytes()))
}

/// Which models a rank's files say they are of, if they do.
fn models(rank: &Checkpoint) -> Result<Option<Vec<String>>> {
    let model = |file: &ModelFile| Ok(Mark::of(&file.header)?.map(|mark| mark.model));
    rank.model.files.iter().map(model).collect()
}

/// A fingerprint of a file of a model.
pub fn model_of(checksums: &Checksums) -> String {
    format!("{:016x}", XxHash3_64::oneshot(serde_json::json!(checksums).to_string().as_bytes()))
}

/// Where the tensors of a rank's file begin, which must be those that the plan gives it.
fn begins(
    rank: usize,
    here: &Header,
    whole: &Header,
    places: &[(Option<usize>, Place)],
    data_begin: u64,
) -> Result<Vec<u64>> {
    let named: HashMap<_, _> = here.tensors.iter().map(|here| (&here.name, here)).collect();
    let mut begins = Vec::with_capacity(whole.tensors.len());
    let mut count = 0;
    for (tensor, (_, place)) in whole.tensors.iter().zip(places) {
        let name = &tensor.name;
        let Some(expected) = place.shape(rank, &tensor.shape) else {
            begins.push(0);
            continue;
        };
        count += 1;
        let Some(here) = named.get(name) else { invalid!("tensor {name} is missing") };
        if here.dtype != tensor.dtype || here.shape != expected {
            invalid!(
                "tensor {name} is {} {:?}, but according to the plan it is {} {expected:?}",
                here.dtype.name,
                here.shape,
                tensor.dtype.name
            );
        }
        begins.push(data_begin + here.begin);
    }
    if here.tensors.len() != count {
        invalid!(
            "it has {} tensors, but according to the plan there are {count}",
            here.tensors.len()
        );
    }
    Ok(begins)
}

/// The beginning of a file with this header, which has to be one that can be read again.
pub fn bytes_of(header: &Header, name: &str) -> Result<Vec<u8>> {
    header.to_bytes().map_err(|error| failure(Kind::Refused, format!("{name}: {error}")))
}

/// Lays tensors one after the other; returns the bytes of all.
pub fn lay_out(header: &mut Header) -> Result<u64> {
    let mut end = 0_u64;
    for Tensor { name, dtype, shape, begin, end: tensor_end } in &mut header.tensors {
        let bytes = dtype.bytes(shape).and_then(|bytes| Some((bytes, end.checked_add(bytes)?)));
        let Some((bytes, next)) = bytes else {
            refuse!(
                "tensor {name}: {} of shape {shape:?} is not a whole number of bytes, or more \
                 than can be \
                 numbered",
                dtype.name
            );
        };
        (*begin, *tensor_end) = (next - bytes, next);
        end = next;
    }
    Ok(end)
}

/// What an index says of all its tensors together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    bytes: u64,
    elements: u64,
}

impl Totals {
    /// Of those tensors of a model that have a shape.
    pub fn of(model: &Model, shape: impl Fn(&Tensor) -> Option<Vec<u64>>) -> Self {
        let shapes = model.tensors().filter(|(_, is_listed)| *is_listed);
        let shapes = shapes.filter_map(|(tensor, _)| Some((tensor.dtype, shape(tensor)?)));
        shapes.fold(Self { bytes: 0, elements: 0 }, |totals, (dtype, shape)| Self {
            bytes: totals.bytes + dtype.bytes(&shape).unwrap_or(0),
            elements: totals.elements + shape.iter().product::<u64>(),
        })
    }
}

/// An index of some of the tensors, with other totals where it has them. A number of parameters that does
/// not count elements is left out, as what it counts is not known.
pub fn index_text(
    text: &str,
    before: &Totals,
    now: &Totals,
    has: impl Fn(&str) -> bool,
) -> Result<String> {
    let mut index: serde_json::Value = serde_json::from_str(text)?;
    if let Some(total) = index.pointer_mut("/metadata/total_size") {
        *total = now.bytes.into();
    }
    if let Some(metadata) = index.get_mut("metadata").and_then(serde_json::Value::as_object_mut) {
        match metadata.get("total_parameters").map(serde_json::Value::as_u64) {
            None => {}
            Some(Some(count)) if count == before.elements => {
                metadata.insert("total_parameters".into(), now.elements.into());
            }
            Some(_) => drop(metadata.shift_remove("total_parameters")),
        }
    }
    if let Some(map) = index.get_mut("weight_map").and_then(serde_json::Value::as_object_mut) {
        map.retain(|name, _| has(name));
    }
    let text = format!("{index:#}\n");
    if text.len() as u64 > LARGEST_TEXT_BYTES {
        refuse!(
            "the index of a rank would have {} bytes, and one of more than {LARGEST_TEXT_BYTES} could \
             not be read again: divide the model into several checkpoints",
            text.len()
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::{Manifest, FORMAT, VERSION};
    use serde_json::json;
    use std::path::Path;

    fn manifest(key: &str, value: serde_json::Value) -> Manifest {
        let file = json!({"name": "a", "header": "{}", "data_bytes": 0, "xxh3": {}});
        let mut json = json!({"format": FORMAT, "version": VERSION, "written_by": "", "tp": 12, "plan": "", "quantization": null,
            "values": {}, "files": [file], "index": null, "copied": ["c.json"], "xxh3": ""});
        *json.pointer_mut(key).unwrap() = value;
        serde_json::from_value(json).unwrap()
    }

    #[test]
    fn a_manifest_names_files_in_its_directory() {
        assert!(manifest("/tp", 65535.into()).check().is_ok());
        for (key, value) in [
            ("/tp", json!(0)),
            ("/tp", json!(65536)),
            ("/files/0/name", json!("../a")),
            ("/files/0/name", json!("/a")),
            ("/copied/0", json!("b/c")),
            ("/index", json!({"name": "..", "text": ""})),
        ] {
            assert!(manifest(key, value).check().is_err(), "{key}");
        }
    }

    #[test]
    fn what_a_manifest_lists() {
        let manifest = manifest("/tp", 12.into());
        for path in ["rank-0/a", "rank-11/a", "c.json", "libsplit.json"] {
            assert!(manifest.lists(Path::new(path)), "{path}");
        }
        for path in
            ["rank-12/a", "rank-00/a", "rank-0/b", "rank-0", "a", "rank-0/a/b", "rank-0/c.json"]
        {
            assert!(!manifest.lists(Path::new(path)), "{path}");
        }
    }
}
