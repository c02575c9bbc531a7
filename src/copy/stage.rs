//! What is not whole lines yet on its way past the caches: a buffer that any kernel fills, and of which whole lines are
//! sent. What is left of a line waits for what follows in the target, from one row to the next.

use super::level::Kernels;
use super::program::MAX_OUTPUTS;
use super::runs::Runs;
use super::tile::Block;
use super::vector::{LANE_BYTES, LINE_BYTES};
use crate::math::div;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

/// Bytes that are put together before they are sent.
pub(super) const STAGE_BYTES: usize = 384;

/// Room for them, for what is held back, and for what kernels write beyond.
#[repr(C, align(64))]
struct Buffer([MaybeUninit<u8>; STAGE_BYTES + 2 * LINE_BYTES]);

/// One for each piece that is made together with others.
pub(super) type Stages = [Stage; MAX_OUTPUTS];

/// A buffer for a part of a target.
pub(super) struct Stage {
    buffer: Buffer,
    /// What the buffer's begin stands for, where a line begins.
    line: *mut u8,
    /// Of the buffer, where what it holds begins, and ends.
    begin: usize,
    end: usize,
}

impl Stage {
    const NONE: Self = Self {
        buffer: Buffer([const { MaybeUninit::uninit() }; STAGE_BYTES + 2 * LINE_BYTES]),
        line: null_mut(),
        begin: 0,
        end: 0,
    };
    pub(super) const NONE_YET: Stages = [const { Self::NONE }; MAX_OUTPUTS];

    fn memory(&mut self) -> *mut u8 {
        self.buffer.0.as_mut_ptr().cast()
    }

    /// Goes on at a target: what is held for another place goes there first.
    ///
    /// # Safety
    /// What has been pushed must still be writable.
    pub(super) unsafe fn go_to(&mut self, target: *mut u8, kernels: &Kernels) {
        if self.line.wrapping_add(self.end) != target {
            // SAFETY: the caller's promise.
            unsafe { self.finish(kernels) };
            self.begin = target as usize % LINE_BYTES;
            self.end = self.begin;
            self.line = target.wrapping_sub(self.begin);
        }
    }

    /// Where the next bytes are to be put, [`STAGE_BYTES`] at the most.
    pub(super) fn room(&mut self) -> *mut u8 {
        let end = self.end;
        self.memory().wrapping_add(end)
    }

    /// Takes what has been put there, and sends the lines that are whole.
    ///
    /// # Safety
    /// So many bytes must be writable behind what has been pushed. A fence must follow.
    pub(super) unsafe fn push(&mut self, bytes: usize, next: *const u8, kernels: &Kernels) {
        self.end += bytes;
        // SAFETY: within the buffer; the caller's promise.
        let whole =
            unsafe { send(self.memory(), self.line, (self.begin, self.end), next, kernels) };
        if whole > 0 {
            self.line = self.line.wrapping_add(whole);
            (self.begin, self.end) = (0, self.end - whole);
        }
    }

    /// Stores what is held back.
    ///
    /// # Safety
    /// What has been pushed must still be writable.
    pub(super) unsafe fn finish(&mut self, kernels: &Kernels) {
        let (memory, begin, end) = (self.memory(), self.begin, self.end);
        // SAFETY: within the buffer; the caller's promise.
        unsafe {
            (kernels.copy)(memory.wrapping_add(begin), self.line.wrapping_add(begin), end - begin);
        };
        self.begin = end;
    }
}

/// Sends the whole lines of a buffer, which has what is for `line` and behind it from a begin to an end, and moves what is
/// left to its front. Returns how much was sent, and what was before the begin.
unsafe fn send(
    memory: *mut u8,
    line: *mut u8,
    (begin, end): (usize, usize),
    next: *const u8,
    kernels: &Kernels,
) -> usize {
    let whole = end / LINE_BYTES * LINE_BYTES;
    if whole == 0 {
        return 0;
    }
    let at = if begin > 0 { LINE_BYTES } else { 0 };
    // SAFETY: the caller's promise.
    unsafe {
        (kernels.copy)(memory.wrapping_add(begin), line.wrapping_add(begin), at.max(begin) - begin);
        let (source, target) = (memory.wrapping_add(at), line.wrapping_add(at));
        (kernels.stream)(&Runs::one(source, target, whole - at), next);
        (kernels.copy)(memory.wrapping_add(whole), memory, end - whole);
    }
    whole
}

/// Bytes that columns share while they are transposed.
const COLUMNS_BYTES: usize = 36 * LINE_BYTES;
#[repr(C, align(64))]
struct ColumnsBuffer([MaybeUninit<u8>; COLUMNS_BYTES]);

/// Transposes a block to targets that do not begin lines: a lane of columns at a time, each of which holds back what does
/// not fill a line yet. `through` transposes through the caches.
///
/// # Safety
/// As the kernel's. A fence must follow.
#[inline(never)] // for its stack
pub(super) unsafe fn transpose(
    block: &Block<'_>,
    through: unsafe fn(&Block<'_>) -> usize,
    kernels: &Kernels,
) {
    let mut buffer = ColumnsBuffer([const { MaybeUninit::uninit() }; COLUMNS_BYTES]);
    let (buffer, unit) = (buffer.0.as_mut_ptr().cast::<u8>(), block.tile.unit);
    let (columns, bytes) = (block.tile.columns(), kernels.register.bytes);
    let each = div(COLUMNS_BYTES, columns);
    let step = div(div(each - LINE_BYTES, bytes) * bytes, unit);
    for (number, targets) in (0..).zip(block.targets.chunks(columns.max(1))) {
        let source = block.source.wrapping_add(number * columns * unit);
        let block = Block { source, targets, ..*block };
        let mut held = [0; LANE_BYTES];
        for (held, target) in held.iter_mut().zip(targets) {
            *held = (*target as usize + block.at) % LINE_BYTES;
        }
        let mut done = 0;
        while done < block.rows {
            let rows = step.min(block.rows - done);
            let mut stages = [null_mut(); LANE_BYTES];
            for (number, (slot, held)) in stages.iter_mut().zip(held).enumerate() {
                *slot = buffer.wrapping_add(number * each + held);
            }
            let next = block.row(done + rows);
            let some = block.first(done + rows).without(done);
            let stages = stages.get(..targets.len()).unwrap_or_default();
            // SAFETY: the buffer has room for as many rows behind what is held; the caller's promise.
            unsafe {
                through(&Block { targets: stages, at: 0, ..some });
                (kernels.ask)(next, rows, block.from, 1);
                for (number, (held, target)) in held.iter_mut().zip(targets).enumerate() {
                    let memory = buffer.wrapping_add(number * each);
                    let line = target.wrapping_add(block.at + done * unit).wrapping_sub(*held);
                    // Of the first line others may have the begin.
                    let begin = if done == 0 { *held } else { 0 };
                    let end = *held + rows * unit;
                    let whole = send(memory, line, (begin, end), memory, kernels);
                    *held = end - whole;
                    if done + rows == block.rows {
                        // No more than this block has written.
                        let begin = *held - (*held).min(block.rows * unit);
                        let target = line.wrapping_add(whole + begin);
                        (kernels.copy)(memory.wrapping_add(begin), target, *held - begin);
                    }
                }
            }
            done += rows;
        }
    }
}
