//! What is not whole lines yet on its way past the caches: a buffer that any kernel fills, and of which whole lines are
//! sent. What is left of a line waits for what follows in the target, from one row to the next.

use super::level::Kernels;
use super::program::MAX_OUTPUTS;
use super::runs::Runs;
use super::vector::LINE_BYTES;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

/// Bytes that are put together before they are sent.
pub(super) const STAGE_BYTES: usize = 512;

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
        let memory = self.memory();
        self.end += bytes;
        let whole = self.end / LINE_BYTES * LINE_BYTES;
        if whole == 0 {
            return;
        }
        // SAFETY: within the buffer; the caller's promise.
        unsafe {
            let mut at = 0;
            if self.begin > 0 {
                at = LINE_BYTES;
                let (source, target) =
                    (memory.wrapping_add(self.begin), self.line.wrapping_add(self.begin));
                (kernels.copy)(source, target, LINE_BYTES - self.begin);
            }
            let (source, target) = (memory.wrapping_add(at), self.line.wrapping_add(at));
            (kernels.stream)(&Runs::one(source, target, whole - at), next);
            (kernels.copy)(memory.wrapping_add(whole), memory, self.end - whole);
        }
        self.line = self.line.wrapping_add(whole);
        (self.begin, self.end) = (0, self.end - whole);
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
