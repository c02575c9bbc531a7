//! A checkpoint on disk: one safetensors file, or a set of them that an index lists.

use crate::failure::{failure, invalid, Kind};
use crate::plan::Tensors;
use anyhow::{Context, Result};
use libsplit_formats::safetensors::{text_length, Header, Tensor};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path, PathBuf};

/// What the name of an index ends with.
const INDEX: &str = ".safetensors.index.json";

/// One file of a checkpoint.
pub struct Part {
    pub name: String,
    pub path: PathBuf,
    pub header: Header,
    /// The header as the file spells it.
    pub text: String,
}

impl Part {
    fn open(path: &Path) -> Result<Self> {
        let part = Self::read(path).with_context(|| path.display().to_string())?;
        Ok(part)
    }

    fn read(path: &Path) -> Result<Self> {
        let mut file = File::open(path)?;
        let bytes = file.metadata()?.len();
        if bytes < 8 {
            invalid!("truncated: the header takes more than 8 bytes, the file has {bytes}");
        }
        let mut begin = [0; 8];
        file.read_exact(&mut begin)?;
        let length = text_length(begin, bytes)?;
        let mut text = vec![0; usize::try_from(length)?];
        file.read_exact(&mut text)?;
        let header = Header::parse(&text, bytes - 8 - length)?;
        let Ok(text) = String::from_utf8(text) else { invalid!("header: not UTF-8") };
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok(Self { name, path: path.into(), header, text })
    }

    /// Where the tensors' bytes begin in the file.
    pub fn data_begin(&self) -> u64 {
        8 + self.text.len() as u64
    }
}

/// The file that lists which tensor is in which of the others.
pub struct Index {
    pub name: String,
    pub text: String,
    pub json: Value,
}

impl Index {
    pub fn parse(name: &str, text: String) -> Result<Self> {
        let json = match serde_json::from_str(&text) {
            Ok(json) => json,
            Err(error) => invalid!("not an index of safetensors files: {error}"),
        };
        Ok(Self { name: name.into(), text, json })
    }

    /// Which file each tensor is in.
    fn files(&self) -> Result<BTreeMap<&str, &str>> {
        let Some(map) = self.json.get("weight_map").and_then(Value::as_object) else {
            invalid!("not an index of safetensors files: it has no weight_map");
        };
        let entries = map.iter().map(|(tensor, file)| match file.as_str() {
            Some(file) if is_plain(file) => Ok((tensor.as_str(), file)),
            _ => {
                invalid!("weight_map: {tensor} is in {file}, which is no name of a file beside it")
            }
        });
        entries.collect()
    }
}

/// Whether a name is that of a file in the same directory.
pub fn is_plain(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(same)), None) if same == name)
}

/// A checkpoint.
pub struct Checkpoint {
    pub parts: Vec<Part>,
    pub index: Option<Index>,
    /// The directory that it lies in.
    pub directory: PathBuf,
}

impl Checkpoint {
    /// Reads the headers of a file, of the files of an index, or of what a directory holds.
    pub fn open(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Self::open(&only_checkpoint(path)?);
        }
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let directory = match path.parent() {
            Some(parent) if parent != Path::new("") => parent.into(),
            _ => PathBuf::from("."),
        };
        if !name.ends_with(".json") {
            return Ok(Self { parts: vec![Part::open(path)?], index: None, directory });
        }
        let text = fs::read_to_string(path).with_context(|| path.display().to_string())?;
        let index = Index::parse(&name, text).with_context(|| path.display().to_string())?;
        let parts = parts_of(&index, &directory).with_context(|| path.display().to_string())?;
        Ok(Self { parts, index: Some(index), directory })
    }

    /// All tensors, in the order of files and bytes.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.parts.iter().flat_map(|part| &part.header.tensors)
    }

    /// Their shapes by name.
    pub fn shapes(&self) -> Tensors {
        self.tensors().map(|tensor| (tensor.name.clone(), tensor.shape.clone())).collect()
    }

    /// Bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.tensors().map(|tensor| tensor.end - tensor.begin).sum()
    }

    /// The model's config.json beside it; null if there is none.
    pub fn config(&self) -> Result<Value> {
        let path = self.directory.join("config.json");
        match fs::read_to_string(&path) {
            Ok(text) => match serde_json::from_str(&text) {
                Ok(config) => Ok(config),
                Err(error) => invalid!("{}: {error}", path.display()),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Value::Null),
            Err(error) => Err(error).with_context(|| path.display().to_string()),
        }
    }
}

/// The file to begin with in a directory: its index, or its only safetensors file.
fn only_checkpoint(directory: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    let ending = |end: &str| names.iter().filter(|name| name.ends_with(end)).collect::<Vec<_>>();
    for found in [ending(INDEX), ending(".safetensors")] {
        match found.as_slice() {
            [] => {}
            [only] => return Ok(directory.join(only)),
            [one, other, ..] => {
                invalid!(
                    "{}: which of {one} and {other} is it? Name the file",
                    directory.display()
                );
            }
        }
    }
    let message = format!("{}: no *{INDEX} and no *.safetensors in it", directory.display());
    Err(failure(Kind::Invalid, message))
}

/// The files of an index, which have the tensors that it says and no others.
fn parts_of(index: &Index, directory: &Path) -> Result<Vec<Part>> {
    let mut listed = index.files()?;
    let names: BTreeSet<_> = listed.values().copied().collect();
    let parts = names.iter().map(|name| Part::open(&directory.join(name)));
    let parts = parts.collect::<Result<Vec<_>>>()?;
    for part in &parts {
        for tensor in &part.header.tensors {
            match listed.remove(tensor.name.as_str()) {
                Some(file) if file == part.name => {}
                Some(file) => invalid!("{} is in {}, not in {file}", tensor.name, part.name),
                None => invalid!(
                    "{} has tensor {}, which weight_map does not list, or a second time",
                    part.name,
                    tensor.name
                ),
            }
        }
    }
    if let Some((tensor, file)) = listed.first_key_value() {
        invalid!("weight_map has {tensor} in {file}, which does not hold it");
    }
    Ok(parts)
}
