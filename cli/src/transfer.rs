//! The bytes of one tensor, from the ranks that have them to the ranks that want them.
//!
//! A tensor that is cut along an axis is a matrix: a row for each index of the axes before it, and
//! in a row the axis with all that lies within it, counted in bytes, or in elements where a cut is
//! within a byte. It goes box by box: each box is read from all its sources into one buffer, and
//! written to all its destinations. A box is some rows or, of a row larger than a chunk, some
//! columns, so it is contiguous in every file. libsplit moves the columns.

use crate::failure::{invalid, refuse};
use crate::plan::{Cut, Segment};
use crate::split::{exchange, Columns};
use crate::{progress::Progress, signals};
use anyhow::{Context, Result};
use libsplit::ffi::libsplit_dtype;
use libsplit_formats::safetensors::Dtype;
use std::fs::File;
use std::hash::Hasher;
use std::os::unix::fs::FileExt;
use twox_hash::XxHash3_64;

/// A rank's file, and where the tensor begins in it.
pub struct End<'a> {
    pub file: &'a File,
    pub begin: u64,
    /// For messages.
    pub path: &'a str,
}

/// All ranks of one side that have the tensor; without a cut each has the whole of it.
pub struct Side<'a> {
    pub ends: Vec<End<'a>>,
    pub cut: Option<&'a Cut>,
}

/// A tensor's type and shape as a whole.
pub struct Whole<'a> {
    pub dtype: Dtype,
    pub shape: &'a [u64],
}

impl Whole<'_> {
    /// Checks that it can be copied from one of these cuts to another; none is the whole.
    pub fn check(&self, cuts: [Option<&Cut>; 2]) -> Result<()> {
        if self.shape.contains(&0) {
            return Ok(());
        }
        Matrix::of(self, cuts).map(|_| ())
    }
}

/// Buffers that stay from one tensor to the next, none larger than a chunk.
pub struct Mover<'a> {
    pub chunk: u64,
    pub progress: &'a Progress,
    pub read: u64,
    pub written: u64,
    whole: Vec<u8>,
    local: Vec<u8>,
    again: Vec<u8>,
}

/// A tensor as a matrix of units: bytes, or elements of 4 bits.
struct Matrix {
    rows: u64,
    columns: u64,
    bits: u64,
    /// Whether columns have been added.
    is_padded: bool,
}

/// Some rows with all columns, or one row with some columns.
struct Block {
    row: u64,
    rows: u64,
    columns: Segment,
}

impl<'a> Mover<'a> {
    pub fn new(chunk: u64, progress: &'a Progress) -> Self {
        let [whole, local, again] = [const { Vec::new() }; 3];
        Self { chunk, progress, read: 0, written: 0, whole, local, again }
    }

    /// Copies a tensor, to nowhere if that side has no ends; returns the checksum of the whole.
    pub fn copy(&mut self, tensor: &Whole, from: &Side, to: &Side) -> Result<u64> {
        let mut hash = XxHash3_64::new();
        if tensor.shape.contains(&0) {
            return Ok(hash.finish());
        }
        let (matrix, scale) = Matrix::of(tensor, [from.cut, to.cut])?;
        let scaled = |segment: &Segment| {
            let in_columns = |at| at * scale.0 / scale.1;
            Segment { begin: in_columns(segment.begin), end: in_columns(segment.end) }
        };
        let real = from.cut.or(to.cut).map_or(matrix.columns, |cut| cut.real * scale.0 / scale.1);
        let all = vec![Segment { begin: 0, end: real }];
        let columns = |side: &Side| -> Vec<Vec<Segment>> {
            side.cut.map_or(vec![all.clone(); side.ends.len()], |cut| {
                cut.ranks.iter().map(|segments| segments.iter().map(scaled).collect()).collect()
            })
        };
        let (sources, destinations) = (columns(from), columns(to));
        matrix.for_each_block(self.chunk, |block| {
            signals::check()?;
            self.read_block(&matrix, &block, from, &sources)?;
            self.hash_block(&matrix, &block, &all, &mut hash)?;
            self.write_block(&matrix, &block, to, &destinations)
        })?;
        Ok(hash.finish())
    }

    /// Adds a block to the checksum. What lies past the real columns has to be zero.
    fn hash_block(
        &mut self,
        matrix: &Matrix,
        block: &Block,
        real: &[Segment],
        hash: &mut XxHash3_64,
    ) -> Result<()> {
        let here = Here::new(block, real);
        if here.is_whole(block) {
            hash.write(&self.whole);
            return Ok(());
        }
        let row = matrix.bytes(1, block.columns.len());
        let inside = matrix.bytes(1, here.columns());
        for row in self.whole.chunks_exact(row) {
            let (inside, padding) = row.split_at(inside);
            hash.write(inside);
            if padding.iter().any(|byte| *byte != 0) {
                invalid!("the padding contains values other than zero, which joining would lose");
            }
        }
        Ok(())
    }

    /// Puts a block together. Columns that several ranks have must be the same in all.
    fn read_block(
        &mut self,
        matrix: &Matrix,
        block: &Block,
        from: &Side,
        sources: &[Vec<Segment>],
    ) -> Result<()> {
        let bytes = matrix.bytes(block.rows, block.columns.len());
        if matrix.is_padded {
            self.whole.clear();
        }
        self.whole.resize(bytes, 0);
        let mut done: Vec<Segment> = Vec::new();
        for (end, segments) in from.ends.iter().zip(sources) {
            let here = Here::new(block, segments);
            if here.segments.is_empty() {
                continue;
            }
            let at = end.begin + matrix.offset(block, segments, &here);
            if here.is_whole(block) && done.is_empty() {
                read_at(end, at, &mut self.whole)?;
                self.count_read(self.whole.len());
                done.clone_from(&here.segments);
                continue;
            }
            self.local.resize(matrix.bytes(block.rows, here.columns()), 0);
            read_at(end, at, &mut self.local)?;
            self.count_read(self.local.len());
            let is_new = |segment: &Segment| !done.contains(segment);
            let (local, whole) = (here.packed(is_new), here.spread(block, is_new));
            matrix.exchange(block, (&self.local, &local), (&mut self.whole, &whole))?;
            if here.segments.iter().any(|segment| done.contains(segment)) {
                self.again.resize(self.local.len(), 0);
                let (whole, local) = (here.spread(block, |_| true), here.packed(|_| true));
                matrix.exchange(block, (&self.whole, &whole), (&mut self.again, &local))?;
                if self.again != self.local {
                    invalid!("{}: its copy differs from that of an earlier rank", end.path);
                }
            }
            done.extend(&here.segments);
        }
        Ok(())
    }

    fn write_block(
        &mut self,
        matrix: &Matrix,
        block: &Block,
        to: &Side,
        destinations: &[Vec<Segment>],
    ) -> Result<()> {
        for (end, segments) in to.ends.iter().zip(destinations) {
            let here = Here::new(block, segments);
            if here.segments.is_empty() {
                continue;
            }
            let at = end.begin + matrix.offset(block, segments, &here);
            if here.is_whole(block) {
                write_at(end, at, &self.whole)?;
                self.written += self.whole.len() as u64;
                continue;
            }
            self.local.resize(matrix.bytes(block.rows, here.columns()), 0);
            let (whole, local) = (here.spread(block, |_| true), here.packed(|_| true));
            matrix.exchange(block, (&self.whole, &whole), (&mut self.local, &local))?;
            write_at(end, at, &self.local)?;
            self.written += self.local.len() as u64;
        }
        Ok(())
    }

    fn count_read(&mut self, bytes: usize) {
        self.read += bytes as u64;
        self.progress.add(bytes as u64);
    }
}

impl Matrix {
    /// The matrix, and what an index along the axis is to be multiplied with and divided by.
    fn of(tensor: &Whole, cuts: [Option<&Cut>; 2]) -> Result<(Self, (u64, u64))> {
        let bits = tensor.dtype.bits;
        let mut cuts = cuts.into_iter().flatten();
        let Some(cut) = cuts.next() else {
            let bytes = tensor.shape.iter().product::<u64>() * bits / 8;
            return Ok((Self { rows: 1, columns: bytes, bits: 8, is_padded: false }, (1, 1)));
        };
        let other = cuts.next();
        let (axis, extent) = (cut.axis, cut.extent);
        if let Some(other) = other.filter(|other| (other.axis, other.extent) != (axis, extent)) {
            refuse!(
                "axis {axis} is padded to {extent} in the shards, and axis {} to {} for the new \
                 ranks: join the shards, then shard the whole",
                other.axis,
                other.extent
            );
        }
        let is_padded = cut.real != extent;
        let rows = tensor.shape[..axis].iter().product();
        let within: u64 = tensor.shape[axis + 1..].iter().product();
        let segments =
            [Some(cut), other].into_iter().flatten().flat_map(|cut| cut.ranks.iter().flatten());
        let is_byte = |at: u64| (at * within * bits).is_multiple_of(8);
        let mut ends = segments.flat_map(|segment| [segment.begin, segment.end]);
        if is_byte(extent) && is_byte(cut.real) && ends.all(is_byte) {
            let columns = extent * within * bits / 8;
            return Ok((Self { rows, columns, bits: 8, is_padded }, (within * bits, 8)));
        }
        if bits != 4 || is_padded {
            refuse!("elements of {bits} bits cannot be cut or padded within a byte: replicate the tensor");
        }
        Ok((Self { rows, columns: extent * within, bits, is_padded }, (within, 1)))
    }

    fn bytes(&self, rows: u64, columns: u64) -> usize {
        // No more than a chunk, or two rows.
        usize::try_from(rows * columns * self.bits / 8).unwrap_or(usize::MAX)
    }

    fn for_each_block(&self, chunk: u64, mut body: impl FnMut(Block) -> Result<()>) -> Result<()> {
        let row_bits = self.columns * self.bits;
        let all = Segment { begin: 0, end: self.columns };
        if self.bits == 8 && self.columns > chunk {
            for row in 0..self.rows {
                let mut begin = 0;
                while begin < self.columns {
                    let end = self.columns.min(begin + chunk);
                    body(Block { row, rows: 1, columns: Segment { begin, end } })?;
                    begin = end;
                }
            }
            return Ok(());
        }
        // An even number of rows is a whole number of bytes.
        let most = (chunk * 8 / row_bits / 2 * 2).max(if self.bits == 8 { 1 } else { 2 });
        let mut row = 0;
        while row < self.rows {
            let rows = most.min(self.rows - row);
            body(Block { row, rows, columns: all })?;
            row += rows;
        }
        Ok(())
    }

    /// Where a block begins in the bytes of a rank.
    fn offset(&self, block: &Block, segments: &[Segment], here: &Here) -> u64 {
        let columns: u64 = segments.iter().map(|segment| segment.len()).sum();
        (block.row * columns + here.before) * self.bits / 8
    }

    /// Copies columns of a block, all of its rows.
    fn exchange(
        &self,
        block: &Block,
        from: (&[u8], &Columns),
        to: (&mut [u8], &Columns),
    ) -> Result<()> {
        let rows = i64::try_from(block.rows)?;
        if self.bits == 8 {
            return exchange(libsplit_dtype::UINT8, rows, from, to);
        }
        if to.1.lengths.len() == 1 {
            return exchange(libsplit_dtype::UINT4, rows, from, to);
        }
        // libsplit writes elements of 4 bits only where they are packed: make them bytes.
        let mut wide = widen(to.0);
        exchange(libsplit_dtype::UINT8, rows, (&widen(from.0), from.1), (&mut wide, to.1))?;
        for (byte, pair) in to.0.iter_mut().zip(wide.chunks_exact(2)) {
            *byte = pair[0] | pair[1] << 4;
        }
        Ok(())
    }
}

/// Each half of each byte as a byte, the low one first.
fn widen(packed: &[u8]) -> Vec<u8> {
    packed.iter().flat_map(|byte| [byte & 15, byte >> 4]).collect()
}

/// What a rank has of a block's columns.
struct Here {
    segments: Vec<Segment>,
    /// Columns that it has before the block.
    before: u64,
}

impl Here {
    fn new(block: &Block, segments: &[Segment]) -> Self {
        let Segment { begin, end } = block.columns;
        let clip = |from: u64, to: u64| {
            segments.iter().filter_map(move |segment| {
                let (begin, end) = (segment.begin.max(from), segment.end.min(to));
                (begin < end).then_some(Segment { begin, end })
            })
        };
        let before = clip(0, begin).map(Segment::len).sum();
        Self { segments: clip(begin, end).collect(), before }
    }

    fn columns(&self) -> u64 {
        self.segments.iter().map(|segment| segment.len()).sum()
    }

    fn is_whole(&self, block: &Block) -> bool {
        self.segments.len() == 1 && self.segments[0] == block.columns
    }

    /// The segments one after the other, as the rank has them.
    fn packed(&self, is_wanted: impl Fn(&Segment) -> bool) -> Columns {
        let lengths = self.segments.iter().map(|segment| length(segment.len())).collect();
        Columns { lengths, wanted: self.segments.iter().map(is_wanted).collect() }
    }

    /// The segments where they are in the block, with what is between them.
    fn spread(&self, block: &Block, is_wanted: impl Fn(&Segment) -> bool) -> Columns {
        let mut columns = Columns { lengths: Vec::new(), wanted: Vec::new() };
        let mut add = |from: u64, to: u64, wanted: bool| {
            if from < to {
                columns.lengths.push(length(to - from));
                columns.wanted.push(wanted);
            }
        };
        let mut at = block.columns.begin;
        for segment in &self.segments {
            add(at, segment.begin, false);
            add(segment.begin, segment.end, is_wanted(segment));
            at = segment.end;
        }
        add(at, block.columns.end, false);
        columns
    }
}

fn length(columns: u64) -> i64 {
    columns.try_into().unwrap_or(i64::MAX)
}

fn read_at(end: &End, at: u64, bytes: &mut [u8]) -> Result<()> {
    end.file.read_exact_at(bytes, at).with_context(|| end.path.to_owned())
}

fn write_at(end: &End, at: u64, bytes: &[u8]) -> Result<()> {
    end.file.write_all_at(bytes, at).with_context(|| format!("cannot write {}", end.path))
}
