//! The canonical form of packed tensors: the input is rows of the whole axis, and each piece takes
//! a run of every row. The element type is gone: only bytes are left.

mod deal;
mod group;
mod merge;
mod stage;

use super::columns::{Columns, Targets};
use super::kernel::combine::LINE;
use super::kernel::row_major::RowRun;
use super::kernel::{Gather, MAX_DEINTERLEAVED};
use super::tuning::Tuning;
use super::{signed, usize_of};
use crate::memory::Outputs;
use crate::plan::{Piece, Plan};
use core::ops::Range;
use core::ptr::null_mut;
use core::slice::from_mut;
use group::{Group, Run, MAX_GROUP};

/// A packed input as rows.
pub(super) struct Rows {
    source: *const u8,
    /// How many.
    pub count: usize,
    /// Bytes of a row: of everything from the split axis inward.
    row: usize,
    /// Units of one step on the split axis: bytes, or elements where several share one.
    step: usize,
    /// How many of them make a byte, as a power of two.
    shared: u32,
    tuning: Tuning,
}

// SAFETY: the input is only read.
unsafe impl Sync for Rows {}

/// Rows are taken in blocks of about this many bytes, which stay in the first-level cache while
/// one group of pieces after the other takes its runs.
const BLOCK: usize = 24 << 10;
/// Blocks are of a multiple of so many rows: as many short runs are worth a loop, and end a line
/// where they began one.
const BLOCK_ROWS: usize = 64;

impl Rows {
    pub(super) fn new(plan: &Plan<'_>, source: *const u8, tuning: Tuning) -> Self {
        let bits = plan.dtype.bits();
        let mut rows = Self {
            source,
            count: usize_of(plan.outer),
            row: 0,
            step: usize_of(plan.inner) * (bits / 8).max(1) as usize,
            shared: (8 / bits.min(8)).trailing_zeros(),
            tuning,
        };
        rows.row = rows.bytes(plan.extent);
        rows
    }

    /// Bytes of steps on the split axis, which are whole ones.
    fn bytes(&self, steps: i64) -> usize {
        (usize_of(steps) * self.step) >> self.shared
    }

    /// How many rows to cut at: so many that short runs make whole lines.
    pub(super) fn granule(&self) -> usize {
        (LINE * LINE / self.row).clamp(1, LINE)
    }

    /// Copies what all pieces have in a range of rows. Where that ends within a line of an output,
    /// the line is left to the range that follows.
    ///
    /// # Safety
    /// The input must be readable and the outputs writable over the pieces.
    pub(super) unsafe fn copy_all(
        &self,
        plan: &Plan<'_>,
        outputs: &impl Outputs,
        rows: Range<usize>,
    ) {
        // SAFETY: the caller's promise.
        if unsafe { self.transpose(plan, outputs, &rows) } {
            return self.finish();
        }
        let (mut groups, mut deals) = (0, 0);
        self.for_each_group(plan, outputs, |group| {
            groups += 1;
            deals += usize::from(
                group.is_deal(self.tuning, self.row) || self.tuning.non_temporal.is_some(),
            );
        });
        // What is one group reads the input in its order, and but once.
        let is_one = groups == 1 && deals == 1;
        let few = (BLOCK / self.row).max(BLOCK_ROWS) / BLOCK_ROWS * BLOCK_ROWS;
        let block = if is_one { rows.len().max(1) } else { few };
        for first in rows.clone().step_by(block) {
            let rows = first..rows.end.min(first.saturating_add(block));
            self.for_each_group(plan, outputs, |group| {
                // SAFETY: the caller's promise.
                unsafe {
                    match self.tuning.non_temporal {
                        _ if group.is_deal(self.tuning, self.row) => self.deal(group.runs(), &rows),
                        Some(past) if group.is_short() => {
                            self.stage(past, group.runs(), &rows, Self::gather);
                        }
                        Some(past) => self.merge(past, group.runs(), &rows),
                        None => self.gather(group.runs(), &rows),
                    }
                }
            });
        }
        self.finish();
    }

    /// Copies what all pieces have in a range of rows, if they are many of one width.
    ///
    /// # Safety
    /// As [`Rows::copy_all`].
    unsafe fn transpose(
        &self,
        plan: &Plan<'_>,
        outputs: &impl Outputs,
        rows: &Range<usize>,
    ) -> bool {
        let Some(Piece { len, .. }) = plan.pieces().next() else { return false };
        let unit = self.bytes(len);
        let count = usize_of(plan.count());
        if !Columns::turns(unit)
            || count <= MAX_DEINTERLEAVED
            || !plan.pieces().all(|piece| piece.len == len)
        {
            return false;
        }
        let targets = (0..count).map(|at| {
            let first = outputs.data(at).map(|target| target.wrapping_add(rows.start * unit));
            Targets { first, apart: 0, count: 1 }
        });
        let columns = Columns {
            source: self.source.wrapping_add(rows.start * self.row),
            step: self.row,
            rows: rows.len(),
            unit,
            count,
            targets,
        };
        // SAFETY: the caller's promise.
        unsafe { columns.copy(self.tuning) };
        true
    }

    /// Waits for stores past the caches.
    fn finish(&self) {
        if let Some(past) = self.tuning.non_temporal {
            (past.fence)();
        }
    }

    fn for_each_group(
        &self,
        plan: &Plan<'_>,
        outputs: &impl Outputs,
        mut visit: impl FnMut(&Group),
    ) {
        let nothing = Run { offset: 0, bytes: 0, target: null_mut() };
        let mut group = Group { runs: [nothing; MAX_GROUP], len: 0 };
        for piece in plan.pieces() {
            let bytes = self.bytes(piece.len);
            let Some(target) = outputs.data(piece.index).filter(|_| bytes > 0) else { continue };
            let run = Run { offset: self.bytes(piece.offset), bytes, target };
            if !group.is_joined_by(&run, self.tuning.kernels) {
                visit(&group);
                group.len = 0;
            }
            group.push(run);
        }
        if group.len > 0 {
            visit(&group);
        }
    }

    /// A piece's runs, all of them.
    fn runs(&self, run: &Run) -> Gather {
        Gather {
            source: self.source.wrapping_add(run.offset),
            step: self.row,
            target: run.target,
            count: self.count,
            unit: run.bytes,
        }
    }

    /// Copies some rows of pieces, one after the other.
    ///
    /// # Safety
    /// As [`Rows::copy_all`].
    unsafe fn gather(&self, runs: &[Run], rows: &Range<usize>) {
        if let Some(row_major) = self.tuning.kernels.row_major {
            let nothing = RowRun { source: self.source, bytes: 0, target: null_mut() };
            let mut slots = [nothing; MAX_GROUP];
            for (slot, run) in slots.iter_mut().zip(runs) {
                *slot = RowRun {
                    source: self.source.wrapping_add(rows.start * self.row + run.offset),
                    bytes: run.bytes,
                    target: run.target.wrapping_add(rows.start * run.bytes),
                };
            }
            let slots = slots.get_mut(..runs.len()).unwrap_or_default();
            // SAFETY: the caller's promise.
            if unsafe { row_major(slots, self.row, rows.len()) } {
                return;
            }
        }
        for run in runs {
            let all = self.runs(run);
            let some = Gather {
                source: all.source.wrapping_add(rows.start * self.row),
                target: all.target.wrapping_add(rows.start * run.bytes),
                count: rows.len(),
                ..all
            };
            // SAFETY: the caller's promise.
            unsafe { (self.tuning.kernels.gather(run.bytes))(some) };
        }
    }

    /// Whether outputs stay in the caches.
    pub(super) fn is_cached(&self) -> bool {
        self.tuning.non_temporal.is_none()
    }

    /// Copies a whole piece through the caches, run by run.
    ///
    /// # Safety
    /// As [`Rows::copy_all`].
    pub(super) unsafe fn copy_runs(&self, piece: Piece, target: *mut u8) {
        let run = self.bytes(piece.len);
        let source = self.source.wrapping_add(self.bytes(piece.offset));
        for row in 0..self.count {
            let (from, to) = (source.wrapping_add(row * self.row), target.wrapping_add(row * run));
            // SAFETY: the caller's promise.
            unsafe { (self.tuning.kernels.copy)(from, to, run) };
        }
    }

    /// Copies the bytes `range` of a piece that has elements to the packed `target`.
    ///
    /// # Safety
    /// As [`Rows::copy_all`].
    pub(super) unsafe fn copy(&self, piece: Piece, target: *mut u8, range: Range<usize>) {
        let offset = self.bytes(piece.offset);
        let run = Run { offset, bytes: self.bytes(piece.len), target };
        let all = self.runs(&run);
        let kernels = self.tuning.kernels;
        let lines = all.line_after(range.start)..all.line_floor(range.end);
        // SAFETY: the caller's promise.
        unsafe {
            match self.tuning.non_temporal {
                Some(past) if !lines.is_empty() => {
                    all.copy_range(kernels, range.start..lines.start);
                    let mut stream = all.stream(lines.start);
                    stream.turn = signed(lines.len());
                    let ahead = stream.source.wrapping_add(self.tuning.prefetch);
                    (past.merge)(from_mut(&mut stream), 1, ahead, 0);
                    all.copy_range(kernels, lines.end..range.end);
                }
                _ => all.copy_range(kernels, range),
            }
        }
        self.finish();
    }
}

#[cfg(test)]
mod tests {
    use super::{Outputs, Piece, Plan, Rows, Tuning};
    #[cfg(unix)]
    use crate::copy::guarded::Guarded;
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

    impl Targets {
        fn new(begins: impl Iterator<Item = *mut u8>) -> Self {
            let memory = |data| Memory {
                data,
                data_bytes: 0,
                dtype: DType::Uint8,
                shape: &[],
                strides: None,
                bit_offset: 0,
            };
            Self(begins.map(memory).collect())
        }
    }

    fn request(lengths: &[i64]) -> Request<'_> {
        Request {
            operator: Operator::VariadicSplit1,
            axis: 1,
            lengths: Some(lengths.into()),
            num_outputs: 0,
            keepdims: true,
            clamp_uneven: false,
            outputs: Some(lengths.len()),
        }
    }

    const MARGIN: usize = 80;

    /// No byte of the input.
    const UNTOUCHED: u8 = 0xEE;

    /// Rows of `lengths` bytes, each piece into a buffer `ahead` bytes from alignment, by one of
    /// the two ways that there are, in two parts; compared with the pieces cut out row by row.
    fn check(lengths: &[i64], rows: i64, ahead: usize, tuning: Tuning, by_piece: bool, cut: usize) {
        let row: i64 = lengths.iter().sum();
        let bytes = usize::try_from(rows * row).unwrap();
        let source: Vec<u8> =
            (0..bytes).map(|i| (i * 31 % 229 + i / 229 % 7).to_le_bytes()[0]).collect();
        let request = request(lengths);
        let shape = [rows, row];
        let plan = Plan::new(&request, DType::Uint8, &shape, false).unwrap();
        let form = Rows::new(&plan, source.as_ptr(), tuning);
        let size = |len: i64| usize::try_from(rows * len).unwrap();
        let mut buffers: Vec<Vec<u8>> =
            lengths.iter().map(|len| vec![0; size(*len) + 2 * MARGIN + ahead]).collect();
        // What a part alone writes.
        let mut copy_part = |is_first: bool| {
            let part = |all: usize| if is_first { 0..cut % all } else { cut % all..all };
            for buffer in &mut buffers {
                buffer.fill(UNTOUCHED);
            }
            let begin = |buffer: &mut Vec<u8>| buffer.as_mut_ptr().wrapping_add(MARGIN + ahead);
            let targets = Targets::new(buffers.iter_mut().map(begin));
            // SAFETY: buffers and source are as long as the plan says.
            unsafe {
                if by_piece {
                    for piece in plan.pieces().filter(|piece| piece.len > 0) {
                        let target = targets.data(piece.index).unwrap();
                        form.copy(piece, target, part(size(piece.len)));
                    }
                } else {
                    form.copy_all(&plan, &targets, part(form.count));
                }
            }
            buffers.clone()
        };
        for ((piece, first), second) in plan.pieces().zip(copy_part(true)).zip(copy_part(false)) {
            let begin = usize::try_from(piece.offset).unwrap();
            let run = begin..begin + usize::try_from(piece.len).unwrap();
            let mut expected = vec![UNTOUCHED; MARGIN + ahead];
            for row in source.chunks(usize::try_from(row).unwrap()) {
                expected.extend_from_slice(&row[run.clone()]);
            }
            expected.resize(first.len(), UNTOUCHED);
            // Threads may have them: no byte is written by both.
            let is_of_both = |(a, b): (&u8, &u8)| *a != UNTOUCHED && *b != UNTOUCHED;
            let shared = first.iter().zip(&second).position(is_of_both);
            assert_eq!(shared, None, "piece {}: a byte of both parts", piece.index);
            let both: Vec<u8> = first.iter().zip(&second).map(|(a, b)| *a.min(b)).collect();
            assert!(both == expected, "piece {}", piece.index);
        }
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
            for tuning in Tuning::all() {
                check(&lengths, rows, ahead, tuning, by_piece, cut);
            }
        }

        #[test]
        fn many_short_pieces(
            width in 1i64..=16,
            pieces in 2usize..40,
            other in prop::option::of(0i64..20),
            rows in 1i64..2000,
            ahead in 0usize..70,
            cut in any::<usize>(),
        ) {
            let lengths = std::iter::repeat_n(width, pieces).chain(other).collect::<Vec<_>>();
            for tuning in Tuning::all() {
                check(&lengths, rows, ahead, tuning, false, cut);
            }
        }
    }

    #[test]
    fn every_length_at_every_offset_from_a_line() {
        for length in 1..=300 {
            for ahead in [0, 1, 7, 16, 31, 33, 63] {
                for tuning in Tuning::all() {
                    check(&[length, 3], 9, ahead, tuning, length % 2 == 0, 5);
                }
            }
        }
    }

    /// Input and outputs at the very end, or the very begin, of memory that may be touched.
    #[cfg(unix)]
    fn check_guarded(memory: &[Guarded], lengths: &[i64], rows: usize, at_end: bool) {
        let request = request(lengths);
        let row: i64 = lengths.iter().sum();
        let shape = [i64::try_from(rows).unwrap(), row];
        let plan = Plan::new(&request, DType::Uint8, &shape, false).unwrap();
        let row = usize::try_from(row).unwrap();
        let (source, outputs) = memory.split_first().unwrap();
        let source = source.place(rows * row, at_end);
        // SAFETY: that many bytes are there.
        let input = unsafe { std::slice::from_raw_parts(source, rows * row) };
        let size = |piece: &Piece| rows * usize::try_from(piece.len).unwrap();
        let places: Vec<*mut u8> =
            plan.pieces().zip(outputs).map(|(p, memory)| memory.place(size(&p), at_end)).collect();
        let targets = Targets::new(places.iter().copied());
        for tuning in Tuning::all() {
            // SAFETY: input and outputs are as long as the plan says.
            unsafe {
                for (piece, place) in plan.pieces().zip(&places) {
                    place.write_bytes(UNTOUCHED, size(&piece));
                }
                Rows::new(&plan, source, tuning).copy_all(&plan, &targets, 0..rows);
            }
            for (piece, place) in plan.pieces().zip(&places) {
                // SAFETY: as above.
                let copied = unsafe { std::slice::from_raw_parts(*place, size(&piece)) };
                let begin = usize::try_from(piece.offset).unwrap();
                let run = begin..begin + usize::try_from(piece.len).unwrap();
                let expected: Vec<u8> =
                    input.chunks(row).flat_map(|row| &row[run.clone()]).copied().collect();
                assert!(copied == expected, "{lengths:?}, {rows} rows, piece {}", piece.index);
            }
        }
    }

    #[cfg(unix)]
    #[test]
    fn nothing_is_touched_before_or_after_input_and_outputs() {
        let memory: Vec<_> = (0..20).map(|_| Guarded::filled(704 << 10)).collect();
        for width in [1, 2, 3, 4, 5, 8, 9, 12, 16, 20, 36, 45, 133] {
            for pieces in 1..=18 {
                for others in [&[][..], &[3], &[300]] {
                    let mut lengths = vec![width; pieces];
                    lengths.extend(others);
                    for rows in [70, 257] {
                        check_guarded(&memory, &lengths, rows, true);
                        lengths.rotate_right(1);
                        check_guarded(&memory, &lengths, rows, false);
                    }
                }
            }
        }
    }
}
