//! Stages, for what is not whole lines yet on its way past the caches: any kernel fills them, and whole lines are sent.
//! The rest of a line waits for what follows in the target, from one row to the next.
//!
//! # Safety
//! For everything unsafe here: the targets of what has been pushed must still be writable, and a fence must follow.

use super::level::Kernels;
use super::program::MAX_OUTPUTS;
use super::runs::Runs;
use super::vector::LINE_BYTES;
use crate::math::div;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

/// Bytes of all stages together, and the most stages: one for each target that a program writes.
const STAGES_BYTES: usize = 40 * LINE_BYTES;
const MAX_STAGES: usize = MAX_OUTPUTS;

#[repr(C, align(64))]
struct Buffer([MaybeUninit<u8>; STAGES_BYTES]);

/// What a stage holds back: its bytes from `begin` to `end`. Its first byte belongs at `line`, where a line begins.
#[derive(Clone, Copy)]
struct Held {
    line: *mut u8,
    begin: usize,
    end: usize,
}

/// A stage for each target that is being written.
pub(super) struct Stages {
    buffer: Buffer,
    stage_bytes: usize,
    held: [Held; MAX_STAGES],
}

impl Stages {
    #[inline(always)] // it is too large to return cheaply
    pub(super) fn new() -> Self {
        Self {
            buffer: Buffer([const { MaybeUninit::uninit() }; STAGES_BYTES]),
            stage_bytes: 0,
            held: [Held { line: null_mut(), begin: 0, end: 0 }; MAX_STAGES],
        }
    }

    /// Divides the buffer among `count` targets, at least two: a CPU that sends much at a time reads nothing meanwhile.
    /// Returns how many bytes fit into a stage, after which there is a line that kernels may write beyond them.
    pub(super) unsafe fn divide(&mut self, count: usize, kernels: &Kernels) -> usize {
        let stage_bytes = div(STAGES_BYTES, count.max(2)) / LINE_BYTES * LINE_BYTES;
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

    /// Returns where to put the next bytes of a target. If bytes for another place are held, they are stored first.
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

    /// Takes the bytes that have been put there, sends whole lines, and moves the rest to the front.
    ///
    /// # Safety
    /// `bytes` more bytes of the target must be writable. A fence must follow.
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
        // The first line may begin with bytes of others.
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
}

impl Held {
    /// Stores what is held back, once.
    unsafe fn finish(&mut self, memory: *const u8, kernels: &Kernels) {
        let Self { line, begin, end } = *self;
        // SAFETY: within the buffer; the caller's promise.
        unsafe {
            (kernels.copy)(memory.wrapping_add(begin), line.wrapping_add(begin), end - begin);
        };
        self.begin = end;
    }
}
