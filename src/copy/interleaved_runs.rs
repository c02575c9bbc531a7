//! Rows that are made of a run of each of few streams: what the pieces of a packed tensor make that are columns of
//! one matrix, or blocks of them.

use super::kernel::combine::Scratch;
use super::kernel::interleave::{are_quick, Interleave, MAX_INTERLEAVED};
use super::kernel::rules::LOW_THRESHOLDS;
use super::kernel::strided::{Axis, Place};
use super::kernel::{CopyInterleaved, Kernels, NonTemporal, LANE};
use super::layout::{Layout, FEW_AXES};
use super::runs::LONG;
use super::small_packed::SMALL_ROWS;
use super::tuning::{self, Tuning};
use crate::math::{self, div, signed, wrapped};
use crate::parts::{Part, Transfer};

/// So many streams of whole lanes are copied as runs through the caches. Zen 4, GB/s of 8 KB by permutes and so: five 16,
/// 27, six 36, 44, eight 35, 47; but three 47, 44, past the caches eight 26, 22.
const LEAST_STREAMS: usize = 5;
/// More bytes of six and eight, for which there are loops, go by permutes: 6 × 16 400 KB 1.04 times as quick, 3 MB 1.47.
const MOST_LANES: usize = if LOW_THRESHOLDS { 1 << 10 } else { 256 << 10 };
/// Units of more than 2 bytes are copied as runs where rows of a small copy are fewer than this for each byte.
/// Zen 4, ns by permutes and so: 16 of 5 × 4 185, 59, 12 of 4 × 8 95, 41, 64 of 9 × 8 328, 157; but 64 of 8 × 4 135, 166.
const FEW_ROWS: usize = 12;
/// Shorter runs go through the caches: their many stores wait for those past the caches. Zen 4, GB/s of 18 MiB of three
/// runs past the caches and through them: 6 bytes 7, 8, 12 bytes 13, 11, 24 15, 12, 100 18, 14.
const LEAST_SENT: usize = 9;
/// Longer rows go past the caches stream by stream. Zen 4, us of 24 MiB stream by stream and so: eight of 100 bytes 3,420,
/// 1,870, of 256 1,200, 1,300, of 512 1,120, 1,450; five of 100 3,520, 1,650, of 400 1,410, 1,090.
const MOST_SENT: usize = 2 << 10;
/// Bytes on the way past the caches.
const ROOM: usize = 4 << 10;

/// Streams, the bytes that each has of a row, and how many rows there are.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct InterleavedRuns {
    /// 0 = it is not so.
    unit: usize,
    streams: usize,
    rows: usize,
    /// Bytes from a stream to the next.
    apart: isize,
}

impl InterleavedRuns {
    /// Those of a row of units that make a run, and a column of such rows, one behind the other.
    pub(super) fn of(unit: usize, row: Axis, column: Axis) -> Option<Self> {
        let Axis { extent: streams, from: apart, to } = row;
        let all = signed(streams * unit);
        let is_interleaved = (2..=MAX_INTERLEAVED).contains(&streams)
            && (to, column.from, column.to) == (signed(unit), signed(unit), all);
        is_interleaved.then_some(Self { unit, streams, rows: column.extent, apart })
    }

    /// Copies a transfer of one piece through the caches, if it is small, and all of it such; whether it was.
    ///
    /// # Safety
    /// As [`super::run`].
    pub(super) unsafe fn copy_small(transfer: &Transfer<'_>) -> bool {
        if !cfg!(feature = "avx512") || transfer.bytes > SMALL_ROWS {
            return false;
        }
        let (Some(runs), Some(part)) = (Self::new(transfer), transfer.part(0)) else {
            return false;
        };
        // SAFETY: the caller's promise.
        unsafe { runs.copy(transfer.source, part.target) }
    }

    /// Those of a checked transfer of one piece, if they are all of it.
    #[inline(never)] // for its stack
    fn new(transfer: &Transfer<'_>) -> Option<Self> {
        let part = transfer.part(0)?;
        if transfer.geometry.shape.len() > FEW_AXES {
            return None;
        }
        let mut axes = [Axis::default(); FEW_AXES];
        let layout = Layout::new(transfer, &part, &mut axes);
        match *layout.axes() {
            [column, row] if layout.place == (transfer.source, part.target) => {
                Self::of(layout.unit, row, column)
            }
            _ => None,
        }
    }

    /// Those of a checked transfer to NULL of a packed input, if its outputs are such where each begins as many bytes
    /// behind the one before as it has together: how many, and they are apart.
    #[inline(never)] // for its stack
    pub(crate) fn planned(transfer: &Transfer<'_>) -> Option<Self> {
        let &Transfer { ref geometry, bytes, ref parts, output_strides, .. } = transfer;
        let (streams, first) = (parts.count(), transfer.part(0)?);
        let strides = |part: &Part| output_strides.get(part.index).into_iter().flatten();
        let is_like = |part: Part| part.len == first.len && strides(&part).eq(strides(&first));
        if geometry.outer != 1
            || geometry.shape.len() > FEW_AXES
            || bytes > SMALL_ROWS
            || !parts.iter().all(is_like)
        {
            return None;
        }
        let mut axes = [Axis::default(); FEW_AXES];
        let layout = Layout::new(transfer, &first, &mut axes);
        let unit = layout.unit;
        let [column] = *layout.axes() else { return None };
        let apart = column.from.wrapping_mul(signed(column.extent));
        let row = Axis { extent: streams, from: apart, to: signed(unit) };
        let is_first = layout.place == (transfer.source, first.target);
        Self::of(unit, row, column).filter(|_| is_first)
    }

    /// Bytes of a unit; 0 if it is not so.
    #[inline(always)]
    pub(crate) fn step(&self) -> usize {
        self.unit
    }

    /// Bytes of all rows.
    #[inline(always)]
    pub(crate) fn bytes(&self) -> usize {
        self.unit * self.streams * self.rows
    }

    fn all(&self, (source, target): Place) -> Interleave {
        let &Self { unit, streams: len, rows: count, apart } = self;
        Interleave { source, apart: wrapped(apart), len, unit, count, target }
    }

    /// Copies them through the caches, if there is a loop for that; whether there is.
    ///
    /// # Safety
    /// Streams must be readable and rows writable; they do not overlap.
    #[inline(never)] // off the way of other copies
    pub(crate) unsafe fn copy(&self, source: *const u8, target: *mut u8) -> bool {
        let kernels = tuning::kernels(self.bytes());
        let rows = self.all((source, target));
        // SAFETY: the caller's promise.
        unsafe {
            let are_few = self.unit > 2 && self.rows < FEW_ROWS * self.unit;
            let is_short = self.is_short(kernels, false);
            match kernels.interleave_runs.filter(|_| are_few || !is_short) {
                Some(runs) => runs(&rows, 0),
                None if is_short => rows.run(Axis::ONE, kernels, None),
                None => return false,
            }
        }
        true
    }

    /// Whether units are interleaved by shuffles.
    fn is_short(&self, kernels: &Kernels, past: bool) -> bool {
        let &Self { unit, streams, .. } = self;
        let are_runs = kernels.interleave_runs.is_some()
            && unit == LANE
            && streams >= LEAST_STREAMS
            && !past
            && (self.bytes() <= MOST_LANES || !matches!(streams, 6 | 8));
        // Others are put together in steps: longer units are better off one by one.
        let are_quick = unit <= 2 || are_quick(streams, unit);
        let is_short = Kernels::transposes(unit) && are_quick && !are_runs;
        is_short && (kernels.interleave)(streams, unit).is_some()
    }

    /// Whether there is a loop for runs of so many bytes.
    pub(super) fn are_runs(&self, tuning: Tuning) -> bool {
        let past = tuning.apart.is_some();
        let are_near = if past { self.unit * self.streams < MOST_SENT } else { self.unit < LONG };
        tuning.kernels.interleave_runs.is_some() && are_near && !self.is_short(tuning.kernels, past)
    }

    /// Copies runs, past the caches or not. Does not wait for stores past the caches.
    ///
    /// # Safety
    /// As [`InterleavedRuns::copy`].
    pub(super) unsafe fn copy_runs(&self, place: Place, tuning: Tuning) {
        let Some(runs) = tuning.kernels.interleave_runs else { return };
        let rows = self.all(place);
        // SAFETY: the caller's promise.
        unsafe {
            match tuning.apart.filter(|_| self.unit >= LEAST_SENT) {
                Some(past) => send(&rows, runs, past, tuning.prefetch),
                None => runs(&rows, 0),
            }
        }
    }
}

/// Copies runs past the caches, some rows at a time.
///
/// # Safety
/// As [`InterleavedRuns::copy`].
#[inline(never)] // which takes much of the stack
unsafe fn send(all: &Interleave, copy: CopyInterleaved, past: &NonTemporal, ahead: usize) {
    let &Interleave { source, apart, len, unit, count, target } = all;
    let mut scratch = Scratch::<ROOM>::NEW;
    let mut lines = scratch.alone(target);
    // Some rows at a time, or some runs of one.
    let row = len * unit;
    let (some, most) = match div(lines.takes(), row) {
        0 => (div(lines.takes(), unit), 1),
        rows => (len, rows),
    };
    for rows in math::parts(0..count, most) {
        for streams in math::parts(0..len, some) {
            let source = source.wrapping_add(rows.start * unit);
            let source = source.wrapping_add(apart.wrapping_mul(streams.start));
            let runs = Interleave {
                source,
                len: streams.len(),
                count: rows.len(),
                target: lines.room(),
                ..*all
            };
            for at in 0..runs.len {
                let soon = source.wrapping_add(apart.wrapping_mul(at)).wrapping_add(ahead);
                (past.prefetch)(soon, rows.len() * unit);
            }
            // SAFETY: the caller's promise; the buffer has room for as many and a line.
            unsafe {
                copy(&runs, count - rows.end);
                lines.filled(past, rows.len() * runs.len * unit);
            }
        }
    }
    // SAFETY: as above.
    unsafe { lines.finish() };
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::{signed, Axis, InterleavedRuns, Tuning};

    /// Runs of any length, of streams a gap apart, through the caches and past them, at the very end or the very begin
    /// of memory that may be touched; compared run by run.
    #[test]
    fn runs_of_few_streams() {
        const GAP: usize = 3;
        let [from, to] = [(), ()].map(|()| Guarded::filled(256 << 10));
        let units = (1..=70).chain([95, 96, 128, 191, 192, 255, 700, 1023]);
        for (unit, streams) in units.flat_map(|unit| [2, 3, 5, 16].map(|streams| (unit, streams))) {
            for rows in [1, 2, 7, 12, 40] {
                if streams * rows * unit > 160 << 10 {
                    continue;
                }
                let stream = rows * unit + GAP;
                let (row, all) = (streams * unit, rows * streams * unit);
                let at_end = (unit + rows) % 2 == 0;
                let source = from.place(streams * stream - GAP, at_end);
                let target = to.place(all, at_end);
                let mut expected = Vec::new();
                for at in 0..rows * streams {
                    let (row, number) = (at / streams, at % streams);
                    let run = source.wrapping_add(number * stream + row * unit);
                    // SAFETY: within the source.
                    expected.extend_from_slice(unsafe { std::slice::from_raw_parts(run, unit) });
                }
                let across = Axis { extent: streams, from: signed(stream), to: signed(unit) };
                let column = Axis { extent: rows, from: signed(unit), to: signed(row) };
                let runs = InterleavedRuns::of(unit, across, column).unwrap();
                for tuning in Tuning::all() {
                    // SAFETY: source and target are as large.
                    unsafe {
                        target.write_bytes(0xEE, all);
                        if tuning.kernels.interleave_runs.is_some() {
                            runs.copy_runs((source, target), tuning);
                        } else if !runs.copy(source, target) {
                            continue;
                        }
                        tuning.finish();
                        let copied = std::slice::from_raw_parts(target, all);
                        assert!(copied == expected, "{streams} x {unit} B, {rows} rows");
                    }
                }
            }
        }
    }
}
