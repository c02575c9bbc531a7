//! The kernel that runs shuffle programs (`program.rs`).
//!
//! # Safety
//! For everything unsafe here: the CPU must have the features of the level; everything from the first byte of each turn
//! to the program's `high` must be readable, and the output of all groups writable. What goes past the caches must be
//! whole lines, and a fence must follow.

use super::groups::Groups;
use super::machine::TURNS_OF_SET;
use super::picks::Pick;
use super::program::Set;
use super::vector::Vector;
use crate::math::div_ceil;

impl Groups<'_> {
    /// Returns the number of stretches: turns that follow each other. There are two of each step: all turns but the
    /// last, and then the last one, which may make some groups again. Past the caches none does.
    #[inline(always)]
    pub(super) fn stretches<const PAST: bool>(&self) -> usize {
        if PAST {
            1
        } else {
            2 * self.outer.extent
        }
    }

    /// Returns where the turns of a stretch begin, in the source and in the targets, and how many there are, given
    /// how many a step has.
    #[inline(always)]
    pub(super) fn stretch<const PAST: bool>(
        &self,
        number: usize,
        turns: usize,
    ) -> (*const u8, usize, usize) {
        let program = self.program;
        let step = number / 2;
        let mut source =
            self.source.wrapping_offset(self.outer.from.wrapping_mul(step.cast_signed()));
        let mut at = self.at.wrapping_add(self.outer.to.unsigned_abs().wrapping_mul(step));
        if PAST {
            return (source, at, turns);
        }
        if number.is_multiple_of(2) {
            return (source, at, turns.saturating_sub(1));
        }
        let last = self.count.saturating_sub(program.groups);
        source = source.wrapping_offset(program.group.from.wrapping_mul(last.cast_signed()));
        at = at.wrapping_add(last.wrapping_mul(program.group.bytes()));
        (source, at, turns.min(1))
    }
}

/// Does nothing, for levels that have no programs.
///
/// # Safety
/// There are no requirements.
pub(super) unsafe fn none(_: &Groups<'_>) {}

/// Runs all turns for one set of the program, and then for the next, so that indices stay in registers. What the last
/// register of a turn writes beyond the turn, the first one of the next turn writes again; so the last set goes first.
/// Past the caches lines are sent in order, so there each set runs only a few turns at a time.
///
/// # Safety
/// As the module says.
#[inline(always)]
pub(super) unsafe fn run<V: Vector, const PAST: bool>(all: &Groups<'_>) {
    if V::WINDOW_BYTES == 0 {
        return; // there are no programs
    }
    let (sets, mut next) = (all.program.sets(), all.next);
    let most = TURNS_OF_SET * all.program.groups;
    let each = if PAST && sets.len() > 1 { most } else { all.count.max(1) };
    let mut done = 0;
    while done < all.count {
        let some = all.part(done, each.min(all.count - done));
        let turns = div_ceil(some.count, some.program.groups);
        for number in 0..sets.len() {
            let Some(set) = sets.get(sets.len() - 1 - number) else { continue };
            // SAFETY: the caller's promise.
            next = unsafe { any_set::<V, PAST>(&some, (set, turns), next) };
        }
        done += each;
    }
}

/// Runs some turns of a set.
#[inline(always)]
unsafe fn any_set<V: Vector, const PAST: bool>(
    all: &Groups<'_>,
    (set, turns): (&Set, usize),
    next: *const u8,
) -> *const u8 {
    macro_rules! one_of {
        ($($outputs:literal: $($windows:literal)*;)*) => {
            match (set.outputs, set.windows) {
                $($(($outputs, $windows) => one_set::<V, PAST, $outputs, $windows>(all, (set, turns), next),)*)*
                _ => next,
            }
        };
    }
    // SAFETY: the program has that many picks; the caller's promise.
    unsafe {
        one_of! {
            1: 1 2 3 4 5 6 7 8;
            2: 1 2 3 4 5 6 7 8;
            3: 1 2 3 4 5 6;
            4: 1 2 3 4 5;
            5: 1 2 3 4 5;
        }
    }
}

/// Runs some turns of a set of `E` outputs and `R` windows. Returns what is to be prefetched next.
#[inline(always)]
#[allow(clippy::indexing_slicing)] // by numbers that the compiler knows
unsafe fn one_set<V: Vector, const PAST: bool, const E: usize, const R: usize>(
    all: &Groups<'_>,
    (set, turns): (&Set, usize),
    mut next: *const u8,
) -> *const u8 {
    let program = all.program;
    let (from, to) = (program.from(), program.bytes());
    // SAFETY: the set has that many windows and picks; the caller's promise.
    unsafe {
        let picks = &*program.picks.as_ptr().wrapping_add(set.first_pick).cast::<[[Pick; E]; R]>();
        let windows =
            *program.windows.as_ptr().wrapping_add(set.first_window).cast::<[[isize; 2]; R]>();
        let index = picks.map(|picks| picks.map(|Pick(index)| V::load(index.as_ptr())));
        let targets = targets_of::<V, E>(all, set);
        for number in 0..all.stretches::<PAST>() {
            let (mut source, mut at, count) = all.stretch::<PAST>(number, turns);
            for _ in 0..count {
                if PAST && all.distance != 0 {
                    for [window, _] in windows {
                        V::prefetch_later(
                            source.wrapping_offset(window.wrapping_add(all.distance)),
                        );
                    }
                }
                let mut loaded = [V::load_window(source, windows[0]); R];
                for r in 1..R {
                    loaded[r] = V::load_window(source, windows[r]);
                }
                for e in 0..E {
                    let mut made = if R == 1 {
                        loaded[0].pick(index[0][e])
                    } else {
                        loaded[0]
                            .pick_two(loaded[R.min(2) - 1], [index[0][e], index[R.min(2) - 1][e]])
                    };
                    for r in 2..R {
                        made = made.pick_more(loaded[r], index[r][e]);
                    }
                    let target = targets[e].wrapping_add(at);
                    if PAST {
                        made.stream(target);
                        if all.distance == 0 && program.set_count > 1 {
                            V::prefetch_later(next);
                            next = next.wrapping_add(V::BYTES);
                        }
                    } else {
                        made.store(target);
                    }
                }
                at += to;
                source = source.wrapping_offset(from);
            }
        }
    }
    next
}

/// Returns where the outputs of a set go: a register for each piece, or registers that follow each other.
///
/// # Safety
/// There must be a target for each piece of the program.
#[inline(always)]
unsafe fn targets_of<V: Vector, const E: usize>(all: &Groups<'_>, set: &Set) -> [*mut u8; E] {
    let (pieces, registers) = if all.program.pieces > 1 { (1, 0) } else { (0, V::BYTES) };
    let at = set.register * V::BYTES;
    let mut targets = [core::ptr::null_mut(); E];
    for (number, slot) in targets.iter_mut().enumerate() {
        // SAFETY: the caller's promise.
        let target = unsafe { *all.targets.as_ptr().wrapping_add(number * pieces) };
        *slot = target.wrapping_add(at + number * registers);
    }
    targets
}

#[cfg(test)]
#[allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)] // of small numbers
mod tests {
    use super::super::level::kernels_of;
    use super::super::machine::levels;
    use super::super::nest::Axis;
    use super::super::program::{Group, Program};
    use super::Groups;
    use std::ptr::null;

    /// Every byte of every piece comes from where the group says.
    #[test]
    fn programs_do_what_groups_say() {
        let mut made = 0;
        for level in levels() {
            let kernels = kernels_of(level);
            for unit in (1..20).chain((20..128).step_by(9)) {
                for (units, apart, from) in [
                    (1, 0, unit as isize * 3),
                    (1, 0, unit as isize * 6 + 1),
                    (1, 0, unit as isize),
                    (1, 0, 0),
                    (1, 0, -2 * unit as isize),
                    (3, 700, unit as isize),
                    (3, -(unit as isize), 3 * unit as isize),
                    (2, 4 * unit as isize, 9 * unit as isize),
                ] {
                    let group = Group { unit, units, apart, from };
                    for (pieces, between) in
                        [(1, 0), (2, unit as isize), (3, unit as isize), (6, unit as isize)]
                    {
                        let mut program = Program::new();
                        if !program.make(
                            group,
                            (pieces, between),
                            kernels,
                            (unit % 2 == 0, usize::MAX),
                        ) {
                            continue;
                        }
                        made += 1;
                        check(&program, pieces);
                    }
                }
            }
        }
        assert!(made > 100 || levels().len() == 1);
    }

    /// No window begins before the first byte of a turn's groups.
    fn check_windows(program: &Program) {
        let group = program.group;
        let units = (0..program.groups)
            .flat_map(|g| (0..group.units).map(move |u| (g as isize, u as isize)));
        let begins = units.map(|(g, u)| g * group.from + u * group.apart);
        let first = begins.min().unwrap() + program.apart.min(0) * (program.pieces as isize - 1);
        for set in program.sets() {
            for windows in &program.windows[set.first_window..set.first_window + set.windows] {
                assert!(
                    windows.iter().all(|window| *window >= first),
                    "{windows:?} {first} {group:?}"
                );
            }
        }
    }

    fn check(program: &Program, pieces: usize) {
        let [shuffle, _] = program.register.shuffle;
        let pieces = program.together(pieces);
        check_windows(program);
        let group = program.group;
        let input: Vec<u8> =
            (0..400_000u32).map(|at| (at * 31 % 251 + at / 251 % 7).to_le_bytes()[0]).collect();
        for turns in [0, 1, 3, 10] {
            let bytes = turns * program.groups * group.bytes();
            // What registers write beyond the turn if it does not fill them.
            let beyond = program.registers * program.register.bytes - program.bytes();
            let mut outputs = vec![vec![0xEE; bytes + beyond + 1]; pieces];
            let targets: Vec<*mut u8> = outputs.iter_mut().map(Vec::as_mut_ptr).collect();
            let source = input[200_000..].as_ptr();
            let targets = &targets[..];
            // SAFETY: the input is long enough on both sides, and the outputs are as long as they are to be.
            unsafe {
                shuffle(&Groups {
                    program,
                    source,
                    targets,
                    at: 0,
                    count: turns * program.groups,
                    outer: Axis::ONE,
                    readable_end: null(),
                    next: null(),
                    distance: 0,
                });
            };
            for (piece, output) in outputs.iter().enumerate() {
                for (byte, made) in output.iter().take(bytes).enumerate() {
                    let (g, within) = (byte / group.bytes(), byte % group.bytes());
                    let (u, within) = (within / group.unit, within % group.unit);
                    let from = g as isize * group.from + u as isize * group.apart + within as isize;
                    let at = 200_000 + from + piece as isize * program.apart;
                    assert_eq!(
                        *made, input[at as usize],
                        "byte {byte} of piece {piece}: {group:?}"
                    );
                }
                assert_eq!(output[bytes + beyond], 0xEE);
            }
        }
    }
}
