//! What kernels are given: stretches of rows, and the groups that a program makes of them.

use super::ahead::Ahead;
use super::nest::Axis;
use super::program::Program;
use super::vector::LINE_BYTES;
use crate::math::{div, div_rem};
use core::ops::Range;

/// Rows at equal distances, each of which has something for every target. What they have for a target follows there
/// without gaps.
#[derive(Clone, Copy)]
pub(super) struct Stretch<'a> {
    /// Where the first row's share for the first target begins.
    pub source: *const u8,
    pub targets: &'a [*mut u8],
    /// Bytes of each target that come before these rows.
    pub at: usize,
    /// The number of rows in each step of the outer axis.
    pub count: usize,
    pub outer: Axis,
    /// The end of what may be read.
    pub readable_end: *const u8,
    pub ahead: Ahead,
}

impl Stretch<'_> {
    /// Returns some steps of the outer axis.
    #[inline(always)]
    pub(super) fn steps(&self, begin: usize, extent: usize) -> Self {
        let ahead = self.outer.input_at(begin);
        Self {
            source: self.source.wrapping_offset(ahead),
            at: self.at + self.outer.to.unsigned_abs() * begin,
            ahead: self.ahead.further_by(ahead),
            outer: Axis { extent, ..self.outer },
            ..*self
        }
    }
}

/// Groups for a program to make: one of each row of a stretch. Its targets are the pieces, which are as far apart in the
/// input as those of the program.
#[derive(Clone, Copy)]
pub(super) struct Groups<'a> {
    pub program: &'a Program,
    pub stretch: Stretch<'a>,
}

/// Turns that follow each other: where the first one reads, how many bytes of each target come before what it writes,
/// and how many there are.
pub(super) struct Turns {
    pub source: *const u8,
    pub at: usize,
    pub count: usize,
}

impl Groups<'_> {
    /// Returns some of the groups of each step.
    #[inline(always)]
    pub(super) fn slice(&self, begin: usize, count: usize) -> Self {
        let group = self.program.group();
        let ahead = group.from.wrapping_mul(begin.cast_signed());
        let stretch = Stretch {
            source: self.stretch.source.wrapping_offset(ahead),
            at: self.stretch.at + begin * group.bytes(),
            count,
            ..self.stretch
        };
        Self { stretch, ..*self }
    }

    /// Returns some steps of the outer axis.
    #[inline(always)]
    pub(super) fn steps(&self, begin: usize, extent: usize) -> Self {
        Self { stretch: self.stretch.steps(begin, extent), ..*self }
    }

    /// Returns the turns of each step: those that follow each other, and a last one if groups are left over.
    #[inline(always)]
    pub(super) fn turns(&self) -> impl Iterator<Item = Turns> + '_ {
        let (count, turn) = (self.stretch.count, self.program.turn_groups());
        let (whole, left) = div_rem(count, turn);
        let has_last = usize::from(left > 0);
        (0..self.stretch.outer.extent << has_last).map(move |sequence| {
            let step = self.steps(sequence >> has_last, 1);
            let is_last = sequence & has_last == 1;
            let (some, count) =
                if is_last { (step.slice(count - turn, 0), 1) } else { (step, whole) };
            Turns { source: some.stretch.source, at: some.stretch.at, count }
        })
    }

    /// Checks that the kernel may make these groups: each target has a piece of the program, and turns write nothing
    /// but groups, because they are whole, or because a last one can make some groups again.
    pub(super) fn check(&self) {
        let &Self { program, stretch: Stretch { targets, count, .. } } = self;
        let (all, pieces) = (targets.len(), program.pieces());
        let is_right = all == program.targets_of_call(all);
        debug_assert!(is_right, "{all} targets for a program of {pieces} pieces");
        let turn = program.turn_groups();
        debug_assert!(
            count.is_multiple_of(turn) || (program.fills_registers() && count > turn),
            "{count} groups in turns of {turn} that cannot make any again"
        );
    }

    /// Returns which groups of every step turns may read. The end may lie beyond the last one.
    pub(super) fn readable(&self) -> Range<usize> {
        let &Self { program, stretch } = self;
        let Stretch { count, outer, .. } = stretch;
        let others = stretch.targets.len().saturating_sub(program.pieces());
        let last_piece = program.pattern.apart.max(0).wrapping_mul(others.cast_signed());
        let last_step = outer.from.max(0).wrapping_mul(outer.extent.cast_signed() - 1);
        let high = last_piece.wrapping_add(last_step).wrapping_add(program.high);
        let top = stretch.source.wrapping_offset(high) as usize;
        let end = stretch.readable_end as usize;
        let from = program.group().from;
        if from < 0 {
            // First windows may reach beyond the end; those of groups after the last lie below the input.
            let first = top.saturating_sub(end).div_ceil(from.unsigned_abs());
            return first..count.max(first);
        }
        let Some(room) = end.checked_sub(top) else { return 0..0 };
        let groups = room.checked_div(from.unsigned_abs()).unwrap_or(count);
        0..groups.saturating_add(program.turn_groups())
    }

    /// Returns whether turns may read all groups of every step.
    pub(super) fn are_readable(&self) -> bool {
        let readable = self.readable();
        readable.start == 0 && self.stretch.count <= readable.end
    }

    /// Returns how many groups come before all targets begin a line, if they do so together and turns can make lines.
    pub(super) fn groups_to_line(&self) -> Option<usize> {
        let place = |target: &*mut u8| *target as usize + self.stretch.at;
        let first = self.stretch.targets.first().map_or(0, place);
        let is_alike =
            |target: &*mut u8| place(target).wrapping_sub(first).is_multiple_of(LINE_BYTES);
        if !self.program.fills_registers() || !self.stretch.targets.iter().all(is_alike) {
            return None;
        }
        units_to_line(first, self.program.group().bytes())
    }

    /// Returns whether turns may be streamed: whether they make whole lines of each target.
    pub(super) fn are_lines(&self) -> bool {
        let are_whole = self.stretch.count.is_multiple_of(self.program.groups_of_lines());
        self.stretch.count == 0 || are_whole && self.groups_to_line() == Some(0)
    }

    /// Makes groups by turns, none of which writes beyond them, and returns how many are done. Turns may read the first
    /// `limit` groups.
    ///
    /// # Safety
    /// What turns of the first `limit` groups read must be readable, and all groups writable.
    pub(super) unsafe fn run_turns(&self, limit: usize) -> usize {
        let count = self.stretch.count.min(limit);
        let turn = self.program.turn_groups();
        let is_whole = self.program.fills_registers() && turn <= count;
        // What registers have beyond the last turn is written again with the group after it.
        let made = if is_whole { count } else { div(count.saturating_sub(1), turn) * turn };
        // SAFETY: as the caller says.
        unsafe { (self.program.register.shuffle)(&self.slice(0, made), false) };
        made
    }

    /// Does what [`Groups::run_turns`] does by turns that begin lines, where they can.
    ///
    /// # Safety
    /// As for [`Groups::run_turns`].
    pub(super) unsafe fn run_turns_by_lines(&self, limit: usize) -> usize {
        let count = self.stretch.count;
        // SAFETY: these are some of the groups, and the caller says what may be read.
        unsafe {
            match self.groups_to_line() {
                Some(first) if first > 0 => {
                    // At least one whole turn; the first one that begins a line makes some groups again.
                    let head = first.max(self.program.turn_groups()).min(count);
                    let first = first.min(self.slice(0, head).run_turns(limit));
                    first + self.slice(first, count - first).run_turns(limit - first)
                }
                _ => self.run_turns(limit),
            }
        }
    }
}

/// Returns how many units come before the first that begins a line, if they lie side by side from an address on; `None`
/// if no unit does.
pub(super) fn units_to_line(address: usize, unit: usize) -> Option<usize> {
    let over = address.wrapping_neg() % LINE_BYTES;
    let twos = unit.trailing_zeros().min(LINE_BYTES.trailing_zeros());
    // Modulo a line, the odd factor of a unit's bytes has an inverse. An odd number is its own inverse modulo 8, and
    // each step of Newton's doubles the bits that are right: 3, 6, 12.
    let odd = unit >> twos;
    let step =
        |inverse: usize| inverse.wrapping_mul(2usize.wrapping_sub(odd.wrapping_mul(inverse)));
    let inverse = step(step(odd));
    let units = (over >> twos).wrapping_mul(inverse) % (LINE_BYTES >> twos);
    over.is_multiple_of(1 << twos).then_some(units)
}
