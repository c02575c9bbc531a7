//! The subcommand info.

use crate::args::Info;
use crate::checkpoint::Checkpoint;
use crate::report::{bytes_text, many, path_text, print, print_json, shown};
use crate::shards::{rank_name, Manifest};
use anyhow::{Context, Result};
use libsplit_formats::npy::{tuple, Header};
use libsplit_formats::safetensors::Tensor;
use memmap2::Mmap;
use serde_json::{json, Value};
use std::fmt::Write;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Names longer than this are not aligned.
const WIDEST: usize = 100;

/// Shows what a file or a directory contains.
pub fn info(args: &Info) -> Result<()> {
    let input = &args.input;
    if let Some(manifest) = Manifest::read(input)? {
        return shards(args, &manifest);
    }
    if input.is_file() && is_npy(input).with_context(|| input.display().to_string())? {
        return npy(args).with_context(|| input.display().to_string());
    }
    let checkpoint = Checkpoint::open(input)?;
    if args.json {
        return print_json(&json_of(&checkpoint));
    }
    let mut text = String::new();
    for (part, source) in checkpoint.model.files.iter().zip(&checkpoint.sources) {
        let bytes = part.header.tensors.last().map_or(0, |tensor| tensor.end);
        let (path, count) = (source.path.display(), part.header.tensors.len());
        writeln!(text, "{path}: {}, {}", many(count, "tensor"), bytes_text(bytes))?;
        for (key, value) in part.header.metadata.iter().flatten() {
            writeln!(text, "  {key} = {value:?}")?;
        }
        let length = |tensor: &Tensor| shown(&tensor.name).chars().count();
        let longest = part.header.tensors.iter().map(length).max();
        let width = longest.unwrap_or_default().min(WIDEST);
        for tensor in &part.header.tensors {
            let (name, dtype, shape) = (shown(&tensor.name), tensor.dtype.name, &tensor.shape);
            let bytes = bytes_text(tensor.end - tensor.begin);
            writeln!(text, "  {name:width$}  {dtype} {shape:?}  {bytes}")?;
        }
    }
    print(&text)
}

fn json_of(checkpoint: &Checkpoint) -> Value {
    let parts = checkpoint.model.files.iter().zip(&checkpoint.sources);
    let files = parts.map(|(part, source)| {
        let tensors = part.header.tensors.iter().map(|tensor| {
            json!({
                "name": tensor.name,
                "dtype": tensor.dtype.name,
                "shape": tensor.shape,
                "begin": source.data_begin + tensor.begin,
                "bytes": tensor.end - tensor.begin,
            })
        });
        let metadata = part.header.metadata.as_ref();
        let metadata = metadata.map(|metadata| {
            metadata.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect()
        });
        json!({
            "path": path_text(&source.path),
            "metadata": metadata.map(Value::Object),
            "tensors": tensors.collect::<Vec<_>>(),
        })
    });
    json!({ "format": "safetensors", "files": files.collect::<Vec<_>>() })
}

fn shards(args: &Info, manifest: &Manifest) -> Result<()> {
    let names: Vec<_> = manifest.files.iter().map(|file| &file.name).collect();
    let ranks: Vec<_> = (0..manifest.tp).map(rank_name).collect();
    if args.json {
        return print_json(&json!({
            "format": "shards",
            "tp": manifest.tp,
            "ranks": ranks,
            "files": names,
            "values": manifest.values,
            "quantization": manifest.quantization,
            "copied": manifest.copied,
            "plan": manifest.plan,
        }));
    }
    let mut text = String::new();
    writeln!(text, "{}: shards for {} ranks", args.input.display(), manifest.tp)?;
    for (name, value) in &manifest.values {
        writeln!(text, "  {name} = {}", json!(value))?;
    }
    for rank in &ranks {
        let files: Vec<_> = names.iter().map(|name| name.as_str()).collect();
        writeln!(text, "  {rank}: {}", files.join(", "))?;
    }
    print(&text)
}

fn is_npy(path: &Path) -> std::io::Result<bool> {
    let mut begin = Vec::new();
    File::open(path)?.take(6).read_to_end(&mut begin)?;
    Ok(begin == b"\x93NUMPY")
}

fn npy(args: &Info) -> Result<()> {
    let file = File::open(&args.input)?;
    // SAFETY: sound as long as nobody changes the file meanwhile, like every mapping.
    let mapped = unsafe { Mmap::map(&file) }?;
    let (header, begin) = Header::parse(&mapped)?;
    let bytes = header.bytes(&header.shape)?;
    let order = if header.fortran { "Fortran" } else { "C" };
    if args.json {
        return print_json(&json!({
            "format": "npy",
            "dtype": header.descr,
            "shape": header.shape,
            "fortran_order": header.fortran,
            "begin": begin,
            "bytes": bytes,
        }));
    }
    let (path, dtype) = (args.input.display(), &header.descr);
    let (shape, bytes) = (tuple(&header.shape), bytes_text(bytes as u64));
    print(&format!("{path}  {dtype}  {shape}  {order} order, {bytes}\n"))
}
