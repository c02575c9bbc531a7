//! A checkpoint on disk: one safetensors file, or a set of them that an index lists.

use crate::failure::{failure, invalid, Kind};
use anyhow::{Context, Error, Result};
use libsplit_formats::safetensors::{text_length, Header, Tensor};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
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
    /// Tensors of the file that the index does not give to it, left by an earlier save, say: they are not
    /// the model's.
    pub unlisted: HashSet<String>,
}

impl ModelFile {
    /// Whether the model has this tensor of the file.
    pub fn lists(&self, tensor: &Tensor) -> bool {
        !self.unlisted.contains(&tensor.name)
    }
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
    /// A model of these files, of which the index says what belongs to it.
    pub fn new(mut files: Vec<ModelFile>, index: Option<Index>) -> Result<Self> {
        if let Some(index) = &index {
            let listed = weight_map(&index.text)?;
            for file in &mut files {
                let names = file.header.tensors.iter().map(|tensor| &tensor.name);
                let is_listed =
                    |name: &str| listed.get(&file.name).is_some_and(|listed| listed.contains(name));
                file.unlisted = names.filter(|name| !is_listed(name)).cloned().collect();
            }
        }
        Ok(Self { files, index })
    }

    /// All tensors of the files, in their order, and whether the model has them.
    pub fn tensors(&self) -> impl Iterator<Item = (&Tensor, bool)> {
        self.files
            .iter()
            .flat_map(|file| file.header.tensors.iter().map(|tensor| (tensor, file.lists(tensor))))
    }

    /// The model's tensors by name.
    pub fn by_name(&self) -> HashMap<&str, &Tensor> {
        let listed = self.tensors().filter(|(_, is_listed)| *is_listed);
        listed.map(|(tensor, _)| (tensor.name.as_str(), tensor)).collect()
    }

    /// Bytes of all tensors.
    pub fn bytes(&self) -> u64 {
        self.tensors().map(|(tensor, _)| tensor.end - tensor.begin).sum()
    }
}

/// A file that is read: its path, where its tensors begin, and how to find out whether it has changed.
pub struct Source {
    pub path: PathBuf,
    pub data_begin: u64,
    stamp: Stamp,
}

/// By what a change is noticed. The number of a file is not part of it: on some mounts it changes by itself.
#[derive(PartialEq, Eq, Clone, Copy)]
struct Stamp {
    bytes: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { bytes: metadata.len(), modified: metadata.modified().ok() }
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
        self.is_at(&other.path)
    }

    /// Whether a path leads to this file. Some mounts give all files one number, so numbers count only for a
    /// file with several names.
    pub fn is_at(&self, path: &Path) -> bool {
        if let (Ok(one), Ok(other)) = (self.path.canonicalize(), path.canonicalize()) {
            if one == other {
                return true;
            }
        }
        let (Ok(one), Ok(other)) = (fs::metadata(&self.path), fs::metadata(path)) else {
            return false;
        };
        let number = |it: &Metadata| (it.nlink() > 1).then(|| (it.dev(), it.ino()));
        number(&one).is_some() && number(&one) == number(&other)
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
            let model = Model::new(vec![file], None)?;
            return Ok(Self { model, sources: vec![source], directory });
        }
        let text = read_text(path).with_context(|| path.display().to_string())?;
        let parts = parts_of(&text, &directory).with_context(|| path.display().to_string())?;
        let (files, sources) = parts.into_iter().unzip();
        let index = Some(Index { name: name.into(), text });
        Ok(Self { model: Model::new(files, index)?, sources, directory })
    }
}

/// No config and no index is larger.
pub const LARGEST_TEXT_BYTES: u64 = 256 << 20;

/// Reads a file of text: a config or an index. A pipe would never end.
pub fn read_text(path: &Path) -> std::io::Result<String> {
    let metadata = fs::metadata(path)?;
    if !metadata.is_file() {
        return Err(std::io::Error::other("not a file"));
    }
    if metadata.len() > LARGEST_TEXT_BYTES {
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
        (&file).take(128).read_to_end(&mut begin)?;
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
        let unlisted = HashSet::new();
        Ok((ModelFile { name: name.into(), header, text, unlisted }, source))
    };
    read().with_context(|| path.display().to_string())
}

/// What a file is that is often taken for a safetensors file, and what helps.
pub fn what_it_is(begin: &[u8]) -> Option<&'static str> {
    const KINDS: [(&[u8], &str); 10] = [
        (
            b"\xef\xbb\xbf",
            "it begins with a byte order mark, which JSON does not have: save it as UTF-8 without one",
        ),
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
    let is_archive = begin.starts_with(b"PK\x03\x04");
    if is_archive && begin.windows(4).any(|name| name == b".npy") {
        return Some(
            "an .npz archive of NumPy arrays: unzip it; 'libsplit npy' splits the .npy files in it",
        );
    }
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
    if let [index] = ending(INDEX)[..] {
        let single = format!("{}.safetensors", index.trim_end_matches(INDEX));
        if names.contains(&single) && !is_listed(&directory.join(index), &single)? {
            invalid!(
                "{}: it has both {single} and {index}, which does not list it: name the one you mean",
                directory.display()
            );
        }
    }
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

/// Whether an index lists a file.
fn is_listed(index: &Path, file: &str) -> Result<bool> {
    let listed = || Ok::<_, Error>(weight_map(&read_text(index)?)?.contains_key(file));
    listed().with_context(|| index.display().to_string())
}

/// The tensors of each file, by the text of an index.
fn weight_map(index: &str) -> Result<BTreeMap<String, BTreeSet<String>>> {
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
    let mut listed: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (tensor, file) in map {
        match file.as_str() {
            Some(file) if is_plain(file) => {
                listed.entry(file.into()).or_default().insert(tensor.clone())
            }
            _ => {
                invalid!(
                    "weight_map: {tensor} is in {file}, which does not name a file in the same \
                     directory"
                )
            }
        };
    }
    Ok(listed)
}

/// The files of an index. It decides which file a tensor is taken from.
fn parts_of(index: &str, directory: &Path) -> Result<Vec<(ModelFile, Source)>> {
    let mut parts = Vec::new();
    for (file, mut tensors) in weight_map(index)? {
        let part = open_file(&directory.join(&file))?;
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
