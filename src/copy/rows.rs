//! The canonical form of packed tensors: the input is rows of the whole axis, and each piece takes
//! a run of every row. The element type is gone: only bytes are left.

use super::kernel::lines::{Lines, LINE, STAGE};
use super::kernel::{detect, Deal, Gather, Kernels, DEALS, MAX_DEAL};
use super::usize_of;
use crate::memory::Outputs;
use crate::plan::{Piece, Plan};
use core::ops::Range;
use core::ptr::null_mut;

/// How to go about a copy on this machine.
#[derive(Clone, Copy)]
pub(super) struct Tuning {
    kernels: &'static Kernels,
    /// Whether outputs go to memory past the caches.
    streams: bool,
}

/// From this many bytes of outputs on, they would push everything else out of the caches.
const STREAM_FROM: usize = 8 << 20;

impl Tuning {
    pub(super) fn of_this_machine(bytes: usize) -> Self {
        Self { kernels: detect(), streams: bytes > STREAM_FROM }
    }
}

/// A packed input as rows.
pub(super) struct Rows {
    source: *const u8,
    /// How many.
    pub count: usize,
    /// Bytes of a row: of everything from the split axis inward.
    row: usize,
    /// Bytes of one step on the split axis.
    step: usize,
    tuning: Tuning,
}

// SAFETY: the input is only read.
unsafe impl Sync for Rows {}

/// Rows are taken in blocks of about this many bytes, which stay in the second-level cache while
/// one piece after the other takes its runs.
const BLOCK: usize = 256 << 10;
/// The least rows of a block: as many short runs make some lines of an output.
const MIN_BLOCK_ROWS: usize = 128;

/// Consecutive pieces with short runs of one width, which are dealt out together.
struct Group {
    /// Bytes from the begin of a row to the first run.
    offset: usize,
    run: usize,
    targets: [*mut u8; MAX_DEAL],
    len: usize,
}

impl Group {
    /// Whether a piece continues the group.
    fn is_joined_by(&self, offset: usize, run: usize) -> bool {
        self.len < MAX_DEAL
            && run == self.run
            && offset == self.offset + self.len * run
            && Kernels::deals(run)
    }
}

impl Rows {
    pub(super) fn new(plan: &Plan<'_>, source: *const u8, tuning: Tuning) -> Self {
        let step = usize_of(plan.inner) * (plan.dtype.bits() as usize / 8);
        Self {
            source,
            count: usize_of(plan.outer),
            row: usize_of(plan.extent) * step,
            step,
            tuning,
        }
    }

    /// How many rows to cut at: so many that short runs make whole lines.
    pub(super) fn granule(&self) -> usize {
        (LINE * LINE / self.row).clamp(1, LINE)
    }

    /// Copies what all pieces have in a range of rows.
    ///
    /// # Safety
    /// The input must be readable and the outputs writable over the pieces.
    pub(super) unsafe fn copy_all(
        &self,
        plan: &Plan<'_>,
        outputs: &impl Outputs,
        rows: Range<usize>,
    ) {
        let block = (BLOCK / self.row).max(MIN_BLOCK_ROWS).next_multiple_of(LINE);
        for first in rows.clone().step_by(block) {
            let rows = first..rows.end.min(first.saturating_add(block));
            // SAFETY: the caller's promise.
            unsafe { self.copy_block(plan, outputs, &rows) };
        }
        (self.tuning.kernels.fence)();
    }

    /// Copies a block of rows, piece by piece or as many pieces at a time as make a group.
    ///
    /// # Safety
    /// As [`Rows::copy_all`].
    unsafe fn copy_block(&self, plan: &Plan<'_>, outputs: &impl Outputs, rows: &Range<usize>) {
        let mut group = Group { offset: 0, run: 0, targets: [null_mut(); MAX_DEAL], len: 0 };
        for piece in plan.pieces() {
            let run = usize_of(piece.len) * self.step;
            let Some(target) = outputs.data(piece.index).filter(|_| run > 0) else { continue };
            let offset = usize_of(piece.offset) * self.step;
            if !group.is_joined_by(offset, run) {
                // SAFETY: the caller's promise.
                unsafe { self.copy_group(&group, rows) };
                (group.offset, group.run, group.len) = (offset, run, 0);
            }
            if let Some(slot) = group.targets.get_mut(group.len) {
                *slot = target.wrapping_add(rows.start * run);
                group.len += 1;
            }
        }
        // SAFETY: as above.
        unsafe { self.copy_group(&group, rows) };
    }

    /// Copies the runs of a group, as many pieces at a time as there is a loop for.
    ///
    /// # Safety
    /// As [`Rows::copy_all`].
    unsafe fn copy_group(&self, group: &Group, rows: &Range<usize>) {
        let mut source = self.source.wrapping_add(rows.start * self.row + group.offset);
        let mut targets = group.targets.get(..group.len).unwrap_or_default();
        while let [target, ..] = targets {
            let len = DEALS.into_iter().find(|len| *len <= targets.len()).unwrap_or(1);
            let (now, later) = targets.split_at_checked(len).unwrap_or((targets, &[]));
            // SAFETY: the caller's promise.
            unsafe {
                match self.tuning.kernels.deal(group.run, len) {
                    Some(deal) => self.deal(deal, source, now, rows.len(), group.run),
                    None => self.gather(source, *target, rows.len(), group.run),
                }
            }
            source = source.wrapping_add(len * group.run);
            targets = later;
        }
    }

    /// Deals the rows from `source` on out, an element of `width` bytes to each target.
    ///
    /// # Safety
    /// As [`Rows::copy_all`].
    unsafe fn deal(
        &self,
        kernel: unsafe fn(Deal),
        source: *const u8,
        targets: &[*mut u8],
        count: usize,
        width: usize,
    ) {
        let kernels = self.tuning.kernels;
        let mut deal = Deal { source, step: self.row, targets: [null_mut(); MAX_DEAL], count };
        for (slot, target) in deal.targets.iter_mut().zip(targets) {
            *slot = *target;
        }
        if !self.tuning.streams {
            // SAFETY: the caller's promise.
            unsafe { kernel(deal) };
            return;
        }
        let mut lines = deal.targets.map(Lines::new);
        let lines = lines.get_mut(..targets.len()).unwrap_or_default();
        let mut left = count;
        while left > 0 {
            deal.count = left.min(STAGE / width);
            for (slot, lines) in deal.targets.iter_mut().zip(lines.iter_mut()) {
                *slot = lines.room();
            }
            // SAFETY: the caller's promise; a stage has room for STAGE bytes.
            unsafe {
                kernel(deal);
                for lines in lines.iter_mut() {
                    lines.filled(kernels, deal.count * width);
                }
            }
            deal.source = deal.source.wrapping_add(deal.count * self.row);
            left -= deal.count;
        }
        for lines in lines {
            // SAFETY: the caller's promise.
            unsafe { lines.finish(kernels) };
        }
    }

    /// Puts `count` runs, a row apart, one behind the other.
    ///
    /// # Safety
    /// As [`Rows::copy_all`].
    unsafe fn gather(&self, source: *const u8, target: *mut u8, count: usize, run: usize) {
        let kernels = self.tuning.kernels;
        let kernel = kernels.gather(run);
        let mut gather = Gather { source, step: self.row, target, count, unit: run };
        if !self.tuning.streams {
            // SAFETY: the caller's promise.
            unsafe { kernel(gather) };
            return;
        }
        let mut lines = Lines::new(target);
        let mut left = count;
        while left > 0 {
            if run > STAGE / 4 {
                gather.count = 1;
                // SAFETY: the caller's promise.
                unsafe { lines.push(kernels, gather.source, run) };
            } else {
                gather.count = left.min(STAGE / run);
                gather.target = lines.room();
                // SAFETY: the caller's promise; a stage has room for STAGE bytes.
                unsafe {
                    kernel(gather);
                    lines.filled(kernels, gather.count * run);
                }
            }
            gather.source = gather.source.wrapping_add(gather.count * self.row);
            left -= gather.count;
        }
        // SAFETY: the caller's promise.
        unsafe { lines.finish(kernels) };
    }

    /// Whether the caches hold it all.
    pub(super) fn is_short(&self) -> bool {
        !self.tuning.streams
    }

    /// Copies a whole piece run by run.
    ///
    /// # Safety
    /// As [`Rows::copy_all`].
    pub(super) unsafe fn copy_runs(&self, piece: Piece, target: *mut u8) {
        let run = usize_of(piece.len) * self.step;
        let source = self.source.wrapping_add(usize_of(piece.offset) * self.step);
        for row in 0..self.count {
            let (source, target) =
                (source.wrapping_add(row * self.row), target.wrapping_add(row * run));
            // SAFETY: the caller's promise.
            unsafe { (self.tuning.kernels.copy)(source, target, run) };
        }
    }

    /// Copies the bytes `part` of a piece that has elements to the packed `target`.
    ///
    /// # Safety
    /// As [`Rows::copy_all`].
    pub(super) unsafe fn copy(&self, piece: Piece, target: *mut u8, part: Range<usize>) {
        let kernels = self.tuning.kernels;
        let run = usize_of(piece.len) * self.step;
        let first = self.source.wrapping_add(usize_of(piece.offset) * self.step);
        let mut at = part.start;
        // Divisions take longer than a short run.
        let (mut row, mut within) = if at == 0 { (0, 0) } else { (at / run, at % run) };
        let mut lines = self.tuning.streams.then(|| Lines::new(target.wrapping_add(at)));
        while at < part.end {
            let bytes = (run - within).min(part.end - at);
            let source = first.wrapping_add(row * self.row + within);
            // SAFETY: all of `part` lies within the piece.
            unsafe {
                match &mut lines {
                    Some(lines) => lines.push(kernels, source, bytes),
                    None => (kernels.copy)(source, target.add(at), bytes),
                }
            }
            at += bytes;
            (row, within) = (row + 1, 0);
        }
        if let Some(mut lines) = lines {
            // SAFETY: as above.
            unsafe { lines.finish(kernels) };
            (kernels.fence)();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Outputs, Plan, Rows, Tuning};
    use crate::copy::kernel::levels;
    use crate::dtype::DType;
    use crate::error::Error;
    use crate::memory::{Memory, Span};
    use crate::operator::Operator;
    use crate::rules::Request;
    use proptest::prelude::*;

    struct Targets(Vec<Memory<'static>>);

    // SAFETY: one thread only.
    unsafe impl Sync for Targets {}

    impl Outputs for Targets {
        fn len(&self) -> usize {
            self.0.len()
        }
        fn get(&self, index: usize) -> Result<Option<Memory<'_>>, Error> {
            Ok(self.0.get(index).copied())
        }
        fn data(&self, index: usize) -> Option<*mut u8> {
            self.0.get(index).map(|memory| memory.data)
        }
        fn descriptors(&self) -> Span {
            Span::default()
        }
        const APART: bool = true;
    }

    const MARGIN: usize = 80;

    /// Rows of `lengths` bytes, each piece into a buffer `ahead` bytes from alignment, by one of
    /// the two ways that there are; compared with the pieces cut out row by row.
    fn check(lengths: &[i64], rows: i64, ahead: usize, tuning: Tuning, by_piece: bool, cut: usize) {
        let row: i64 = lengths.iter().sum();
        let bytes = usize::try_from(rows * row).unwrap();
        let source: Vec<u8> =
            (0..bytes).map(|i| (i * 31 % 251 + i / 251 % 7).to_le_bytes()[0]).collect();
        let request = Request {
            operator: Operator::VariadicSplit1,
            axis: 1,
            lengths: Some(lengths.into()),
            num_outputs: 0,
            keepdims: true,
            clamp_uneven: false,
            outputs: Some(lengths.len()),
        };
        let shape = [rows, row];
        let plan = Plan::new(&request, DType::Uint8, &shape, false).unwrap();
        let size = |len: i64| usize::try_from(rows * len).unwrap();
        let mut buffers: Vec<Vec<u8>> =
            lengths.iter().map(|len| vec![0xEE; size(*len) + 2 * MARGIN + ahead]).collect();
        let memory = |buffer: &mut Vec<u8>| Memory {
            data: buffer.as_mut_ptr().wrapping_add(MARGIN + ahead),
            data_bytes: 0,
            dtype: DType::Uint8,
            shape: &[],
            strides: None,
            bit_offset: 0,
        };
        let targets = Targets(buffers.iter_mut().map(memory).collect());
        let form = Rows::new(&plan, source.as_ptr(), tuning);
        // SAFETY: buffers and source are as long as the plan says.
        unsafe {
            if by_piece {
                for piece in plan.pieces().filter(|piece| piece.len > 0) {
                    let (target, end) = (targets.data(piece.index).unwrap(), size(piece.len));
                    form.copy(piece, target, 0..cut % end);
                    form.copy(piece, target, cut % end..end);
                }
            } else {
                let cut = cut % form.count;
                form.copy_all(&plan, &targets, 0..cut);
                form.copy_all(&plan, &targets, cut..form.count);
            }
        }
        for (piece, buffer) in plan.pieces().zip(&buffers) {
            let begin = usize::try_from(piece.offset).unwrap();
            let run = begin..begin + usize::try_from(piece.len).unwrap();
            let mut expected = vec![0xEE; MARGIN + ahead];
            for row in source.chunks(usize::try_from(row).unwrap()) {
                expected.extend_from_slice(&row[run.clone()]);
            }
            expected.resize(buffer.len(), 0xEE);
            assert!(*buffer == expected, "piece {}", piece.index);
        }
    }

    /// Every level of CPU features there is here, with and without going past the caches.
    fn tunings() -> Vec<Tuning> {
        let levels = levels().into_iter();
        levels
            .flat_map(|kernels| [false, true].map(|streams| Tuning { kernels, streams }))
            .collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..Default::default() })]

        #[test]
        fn pieces_of_any_lengths(
            lengths in prop::collection::vec(prop_oneof![0i64..20, 0i64..300, Just(4), Just(1500)], 1..20),
            rows in 1i64..300,
            ahead in 0usize..70,
            by_piece in any::<bool>(),
            cut in any::<usize>(),
        ) {
            prop_assume!(lengths.iter().sum::<i64>() > 0);
            for tuning in tunings() {
                check(&lengths, rows, ahead, tuning, by_piece, cut);
            }
        }

        #[test]
        fn many_short_pieces(
            width in prop::sample::select(vec![1i64, 2, 4, 8, 16]),
            pieces in 2usize..40,
            rows in 1i64..2000,
            ahead in 0usize..70,
            cut in any::<usize>(),
        ) {
            for tuning in tunings() {
                check(&vec![width; pieces], rows, ahead, tuning, false, cut);
            }
        }
    }

    #[test]
    fn every_length_at_every_offset_from_a_line() {
        for length in 1..=300 {
            for ahead in [0, 1, 7, 16, 31, 33, 63] {
                for tuning in tunings() {
                    check(&[length, 3], 9, ahead, tuning, length % 2 == 0, 5);
                }
            }
        }
    }
}
