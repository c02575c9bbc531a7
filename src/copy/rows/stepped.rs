//! Rows of which every second or third step is there: picked by registers, row by row, so that the input
//! is read in its order. (Where all steps are there, but backwards, piece by piece is as good, but on CPUs
//! that must read memory upwards.)

use super::super::kernel::combine::{Scratch, WriteCombining};
use super::super::kernel::pick::Units;
use super::super::kernel::strided::Axis;
use super::super::kernel::strided::{self, Row, RowSteps, Slot, Span, LEAST_PAST};
use super::super::kernel::{are_near, NonTemporal};
use super::super::region;
use super::run::Run;
use super::Nest;
use crate::math::{div, parts as ranges, signed};
use crate::parts::Iter;
use crate::shape::usize_of;
use core::ops::Range;

/// Of shorter rows so many bytes are taken at a time.
const BLOCK: usize = 8 << 10;
/// The same through the caches, on CPUs that read upwards. Zen 4, 24 MiB, every second byte of rows of 400, share
/// of the flat copy: piece by piece .20, by 32 KiB .24, 128 KiB .29, 512 KiB .29; of 4 MiB .37, .30, .35, .37.
const CACHED_BLOCK: usize = 512 << 10;
/// Shorter rows that lie backwards are not read upwards. Zen 4, 26 MiB of rows of 32 bytes 1.6 times as slow so.
const LEAST_BACKWARDS: usize = 2 << 10;
/// The most pieces.
const MOST_PIECES: usize = 16;
/// Steps that are further apart are as well copied piece by piece, ...
const MOST_APART: usize = 32;
/// ... and so are shorter runs, in bytes, and in steps.
const LEAST_RUN: usize = 16;
const LEAST_STEPS: i64 = 4;

/// Shorter runs, on average, are left to be picked piece by piece. Zen 4, past the caches, times as quick row by row:
/// every second byte to two pieces of 12 .9, 16 1.5, 100 1.7, 1,000 1.4, to eight of 16 2.3; backwards to two of 16
/// .7, 20 1.2, 100 1.8, 1,000 2.1, to eight of 32 5.5. In the second-level cache 1.0, of 20 bytes .5.
const LEAST_SPAN: usize = 16;

/// What is put together to lines.
type Buffers = Scratch<{ 8 << 10 }>;

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
        let row = usize_of(geometry.extent) * step.unsigned_abs();
        let is_backwards = apart == -step
            && tuning.apart.is_some()
            && tuning.reads_upwards()
            && row > LEAST_SPAN * self.transfer.parts.count();
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
        let bytes = usize_of(self.transfer.geometry.extent) * self.block.step;
        let each = div(bytes, self.transfer.parts.count());
        // SAFETY: the caller's promise.
        unsafe {
            match tuning.apart {
                Some(past) if each >= LEAST_SPAN => self.pick_past(parts, rows, past, each),
                _ => self.pick_steps(parts, rows, None, &mut []),
            }
        }
        tuning.finish();
    }

    /// Picks them past the caches, by way of a buffer for each piece.
    ///
    /// # Safety
    /// As [`Nest::copy_all`]; a fence must follow.
    #[inline(never)] // which takes much of the stack
    unsafe fn pick_past(
        &self,
        parts: &Iter<'_>,
        rows: Range<usize>,
        past: &'static NonTemporal,
        each: usize,
    ) {
        let mut buffers = Buffers::NEW;
        let mut lines = [WriteCombining::NONE; MOST_PIECES];
        let lines = lines.get_mut(..parts.most().min(MOST_PIECES)).unwrap_or_default();
        buffers.share_in_pages(lines);
        // SAFETY: the caller's promise.
        unsafe {
            if !self.pick_spans(parts, &rows, past, lines) {
                if each < LEAST_PAST {
                    return self.pick_steps(parts, rows, None, &mut []);
                }
                self.pick_steps(parts, rows, Some(past), lines);
            }
            for lines in lines {
                lines.finish();
            }
        }
    }

    /// Picks what all pieces have of each row before that of the next one, if there is a loop for that; whether there
    /// was.
    ///
    /// # Safety
    /// As [`Nest::copy_all`]; what is in the buffers must be sent off, and a fence follow.
    #[inline(never)] // for its stack
    unsafe fn pick_spans(
        &self,
        parts: &Iter<'_>,
        rows: &Range<usize>,
        past: &NonTemporal,
        lines: &mut [WriteCombining],
    ) -> bool {
        let mut block = self.block;
        let (step, row) = (block.step, signed(block.row));
        let extent = usize_of(self.transfer.geometry.extent);
        if !are_near(row, extent * self.apart.unsigned_abs()) {
            return false;
        }
        let mut runs = [Run::NONE; MOST_PIECES];
        let mut spans = [Span::NONE; MOST_PIECES];
        let (mut pieces, mut longest) = (0, 1);
        for ((run, span), part) in runs.iter_mut().zip(&mut spans).zip(parts.clone()) {
            *run = block.run(&part);
            let from = self.apart.wrapping_mul(signed(usize_of(part.offset)));
            *span = Span::of(from, usize_of(part.len), run.bytes);
            (pieces, longest) = (pieces + 1, longest.max(run.bytes));
        }
        let spans = spans.get_mut(..pieces).unwrap_or_default();
        let few = div(Buffers::room_in_pages(lines.len()), longest);
        let mut slot = Slot::uninit();
        let units = Units::whole(step, self.apart);
        let picked =
            strided::RowCopy::runs(&mut slot, block.tuning.kernels, None, units, extent, 0);
        let Some(picked) = picked.spans(row).filter(|_| few > 0) else { return false };
        let mut blocks = self.blocks(rows.clone());
        while let Some(all) = blocks.next(&mut block) {
            for (run, lines) in runs.iter().zip(&mut *lines) {
                let target = blocks.target(run).wrapping_add(all.start * run.bytes);
                if !lines.is_at(target) {
                    // SAFETY: the caller's promise.
                    unsafe { lines.finish() };
                    lines.begin(target);
                }
            }
            let source = block.source.wrapping_offset(row.wrapping_mul(signed(all.start)));
            let steps = RowSteps { count: all.len(), after: 0, from: row, to: 0 };
            let over = picked.over(source, steps, spans);
            let mut at = 0;
            while at < all.len() {
                let ends = [over.start, over.end, all.len()];
                let end = ends.into_iter().find(|end| *end > at).unwrap_or(at);
                let count = few.min(end - at);
                let source = source.wrapping_offset(row.wrapping_mul(signed(at)));
                let steps = RowSteps { count, ..steps };
                // SAFETY: the caller's promise; buffers have room for as many rows, and a line more.
                unsafe { picked.send(source, steps, spans, over.contains(&at), past, lines) };
                at += count;
            }
        }
        true
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
        let is_backwards =
            is_upwards && past.is_some() && self.apart < 0 && extent * step >= LEAST_BACKWARDS;
        let few = match past {
            Some(_) if is_backwards => 1,
            Some(_) => rows_within(BLOCK),
            None if is_upwards => rows_within(CACHED_BLOCK),
            None => usize::MAX,
        };
        let pieces = parts.most();
        let mut blocks = self.blocks(rows);
        while let Some(all) = blocks.next(&mut block) {
            for rows in ranges(all.clone(), few) {
                for at in 0..pieces {
                    let at = if is_backwards { pieces - 1 - at } else { at };
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

#[cfg(all(test, unix))]
mod tests {
    use super::super::super::guarded::Guarded;
    use super::super::Tuning;
    use super::Nest;
    use crate::copy::testing::{parts, transfer};
    use crate::dtype::DType;
    use crate::math::signed;
    use crate::parts::{Parts, Transfer};

    /// Pieces of two lengths of every second to fourth element, forwards and backwards, outputs anywhere
    /// in their lines, in two parts, at every level, past the caches or not, where nothing else may be read.
    #[test]
    fn pieces_of_rows_whose_steps_are_apart() {
        const ROWS: usize = 37;
        let memory = Guarded::filled(4 << 20);
        for (dtype, size) in [(DType::Uint8, 1), (DType::Float, 4), (DType::Int64, 8)] {
            for (apart, lengths, gap) in [
                (2isize, vec![40, 77], 3isize),
                (3, vec![128, 64], 3),
                (-2, vec![33, 150], 3),
                (4, vec![16, 17], 3),
                (2, vec![1700, 1500], 3),
                (-2, vec![1700, 1500], 0),
                (-1, vec![40, 77], 3),
                (-1, vec![1700, 1500], 3),
                (2, vec![20; 16], 0),
                (-1, vec![17, 90, 33], 0),
                (-1, vec![1000, 150], 0),
                (-3, vec![100, 200, 70], 5000),
                (2, vec![100, 90], -2000),
                (-1, vec![80, 90], -700),
            ] {
                let extent: usize = lengths.iter().sum();
                let span = signed((extent - 1) * apart.unsigned_abs() + 1);
                let row = if gap < 0 { gap } else { span + gap };
                let above = if apart < 0 { span - 1 } else { 0 };
                let below = if row < 0 { -row * signed(ROWS - 1) } else { 0 };
                let all = (span + row.abs() * signed(ROWS - 1)).unsigned_abs() * size;
                let of = |at: isize| i64::try_from(at).unwrap();
                let lens: Vec<i64> = lengths.iter().map(|len| of(signed(*len))).collect();
                let shape = [of(signed(ROWS)), lens.iter().sum()];
                let strides = [of(row), of(apart)];
                for (at, tuning) in Tuning::all().into_iter().enumerate() {
                    let lead = at * 5 % 19;
                    let begin = memory.place(all, at % 2 == 0).cast_const();
                    let source = begin.wrapping_add((above + below).unsigned_abs() * size);
                    let mut outputs: Vec<_> = lengths
                        .iter()
                        .map(|len| vec![0xEE; ROWS * len * size + lead + 9])
                        .collect();
                    let targets = outputs
                        .iter_mut()
                        .map(|output| Some(output.as_mut_ptr().wrapping_add(lead)));
                    let parts = parts(&lens, targets);
                    let packed = transfer(dtype, &shape, 1, source, &parts);
                    let transfer = Transfer { strides: Some(&strides), ..packed };
                    let Some(nest) = Nest::new(&transfer, &tuning) else { continue };
                    assert_eq!(nest.apart, apart * signed(size));
                    // SAFETY: the input and the outputs are as large as the shape says.
                    unsafe {
                        nest.copy_all(&Parts::Listed(&parts).iter(), 0..20);
                        nest.copy_all(&Parts::Listed(&parts).iter(), 20..ROWS);
                    }
                    for (part, output) in parts.iter().zip(&outputs) {
                        let len = usize::try_from(part.len).unwrap();
                        let offset = usize::try_from(part.offset).unwrap();
                        let mut expected = vec![0xEE; output.len()];
                        for at in 0..ROWS * len {
                            let from = row * signed(at / len) + apart * signed(offset + at % len);
                            let from = source.wrapping_offset(from * signed(size));
                            let to = expected[lead + at * size..].as_mut_ptr();
                            // SAFETY: it lies within the span.
                            unsafe { to.copy_from(from, size) };
                        }
                        assert!(*output == expected, "{size} bytes, {apart} apart, {gap}");
                    }
                }
            }
        }
    }
}
