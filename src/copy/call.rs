//! What is decided once per call: the machine, whether outputs are streamed, and what may be read; and what each task
//! works with.

use super::kernels::Kernels;
use super::machine::Machine;
use super::machine_constants::LEAST_STREAMED_CALL_BYTES;
use super::parallel::{Executor, Streaming};
use super::program::ProgramSlot;
use super::runs::Runs;
use super::stage::Stages;
use super::tile::Block;
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
    /// Whether outputs are streamed.
    pub streams: bool,
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
        debug_assert!(transfer.bytes > 0, "a call that copies nothing");
        let geometry = &transfer.geometry;
        let elements = match transfer.strides {
            None => geometry.elements,
            Some(strides) => {
                let dims = geometry.shape.iter().copied().zip(strides.iter().copied());
                shape::reach(dims).map_or(1, |(_, high)| high + 1)
            }
        };
        let bits = elements * i64::from(geometry.dtype.bits()) + i64::from(transfer.bit_offset);
        Self {
            machine,
            streams: is_streamed(&machine, transfer, executor),
            readable_end: transfer.source.wrapping_offset(isize_of((bits + 7) >> 3)),
            has_holes: has_holes(transfer),
        }
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
}

/// What is too large to be made for each range that a task takes. It is lent down, so a program that was made for one
/// range serves the next, and what one range has left in a stage waits for the next.
pub(super) struct Scratch<'a> {
    pub slot: &'a mut ProgramSlot,
    pub stages: &'a mut Stages,
}

impl Scratch<'_> {
    /// Lends a scratch, which lives on the stack, to all that a task does. Then stores what is held back, and fences what
    /// has been streamed.
    ///
    /// # Safety
    /// The targets of the task must still be writable when it has been done.
    #[inline(always)] // in each task that needs one
    pub(super) unsafe fn lend(call: &Call, task: impl FnOnce(&mut Scratch<'_>)) {
        let kernels = call.machine.kernels;
        let mut slot = ProgramSlot::new(kernels.registers.bytes);
        let mut stages = Stages::new(kernels);
        task(&mut Scratch { slot: &mut slot, stages: &mut stages });
        // SAFETY: as the caller says.
        unsafe { stages.finish() };
        if call.streams {
            (kernels.fence)();
        }
    }
}

/// Transposes a block: lines are streamed, if that is wanted and all targets begin lines, and have two of them. What is
/// too little for tiles is copied unit by unit.
///
/// # Safety
/// The units must be readable and writable, and everything from the lowest row on to `readable_end` readable. If lines
/// are streamed, a fence must follow.
pub(super) unsafe fn deliver_block(kernels: &Kernels, block: &Block<'_>, streams: bool) {
    let mut rest = *block;
    // SAFETY: rows that are done are passed over, and the caller says what may be read.
    unsafe {
        if let Some(tiles) = kernels.tiles.get(block.unit.trailing_zeros() as usize) {
            if streams && block.rows * block.unit >= 2 * LINE_BYTES && block.begins_lines() {
                rest = rest.skip((tiles.stream_lines)(&rest));
            }
            rest = rest.skip((tiles.transpose)(&rest));
        }
        let Block { unit, from, rows: count, .. } = rest;
        if count == 0 {
            return;
        }
        for (column, target) in rest.targets.iter().enumerate() {
            let source = rest.source.wrapping_add(column * unit);
            let one = Runs::one(source, target.wrapping_add(rest.at), unit);
            (kernels.copy_runs)(&Runs { count, from, to: unit.cast_signed(), ..one });
        }
    }
}

/// Returns whether there may be pages between elements of the input. There are none if, in order of stride, each axis
/// begins less than a page behind what the smaller ones reach.
fn has_holes(transfer: &Transfer<'_>) -> bool {
    let geometry = &transfer.geometry;
    let Some(strides) = transfer.strides else { return false };
    let size = usize_of(i64::from(geometry.dtype.bits())).div_ceil(8);
    let (mut reach, mut last) = (size, 0);
    loop {
        let axes = geometry.shape.iter().zip(strides).filter(|(extent, _)| **extent > 1);
        let steps = axes.map(|(extent, step)| (isize_of(*step).unsigned_abs(), usize_of(*extent)));
        let further = steps.clone().map(|(step, _)| step).filter(|step| *step > last);
        let Some(next) = further.min() else { return false };
        if next.saturating_mul(size) >= reach.saturating_add(PAGE_BYTES) {
            return true;
        }
        for (_, extent) in steps.filter(|(step, _)| *step == next) {
            reach = reach.saturating_add(next.saturating_mul(size).saturating_mul(extent - 1));
        }
        last = next;
    }
}

/// Returns whether outputs are streamed: they are if the caches cannot hold both what is read and what is written.
fn is_streamed(
    machine: &Machine,
    transfer: &Transfer<'_>,
    executor: Option<&dyn Executor>,
) -> bool {
    let cached = match executor.map_or(Streaming::Auto, Executor::streaming) {
        Streaming::Auto => machine.cached_bytes,
        Streaming::OutputsReadNext => machine.cached_bytes.saturating_mul(2),
        Streaming::Never => return false,
    };
    let moved = transfer.bytes.saturating_add(bytes_read(transfer));
    moved > machine.threshold(cached)
        && transfer.bytes > machine.threshold(LEAST_STREAMED_CALL_BYTES)
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

#[cfg(test)]
mod tests {
    use super::super::execute_on;
    use super::super::machine::Machine;
    use super::super::parallel::{Executor, Streaming};
    use super::super::tests::{levels, parts, transfer};
    use super::{is_streamed, Kernels, Transfer};
    use crate::dtype::DType;
    use crate::pieces::Pieces;
    use std::cell::Cell;
    use std::ptr::null;

    const MIB: usize = 1 << 20;

    /// Runs all tasks of a call in order, and counts them.
    struct InOrder {
        streaming: Streaming,
        tasks: Cell<usize>,
    }

    impl InOrder {
        fn new(streaming: Streaming) -> Self {
            Self { streaming, tasks: Cell::new(0) }
        }
    }

    // SAFETY: all tasks run on one thread.
    unsafe impl Sync for InOrder {}

    impl Executor for InOrder {
        fn streaming(&self) -> Streaming {
            self.streaming
        }
        fn parallel_for(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<(), i32> {
            self.tasks.set(self.tasks.get() + count);
            (0..count).for_each(task);
            Ok(())
        }
    }

    /// Returns whether a copy of so many bytes of a packed tensor is streamed.
    fn streams(cached_bytes: usize, bytes: usize, streaming: Streaming) -> bool {
        let mut machine = Machine::of_words("").unwrap();
        machine.cached_bytes = cached_bytes;
        let shape = [i64::try_from(bytes).unwrap()];
        let transfer = Transfer { bytes, ..transfer(DType::Uint8, &shape, 0, null()) };
        is_streamed(&machine, &transfer, Some(&InOrder::new(streaming)))
    }

    #[test]
    fn outputs_are_streamed_from_what_the_caches_cannot_hold() {
        for (streaming, caches) in [(Streaming::Auto, 1), (Streaming::OutputsReadNext, 2)] {
            // As many bytes are read as written.
            let threshold = caches * 6 * MIB / 2;
            assert!(!streams(6 * MIB, threshold - 1, streaming), "{streaming:?}, one byte below");
            assert!(!streams(6 * MIB, threshold, streaming), "{streaming:?}, all that they hold");
            assert!(streams(6 * MIB, threshold + 1, streaming), "{streaming:?}, one byte above");
            assert!(streams(6 * MIB, 100 * threshold, streaming), "{streaming:?}, much more");
        }
        for bytes in [1, 6 * MIB, usize::MAX >> 1] {
            assert!(!streams(6 * MIB, bytes, Streaming::Never), "{bytes} bytes, never");
        }
    }

    #[test]
    fn little_is_not_streamed_however_small_the_caches_are() {
        assert!(!streams(1, MIB, Streaming::Auto));
        assert!(streams(1, MIB + 1, Streaming::Auto));
    }

    #[test]
    fn only_bytes_that_are_fetched_count() {
        let mut machine = Machine::of_words("").unwrap();
        machine.cached_bytes = 6 * MIB;
        let is_streamed = |rows: usize, strides: &[i64; 2]| {
            let shape = [i64::try_from(rows).unwrap(), 1 << 10];
            let packed = transfer(DType::Uint8, &shape, 1, null());
            let transfer = Transfer { bytes: rows << 10, strides: Some(strides), ..packed };
            is_streamed(&machine, &transfer, None)
        };
        // One row, repeated: 1 KiB is read.
        assert!(!is_streamed((6 << 10) - 1, &[0, 1]));
        assert!(is_streamed(6 << 10, &[0, 1]));
        // Every second byte: twice as much is read as is written.
        assert!(!is_streamed(2 << 10, &[2 << 10, 2]));
        assert!(is_streamed((2 << 10) + 1, &[2 << 10, 2]));
    }

    thread_local! {
        static FENCES: Cell<usize> = const { Cell::new(0) };
    }

    /// Returns the machine of these words with kernels that count fences.
    fn counting(words: &str) -> Machine {
        let mut machine = Machine::of_words(words).unwrap();
        let count = || FENCES.with(|fences| fences.set(fences.get() + 1));
        machine.kernels = Box::leak(Box::new(Kernels { fence: count, ..*machine.kernels }));
        machine
    }

    /// Copies a tensor of bytes, split on its last axis, and returns how many tasks and how many fences there were.
    fn tasks_and_fences(
        machine: Machine,
        [rows, columns]: [i64; 2],
        strides: Option<&[i64]>,
        lengths: &[i64],
        executor: Option<&InOrder>,
    ) -> [usize; 2] {
        let bytes = usize::try_from(rows * columns).unwrap();
        let (source, mut output) = (vec![1u8; bytes], vec![0u8; bytes]);
        let mut targets = vec![];
        let mut at = output.as_mut_ptr();
        for length in lengths {
            targets.push(at);
            at = at.wrapping_add(usize::try_from(rows * length).unwrap());
        }
        let (shape, pieces) = ([rows, columns], Pieces::Int64(lengths));
        let parts = parts(&pieces, &targets);
        let packed = transfer(DType::Uint8, &shape, 1, source.as_ptr());
        let transfer = Transfer { strides, parts, bytes, ..packed };
        FENCES.set(0);
        // SAFETY: the memory of the outputs is as long as that of the input.
        let done = unsafe { execute_on(machine, &transfer, executor.map(|own| own as _)) };
        done.unwrap();
        assert!(output.iter().all(|byte| *byte == 1), "all of the output is written");
        [executor.map_or(1, |own| own.tasks.get()), FENCES.get()]
    }

    #[test]
    fn each_task_ends_with_a_fence_if_and_only_if_outputs_are_streamed() {
        let few: &[i64] = &[44, 3, 3, 3, 3, 3];
        let many = [4; 2000];
        let cases = [
            ("rows, in part by way of stages", [10_000, 59], None, few),
            ("whole pieces", [100, 8000], None, &many[..]),
            ("bytes of a transposed input", [10_000, 59], Some([1, 10_000]), few),
            ("bytes of contiguous rows", [1, 100_000], None, &[60_000, 40_000]),
        ];
        for (name, shape, strides, lengths) in cases {
            let strides = strides.as_ref().map(<[i64; 2]>::as_slice);
            let run = |words: &str, executor: Option<&InOrder>| {
                tasks_and_fences(counting(words), shape, strides, lengths, executor)
            };
            for level in levels() {
                let low = format!("{} low", level.word());
                assert_eq!(run(&low, None), [1, 1], "{name}, {low}, without threads");
                let pool = InOrder::new(Streaming::Auto);
                let [tasks, fences] = run(&low, Some(&pool));
                assert!(tasks > 1, "{name}, {low}: {tasks} tasks");
                assert_eq!(fences, tasks, "{name}, {low}: a fence in each task");
                let never = InOrder::new(Streaming::Never);
                assert_eq!(run(&low, Some(&never))[1], 0, "{name}, {low}, never streamed");
            }
            assert_eq!(run("", None)[1], 0, "{name}, which stays in the caches");
        }
    }
}
