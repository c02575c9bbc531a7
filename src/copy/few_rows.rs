//! Few rows of a packed input, copied into packed outputs piece by piece and run by run: small copies, and
//! larger ones of many pieces that have few short runs each.

#![allow(clippy::inline_always)] // on the way of every call

use super::kernel::{CopyBytes, Gather, Kernels};
use super::tuning;
use crate::parts::{Part, Transfer};
use crate::plan::Geometry;
use crate::shape::usize_of;

/// Fewer bytes than this are neither for threads nor for going past the caches.
const SMALL: usize = 128 << 10;
/// From this many rows on, blocks of them are deinterleaved to all pieces.
pub(super) const MANY_ROWS: usize = 64;

/// Whether a copy of packed tensors is so small that runs one after another are the quickest.
#[inline(always)]
pub(crate) fn is_small(geometry: &Geometry<'_>, bytes: usize) -> bool {
    bytes <= SMALL && usize_of(geometry.outer) < MANY_ROWS && !geometry.dtype.is_sub_byte()
}

/// Whether so many pieces of one row are short, all of them within the caches: then nothing else is to be asked.
/// Zen 5, ns a piece before and after: 10,000 of 16 bytes 9.7, 4.0; of 64 bytes 10.1, 4.2.
#[inline(always)]
pub(crate) fn are_short(geometry: &Geometry<'_>, count: usize, bytes: usize) -> bool {
    let is_one = geometry.outer == 1 && !geometry.dtype.is_sub_byte();
    is_one && bytes < tuning::LEAST_PAST && bytes <= count.saturating_mul(SHORT)
}

/// Few rows of a packed input, which are copied into packed outputs run by run.
pub(crate) struct FewRows {
    copy: CopyBytes,
    /// Bytes of one step on the split axis, and of a row.
    step: usize,
    row: usize,
    count: i64,
}

/// Loops for several rows, if there are such.
#[derive(Clone, Copy)]
pub(crate) struct Loops(Option<&'static Kernels>);

impl FewRows {
    #[inline(always)]
    pub(crate) fn new(geometry: &Geometry<'_>, bytes: usize) -> Self {
        let step = usize_of(geometry.inner) * (geometry.dtype.bits() / 8) as usize;
        let row = usize_of(geometry.extent) * step;
        Self { copy: tuning::contiguous(bytes), step, row, count: geometry.outer }
    }

    /// Bytes that a piece has of a row.
    #[inline(always)]
    pub(crate) fn run(&self, len: i64) -> usize {
        usize_of(len) * self.step
    }

    #[inline(always)]
    pub(crate) fn is_one(&self) -> bool {
        self.count == 1
    }

    /// Copies a run of one row.
    ///
    /// # Safety
    /// As [`super::run`].
    #[inline(always)]
    pub(crate) unsafe fn copy_run(&self, source: *const u8, target: *mut u8, run: usize) {
        // SAFETY: the caller's promise.
        unsafe { (self.copy)(source, target, run) }
    }

    /// Those for several rows, asked for once a call.
    #[inline(always)]
    pub(crate) fn loops(&self) -> Loops {
        let bytes = || self.row * usize_of(self.count);
        Loops((self.count >= SEVERAL_ROWS).then(|| tuning::kernels(bytes())))
    }

    /// Copies a run of each row by its loops.
    ///
    /// # Safety
    /// As [`super::run`]; there must be a row.
    #[inline(always)]
    pub(crate) unsafe fn copy(&self, loops: Loops, source: *const u8, target: *mut u8, run: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            match loops.0 {
                Some(kernels) => self.copy_several(kernels, source, target, run),
                None => self.copy_each(source, target, run),
            }
        }
    }

    /// # Safety
    /// As [`FewRows::copy`].
    #[inline(always)]
    unsafe fn copy_each(&self, mut source: *const u8, mut target: *mut u8, run: usize) {
        let mut left = self.count;
        loop {
            // SAFETY: the caller's promise.
            unsafe { (self.copy)(source, target, run) };
            left -= 1;
            if left <= 0 {
                return;
            }
            source = source.wrapping_add(self.row);
            target = target.wrapping_add(run);
        }
    }

    /// # Safety
    /// As [`FewRows::copy`].
    #[inline(never)]
    unsafe fn copy_several(
        &self,
        kernels: &Kernels,
        source: *const u8,
        target: *mut u8,
        run: usize,
    ) {
        let &Self { row, count, .. } = self;
        // SAFETY: the caller's promise.
        unsafe {
            if run == row {
                // The only piece: its runs continue each other.
                (self.copy)(source, target, run * usize_of(count));
            } else if (1..=SHORT).contains(&run) {
                let gather = kernels.gather(run);
                gather(Gather { source, step: row, target, count: usize_of(count), unit: run });
            } else {
                self.copy_each(source, target, run);
            }
        }
    }
}

/// As many runs of so few bytes are worth the way to a loop for them. Zen 5, ns before and after: 63 rows of 4
/// and 4 bytes 279, 62; 16 of 64 and 64 100, 52; 8 of 40 and 100 57, 56; 3 of 16, 20 and 9 50, 56.
const SEVERAL_ROWS: i64 = 4;
const SHORT: usize = 128;

/// Copies each part by itself, run by run.
///
/// # Safety
/// As [`super::run`].
#[inline(never)] // off the way of other copies
pub(super) unsafe fn copy_each_part(transfer: &Transfer<'_>) {
    let rows = FewRows::new(&transfer.geometry, transfer.bytes);
    let loops = rows.loops();
    for Part { offset, len, target, .. } in transfer.parts.iter() {
        let source = transfer.source.wrapping_add(rows.run(offset));
        // SAFETY: the caller's promise; there are elements, and so rows.
        unsafe { rows.copy(loops, source, target, rows.run(len)) };
    }
}

/// Whether pieces have few runs each, and short ones: then they are the quickest one after another, as those
/// of small copies. Zen 5, µs before and after: 10,000 pieces of 4 rows of 16 bytes 312, 117, of 16 rows 577,
/// 150; 2,000 of 8 rows of 64 bytes 57, 36; 63 rows of 20 bytes 145, 71, of 4 bytes 43, 44.
pub(super) fn has_short_runs(transfer: &Transfer<'_>) -> bool {
    let rows = usize_of(transfer.geometry.outer);
    let runs = transfer.parts.count().saturating_mul(rows);
    rows < MANY_ROWS && transfer.bytes <= runs.saturating_mul(SHORT)
}
