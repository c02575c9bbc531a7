//! Rows of short blocks, wherever these lie, are put one behind the other in a scratch, some at a time, and are
//! transposed from there as those of one block are.

use super::super::kernel::combine::{Scratch, LINE};
use super::super::kernel::strided::{Axis, Block};
use super::super::kernel::transpose::Transpose;
use super::nest::LOW;
use super::transpose::is_column;
use super::Nest;
use crate::copy::columns::Columns;
use crate::math::{div, div_ceil, next_multiple, parts, rem, signed};
use crate::parts::Transfer;
use core::ops::Range;
use core::ptr::null_mut;

/// Bytes of the scratch.
const ROOM: usize = 8 << 10;
/// Bytes of each row that are taken at a time, of many columns.
const WIDE: usize = 4 * LINE;
/// The most columns at a time.
const MOST: usize = 256;
/// Blocks that have so many bytes of each piece are worth a transpose of their own.
const SHORT: usize = 8 * LINE;

/// More columns are worth it past the caches, and through them, in addition to the bytes of one; there, if all pieces have
/// so many bytes times the cube of a column's.
const FEW_PAST: usize = 5;
const FEW: usize = 7;
const LEAST: usize = if LOW { 0 } else { 512 };

impl Nest<'_> {
    /// Whether pieces are columns, so many that rows of several blocks may be better taken together. Zen 4, time for piece
    /// by piece: 20 MB of 9 columns .5 to .7, but of 3 1.6; 600, 160 and 40 KB of 60 of 8 bytes .7, 1.0, 1.3, of 200 of
    /// 4 .5, .9, 1.0, of 100 of 1 .15, .14, .37, but of 9 of 8 1.1, of 100 of 16 1.2.
    #[inline(never)] // once in the library
    pub(super) fn has_columns(&self) -> bool {
        let Transfer { bytes, parts, .. } = self.transfer;
        let mut all = parts.iter();
        let Some(first) = all.next() else { return false };
        let (pieces, unit) = (parts.count(), self.block.bytes(first.len));
        let are_many = || match self.block.tuning.apart {
            Some(_) => pieces > FEW_PAST,
            None => pieces > FEW + unit && *bytes >= LEAST * unit * unit * unit,
        };
        Columns::turns(unit)
            && are_many()
            && self.apart == 0
            && !self.is_repeated()
            && self.is_into_packed()
            && all.all(|part| is_column(&part, first.len))
    }

    /// Whether rows come again on an axis: those are better read where they are.
    fn is_repeated(&self) -> bool {
        let Transfer { geometry, strides, .. } = self.transfer;
        let mut axes = geometry.shape.iter().zip(strides.unwrap_or_default());
        axes.any(|(extent, stride)| *extent > 1 && *stride == 0)
    }

    /// Whether blocks have few bytes of each.
    pub(super) fn has_short_columns(&self) -> bool {
        let first = self.transfer.parts.iter().next();
        self.block.count * first.map_or(0, |part| self.block.bytes(part.len)) < SHORT
    }

    /// Transposes some rows of columns, whose targets begin with the first row of all; rows begin so many bytes behind
    /// those of blocks.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    #[inline(never)] // which takes much of the stack
    pub(super) unsafe fn transpose_gathered(
        &self,
        columns: &Columns<'_>,
        begin: usize,
        rows: &Range<usize>,
    ) {
        let mut scratch = Scratch::<ROOM>::NEW;
        let scratch = scratch.as_mut_ptr();
        let &Columns { unit: width, count, .. } = columns;
        let tuning = self.block.tuning;
        let side = div(LINE, width);
        let pitch = next_multiple((count * width).min(WIDE.min(div(ROOM, side))), LINE);
        let most = div(ROOM, pitch * side) * side;
        // The first ones end where lines of targets do.
        let head = columns.rows_to_line();
        let behind = head.map_or(0, |head| rem(rows.start + most - head, side));
        columns.each_run::<MOST>(0, |(column, targets)| {
            let each = div_ceil(targets.len(), div_ceil(targets.len() * width, pitch));
            let wide = next_multiple(each, side);
            let mut start = rows.start;
            while start < rows.end {
                let end = rows.end.min(start + most - if start == rows.start { behind } else { 0 });
                let some = start..end;
                start = end;
                let is_past = head.is_some() && some.len() == most;
                for part in parts(0..targets.len(), wide) {
                    let ahead = begin + (column + part.start) * width;
                    let columns = part.len();
                    let targets = targets.get(part).unwrap_or_default();
                    // SAFETY: the caller's promise; there is room for so many.
                    unsafe {
                        self.take(some.clone(), ahead, columns * width, scratch, pitch);
                        tuning.kernels.transpose(&Transpose {
                            source: scratch,
                            step: pitch,
                            rows: some.len(),
                            width,
                            columns,
                            targets,
                            apart: 0,
                            at: some.start * width,
                            follows: scratch,
                            non_temporal: tuning.transposed.filter(|_| is_past),
                            conflicts: false,
                            by_second: tuning.kernels.by_second,
                            scratch: null_mut(),
                        });
                    }
                }
            }
        });
    }

    /// Puts so many bytes of some rows, from a place in each on, so far from one another.
    ///
    /// # Safety
    /// As [`Nest::copy_all`]; there must be room for them.
    #[inline(never)] // the loops beside it are the better for it
    unsafe fn take(
        &self,
        rows: Range<usize>,
        ahead: usize,
        unit: usize,
        to: *mut u8,
        pitch: usize,
    ) {
        let (mut block, mut to) = (self.block, to);
        let mut blocks = self.blocks(rows);
        while let Some(rows) = blocks.next(&mut block) {
            let is_whole = rows.len() == block.count;
            let more = blocks.along(if is_whole { usize::MAX } else { 0 });
            let is_run = [block.row, pitch] == [unit; 2];
            let count = if is_run { 1 } else { rows.len() };
            let further = rows.len() * pitch;
            let inner = Axis { extent: count, from: signed(block.row), to: signed(pitch) };
            let outer = Axis { extent: 1 + more.extent, from: more.from, to: signed(further) };
            let unit = if is_run { further } else { unit };
            let axes = if count == 1 { [Axis::ONE, outer] } else { [outer, inner] };
            let source =
                block.source.wrapping_add(rows.start.wrapping_mul(block.row)).wrapping_add(ahead);
            // SAFETY: the caller's promise.
            unsafe {
                Block { unit, axes }.copy((source, to), Axis::ONE, block.tuning.kernels);
            }
            to = to.wrapping_add(further * outer.extent);
            blocks.skip(more.extent);
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::{Nest, MOST};
    use crate::copy::guarded::Guarded;
    use crate::copy::testing::{parts, transfer};
    use crate::copy::tuning::Tuning;
    use crate::dtype::DType;
    use crate::parts::{Parts, Transfer};

    const BYTES: usize = 256 << 10;
    /// No byte of the input.
    const UNTOUCHED: u8 = 0xEE;

    /// `blocks` blocks of so many rows to pieces of these lengths, in two parts, past the caches or not: backwards or
    /// with something between them, at the end or the begin of what may be touched; from 16 on all of them the same one.
    fn check(
        source: &Guarded,
        dtype: DType,
        [blocks, rows]: [usize; 2],
        lengths: &[i64],
        variant: usize,
    ) {
        let size = dtype.bits() as usize / 8;
        let extent = usize::try_from(lengths.iter().sum::<i64>()).unwrap();
        let pitch = extent + [0, 3][variant % 2];
        let (apart, held) = match (rows + variant / 2 % 2) * pitch {
            one if variant < 16 => (one, blocks * one),
            one => (0, one),
        };
        let [backwards, blocks_backwards] = [variant / 4 % 2 == 1, variant / 8 % 2 == 1];
        let all = held * size;
        if all > BYTES {
            return;
        }
        let begin = source.place(all, variant.is_multiple_of(3)).cast_const();
        let place = |block: usize, row: usize| {
            let block = if blocks_backwards { blocks - 1 - block } else { block };
            block * apart + if backwards { rows - 1 - row } else { row } * pitch
        };
        let of = |at: usize| i64::try_from(at).unwrap();
        let way = |backwards, step| if backwards { -of(step) } else { of(step) };
        let strides = [way(blocks_backwards, apart), way(backwards, pitch), 1];
        let shape = [of(blocks), of(rows), of(extent)];
        let ahead = [0, 5][variant / 3 % 2];
        let bytes = |len: i64| usize::try_from(len).unwrap() * blocks * rows * size;
        let mut column = 0;
        let expected = lengths.iter().map(|len| {
            let (run, offset) = (usize::try_from(*len).unwrap() * size, column * size);
            column += usize::try_from(*len).unwrap();
            let mut all = vec![UNTOUCHED; ahead];
            for (block, row) in (0..blocks).flat_map(|block| (0..rows).map(move |row| (block, row)))
            {
                let from = begin.wrapping_add(place(block, row) * size + offset);
                // SAFETY: that many bytes are there.
                all.extend(unsafe { std::slice::from_raw_parts(from, run) });
            }
            all.resize(ahead + bytes(*len) + 64, UNTOUCHED);
            all
        });
        let expected: Vec<Vec<u8>> = expected.collect();
        let cut = blocks * rows * (variant % 16) / 16;
        for tuning in Tuning::all() {
            let room = |len: &i64| vec![UNTOUCHED; ahead + bytes(*len) + 64];
            let mut outputs: Vec<Vec<u8>> = lengths.iter().map(room).collect();
            let targets = outputs.iter_mut().map(|output| Some(output[ahead..].as_mut_ptr()));
            let wanted = parts(lengths, targets);
            let first = begin.wrapping_add(place(0, 0) * size);
            let packed = transfer(dtype, &shape, 2, first, &wanted);
            let transfer = Transfer { strides: Some(&strides), ..packed };
            let Some(nest) = Nest::new(&transfer, &tuning) else { continue };
            let wanted = Parts::Listed(&wanted).iter();
            // SAFETY: source and outputs are as large as the shape says.
            unsafe {
                nest.copy_all(&wanted, 0..cut);
                nest.copy_all(&wanted, cut..blocks * rows);
            }
            assert!(outputs == expected, "{dtype:?} {blocks}×{rows} {lengths:?} {variant}");
        }
    }

    /// Few and many, of fewer bytes of a row and of more than are taken at a time.
    #[test]
    fn columns_of_short_blocks() {
        let source = Guarded::filled(BYTES);
        let types = [DType::Uint8, DType::Float16, DType::Float, DType::Int64, DType::Complex128];
        for (dtype, columns) in
            types.into_iter().flat_map(|dtype| [9, 16, 17, 70, MOST + 19].map(|some| (dtype, some)))
        {
            for (at, blocks) in [[70, 1], [2, 3], [33, 4], [9, 17]].into_iter().enumerate() {
                for variant in [at, 5 + at, 12 + at, 20 + at] {
                    check(&source, dtype, blocks, &vec![1; columns], variant);
                }
            }
        }
    }
}
