//! How runs and groups are delivered to their targets: through the caches, or streamed; whole lines directly, what is
//! less by way of stages; and near the ends of the input without reading beyond them.
//!
//! Groups are made by turns of a program, which read whole windows and write whole registers. In a step, as much as
//! possible is made by turns, and the rest unit by unit:
//!
//! ```text
//! groups of a step     |0 1 2 3 4 5 6 7 8 9 . . . . . . . . . . . n|
//!                      |first|<----------- turns ------------>|last|
//! unit by unit, because windows may not be read there (`Groups::readable`): the first ones if groups run
//! backwards in the input, else the last ones
//!
//! streamed             |first|head|<---- whole lines ---->|tail|last|
//! head and tail by way of stages, as all turns are that do not fill their registers (`Groups::groups_to_line`)
//! ```

use super::ahead::Ahead;
use super::call::Call;
use super::groups::{Groups, Stretch};
use super::machine_constants::{BLOCK_BYTES, LEAST_STREAMED_RUN_BYTES, LONG_BLOCK_BYTES};
use super::program::{Group, MAX_OUTPUTS};
use super::runs::Runs;
use super::stage::Stages;
use super::vector::LINE_BYTES;
use crate::math::div;
use core::ptr::null_mut;

impl Call {
    /// Delivers runs at equal distances. What is read after them begins at `next`, at the same distances.
    ///
    /// # Safety
    /// The runs must be readable and writable, and the source readable up to `readable_end`. [`Stages::finish`] and
    /// a fence must follow what is streamed.
    #[inline]
    pub(super) unsafe fn deliver_runs(&self, runs: &Runs, stages: &mut Stages, next: *const u8) {
        // SAFETY: the kernel requires no more.
        unsafe {
            if self.streams {
                self.stream_runs(runs, stages, next);
            } else {
                (self.machine.kernels.copy_runs)(runs);
            }
        }
    }

    /// Streams runs, where that is worth it: long runs and whole lines directly, and short ones that follow each other
    /// in the target by way of a stage.
    ///
    /// # Safety
    /// As for [`Call::deliver_runs`].
    #[inline(never)] // few copies stream, and it would take registers from the others
    unsafe fn stream_runs(&self, runs: &Runs, stages: &mut Stages, next: *const u8) {
        let &Runs { bytes, count, outer, .. } = runs;
        let places = runs.target as usize | runs.to.unsigned_abs() | outer.to.unsigned_abs();
        let are_lines = (bytes | places).is_multiple_of(LINE_BYTES);
        let is_direct = bytes >= LEAST_STREAMED_RUN_BYTES || are_lines;
        // SAFETY: the runs are those of the caller, some steps of them at a time.
        unsafe {
            if !is_direct && runs.to != bytes.cast_signed() {
                return (self.machine.kernels.copy_runs)(runs);
            }
            let room = if is_direct { 0 } else { stages.divide(1) };
            // Steps that are short and continue each other share a stage.
            let is_joined = outer.extent > 1 && outer.to == (bytes * count).cast_signed();
            let together = if is_joined { div(room, bytes * count).max(1) } else { 1 };
            let most = if together > 1 { count } else { (room / bytes.max(1)).max(1) };
            let mut done = 0;
            while done < outer.extent {
                let some = runs.steps(done, together.min(outer.extent - done));
                done += together;
                let next = if done < outer.extent { runs.steps(done, 1).source } else { next };
                if is_direct {
                    (self.machine.kernels.stream_runs)(&some, next);
                } else {
                    self.stage_runs(&some, most, stages, next);
                }
            }
        }
    }

    /// Copies runs that follow each other in the target by way of a stage, at most so many of each step at a time.
    ///
    /// # Safety
    /// As for [`Call::deliver_runs`]; and the stages must have room for so many.
    unsafe fn stage_runs(&self, runs: &Runs, most: usize, stages: &mut Stages, next: *const u8) {
        let (mut done, mut next) = (0, next);
        while done < runs.count {
            let count = most.min(runs.count - done);
            let bytes = runs.bytes * count * runs.outer.extent;
            let some = runs.skip(done);
            // SAFETY: the stage has room for these runs, and the target is theirs.
            unsafe {
                let target = stages.room(0, some.target);
                (self.machine.kernels.copy_runs)(&Runs { target, count, ..some });
                stages.push(0, bytes, next);
            }
            next = next.wrapping_add(bytes);
            done += count;
        }
    }

    /// Delivers the groups of any number of targets, as many at a time as their program makes; the last ones may be made
    /// together with some that are done already.
    ///
    /// # Safety
    /// The groups must be readable and writable, and the source readable up to `readable_end`. [`Stages::finish`] and
    /// a fence must follow what is streamed.
    pub(super) unsafe fn deliver_groups(&self, groups: &Groups<'_>, stages: &mut Stages) {
        let Groups { program, stretch } = *groups;
        let targets = stretch.targets;
        let all = targets.len();
        let together = program.targets_of_call(all);
        debug_assert!((1..=all).contains(&together), "{all} targets for {together} pieces");
        let bytes = stretch.count * program.group().bytes();
        let mut done = 0;
        while done < all {
            let first = done.min(all.saturating_sub(together));
            let stretch = Stretch {
                source: stretch
                    .source
                    .wrapping_offset(program.pattern.apart.wrapping_mul(first.cast_signed())),
                targets: targets.get(first..first + together).unwrap_or_default(),
                ahead: stretch.ahead.further_by((done * bytes).cast_signed()),
                ..stretch
            };
            // SAFETY: these are the groups of some targets.
            unsafe { self.deliver_pieces(&Groups { program, stretch }, stages) };
            done = first + together;
        }
    }

    /// Delivers the groups of as many targets as the program makes at a time: several steps at once, if they are short.
    ///
    /// # Safety
    /// As for [`Call::deliver_groups`].
    unsafe fn deliver_pieces(&self, groups: &Groups<'_>, stages: &mut Stages) {
        let &Groups { program, stretch: Stretch { targets, count, outer, .. } } = groups;
        if outer.extent == 1 || !program.fills_registers() || program.turn_groups() > count {
            for step in 0..outer.extent {
                // SAFETY: these are some of the groups.
                unsafe { self.deliver_step(&groups.steps(step, 1), stages) };
            }
            return;
        }
        let bytes = count * program.group().bytes();
        let begins_lines = outer.to.unsigned_abs().is_multiple_of(LINE_BYTES);
        let is_direct = !self.streams || begins_lines && groups.are_lines();
        let together = if is_direct {
            // Several sets read the same lines one after the other, which must stay in the first-level cache.
            let bytes = if program.sets().len() == 1 { LONG_BLOCK_BYTES } else { BLOCK_BYTES };
            div(bytes, count * program.group().from.unsigned_abs())
        } else if outer.to == bytes.cast_signed() {
            // SAFETY: what has been pushed belongs to these targets or to others of this call.
            div(unsafe { stages.divide(targets.len()) }, bytes)
        } else {
            1
        };
        let mut done = 0;
        while done < outer.extent {
            let mut extent = together.clamp(1, outer.extent - done);
            while extent > 1 && !groups.steps(done, extent).are_readable() {
                extent /= 2;
            }
            let some = groups.steps(done, extent);
            done += extent;
            // SAFETY: these are some of the groups, and stages have room for so many steps.
            unsafe {
                if extent == 1 {
                    self.deliver_step(&some, stages);
                } else if is_direct {
                    (program.register.shuffle)(&some, self.streams);
                } else {
                    stage_turns(&some, bytes * extent, stages);
                }
            }
        }
    }

    /// Delivers the groups of one step.
    ///
    /// # Safety
    /// As for [`Call::deliver_groups`].
    unsafe fn deliver_step(&self, groups: &Groups<'_>, stages: &mut Stages) {
        let readable = groups.readable();
        let count = groups.stretch.count;
        let first = readable.start.min(count);
        let rest = groups.slice(first, count - first);
        let limit = readable.end - first;
        // SAFETY: turns read what is readable, and everything else is copied unit by unit.
        unsafe {
            self.copy_units(groups, 0, first);
            let made = if self.streams {
                stream_step(&rest, limit, stages)
            } else {
                rest.run_turns_by_lines(limit)
            };
            self.copy_units(groups, first + made, count);
        }
    }

    /// Copies the groups of one step from `begin` to `end`, unit by unit.
    ///
    /// # Safety
    /// These groups must be readable and writable.
    #[inline(never)] // rare: only near the ends of the input
    unsafe fn copy_units(&self, groups: &Groups<'_>, begin: usize, end: usize) {
        if begin == end {
            return;
        }
        let Groups { program, stretch } = *groups;
        let Group { unit, units, apart, from } = *program.group();
        for (number, target) in stretch.targets.iter().enumerate() {
            let piece = program.pattern.apart.wrapping_mul(number.cast_signed());
            for group in begin..end {
                let ahead = piece.wrapping_add(from.wrapping_mul(group.cast_signed()));
                let source = stretch.source.wrapping_offset(ahead);
                let target = target.wrapping_add(stretch.at + group * unit * units);
                let one = Runs::one(source, target, unit);
                let runs = Runs { count: units, from: apart, to: unit.cast_signed(), ..one };
                // SAFETY: the units of one group.
                unsafe { (self.machine.kernels.copy_runs)(&runs) };
            }
        }
    }
}

/// Streams groups of one step: turns that make whole lines directly, others by way of stages. Returns how many
/// groups are done; turns may read the first `limit`.
///
/// # Safety
/// What turns of the first `limit` groups read must be readable, and all groups writable.
unsafe fn stream_step(groups: &Groups<'_>, limit: usize, stages: &mut Stages) -> usize {
    let (program, count) = (groups.program, groups.stretch.count);
    // SAFETY: these are the groups, in up to three slices.
    unsafe {
        let Some(first) = groups.groups_to_line() else { return stage_step(groups, limit, stages) };
        let first = first.min(count);
        let mut done = stage_step(&groups.slice(0, first), limit, stages);
        if done == first {
            let left = count.min(limit).saturating_sub(first);
            let lines = div(left, program.groups_of_lines()) * program.groups_of_lines();
            (program.register.shuffle)(&groups.slice(first, lines), true);
            done += lines;
        }
        done + stage_step(&groups.slice(done, count - done), limit - done, stages)
    }
}

/// Makes groups by way of stages. Returns how many are done; turns may read the first `limit`.
///
/// # Safety
/// As for [`stream_step`].
unsafe fn stage_step(groups: &Groups<'_>, limit: usize, stages: &mut Stages) -> usize {
    let Groups { program, stretch: Stretch { targets, count, ahead, .. } } = *groups;
    let (bytes, turn) = (program.group().bytes(), program.turn_groups());
    if count == 0 {
        return 0;
    }
    // SAFETY: what has been pushed belongs to these targets or to others of this call.
    let room = unsafe { stages.divide(targets.len()) };
    let most = div(room, bytes * turn);
    if most == 0 {
        // SAFETY: the caller says what may be read.
        return unsafe { groups.run_turns(limit) };
    }
    let (mut done, mut ahead) = (0, ahead);
    while done < count && done + turn <= limit {
        let last = (limit - turn).min(count - 1);
        let turns = (div(last - done, turn) + 1).min(most);
        let some = (turns * turn).min(count - done);
        let mut part = groups.slice(done, turns * turn);
        part.stretch.ahead = ahead;
        // SAFETY: the stages have room for that many turns, which read what is readable.
        ahead = unsafe { stage_turns(&part, some * bytes, stages) };
        done += some;
    }
    done
}

/// Makes groups by way of stages, which have room for the turns, and delivers as many bytes to each target. Returns
/// what is to be prefetched next.
///
/// # Safety
/// What the turns read must be readable, and that many bytes of each target writable.
unsafe fn stage_turns(groups: &Groups<'_>, bytes: usize, stages: &mut Stages) -> Ahead {
    let Groups { program, stretch } = *groups;
    let count = stretch.targets.len();
    debug_assert!(count <= MAX_OUTPUTS, "stages for {count} targets");
    let mut rooms = [null_mut(); MAX_OUTPUTS];
    let mut ahead = stretch.ahead;
    // SAFETY: the stages have room, also for what registers write beyond the bytes.
    unsafe {
        for (number, (slot, target)) in rooms.iter_mut().zip(stretch.targets).enumerate() {
            *slot = stages.room(number, target.wrapping_add(stretch.at));
        }
        let targets = rooms.get(..count).unwrap_or_default();
        let in_rooms = Stretch { targets, at: 0, ..stretch };
        (program.register.shuffle)(&Groups { program, stretch: in_rooms }, false);
        for number in 0..count {
            stages.push(number, bytes, ahead.next);
            ahead = ahead.further_by(bytes.cast_signed());
        }
    }
    ahead
}
