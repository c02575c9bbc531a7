//! Stages, for what is to be streamed and is not whole lines yet: any kernel fills them, and whole lines are
//! streamed. The rest of a line waits in the stage for what follows in the target.
//!
//! A target that does not begin a line gets 100 bytes, and then 60 more:
//!
//! ```text
//! target     |...<- first bytes --------|-------->               |         | lines
//! stage      |   ^begin                 |        ^end            |
//!            |...aaaaaaaaaaaaaaaaaaaaaaa|aaaaaaaaa               |         100 bytes are put at `begin`
//!              stored: others own the     held back: it is moved
//!              line's first bytes         to the front
//!
//! stage      |aaaaaaaaa                 |                        |         `line` is now the second line
//!            |aaaaaaaaabbbbbbbbbbbbbbbbb|bbb                     |         60 bytes are put at `end`
//!              streamed as a whole line   held back
//! ```
//!
//! If bytes for another place are put into a stage, or when all is done, what is held back is stored through the caches.

// The bodies of unsafe functions need no further blocks: what they require is in their `# Safety`.
#![allow(unsafe_op_in_unsafe_fn)]

use super::kernels::Kernels;
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

impl Held {
    const NOTHING: Self = Self { line: null_mut(), begin: 0, end: 0 };
}

/// A stage for each target that is being written.
pub(super) struct Stages {
    kernels: &'static Kernels,
    buffer: Buffer,
    /// How the buffer is divided; 0 before that.
    count: usize,
    stage_bytes: usize,
    held: [Held; MAX_STAGES],
}

impl Stages {
    #[inline(always)] // it is too large to return cheaply
    pub(super) fn new(kernels: &'static Kernels) -> Self {
        Self {
            kernels,
            buffer: Buffer([const { MaybeUninit::uninit() }; STAGES_BYTES]),
            count: 0,
            stage_bytes: 0,
            held: [Held::NOTHING; MAX_STAGES],
        }
    }

    /// Divides the buffer among `count` targets, at least two: a CPU that streams much at a time reads nothing
    /// meanwhile. Returns how many bytes fit into a stage, after which there is a line that kernels may write beyond
    /// them.
    ///
    /// # Safety
    /// As for [`Stages::finish`].
    pub(super) unsafe fn divide(&mut self, count: usize) -> usize {
        debug_assert!((1..=MAX_STAGES).contains(&count), "{count} stages");
        let stage_bytes = div(STAGES_BYTES, count.max(2)) / LINE_BYTES * LINE_BYTES;
        if stage_bytes != self.stage_bytes {
            self.finish();
            self.stage_bytes = stage_bytes;
        }
        self.count = count;
        stage_bytes - 2 * LINE_BYTES
    }

    fn memory(&mut self, number: usize) -> *mut u8 {
        self.buffer.0.as_mut_ptr().cast::<u8>().wrapping_add(number * self.stage_bytes)
    }

    /// Returns where to put the next bytes of a target. If bytes for another place are held, they are stored first.
    ///
    /// # Safety
    /// As for [`Stages::finish`].
    pub(super) unsafe fn room(&mut self, number: usize, target: *mut u8) -> *mut u8 {
        debug_assert!(number < self.count, "stage {number} of {}", self.count);
        let (memory, kernels) = (self.memory(number), self.kernels);
        let Some(held) = self.held.get_mut(number) else { return target };
        if held.line.wrapping_add(held.end) != target {
            held.store(memory, kernels);
            let begin = target as usize % LINE_BYTES;
            *held = Held { line: target.wrapping_sub(begin), begin, end: begin };
        }
        memory.wrapping_add(held.end)
    }

    /// Takes the bytes that have been put there, streams whole lines, and moves the rest to the front. With each line,
    /// one from `next` on is prefetched.
    ///
    /// # Safety
    /// [`Stages::room`] must have been called for this stage, and no more bytes put there than fit; as many bytes of the
    /// target must be writable. A fence must follow before others read the target, and [`Stages::finish`].
    pub(super) unsafe fn push(&mut self, number: usize, bytes: usize, next: *const u8) {
        let (memory, kernels, stage_bytes) = (self.memory(number), self.kernels, self.stage_bytes);
        let Some(held) = self.held.get_mut(number) else { return };
        let Held { line, begin, end } = *held;
        let end = end + bytes;
        debug_assert!(!line.is_null(), "bytes without a place are pushed into stage {number}");
        debug_assert!(end + LINE_BYTES <= stage_bytes, "{end} bytes in a stage of {stage_bytes}");
        let whole = end / LINE_BYTES * LINE_BYTES;
        if whole == 0 {
            held.end = end;
            return;
        }
        // The first line may begin with bytes of others.
        let at = begin.next_multiple_of(LINE_BYTES);
        (kernels.copy_run)(memory.wrapping_add(begin), line.wrapping_add(begin), at - begin);
        let lines = Runs::one(memory.wrapping_add(at), line.wrapping_add(at), whole - at);
        (kernels.stream_runs)(&lines, next);
        (kernels.copy_run)(memory.wrapping_add(whole), memory, end - whole);
        *held = Held { line: line.wrapping_add(whole), begin: 0, end: end - whole };
    }

    /// Stores what is held back.
    ///
    /// # Safety
    /// The targets of what has been pushed must still be writable.
    pub(super) unsafe fn finish(&mut self) {
        if self.stage_bytes == 0 {
            return; // nothing has been put there
        }
        for number in 0..MAX_STAGES {
            let (memory, kernels) = (self.memory(number), self.kernels);
            if let Some(held) = self.held.get_mut(number) {
                held.store(memory, kernels);
            }
        }
    }
}

impl Held {
    /// Stores what is held back, once.
    ///
    /// # Safety
    /// As for [`Stages::finish`].
    unsafe fn store(&mut self, memory: *const u8, kernels: &Kernels) {
        let Self { line, begin, end } = *self;
        (kernels.copy_run)(memory.wrapping_add(begin), line.wrapping_add(begin), end - begin);
        self.begin = end;
    }
}

#[cfg(test)]
mod tests {
    use super::super::level::kernels_of;
    use super::super::machine::levels;
    use super::{Stages, LINE_BYTES};
    use proptest::prelude::*;
    use std::ptr::null;

    /// Some bytes for one of the targets, after what it has already or behind a gap; from now on with so many stages.
    #[derive(Debug, Clone)]
    struct Push {
        stages: usize,
        target: usize,
        bytes: usize,
        gap: usize,
    }

    fn push() -> impl Strategy<Value = Push> {
        let stages = prop_oneof![3 => Just(0usize), 1 => 1usize..=5];
        let gap = prop_oneof![3 => Just(0usize), 1 => 1usize..200];
        (stages, 0usize..5, 0usize..400, gap).prop_map(|(stages, target, bytes, gap)| Push {
            stages,
            target,
            bytes,
            gap,
        })
    }

    const TARGET_BYTES: usize = 64 << 10;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

        /// What is pushed arrives, in whatever way the buffer is divided meanwhile, and nothing else changes.
        #[test]
        fn what_is_pushed_arrives(
            pushes in prop::collection::vec(push(), 1..100),
            askew in 0..LINE_BYTES,
        ) {
            for level in levels() {
                let kernels = kernels_of(level);
                let mut targets = vec![vec![0xA5u8; TARGET_BYTES]; 5];
                let mut expected = targets.clone();
                let mut ends = [askew; 5];
                let mut stages = Stages::new(kernels);
                let (mut count, mut value) = (2, 0u8);
                // SAFETY: the targets are long enough for all pushes.
                unsafe {
                    let mut room = stages.divide(count);
                    for push in &pushes {
                        if push.stages > 0 {
                            count = push.stages;
                            room = stages.divide(count);
                        }
                        let (target, bytes) = (push.target % count, push.bytes.min(room));
                        let at = ends[target] + push.gap;
                        let to = targets[target].as_mut_ptr().wrapping_add(at);
                        let place = stages.room(target, to);
                        for byte in 0..bytes {
                            value = value.wrapping_mul(5).wrapping_add(1);
                            place.wrapping_add(byte).write(value);
                            expected[target][at + byte] = value;
                        }
                        stages.push(target, bytes, null());
                        ends[target] = at + bytes;
                    }
                    stages.finish();
                    // All has been stored, so nothing is stored again.
                    stages.finish();
                }
                (kernels.fence)();
                prop_assert!(targets == expected, "{level:?}");
            }
        }
    }
}
