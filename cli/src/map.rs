//! The subcommand map: which bytes of a checkpoint each rank needs.

use crate::args::Map;
use crate::failure::{refuse, usage};
use crate::plan::{place, Cut, Place, Segment};
use crate::report::{kinds, print_by, shown};
use crate::reshard::open_whole;
use crate::shards::Shards;
use anyhow::Result;
use libsplit_formats::safetensors::Tensor;
use serde::Serialize;
use std::io::Write;

/// The bytes of a tensor that a rank needs, row by row: in each row the columns, one after the other.
/// Columns past the bytes of a row are zeros that the file does not have.
#[derive(Serialize)]
struct Bytes<'a> {
    rank: usize,
    name: &'a str,
    dtype: &'a str,
    shape: Vec<u64>,
    file: &'a str,
    /// Where the tensor begins in the file.
    begin: u64,
    rows: u64,
    #[serde(rename = "row_bytes")]
    row: u64,
    /// Where each run of bytes begins and ends in a row.
    columns: Vec<(u64, u64)>,
}

/// Prints which bytes each rank needs.
pub fn map(args: &Map) -> Result<()> {
    let shards = open_whole(&args.input, &args.plan)?;
    let tp = usize::from(args.tp);
    let placed = place(&shards.plan, &shards.model, tp, &shards.given())?;
    placed.check_matched(&shards.plan, &shards.model, args.plan.allow_unmatched)?;
    let ranks = match args.rank.map(usize::from) {
        Some(rank) if rank >= tp => usage!("--rank {rank} is outside 0 to {}", tp - 1),
        Some(rank) => rank..rank + 1,
        None => 0..tp,
    };
    let mut within = Vec::new();
    for ((tensor, _), (_, place)) in shards.model.tensors().zip(placed.tensors.iter().flatten()) {
        if place.cut().is_some_and(|cut| !is_in_bytes(tensor, cut)) {
            within.push(tensor.name.as_str());
        }
    }
    if !within.is_empty() {
        refuse!(
            "these are cut within a byte, so no range of bytes is a part: {}",
            kinds(&within, "tensor")
        );
    }
    let parts = ranks.flat_map(|rank| {
        let files = shards.model.files.iter().zip(&placed.tensors).enumerate();
        files.flat_map(move |(index, (file, places))| {
            let tensors = file.header.tensors.iter().zip(places);
            tensors
                .enumerate()
                .filter(|(_, (tensor, _))| file.lists(tensor))
                .map(move |(at, (tensor, (_, place)))| (rank, index, at, tensor, place))
        })
    });
    let parts = parts.filter_map(|(rank, index, at, tensor, place)| {
        bytes(&shards, rank, (index, at), tensor, place)
    });
    print_by(|out| if args.json { json(out, tp, parts) } else { text(out, parts) })
}

fn is_in_bytes(tensor: &Tensor, cut: &Cut) -> bool {
    let within: u64 = tensor.shape[cut.axis + 1..].iter().product();
    let is_byte = |at: u64| (at * within * tensor.dtype.bits).is_multiple_of(8);
    cut.ranks.iter().flatten().all(|segment| is_byte(segment.begin) && is_byte(segment.end))
        && is_byte(cut.real)
}

/// What a rank needs of a tensor, if anything.
fn bytes<'a>(
    shards: &'a Shards,
    rank: usize,
    (index, at): (usize, usize),
    tensor: &'a Tensor,
    place: &Place,
) -> Option<Bytes<'a>> {
    let shape = place.shape(rank, &tensor.shape)?;
    let all = tensor.end - tensor.begin;
    let (rows, row, columns) = match place.cut() {
        None => (1, all, vec![(0, all)]),
        Some(cut) => {
            let rows: u64 = tensor.shape[..cut.axis].iter().product();
            let within: u64 = tensor.shape[cut.axis + 1..].iter().product();
            let in_bytes = |at: u64| at * within * tensor.dtype.bits / 8;
            let column = |segment: &Segment| (in_bytes(segment.begin), in_bytes(segment.end));
            (rows, in_bytes(cut.real), cut.ranks[rank].iter().map(column).collect())
        }
    };
    Some(Bytes {
        rank,
        name: &tensor.name,
        dtype: tensor.dtype.name,
        shape,
        file: &shards.model.files[index].name,
        begin: shards.ranks[0][index].begins[at],
        rows,
        row,
        columns,
    })
}

fn json<'a>(
    out: &mut dyn Write,
    tp: usize,
    parts: impl Iterator<Item = Bytes<'a>>,
) -> std::io::Result<()> {
    write!(out, "{{\n  \"tp\": {tp},\n  \"tensors\": [")?;
    for (index, part) in parts.enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(out, "{comma}\n    {}", serde_json::to_string(&part)?)?;
    }
    writeln!(out, "\n  ]\n}}")
}

fn text<'a>(out: &mut dyn Write, parts: impl Iterator<Item = Bytes<'a>>) -> std::io::Result<()> {
    for part in parts {
        let Bytes { rank, name, dtype, shape, file, begin, rows, row, columns } = part;
        let columns: Vec<_> = columns.iter().map(|(from, to)| format!("{from}-{to}")).collect();
        let columns = columns.join(" ");
        let name = shown(name);
        writeln!(
            out,
            "rank {rank}  {name}  {dtype} {shape:?}  {file} at {begin}, {rows} rows of {row}: \
             {columns}"
        )?;
    }
    Ok(())
}
