//! What is decided once per call, and how runs, groups and blocks of units are then moved: through the caches or past
//! them, and without reading what must not be read.

use super::machine::{Machine, BLOCK_BYTES, LEAST_PAST_BYTES, LEAST_STREAMED_BYTES};
use super::nest::Axis;
use super::parallel::{Executor, Streaming};
use super::program::{Group, Program, MAX_OUTPUTS};
use super::runs::Runs;
use super::shuffle::Turns;
use super::stage::Stages;
use super::tile::Block;
use super::vector::LINE_BYTES;
use crate::math::{div, div_ceil, isize_of};
use crate::parts::Transfer;
use crate::shape::{self, usize_of};
use core::ops::Range;
use core::ptr::null_mut;

/// No system has smaller pages, so what lies between elements that are closer together than this is readable.
pub(super) const PAGE_BYTES: usize = 4096;

impl<'a> Shuffle<'a> {
    /// Returns `count` turns from group `begin` on, before the last of which there are `last` groups.
    fn turns(&self, begin: usize, count: usize, last: usize) -> Turns<'a> {
        let program = self.program;
        let offset = program.group.from.wrapping_mul(begin.cast_signed());
        Turns {
            program,
            source: self.source.wrapping_offset(offset),
            targets: self.targets,
            at: self.at + begin * program.group.bytes(),
            count,
            last,
            outer: self.outer,
            next: self.next,
            distance: self.distance,
        }
    }

    /// Returns the turns that make all groups, at least as many as a turn has; the last one makes some again.
    fn all_turns(&self) -> Turns<'a> {
        let groups = self.program.groups;
        self.turns(0, div_ceil(self.count, groups), self.count - groups)
    }

    /// Returns some steps of the outer axis.
    fn steps(&self, begin: usize, extent: usize) -> Self {
        let Axis { from, to, .. } = self.outer;
        let ahead = from.wrapping_mul(begin.cast_signed());
        Self {
            source: self.source.wrapping_offset(ahead),
            at: self.at.wrapping_add_signed(to.wrapping_mul(begin.cast_signed())),
            next: self.next.wrapping_offset(ahead),
            outer: Axis { extent, from, to },
            ..*self
        }
    }

    /// Returns the end of the highest window of the turn that begins at a group.
    fn top(&self, group: usize) -> usize {
        let &Self { program, ref outer, .. } = self;
        let others = self.targets.len().saturating_sub(program.pieces);
        let last = program.apart.max(0).wrapping_mul(others.cast_signed());
        let last_step = outer.from.max(0).wrapping_mul(outer.extent.cast_signed() - 1);
        let begin = program.group.from.wrapping_mul(group.cast_signed());
        let offset = last.wrapping_add(last_step).wrapping_add(begin).wrapping_add(program.high);
        self.source.wrapping_offset(offset) as usize
    }

    /// Returns whether whole turns can make each step: they must fill registers, and may read all their windows.
    fn is_whole(&self) -> bool {
        let program = self.program;
        let end = self.readable_end as usize;
        program.fills_registers()
            && program.groups <= self.count
            && self.top(0) <= end
            && self.top(self.count - program.groups) <= end
    }
}

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

/// Groups for a program to copy, which follow each other in each target.
#[derive(Clone, Copy)]
pub(super) struct Shuffle<'a> {
    pub program: &'a Program,
    pub source: *const u8,
    /// The targets of pieces, which are as far apart in the input as those of the program.
    pub targets: &'a [*mut u8],
    /// Bytes of each target that come before these groups.
    pub at: usize,
    pub count: usize,
    /// As many groups are made for each step of this axis.
    pub outer: Axis,
    pub readable_end: *const u8,
    pub next: *const u8,
    /// The prefetch distance: bytes from what is read to what is prefetched meanwhile; if 0, `next` is, by
    /// programs of several sets.
    pub distance: isize,
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
            let &Runs { run, count, outer, .. } = runs;
            let kernels = self.machine.kernels;
            let steps = runs.target as usize | runs.to.unsigned_abs() | outer.to.unsigned_abs();
            let are_lines = (run | steps).is_multiple_of(LINE_BYTES);
            let is_streamed = run >= LEAST_STREAMED_BYTES || are_lines;
            if !self.past || !is_streamed && runs.to != run.cast_signed() {
                return (kernels.copy_runs)(runs);
            }
            let room = stages.divide(1, kernels);
            // Steps that are short and continue each other are joined in a stage, too.
            let is_joined = !is_streamed && outer.to == (run * count).cast_signed();
            let together = if is_joined { div(room, run * count).max(1) } else { 1 };
            let mut done = 0;
            while done < outer.extent {
                let some = runs.steps(done, together.min(outer.extent - done));
                done += together;
                let next = if done < outer.extent { runs.steps(done, 1).source } else { next };
                if is_streamed {
                    (kernels.stream_runs)(&some, next);
                } else if together > 1 {
                    self.stage_runs(&some, stages, next);
                } else {
                    self.stage_parts(&some, div(room, run).max(1), stages, next);
                }
            }
        }
    }

    /// Copies runs that follow each other in the target by way of a stage, some at a time.
    unsafe fn stage_parts(&self, runs: &Runs, some: usize, stages: &mut Stages, next: *const u8) {
        let (mut done, mut next) = (0, next);
        while done < runs.count {
            let count = some.min(runs.count - done);
            // SAFETY: the caller's promise.
            unsafe { self.stage_runs(&Runs { count, ..runs.skip(done) }, stages, next) };
            next = next.wrapping_add(runs.run * count);
            done += count;
        }
    }

    /// Copies runs that follow each other in the target by way of a stage, which has room for them.
    unsafe fn stage_runs(&self, runs: &Runs, stages: &mut Stages, next: *const u8) {
        let kernels = self.machine.kernels;
        let bytes = runs.run * runs.count * runs.outer.extent;
        // SAFETY: the caller's promise.
        unsafe {
            let target = stages.room(0, runs.target, kernels);
            (kernels.copy_runs)(&Runs { target, ..*runs });
            stages.push(0, bytes, next, kernels);
        }
    }

    /// Copies groups by their program, and unit by unit where its windows would read what must not be read.
    ///
    /// # Safety
    /// The groups must be readable and writable, and the source readable up to `readable_end`.
    pub(super) unsafe fn shuffle(&self, all: &Shuffle<'_>, stages: &mut Stages) {
        let &Shuffle { program, targets, count, .. } = all;
        let mut done = 0;
        // As many pieces as the program makes; the last ones may be made together with some that are done already.
        let together = program.together(targets.len());
        while done < targets.len() {
            let first = done.min(targets.len().saturating_sub(together));
            let some = targets.get(first..first + together).unwrap_or_default();
            let offset = program.apart.wrapping_mul(first.cast_signed());
            let next = all.next.wrapping_add(done * count * program.group.bytes());
            let some =
                Shuffle { source: all.source.wrapping_offset(offset), targets: some, next, ..*all };
            // SAFETY: the caller's promise.
            unsafe { self.shuffle_some(&some, stages) };
            done = first + together;
        }
    }

    /// Copies the groups of as many pieces as the program makes at a time: several steps at once, if they are short.
    unsafe fn shuffle_some(&self, all: &Shuffle<'_>, stages: &mut Stages) {
        let &Shuffle { program, count, outer, .. } = all;
        let bytes = count * program.group.bytes();
        let together = if !self.past {
            div(BLOCK_BYTES, count * program.group.from.unsigned_abs())
        } else if outer.to == bytes.cast_signed() {
            // SAFETY: the caller's promise.
            div(unsafe { stages.divide(all.targets.len(), self.machine.kernels) }, bytes)
        } else {
            1
        };
        let mut done = 0;
        while done < outer.extent {
            let some = all.steps(done, together.clamp(1, outer.extent - done));
            done += some.outer.extent;
            // SAFETY: the caller's promise; whole turns are made.
            unsafe {
                if some.outer.extent == 1 || !some.is_whole() {
                    for step in 0..some.outer.extent {
                        self.shuffle_step(&some.steps(step, 1), stages);
                    }
                } else if self.past {
                    let bytes = bytes * some.outer.extent;
                    self.stage_turns(&some.all_turns(), bytes, stages, some.next);
                } else {
                    let [through, _] = program.register.shuffle;
                    through(&some.all_turns());
                }
            }
        }
    }

    /// Copies the groups of one step.
    unsafe fn shuffle_step(&self, all: &Shuffle<'_>, stages: &mut Stages) {
        let &Shuffle { program, count, .. } = all;
        let begins = Self::begins(all);
        let begin = begins.start.min(count);
        // SAFETY: within the groups.
        unsafe {
            self.units(all, 0, begin);
            let to_line = Self::groups_to_line(all, begin).filter(|_| program.makes_lines());
            let first = to_line.map(|groups| (begin + groups).min(count));
            let end = match first {
                // Registers of half a line must be joined in a stage first.
                Some(first) if self.past && program.register.bytes == LINE_BYTES => {
                    let reached = self.staged_turns(all, &begins, begin..first, stages);
                    let is_line = reached == first;
                    let end = if is_line {
                        Self::turns(all, &begins, first..count, true)
                    } else {
                        reached
                    };
                    self.staged_turns(all, &begins, end..count, stages)
                }
                _ if self.past => self.staged_turns(all, &begins, begin..count, stages),
                Some(first) if begin < first => {
                    // At least one whole turn; the first one that begins a line makes some groups again.
                    let head = begin..(begin + program.groups).max(first).min(count);
                    let reached = Self::turns(all, &begins, head, false);
                    Self::turns(all, &begins, first.min(reached)..count, false)
                }
                _ => Self::turns(all, &begins, begin..count, false),
            };
            self.units(all, end, count);
        }
    }

    /// Returns the groups at which a turn may begin: all its windows must lie within what may be read.
    fn begins(all: &Shuffle<'_>) -> Range<usize> {
        let &Shuffle { program, count, .. } = all;
        let (top, end) = (all.top(0), all.readable_end as usize);
        let from = program.group.from;
        if from < 0 {
            // First windows may reach beyond the end; those of groups after the last lie below the input.
            let first = top.saturating_sub(end).div_ceil(from.unsigned_abs());
            return first..(count + 1).saturating_sub(program.groups);
        }
        match end.checked_sub(top) {
            Some(room) => {
                0..room
                    .checked_div(from.unsigned_abs())
                    .map_or(count, |groups| groups.saturating_add(1))
            }
            None => 0..0,
        }
    }

    /// Copies groups by whole turns, none of which writes beyond them, and returns the group after the last one.
    /// Through the caches, if turns fill their registers, the last turn makes some groups again that are done already.
    unsafe fn turns(
        all: &Shuffle<'_>,
        begins: &Range<usize>,
        groups: Range<usize>,
        past: bool,
    ) -> usize {
        let program = all.program;
        let begin = groups.start;
        if !begins.contains(&begin) {
            return begin;
        }
        let count = groups.len().min(begins.end - 1 - begin + program.groups);
        let fills = program.fills_registers();
        let turns = div(if fills { count } else { count.saturating_sub(1) }, program.groups);
        let made = turns * program.groups;
        let [through, beyond] = program.register.shuffle;
        // SAFETY: the caller's promise.
        unsafe {
            if past {
                beyond(&all.turns(begin, turns, made.saturating_sub(program.groups)));
            } else if fills && turns > 0 {
                let last = count - program.groups;
                through(&all.turns(begin, div_ceil(count, program.groups), last));
                return begin + count;
            } else {
                through(&all.turns(begin, turns, made.saturating_sub(program.groups)));
            }
        }
        begin + made
    }

    /// Copies groups by whole turns by way of stages, which have room for what turns write beyond their groups.
    unsafe fn staged_turns(
        &self,
        all: &Shuffle<'_>,
        begins: &Range<usize>,
        groups: Range<usize>,
        stages: &mut Stages,
    ) -> usize {
        let &Shuffle { program, .. } = all;
        let (bytes, kernels) = (program.group.bytes(), self.machine.kernels);
        let (mut done, mut next) = (groups.start, all.next);
        // SAFETY: the caller's promise.
        let room = unsafe { stages.divide(all.targets.len(), kernels) };
        let most = div(room, bytes * program.groups);
        if most == 0 {
            // SAFETY: as above.
            return unsafe { Self::turns(all, begins, groups, false) };
        }
        while begins.contains(&done) && done < groups.end {
            let left = (begins.end - 1 - done).min(groups.end - 1 - done);
            let turns = (div(left, program.groups) + 1).min(most);
            let some = (turns * program.groups).min(groups.end - done);
            // SAFETY: the caller's promise, and the stages have room for that many turns.
            unsafe {
                let turns = all.turns(done, turns, (turns - 1) * program.groups);
                next = self.stage_turns(&turns, some * bytes, stages, next);
            }
            done += some;
        }
        done
    }

    /// Runs turns by way of stages, which have room for them, and sends as many bytes to each target. Returns what is
    /// to be prefetched next.
    unsafe fn stage_turns(
        &self,
        turns: &Turns<'_>,
        bytes: usize,
        stages: &mut Stages,
        mut next: *const u8,
    ) -> *const u8 {
        let kernels = self.machine.kernels;
        let [through, _] = turns.program.register.shuffle;
        let mut targets = [null_mut(); MAX_OUTPUTS];
        // SAFETY: the caller's promise.
        unsafe {
            for (number, (slot, target)) in targets.iter_mut().zip(turns.targets).enumerate() {
                *slot = stages.room(number, target.wrapping_add(turns.at), kernels);
            }
            let targets = targets.get(..turns.targets.len()).unwrap_or_default();
            through(&Turns { targets, at: 0, ..*turns });
            for number in 0..targets.len() {
                stages.push(number, bytes, next, kernels);
                next = next.wrapping_add(bytes);
            }
        }
        next
    }

    /// Returns how many groups come before all targets begin a line, if they do so together.
    fn groups_to_line(all: &Shuffle<'_>, begin: usize) -> Option<usize> {
        let bytes = all.program.group.bytes();
        let at = |target: &*mut u8| *target as usize + all.at + begin * bytes;
        let first = all.targets.first().map_or(0, at);
        let are_alike = all
            .targets
            .iter()
            .all(|target| at(target).wrapping_sub(first).is_multiple_of(LINE_BYTES));
        units_to_line(first, bytes).filter(|_| are_alike)
    }

    /// Copies groups unit by unit.
    #[inline(never)]
    unsafe fn units(&self, all: &Shuffle<'_>, begin: usize, end: usize) {
        if begin == end {
            return;
        }
        let Group { unit, units, apart, from } = all.program.group;
        for (number, target) in all.targets.iter().enumerate() {
            let piece =
                all.source.wrapping_offset(all.program.apart.wrapping_mul(number.cast_signed()));
            for group in begin..end {
                let source = piece.wrapping_offset(from.wrapping_mul(group.cast_signed()));
                let target = target.wrapping_add(all.at + group * unit * units);
                let to = unit.cast_signed();
                let one = Runs::one(source, target, unit);
                let runs = Runs { count: units, from: apart, to, ..one };
                // SAFETY: within the groups.
                unsafe { (self.machine.kernels.copy_runs)(&runs) };
            }
        }
    }

    /// Prefetches some bytes of each row; they are read later.
    pub(super) fn prefetch_rows(&self, source: *const u8, rows: usize, from: isize, bytes: usize) {
        (self.machine.kernels.prefetch)(source, rows, from, bytes);
    }

    /// Transposes a block: past the caches if all targets begin lines, and have two of them.
    ///
    /// # Safety
    /// As for the kernel.
    pub(super) unsafe fn transpose(&self, block: &Block<'_>) {
        let [through, by_lines] = self.machine.kernels.transpose(block);
        // SAFETY: the caller's promise.
        unsafe {
            if self.past && block.rows * block.unit >= 2 * LINE_BYTES && block.begins_lines() {
                through(&block.skip(by_lines(block)));
            } else {
                through(block);
            }
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
