//! What is decided once per call, and how runs are then moved, through the caches or past them.

use super::machine::{Machine, LEAST_PAST_BYTES, LEAST_STREAMED_BYTES};
use super::parallel::{Executor, Streaming};
use super::runs::Runs;
use super::stage::Stages;
use super::vector::LINE_BYTES;
use crate::math::{div, div_ceil, isize_of};
use crate::parts::Transfer;
use crate::shape::{self, usize_of};

/// No system has smaller pages, so what lies between elements that are closer together than this is readable.
pub(super) const PAGE_BYTES: usize = 4096;

/// What all kernel calls of a copy have in common.
#[derive(Clone, Copy)]
pub(super) struct Call {
    pub machine: Machine,
    /// Whether outputs are written past the caches.
    pub past: bool,
    /// The end of the input. All of it may be read, unless there are pages between its elements.
    pub readable_end: *const u8,
    pub has_holes: bool,
}

impl Call {
    pub(super) fn new(
        machine: Machine,
        transfer: &Transfer<'_>,
        executor: Option<&dyn Executor>,
    ) -> Self {
        let geometry = &transfer.geometry;
        let bits = i64::from(geometry.dtype.bits());
        let strides = transfer.strides.map(|strides| {
            let reach = shape::reach(geometry.shape.iter().copied().zip(strides.iter().copied()));
            reach.map_or(1, |(_, high)| high + 1)
        });
        let last =
            (strides.unwrap_or(geometry.elements) * bits + i64::from(transfer.bit_offset) + 7) >> 3;
        let readable_end = transfer.source.wrapping_offset(last as isize);
        let past = is_past(&machine, transfer, executor);
        Self { machine, past, readable_end, has_holes: has_holes(transfer) }
    }

    /// Returns the end of what may be read for `rows` rows of `bytes` bytes each, `from` bytes apart. Where pages may
    /// lie between rows, it is null: nothing but the rows themselves may be read.
    pub(super) fn readable_end(
        &self,
        source: *const u8,
        rows: usize,
        from: isize,
        bytes: usize,
    ) -> *const u8 {
        if !self.has_holes {
            return self.readable_end;
        }
        if self.is_far(from) {
            return core::ptr::null();
        }
        let last = from.max(0).wrapping_mul(rows.cast_signed() - 1);
        source.wrapping_offset(last).wrapping_add(bytes)
    }

    /// Returns whether there may be a page between two places that are `step` bytes apart.
    pub(super) fn is_far(&self, step: isize) -> bool {
        self.has_holes && step.unsigned_abs() >= PAGE_BYTES
    }

    /// Copies runs at equal distances.
    ///
    /// # Safety
    /// The runs must be readable and writable, and the source readable up to `readable_end`.
    #[inline]
    pub(super) unsafe fn copy_runs(&self, runs: &Runs, stages: &mut Stages, next: *const u8) {
        // SAFETY: the caller's promise.
        unsafe {
            if self.past {
                self.send_runs(runs, stages, next);
            } else {
                (self.machine.kernels.copy_runs)(runs);
            }
        }
    }

    /// Copies runs past the caches, where that is worth it.
    #[inline(never)]
    unsafe fn send_runs(&self, runs: &Runs, stages: &mut Stages, next: *const u8) {
        let &Runs { run, count, outer, .. } = runs;
        let kernels = self.machine.kernels;
        // SAFETY: the caller's promise.
        unsafe {
            let places = runs.target as usize | runs.to.unsigned_abs() | outer.to.unsigned_abs();
            let are_lines = (run | places).is_multiple_of(LINE_BYTES);
            let is_streamed = run >= LEAST_STREAMED_BYTES || are_lines;
            if !is_streamed && runs.to != run.cast_signed() {
                return (kernels.copy_runs)(runs);
            }
            let room = if is_streamed { 0 } else { stages.divide(1, kernels) };
            // Steps that are short and continue each other share a stage.
            let is_joined = outer.extent > 1 && outer.to == (run * count).cast_signed();
            let together = if is_joined { div(room, run * count).max(1) } else { 1 };
            let most = if together > 1 { count } else { div(room, run).max(1) };
            let mut done = 0;
            while done < outer.extent {
                let some = runs.steps(done, together.min(outer.extent - done));
                done += together;
                let next = if done < outer.extent { runs.steps(done, 1).source } else { next };
                if is_streamed {
                    (kernels.stream_runs)(&some, next);
                } else {
                    self.stage_runs(&some, most, stages, next);
                }
            }
        }
    }

    /// Copies runs that follow each other in the target by way of a stage, at most so many of each step at a time.
    unsafe fn stage_runs(&self, runs: &Runs, most: usize, stages: &mut Stages, next: *const u8) {
        let (mut done, mut next, kernels) = (0, next, self.machine.kernels);
        while done < runs.count {
            let count = most.min(runs.count - done);
            let bytes = runs.run * count * runs.outer.extent;
            // SAFETY: the caller's promise.
            unsafe {
                let part = runs.skip(done);
                let target = stages.room(0, part.target, kernels);
                (kernels.copy_runs)(&Runs { target, count, ..part });
                stages.push(0, bytes, next, kernels);
            }
            next = next.wrapping_add(bytes);
            done += count;
        }
    }

    /// Fences the stores past the caches; must follow the last one.
    pub(super) fn finish(&self) {
        if self.past {
            (self.machine.kernels.fence)();
        }
    }
}

/// Returns how many units come before the first that begins a line, if they lie side by side from an address on; `None`
/// if no unit does. Modulo a line, the odd part of a unit's bytes has an inverse.
pub(super) fn units_to_line(address: usize, unit: usize) -> Option<usize> {
    let (over, twos) = (address.wrapping_neg() % LINE_BYTES, unit.trailing_zeros().min(6));
    let odd = unit >> twos;
    let inverse = (0..2).fold(odd, |inverse, _| {
        inverse.wrapping_mul(2usize.wrapping_sub(odd.wrapping_mul(inverse)))
    });
    let units = (over >> twos).wrapping_mul(inverse) % (LINE_BYTES >> twos);
    over.is_multiple_of(1 << twos).then_some(units)
}

/// Returns whether there may be pages between elements of the input. There are none if, in order of stride, each axis
/// begins less than a page behind what the smaller ones reach.
fn has_holes(transfer: &Transfer<'_>) -> bool {
    let geometry = &transfer.geometry;
    let Some(strides) = transfer.strides else { return false };
    let size = usize_of(i64::from(geometry.dtype.bits())).div_ceil(8);
    let (mut reach, mut last) = (size, 0);
    loop {
        let steps = geometry.shape.iter().zip(strides).filter(|(extent, _)| **extent > 1);
        let steps =
            steps.map(|(extent, stride)| (isize_of(*stride).unsigned_abs(), usize_of(*extent)));
        let Some(next) = steps.clone().map(|(step, _)| step).filter(|step| *step > last).min()
        else {
            return false;
        };
        if next.saturating_mul(size) >= reach.saturating_add(PAGE_BYTES) {
            return true;
        }
        for (_, extent) in steps.filter(|(step, _)| *step == next) {
            reach = reach.saturating_add(next.saturating_mul(size).saturating_mul(extent - 1));
        }
        last = next;
    }
}

/// Returns whether a copy goes past the caches: it does if they cannot hold both what is read and what is written.
fn is_past(machine: &Machine, transfer: &Transfer<'_>, executor: Option<&dyn Executor>) -> bool {
    let cached = match executor.map_or(Streaming::Auto, Executor::streaming) {
        Streaming::Auto => machine.cached_bytes,
        Streaming::OutputsReadNext => machine.cached_bytes.saturating_mul(2),
        Streaming::Never => return false,
    };
    let moved = transfer.bytes.saturating_add(bytes_read(transfer));
    moved > machine.threshold(cached) && transfer.bytes > machine.threshold(LEAST_PAST_BYTES)
}

/// Returns the bytes of input that are fetched: repeated ones count once, and elements that are apart cost whole lines.
fn bytes_read(transfer: &Transfer<'_>) -> usize {
    let geometry = &transfer.geometry;
    let Some(strides) = transfer.strides else { return transfer.bytes };
    let steps = geometry.shape.iter().zip(strides).filter(|(extent, _)| **extent > 1);
    let repeated = steps.clone().filter(|(_, stride)| **stride == 0);
    let once = repeated.fold(transfer.bytes, |bytes, (extent, _)| div(bytes, usize_of(*extent)));
    let apart = steps
        .map(|(_, stride)| stride.saturating_abs())
        .filter(|step| *step > 0)
        .min()
        .unwrap_or(1);
    let elements_of_line = div_ceil(LINE_BYTES * 8, geometry.dtype.bits() as usize);
    once.saturating_mul(usize_of(apart).min(elements_of_line))
}
