//! Rows that are made of a run of each of few streams: what the pieces of a packed tensor make that are columns of
//! one matrix, or blocks of them.

use super::few_rows::SMALL_ROWS;
use super::kernel::combine::{Scratch, LINE};
use super::kernel::interleave::{Interleave, MAX_INTERLEAVED};
use super::kernel::strided::{Axis, Place};
use super::kernel::{Kernels, NonTemporal, Strands};
use super::runs::LONG;
use super::strided::{Layout, FEW_AXES};
use super::tuning::{self, Tuning};
use crate::math::{self, div, signed, wrapped};
use crate::parts::{self, Part, Parts, Transfer, FEW_PARTS};
use crate::stacked::Stacked;
use core::ptr::{null_mut, without_provenance_mut};

/// Bytes on the way past the caches.
const ROOM: usize = 4 << 10;

/// Streams, the bytes that each has of a row, and how many rows there are.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Woven {
    /// 0 = it is not so.
    unit: usize,
    streams: usize,
    rows: usize,
    /// Bytes from a stream to the next.
    apart: isize,
}

impl Woven {
    /// Those of a row of units that make a run, and a column of such rows, one behind the other.
    pub(super) fn of(unit: usize, row: Axis, column: Axis) -> Option<Self> {
        let Axis { extent: streams, from: apart, to } = row;
        let all = signed(streams * unit);
        let is_woven = (2..=MAX_INTERLEAVED).contains(&streams)
            && (to, column.from, column.to) == (signed(unit), signed(unit), all);
        is_woven.then_some(Self { unit, streams, rows: column.extent, apart })
    }

    /// Those of a checked transfer of one piece, if they are all of it.
    #[inline(never)] // for its stack
    pub(super) fn new(transfer: &Transfer<'_>) -> Option<Self> {
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

    /// Those of a checked transfer to NULL, if its outputs are such where each begins behind what the one before
    /// has together; and how many bytes that is.
    #[inline(never)] // for its stack
    pub(crate) fn planned(transfer: &Transfer<'_>) -> Option<(Self, usize)> {
        let &Transfer { ref geometry, ref parts, bytes, .. } = transfer;
        let mut room = parts::ROOM;
        let listed = parts.iter().list(&mut room);
        let [first, ..] = listed else { return None };
        if bytes > SMALL_ROWS || listed.len() != parts.count() || geometry.dtype.is_sub_byte() {
            return None;
        }
        let strides = transfer.output_strides.get(first.index)?;
        let mut step = 1;
        for (extent, stride) in geometry.output_shape(first.len).zip(strides).rev() {
            if *stride == step {
                step *= extent;
            }
        }
        let step = crate::shape::usize_of(step) * (geometry.dtype.bits() / 8) as usize;
        let mut parts = [Part { index: 0, offset: 0, len: 0, target: null_mut() }; FEW_PARTS];
        for (at, (slot, part)) in parts.iter_mut().zip(listed).enumerate() {
            *slot = Part { target: without_provenance_mut(LINE + at * step), ..*part };
        }
        let parts = Parts::Listed(parts.get(..listed.len())?);
        let (beside, mut one) = (Transfer { parts, ..*transfer }, Stacked::NONE);
        one.stack(&beside)?;
        Some((Self::new(&one.transfer(&beside))?, step))
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
            if self.is_short(kernels) {
                rows.run(kernels, None);
                return true;
            }
            let Some(runs) = kernels.strands else { return false };
            runs(&rows, 0);
        }
        true
    }

    /// Whether units are interleaved by shuffles.
    fn is_short(&self, kernels: &Kernels) -> bool {
        let &Self { unit, streams, .. } = self;
        Kernels::transposes(unit) && (kernels.interleave)(streams, unit).is_some()
    }

    /// Whether there is a loop for runs of so many bytes.
    pub(super) fn are_runs(&self, tuning: Tuning) -> bool {
        tuning.kernels.strands.is_some() && self.unit < LONG && !self.is_short(tuning.kernels)
    }

    /// Copies runs, past the caches or not. Does not wait for stores past the caches.
    ///
    /// # Safety
    /// As [`Woven::copy`].
    pub(super) unsafe fn copy_runs(&self, place: Place, tuning: Tuning) {
        let Some(runs) = tuning.kernels.strands else { return };
        let rows = self.all(place);
        // SAFETY: the caller's promise.
        unsafe {
            match tuning.turned {
                Some(past) => send(&rows, runs, past, tuning.prefetch),
                None => runs(&rows, 0),
            }
        }
    }
}

/// Copies runs past the caches, some rows at a time.
///
/// # Safety
/// As [`Woven::copy`].
#[inline(never)] // which takes much of the stack
unsafe fn send(rows: &Interleave, runs: Strands, past: &NonTemporal, ahead: usize) {
    let &Interleave { source, apart, len, unit, count, target } = rows;
    let mut scratch = Scratch::<ROOM>::NEW;
    let mut lines = scratch.alone(target);
    let turn = div(lines.takes(), len * unit).max(1);
    for part in math::parts(0..count, turn) {
        let source = source.wrapping_add(part.start * unit);
        for at in 0..len {
            (past.prefetch)(
                source.wrapping_add(at.wrapping_mul(apart)).wrapping_add(ahead),
                part.len() * unit,
            );
        }
        let some = Interleave { source, count: part.len(), target: lines.room(), ..*rows };
        // SAFETY: the caller's promise; the buffer has room for as many rows and a line.
        unsafe {
            runs(&some, count - part.end);
            lines.filled(past, part.len() * len * unit);
        }
    }
    // SAFETY: as above.
    unsafe { lines.finish() };
}
