//! Groups, and how they are made by a program: by turns through the caches or past them, and unit by unit at the ends,
//! where turns would read what must not be read.

use super::call::{units_to_line, Call};
use super::machine::BLOCK_BYTES;
use super::nest::Axis;
use super::program::{Group, Program, MAX_OUTPUTS};
use super::runs::Runs;
use super::stage::Stages;
use super::vector::LINE_BYTES;
use crate::math::div;
use core::ops::Range;
use core::ptr::null_mut;

/// Groups for a program to make, which follow each other in each target.
#[derive(Clone, Copy)]
pub(super) struct Groups<'a> {
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
    /// What is read next. Programs of several sets, which read lines out of order, prefetch as many bytes of it as they
    /// send past the caches; where lines are read in order, CPUs know what comes next.
    pub next: *const u8,
    /// The prefetch distance: bytes from what is read to what is prefetched meanwhile; if 0, `next` is, as said there.
    pub distance: isize,
}

impl Groups<'_> {
    /// Returns some of the groups of each step.
    #[inline(always)]
    pub(super) fn part(&self, begin: usize, count: usize) -> Self {
        let group = self.program.group;
        Self {
            source: self.source.wrapping_offset(group.from.wrapping_mul(begin.cast_signed())),
            at: self.at + begin * group.bytes(),
            count,
            ..*self
        }
    }

    /// Returns some steps of the outer axis.
    #[inline(always)]
    pub(super) fn steps(&self, begin: usize, extent: usize) -> Self {
        let Axis { from, to, .. } = self.outer;
        let ahead = from.wrapping_mul(begin.cast_signed());
        Self {
            source: self.source.wrapping_offset(ahead),
            at: self.at + to.unsigned_abs() * begin,
            next: self.next.wrapping_offset(ahead),
            outer: Axis { extent, from, to },
            ..*self
        }
    }

    /// Returns which groups of every step turns may read. The end may lie beyond `count`.
    fn readable(&self) -> Range<usize> {
        let &Self { program, count, ref outer, .. } = self;
        let others = self.targets.len().saturating_sub(program.pieces);
        let last_piece = program.apart.max(0).wrapping_mul(others.cast_signed());
        let last_step = outer.from.max(0).wrapping_mul(outer.extent.cast_signed() - 1);
        let high = last_piece.wrapping_add(last_step).wrapping_add(program.high);
        let (top, end) = (self.source.wrapping_offset(high) as usize, self.readable_end as usize);
        let from = program.group.from;
        if from < 0 {
            // First windows may reach beyond the end; those of groups after the last lie below the input.
            let first = top.saturating_sub(end).div_ceil(from.unsigned_abs());
            return first..count.max(first);
        }
        let room = end.checked_sub(top).map(|room| room.checked_div(from.unsigned_abs()));
        0..room.map_or(0, |groups| groups.unwrap_or(count).saturating_add(program.groups))
    }

    /// Returns whether whole turns can make each step.
    fn are_whole(&self) -> bool {
        let readable = self.readable();
        self.program.fills_registers()
            && self.program.groups <= self.count
            && readable.start == 0
            && self.count <= readable.end
    }

    /// Returns how many groups come before all targets begin a line, if they do so together and turns make lines.
    fn groups_to_line(&self) -> Option<usize> {
        let at = |target: &*mut u8| *target as usize + self.at;
        let first = self.targets.first().map_or(0, at);
        let is_alike = |target| at(target).wrapping_sub(first).is_multiple_of(LINE_BYTES);
        let can_begin_lines = self.program.makes_lines() && self.targets.iter().all(is_alike);
        units_to_line(first, self.program.group.bytes()).filter(|_| can_begin_lines)
    }

    /// Makes groups by turns, none of which writes beyond them, and returns how many have been made. If turns fill their
    /// registers, the last one makes some groups again that are done already. Turns may read the first `limit` groups.
    unsafe fn make(&self, limit: usize) -> usize {
        let (count, groups) = (self.count.min(limit), self.program.groups);
        let is_whole = self.program.fills_registers() && groups <= count;
        let made = if is_whole { count } else { div(count.saturating_sub(1), groups) * groups };
        // SAFETY: the caller's promise.
        unsafe { (self.program.register.shuffle)(&self.part(0, made), false) };
        made
    }

    /// Does what [`Groups::make`] does by turns that begin lines, where they can.
    unsafe fn make_lines(&self, limit: usize) -> usize {
        // SAFETY: the caller's promise.
        unsafe {
            match self.groups_to_line() {
                Some(first) if first > 0 => {
                    // At least one whole turn; the first one that begins a line makes some groups again.
                    let head = first.max(self.program.groups).min(self.count);
                    let first = first.min(self.part(0, head).make(limit));
                    first + self.part(first, self.count - first).make(limit - first)
                }
                _ => self.make(limit),
            }
        }
    }
}

impl Call {
    /// Makes groups by their program, and unit by unit where its windows would read what must not be read.
    ///
    /// # Safety
    /// The groups must be readable and writable, and the source readable up to `readable_end`.
    pub(super) unsafe fn shuffle(&self, all: &Groups<'_>, stages: &mut Stages) {
        let &Groups { program, targets, count, .. } = all;
        let mut done = 0;
        // As many pieces as the program makes; the last ones may be made together with some that are done already.
        let together = program.together(targets.len());
        while done < targets.len() {
            let first = done.min(targets.len().saturating_sub(together));
            let some = targets.get(first..first + together).unwrap_or_default();
            let offset = program.apart.wrapping_mul(first.cast_signed());
            let next = all.next.wrapping_add(done * count * program.group.bytes());
            let some =
                Groups { source: all.source.wrapping_offset(offset), targets: some, next, ..*all };
            // SAFETY: the caller's promise.
            unsafe { self.shuffle_pieces(&some, stages) };
            done = first + together;
        }
    }

    /// Makes the groups of as many pieces as the program makes at a time: several steps at once, if they are short.
    unsafe fn shuffle_pieces(&self, all: &Groups<'_>, stages: &mut Stages) {
        let &Groups { program, count, outer, .. } = all;
        let bytes = count * program.group.bytes();
        let are_lines = || bytes.is_multiple_of(LINE_BYTES) && all.groups_to_line() == Some(0);
        let together = if outer.extent == 1 {
            1
        } else if !self.past {
            div(BLOCK_BYTES, count * program.group.from.unsigned_abs())
        } else if outer.to == bytes.cast_signed() && !are_lines() {
            // SAFETY: the caller's promise.
            div(unsafe { stages.divide(all.targets.len(), self.machine.kernels) }, bytes)
        } else {
            1
        };
        let mut done = 0;
        while done < outer.extent {
            let some = all.steps(done, together.clamp(1, outer.extent - done));
            done += some.outer.extent;
            // SAFETY: the caller's promise; stages have room for so many steps.
            unsafe {
                if some.outer.extent == 1 || !some.are_whole() {
                    for step in 0..some.outer.extent {
                        self.shuffle_step(&some.steps(step, 1), stages);
                    }
                } else if self.past {
                    self.stage_turns(&some, bytes * some.outer.extent, stages);
                } else {
                    some.make(count);
                }
            }
        }
    }

    /// Makes the groups of one step.
    unsafe fn shuffle_step(&self, all: &Groups<'_>, stages: &mut Stages) {
        let readable = all.readable();
        let first = readable.start.min(all.count);
        let (rest, limit) = (all.part(first, all.count - first), readable.end - first);
        // SAFETY: within the groups.
        unsafe {
            self.units(all, 0, first);
            let made =
                if self.past { self.send(&rest, limit, stages) } else { rest.make_lines(limit) };
            self.units(all, first + made, all.count);
        }
    }

    /// Sends groups past the caches: turns that make whole lines directly, others by way of stages. Returns how many
    /// groups have been made; turns may read the first `limit`.
    unsafe fn send(&self, all: &Groups<'_>, limit: usize, stages: &mut Stages) -> usize {
        let &Groups { program, count, .. } = all;
        // SAFETY: within the groups.
        unsafe {
            // Registers of half a line must be joined in a stage first.
            let first = all.groups_to_line().filter(|_| program.register.bytes == LINE_BYTES);
            let Some(first) = first else { return self.stage(all, limit, stages) };
            let first = first.min(count);
            let mut done = self.stage(&all.part(0, first), limit, stages);
            if done == first {
                let left = count.min(limit).saturating_sub(first);
                let lines = div(left, program.groups) * program.groups;
                (program.register.shuffle)(&all.part(first, lines), true);
                done += lines;
            }
            done + self.stage(&all.part(done, count - done), limit - done, stages)
        }
    }

    /// Makes groups by way of stages. Returns how many have been made; turns may read the first `limit`.
    unsafe fn stage(&self, all: &Groups<'_>, limit: usize, stages: &mut Stages) -> usize {
        let (bytes, groups) = (all.program.group.bytes(), all.program.groups);
        if all.count == 0 {
            return 0;
        }
        // SAFETY: the caller's promise.
        let room = unsafe { stages.divide(all.targets.len(), self.machine.kernels) };
        let most = div(room, bytes * groups);
        if most == 0 {
            // SAFETY: as above.
            return unsafe { all.make(limit) };
        }
        let (mut done, mut next) = (0, all.next);
        while done < all.count && done + groups <= limit {
            let last = (limit - groups).min(all.count - 1);
            let turns = (div(last - done, groups) + 1).min(most);
            let some = (turns * groups).min(all.count - done);
            let part = Groups { next, ..all.part(done, turns * groups) };
            // SAFETY: the caller's promise, and the stages have room for that many turns.
            next = unsafe { self.stage_turns(&part, some * bytes, stages) };
            done += some;
        }
        done
    }

    /// Makes groups by way of stages, which have room for the turns, and sends as many bytes to each target. Returns
    /// what is to be prefetched next.
    unsafe fn stage_turns(&self, all: &Groups<'_>, bytes: usize, stages: &mut Stages) -> *const u8 {
        let kernels = self.machine.kernels;
        let (mut targets, mut next) = ([null_mut(); MAX_OUTPUTS], all.next);
        // SAFETY: the caller's promise.
        unsafe {
            for (number, (slot, target)) in targets.iter_mut().zip(all.targets).enumerate() {
                *slot = stages.room(number, target.wrapping_add(all.at), kernels);
            }
            let targets = targets.get(..all.targets.len()).unwrap_or_default();
            (all.program.register.shuffle)(&Groups { targets, at: 0, ..*all }, false);
            for number in 0..targets.len() {
                stages.push(number, bytes, next, kernels);
                next = next.wrapping_add(bytes);
            }
        }
        next
    }

    /// Copies groups unit by unit.
    #[inline(never)]
    unsafe fn units(&self, all: &Groups<'_>, begin: usize, end: usize) {
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
}
