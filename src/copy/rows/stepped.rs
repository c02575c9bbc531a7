//! Rows of which every second or third step is there: picked by registers, row by row, so that the input
//! is read in its order. (Where all steps are there, but backwards, piece by piece is as good, but on CPUs
//! that must read memory upwards.)

use super::super::kernel::combine::{Scratch, WriteCombining};
use super::super::kernel::pick::Units;
use super::super::kernel::strided::Axis;
use super::super::kernel::strided::{self, Row, RowSteps, Slot, LEAST_PAST};
use super::super::kernel::NonTemporal;
use super::super::region;
use super::Nest;
use crate::math::{div, parts as ranges, signed};
use crate::parts::Iter;
use crate::shape::usize_of;
use core::ops::Range;
use core::ptr::null_mut;

/// Of shorter rows so many bytes are taken at a time.
const BLOCK: usize = 8 << 10;
/// The same through the caches, on CPUs that read upwards. Zen 4, 24 MiB, every second byte of rows of 400, share
/// of the flat copy: piece by piece .20, by 32 KiB .24, 128 KiB .29, 512 KiB .29; of 4 MiB .37, .30, .35, .37.
const CACHED_BLOCK: usize = 512 << 10;
/// Shorter rows that lie backwards are not read upwards. Zen 4, 26 MiB of rows of 32 bytes 1.6 times as slow so.
const LEAST_TURNED: usize = 2 << 10;
/// The most pieces.
const MOST_PIECES: usize = 16;
/// Steps that are further apart are as well copied piece by piece, ...
const MOST_APART: usize = 32;
/// ... and so are shorter runs, in bytes, and in steps.
const LEAST_RUN: usize = 16;
const LEAST_STEPS: i64 = 4;

/// The stores for outputs past the caches.
type Past = Option<&'static NonTemporal>;

impl Nest<'_> {
    /// Whether steps so many bytes apart, each of so many, are picked.
    pub(super) fn picks(&self, apart: isize, step: isize) -> bool {
        let geometry = &self.transfer.geometry;
        let mut outward = geometry.shape.iter().enumerate().take(geometry.axis);
        let is_long =
            |len: i64| len >= LEAST_STEPS && usize_of(len) * step.unsigned_abs() >= LEAST_RUN;
        let tuning = self.block.tuning;
        let is_backwards = apart == -step
            && tuning.apart.is_some()
            && tuning.reads_upwards()
            && usize_of(geometry.extent) * step.unsigned_abs() >= LEAST_TURNED;
        tuning.kernels.picks.is_some()
            && (apart.unsigned_abs() > step.unsigned_abs() || is_backwards)
            && apart.unsigned_abs() <= MOST_APART
            && (2..=MOST_PIECES).contains(&self.transfer.parts.count())
            && self.transfer.parts.iter().all(|part| is_long(part.len))
            && outward.all(|(axis, extent)| {
                *extent == 1 || self.from(axis, isize::MAX).unsigned_abs() >= apart.unsigned_abs()
            })
    }

    /// Copies what all pieces have in a range of rows, of which the steps are apart.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    pub(super) unsafe fn copy_stepped(&self, parts: &Iter<'_>, rows: Range<usize>) {
        let tuning = &self.block.tuning;
        // Whole lines too are worth it only then. Zen 5, every second byte, 12 MiB of outputs, ms past the caches and
        // through them: two runs of 35 bytes 14, 1.4, of 100 15, 1.2, of 1,024 1.6, .9, of 2,048 .7, 1.4.
        let bytes = usize_of(self.transfer.geometry.extent) * self.block.step;
        let is_long = div(bytes, self.transfer.parts.count()) >= LEAST_PAST;
        // SAFETY: the caller's promise.
        unsafe {
            match tuning.apart.filter(|_| is_long) {
                None => self.pick_steps(parts, rows, None, &mut []),
                past => self.pick_past(parts, rows, past),
            }
        }
        tuning.finish();
    }

    /// Picks them past the caches, by way of a buffer for each piece.
    ///
    /// # Safety
    /// As [`Nest::copy_all`]; a fence must follow.
    #[inline(never)] // which takes much of the stack
    unsafe fn pick_past(&self, parts: &Iter<'_>, rows: Range<usize>, past: Past) {
        let mut scratch = Scratch::<{ 4 << 10 }>::NEW;
        let none = [null_mut(); MOST_PIECES];
        let pieces = parts.most().min(MOST_PIECES);
        let mut lines = scratch.share::<MOST_PIECES>(none.get(..pieces).unwrap_or_default());
        let lines = lines.get_mut(..pieces).unwrap_or_default();
        // SAFETY: the caller's promise.
        unsafe {
            self.pick_steps(parts, rows, past, lines);
            for lines in lines {
                lines.finish();
            }
        }
    }

    /// Picks them row by row.
    ///
    /// # Safety
    /// As [`Nest::copy_all`]; what is in the buffers must be sent off, and a fence follow.
    #[inline(never)] // once in the library
    unsafe fn pick_steps(
        &self,
        parts: &Iter<'_>,
        rows: Range<usize>,
        past: Past,
        lines: &mut [WriteCombining],
    ) {
        let mut block = self.block;
        let (tuning, step) = (&self.block.tuning, block.step);
        let (row, extent) = (signed(block.row), usize_of(self.transfer.geometry.extent));
        let whole = Axis { extent, from: self.apart, to: signed(step) };
        let next = Axis { extent: block.count, from: row, to: 0 };
        let ahead = region::ahead(whole, Some(&next), tuning);
        let units = Units::whole(step, self.apart);
        let mut slot = Slot::uninit();
        let picked = strided::RowCopy::runs(&mut slot, tuning.kernels, past, units, extent, ahead);
        // The caches have the row for the next piece as well as for this one.
        let rows_within = |block: usize| div(block, row.unsigned_abs()).max(1);
        let is_upwards = tuning.reads_upwards();
        // The last piece of a row that lies backwards comes first.
        let is_turned =
            is_upwards && past.is_some() && self.apart < 0 && extent * step >= LEAST_TURNED;
        let few = match past {
            Some(_) if is_turned => 1,
            Some(_) => rows_within(BLOCK),
            None if is_upwards => rows_within(CACHED_BLOCK),
            None => usize::MAX,
        };
        let pieces = parts.most();
        let mut blocks = self.blocks(rows);
        while let Some(all) = blocks.next(&mut block) {
            for rows in ranges(all.clone(), few) {
                for at in 0..pieces {
                    let at = if is_turned { pieces - 1 - at } else { at };
                    let Some(piece) = parts.clone().nth(at) else { continue };
                    let run = block.run(&piece);
                    let from = self.apart.wrapping_mul(signed(usize_of(piece.offset)));
                    let from = from.wrapping_add(row.wrapping_mul(signed(rows.start)));
                    let row_of = Row {
                        source: block.source.wrapping_offset(from),
                        source_step: self.apart,
                        target: blocks.target(&run).wrapping_add(rows.start * run.bytes),
                        target_step: signed(step),
                        count: usize_of(piece.len),
                        unit: step,
                    };
                    let (count, after) = (rows.len(), all.end - rows.end);
                    let steps = RowSteps { count, after, from: row, to: signed(run.bytes) };
                    // SAFETY: the caller's promise.
                    unsafe { picked.copy_all(row_of, steps, lines.get_mut(at)) };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Tuning;
    use super::Nest;
    use crate::copy::testing::{parts, transfer};
    use crate::dtype::DType;
    use crate::parts::{Parts, Transfer};

    /// Pieces of two lengths of every second to fourth element, forwards and backwards, outputs anywhere
    /// in their lines, in two parts, at every level, past the caches or not.
    #[test]
    fn pieces_of_rows_whose_steps_are_apart() {
        const ROWS: usize = 37;
        let signed = |at: usize| i64::try_from(at).unwrap();
        for (dtype, size) in [(DType::Uint8, 1), (DType::Float, 4), (DType::Int64, 8)] {
            for (apart, lengths) in [
                (2, [40, 77]),
                (3, [128, 64]),
                (-2, [33, 150]),
                (4, [16, 17]),
                (2, [1700, 1500]),
                (-2, [1700, 1500]),
                (-1, [40, 77]),
                (-1, [1700, 1500]),
            ] {
                let extent: usize = lengths.iter().sum();
                let row = extent * 4 + 3;
                let input: Vec<u8> =
                    (0..ROWS * row * size).map(|at| ((at * 1009) >> 4).to_le_bytes()[0]).collect();
                let first = if apart < 0 { (extent - 1) * 2 } else { 0 };
                let (shape, strides) = ([signed(ROWS), signed(extent)], [signed(row), apart]);
                for (tuning, lead) in Tuning::all().into_iter().zip((0..3 * size).cycle()) {
                    let mut outputs = lengths.map(|len| vec![0xEE; ROWS * len * size + lead]);
                    let targets = outputs
                        .iter_mut()
                        .map(|output| Some(output.as_mut_ptr().wrapping_add(lead)));
                    let parts = parts(&lengths.map(signed), targets);
                    let source = input.as_ptr().wrapping_add(first * size);
                    let all = transfer(dtype, &shape, 1, source, &parts);
                    let transfer = Transfer { strides: Some(&strides), ..all };
                    let Some(nest) = Nest::new(&transfer, &tuning) else { continue };
                    assert_eq!(nest.apart, isize::try_from(apart).unwrap() * size.cast_signed());
                    // SAFETY: the input and the outputs are as large as the shape says.
                    unsafe {
                        nest.copy_all(&Parts::Listed(&parts).iter(), 0..20);
                        nest.copy_all(&Parts::Listed(&parts).iter(), 20..ROWS);
                    }
                    for (part, output) in parts.iter().zip(&outputs) {
                        let (offset, len) = (part.offset, usize::try_from(part.len).unwrap());
                        for at in 0..ROWS * len {
                            let column = (offset + signed(at % len)) * apart;
                            let from =
                                usize::try_from(signed(at / len * row + first) + column).unwrap();
                            let expected = &input[from * size..][..size];
                            assert_eq!(
                                &output[lead + at * size..][..size],
                                expected,
                                "{apart}, {at}"
                            );
                        }
                    }
                }
            }
        }
    }
}
