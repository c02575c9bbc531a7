//! What is not whole lines yet on its way past the caches: a buffer that any kernel fills, and of which whole lines are
//! sent. What is left of a line waits for what follows in the target, from one row to the next.

use super::level::Kernels;
use super::runs::Runs;
use super::tile::Block;
use super::vector::{LANE_BYTES, LINE_BYTES};
use crate::math::div;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

/// Bytes that all stages share, and the most stages: a lane of columns.
const STAGES_BYTES: usize = 40 * LINE_BYTES;
const MAX_STAGES: usize = LANE_BYTES;

#[repr(C, align(64))]
struct Buffer([MaybeUninit<u8>; STAGES_BYTES]);

/// What a stage holds back: its bytes from `begin` to `end`, of which the first stands for what is at `line`, a line's begin.
#[derive(Clone, Copy)]
struct Held {
    line: *mut u8,
    begin: usize,
    end: usize,
}

/// A stage for each target that is written at a time.
pub(super) struct Stages {
    buffer: Buffer,
    stage_bytes: usize,
    held: [Held; MAX_STAGES],
}

impl Stages {
    pub(super) const NONE: Self = Self {
        buffer: Buffer([const { MaybeUninit::uninit() }; STAGES_BYTES]),
        stage_bytes: 0,
        held: [Held { line: null_mut(), begin: 0, end: 0 }; MAX_STAGES],
    };

    /// Shares the buffer among so many targets. Returns how many bytes of each are put there at a time, less a line that
    /// kernels may write beyond them.
    ///
    /// # Safety
    /// What has been pushed must still be writable.
    pub(super) unsafe fn divide(&mut self, count: usize, kernels: &Kernels) -> usize {
        let stage_bytes = div(STAGES_BYTES, count) / LINE_BYTES * LINE_BYTES;
        if stage_bytes != self.stage_bytes {
            // SAFETY: the caller's promise.
            unsafe { self.finish(kernels) };
            self.stage_bytes = stage_bytes;
        }
        stage_bytes - 2 * LINE_BYTES
    }

    fn memory(&mut self, number: usize) -> *mut u8 {
        self.buffer.0.as_mut_ptr().cast::<u8>().wrapping_add(number * self.stage_bytes)
    }

    /// Returns where the next bytes of a target are to be put. What is held for another place goes there first.
    ///
    /// # Safety
    /// What has been pushed must still be writable.
    pub(super) unsafe fn room(
        &mut self,
        number: usize,
        target: *mut u8,
        kernels: &Kernels,
    ) -> *mut u8 {
        let memory = self.memory(number);
        let Some(held) = self.held.get_mut(number) else { return target };
        if held.line.wrapping_add(held.end) != target {
            // SAFETY: the caller's promise.
            unsafe { held.finish(memory, kernels) };
            let begin = target as usize % LINE_BYTES;
            *held = Held { line: target.wrapping_sub(begin), begin, end: begin };
        }
        memory.wrapping_add(held.end)
    }

    /// Takes what has been put there, sends the lines that are whole, and moves what is left to the front.
    ///
    /// # Safety
    /// So many bytes must be writable behind what has been pushed. A fence must follow.
    pub(super) unsafe fn push(
        &mut self,
        number: usize,
        bytes: usize,
        next: *const u8,
        kernels: &Kernels,
    ) {
        let memory = self.memory(number);
        let Some(held) = self.held.get_mut(number) else { return };
        let &mut Held { line, begin, end } = held;
        let end = end + bytes;
        let whole = end / LINE_BYTES * LINE_BYTES;
        if whole == 0 {
            held.end = end;
            return;
        }
        // Of the first line others may have the begin.
        let at = begin.next_multiple_of(LINE_BYTES);
        // SAFETY: within the buffer; the caller's promise.
        unsafe {
            (kernels.copy)(memory.wrapping_add(begin), line.wrapping_add(begin), at - begin);
            let (source, target) = (memory.wrapping_add(at), line.wrapping_add(at));
            (kernels.stream_runs)(&Runs::one(source, target, whole - at), next);
            (kernels.copy)(memory.wrapping_add(whole), memory, end - whole);
        }
        *held = Held { line: line.wrapping_add(whole), begin: 0, end: end - whole };
    }

    /// Stores what is held back.
    ///
    /// # Safety
    /// What has been pushed must still be writable.
    pub(super) unsafe fn finish(&mut self, kernels: &Kernels) {
        if self.stage_bytes == 0 {
            return; // nothing has been put there
        }
        for number in 0..MAX_STAGES {
            let memory = self.memory(number);
            if let Some(held) = self.held.get_mut(number) {
                // SAFETY: the caller's promise.
                unsafe { held.finish(memory, kernels) };
            }
        }
    }

    /// Transposes a block, a lane of columns at a time. `through` transposes through the caches.
    ///
    /// # Safety
    /// As the kernel's. A fence must follow.
    pub(super) unsafe fn transpose(
        &mut self,
        block: &Block<'_>,
        through: unsafe fn(&Block<'_>) -> usize,
        kernels: &Kernels,
    ) {
        let (unit, columns) = (block.tile.unit, block.tile.columns());
        // SAFETY: the caller's promise. No register is written beyond the rows, so there is room for a line more.
        let room = unsafe { self.divide(columns, kernels) } + LINE_BYTES;
        let bytes = kernels.register.bytes;
        let step = div(div(room, bytes) * bytes, unit);
        for (number, targets) in (0..).zip(block.targets.chunks(columns.max(1))) {
            let source = block.source.wrapping_add(number * columns * unit);
            let block = Block { source, targets, ..*block };
            let mut done = 0;
            while done < block.rows {
                let rows = step.min(block.rows - done);
                let mut stages = [null_mut(); MAX_STAGES];
                let next = block.row(done + rows);
                // SAFETY: the caller's promise.
                unsafe {
                    for (number, (slot, target)) in stages.iter_mut().zip(targets).enumerate() {
                        let target = target.wrapping_add(block.at + done * unit);
                        *slot = self.room(number, target, kernels);
                    }
                    let targets = stages.get(..targets.len()).unwrap_or_default();
                    let some = block.take(done + rows).skip(done);
                    through(&Block { targets, at: 0, ..some });
                    (kernels.prefetch)(next, rows, block.from, 1);
                    for number in 0..targets.len() {
                        self.push(number, rows * unit, next, kernels);
                    }
                }
                done += rows;
            }
        }
    }
}

impl Held {
    /// Stores what is held, once.
    ///
    /// # Safety
    /// What has been pushed must still be writable.
    unsafe fn finish(&mut self, memory: *const u8, kernels: &Kernels) {
        let Self { line, begin, end } = *self;
        // SAFETY: within the buffer; the caller's promise.
        unsafe {
            (kernels.copy)(memory.wrapping_add(begin), line.wrapping_add(begin), end - begin);
        };
        self.begin = end;
    }
}
