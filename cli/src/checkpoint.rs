//! A checkpoint on disk: one safetensors file, or a set of them that an index lists.

use crate::failure::{failure, invalid, Kind};
use anyhow::{Context, Result};
use libsplit_formats::safetensors::{text_length, Header, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File, Metadata};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::time::SystemTime;

/// What the name of an index ends with.
const INDEX: &str = ".safetensors.index.json";

/// A file of a checkpoint, as its header describes it.
pub struct ModelFile {
    pub name: String,
    pub header: Header,
    /// The header as the file spells it.
    pub text: String,
}

/// The file that says which tensor is in which of the others.
#[derive(Clone, Serialize, Deserialize)]
pub struct Index {
    pub name: String,
    pub text: String,
}

/// What a whole checkpoint holds.
pub struct Model {
    pub files: Vec<ModelFile>,
    pub index: Option<Index>,
}

impl Model {
    /// All tensors, in the order of files and bytes.
    pub fn tensors(&self) -> impl Iterator<Item = &Tensor> {
        self.files.iter().flat_map(|file| &file.header.tensors)
    }

    /// Their shapes by name.
    pub fn shapes(&self) -> HashMap<&str, &[u64]> {
        self.tensors().map(|tensor| (tensor.name.as_str(), tensor.shape.as_slice())).collect()
    }

    /// Bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.tensors().map(|tensor| tensor.end - tensor.begin).sum()
    }
}

/// A file that is read: its path, where its tensors begin, and how to find out whether it has changed.
pub struct Source {
    pub path: PathBuf,
    pub data_begin: u64,
    stamp: Stamp,
}

#[derive(PartialEq, Eq, Clone, Copy)]
struct Stamp {
    device: u64,
    inode: u64,
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            bytes: metadata.len(),
            modified: metadata.modified().ok(),
        }
    }
}

impl Source {
    /// Opens the file, which must be the one whose header was read.
    pub fn open(&self) -> Result<File> {
        let open = || {
            let file = File::open(&self.path)?;
            self.check(&file.metadata()?)?;
            Ok::<_, anyhow::Error>(file)
        };
        open().with_context(|| self.path.display().to_string())
    }

    /// Checks that the file is as it was when its header was read.
    pub fn check_unchanged(&self) -> Result<()> {
        let check = || self.check(&fs::metadata(&self.path)?);
        check().with_context(|| self.path.display().to_string())
    }

    fn check(&self, metadata: &Metadata) -> Result<()> {
        if Stamp::of(metadata) != self.stamp {
            anyhow::bail!("the file has changed since its header was read: run the command again");
        }
        Ok(())
    }

    /// Whether it is the same file as another.
    pub fn is_same(&self, other: &Self) -> bool {
        (self.stamp.device, self.stamp.inode) == (other.stamp.device, other.stamp.inode)
    }

    /// Whether a path leads to this file.
    pub fn is_at(&self, metadata: &Metadata) -> bool {
        (metadata.dev(), metadata.ino()) == (self.stamp.device, self.stamp.inode)
    }
}

/// A checkpoint with the files that it is read from.
pub struct Checkpoint {
    pub model: Model,
    pub sources: Vec<Source>,
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
            let (file, source) = open_file(path)?;
            let model = Model { files: vec![file], index: None };
            return Ok(Self { model, sources: vec![source], directory });
        }
        let text = read_text(path).with_context(|| path.display().to_string())?;
        let parts = parts_of(&text, &directory).with_context(|| path.display().to_string())?;
        let (files, sources) = parts.into_iter().unzip();
        let index = Some(Index { name: name.into(), text });
        Ok(Self { model: Model { files, index }, sources, directory })
    }
}

/// Reads a file of text: a config or an index. A pipe would never end.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    const LARGEST_BYTES: u64 = 256 << 20;
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(std::io::Error::other("not a file"));
    }
    if metadata.len() > LARGEST_BYTES {
        return Err(std::io::Error::other("larger than 256 MiB, which no config or index is"));
    }
    fs::read_to_string(path)
}

/// Reads the header of a file.
pub fn open_file(path: &Path) -> Result<(ModelFile, Source)> {
    let read = || {
        if !fs::metadata(path)?.is_file() {
            invalid!("not a file: give a .safetensors file, an index or a directory");
        }
        let mut file = File::open(path)?;
        let metadata = file.metadata()?;
        let bytes = metadata.len();
        let mut begin = Vec::new();
        (&file).take(64).read_to_end(&mut begin)?;
        // A header may begin with any length, but its text with nothing else than a brace.
        if let Some(what) = what_it_is(&begin).filter(|_| begin.get(8) != Some(&b'{')) {
            invalid!("{what}");
        }
        let Some((length, _)) = begin.split_first_chunk::<8>() else {
            invalid!("truncated: the file has {bytes} bytes, and a header alone takes more than 8");
        };
        let length = text_length(*length, bytes)?;
        let mut text = vec![0; usize::try_from(length)?];
        file.seek(SeekFrom::Start(8))?;
        file.read_exact(&mut text)?;
        let header = Header::parse(&text, bytes - 8 - length)?;
        let Ok(text) = String::from_utf8(text) else { invalid!("header: not UTF-8") };
        let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
            invalid!("the name of the file is not UTF-8: rename it");
        };
        let source =
            Source { path: path.into(), data_begin: 8 + length, stamp: Stamp::of(&metadata) };
        Ok((ModelFile { name: name.into(), header, text }, source))
    };
    read().with_context(|| path.display().to_string())
}

/// What a file is that is often taken for a safetensors file, and what helps.
pub fn what_it_is(begin: &[u8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 9] = [
        (
            b"version https://git-lfs",
            "a Git LFS pointer, not the file itself: fetch that with 'git lfs pull'",
        ),
        (
            b"PK\x03\x04",
            "a zip archive, as PyTorch writes it: load it in PyTorch and write its tensors with \
             safetensors.torch.save_file, or download the model's .safetensors files",
        ),
        (b"GGUF", "a GGUF file: shard the safetensors checkpoint that it was made from"),
        (
            b"\x80\x02",
            "a pickle, as older versions of PyTorch write it: load it in PyTorch and write its \
             tensors with safetensors.torch.save_file",
        ),
        (b"\x93NUMPY", "a NumPy array: 'libsplit npy' splits it"),
        (b"\x89HDF", "an HDF5 file: write its tensors with safetensors.numpy.save_file"),
        (b"\x1f\x8b", "a gzip archive: unpack it first"),
        (b"<!", "an HTML page, so the download failed: download the file again"),
        (b"<html", "an HTML page, so the download failed: download the file again"),
    ];
    KINDS.iter().find(|(bytes, _)| begin.starts_with(bytes)).map(|(_, what)| *what)
}

/// Whether a name is that of a file in the same directory.
pub fn is_plain(name: &str) -> bool {
    let mut components = Path::new(name).components();
    matches!((components.next(), components.next()), (Some(Component::Normal(same)), None) if same == name)
}

/// The file to begin with in a directory: its index, or its only safetensors file.
fn only_checkpoint(directory: &Path) -> Result<PathBuf> {
    let entries = fs::read_dir(directory).with_context(|| directory.display().to_string())?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    let ending = |end: &str| names.iter().filter(|name| name.ends_with(end)).collect::<Vec<_>>();
    for found in [ending(INDEX), ending(".safetensors")] {
        match found.as_slice() {
            [] => {}
            [only] => return Ok(directory.join(only)),
            [one, other, ..] if one.ends_with(INDEX) => {
                invalid!(
                    "{}: it has both {one} and {other}: name the one you mean",
                    directory.display()
                )
            }
            files => invalid!(
                "{}: it has {} .safetensors files and no {INDEX} file that lists them as one \
                 model: \
                 download that too, or name the one file you mean",
                directory.display(),
                files.len()
            ),
        }
    }
    let others = [(".gguf", "GGUF"), (".bin", "PyTorch"), (".pt", "PyTorch"), (".pth", "PyTorch")];
    let other = others.iter().find(|(end, _)| !ending(end).is_empty());
    let hint = other.map_or(String::new(), |(_, kind)| {
        format!(
            "; its {kind} files cannot be sharded: download the .safetensors files of the model"
        )
    });
    let message =
        format!("{}: it contains no *{INDEX} and no *.safetensors{hint}", directory.display());
    Err(failure(Kind::Invalid, message))
}

/// The files of an index. It decides which file a tensor is taken from; what else is in the files
/// is treated alike.
fn parts_of(index: &str, directory: &Path) -> Result<Vec<(ModelFile, Source)>> {
    if let Some(what) = what_it_is(index.as_bytes()) {
        invalid!("{what}");
    }
    let json: Value = match serde_json::from_str(index) {
        Ok(json) => json,
        Err(error) => invalid!("not an index of safetensors files: {error}"),
    };
    let Some(map) = json.get("weight_map").and_then(Value::as_object) else {
        invalid!("not an index of safetensors files: it has no weight_map");
    };
    let mut listed: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (tensor, file) in map {
        match file.as_str() {
            Some(file) if is_plain(file) => listed.entry(file).or_default().insert(tensor),
            _ => {
                invalid!(
                    "weight_map: {tensor} is in {file}, which does not name a file in the same \
                     directory"
                )
            }
        };
    }
    let mut parts = Vec::new();
    for (file, tensors) in &mut listed {
        let part = open_file(&directory.join(file))?;
        for tensor in &part.0.header.tensors {
            tensors.remove(tensor.name.as_str());
        }
        if let Some(tensor) = tensors.first() {
            invalid!("weight_map says that {tensor} is in {file}, which does not contain it");
        }
        parts.push(part);
    }
    Ok(parts)
}
