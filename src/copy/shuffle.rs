//! The kernel that runs shuffle programs (`program.rs`).
//!
//! # Safety
//! For everything unsafe here: the CPU must have the features of the level; everything from the first byte of each turn
//! to the program's `high` must be readable, and the output of all groups writable. What goes past the caches must be
//! whole lines, and a fence must follow. Groups must be whole turns, or at least one turn that fills its registers.

use super::groups::Groups;
use super::machine::TURNS_OF_SET;
use super::opaque::unrolled;
use super::picks::Pick;
use super::program::Set;
use super::vector::{Vector, LINE_BYTES};
use crate::math::div_rem;

/// How many turns of a step follow each other, and how many groups are left: the last turn makes some again with them.
pub(super) type Turns = (usize, usize);

impl Groups<'_> {
    /// Returns the number of stretches: turns that follow each other. Each step has one, and a last turn if groups are
    /// left.
    #[inline(always)]
    pub(super) fn stretches(&self, (_, left): Turns) -> usize {
        self.outer.extent << usize::from(left > 0)
    }

    /// Returns where the turns of a stretch begin, in the source and in the targets, and how many there are.
    #[inline(always)]
    pub(super) fn stretch(&self, number: usize, (turns, left): Turns) -> (*const u8, usize, usize) {
        let has_last = left > 0;
        let step = self.steps(number >> usize::from(has_last), 1);
        if has_last && number % 2 == 1 {
            let last = step.part(self.count - self.program.groups, self.program.groups);
            (last.source, last.at, 1)
        } else {
            (step.source, step.at, turns)
        }
    }
}

/// Runs all turns for one set of the program, and then for the next, so that indices stay in registers. What the last
/// register of a turn writes beyond the turn, the first one of the next turn writes again; so the last set goes first.
/// Past the caches lines are sent in order, so there each set runs only a few turns at a time.
///
/// # Safety
/// As the module says.
#[inline(always)]
pub(super) unsafe fn run<V: Vector>(all: &Groups<'_>, past: bool) {
    if V::WINDOW_BYTES == 0 {
        return; // there are no programs
    }
    // Registers of half a line are never sent.
    let past = past && V::BYTES == LINE_BYTES;
    let (sets, mut next) = (all.program.sets(), all.next);
    let groups = all.program.groups;
    let (count, left) = div_rem(all.count, groups);
    let most = if past && sets.len() > 1 { TURNS_OF_SET } else { count };
    let mut done = 0;
    while done < count {
        let turns = most.min(count - done);
        let some = if past { all.part(done * groups, turns * groups) } else { *all };
        for number in 0..sets.len() {
            let Some(set) = sets.get(sets.len() - 1 - number) else { continue };
            // SAFETY: the caller's promise.
            next = unsafe { any_set::<V>(&some, (set, (turns, left)), (next, past)) };
        }
        done += turns;
    }
}

/// Runs some turns of a set.
#[inline(always)]
unsafe fn any_set<V: Vector>(
    all: &Groups<'_>,
    (set, turns): (&Set, Turns),
    (next, past): (*const u8, bool),
) -> *const u8 {
    macro_rules! one_of {
        ($($outputs:literal: $($windows:literal)*;)*) => {
            match (set.outputs, set.windows) {
                $($(($outputs, $windows) => one_set::<V, $outputs, $windows>(all, (set, turns), (next, past)),)*)*
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
unsafe fn one_set<V: Vector, const E: usize, const R: usize>(
    all: &Groups<'_>,
    (set, turns): (&Set, Turns),
    (mut next, past): (*const u8, bool),
) -> *const u8 {
    let program = all.program;
    let (from, to) = (program.from(), program.bytes());
    let distance = if past { all.distance } else { 0 };
    let is_next_prefetched = distance == 0 && program.set_count > 1;
    // SAFETY: the set has that many windows and picks; the caller's promise.
    unsafe {
        let picks = &*program.picks.as_ptr().wrapping_add(set.first_pick).cast::<[[Pick; E]; R]>();
        let windows =
            *program.windows.as_ptr().wrapping_add(set.first_window).cast::<[[isize; 2]; R]>();
        let index = picks.map(|picks| picks.map(|Pick(index)| V::load(index.as_ptr())));
        let targets = targets_of::<V, E>(all, set);
        for number in 0..all.stretches(turns) {
            let (mut source, mut at, count) = all.stretch(number, turns);
            for _ in 0..count {
                if distance != 0 {
                    for [window, _] in windows {
                        V::prefetch_later(source.wrapping_offset(window.wrapping_add(distance)));
                    }
                }
                let mut loaded = [V::load_window(source, windows[0]); R];
                unrolled!(r in 1..R, {
                    loaded[r] = V::load_window(source, windows[r]);
                });
                unrolled!(e in 0..E, {
                    let mut made = if R == 1 {
                        loaded[0].pick(index[0][e])
                    } else {
                        loaded[0]
                            .pick_two(loaded[R.min(2) - 1], [index[0][e], index[R.min(2) - 1][e]])
                    };
                    unrolled!(r in 2..R, {
                        made = made.pick_more(loaded[r], index[r][e]);
                    });
                    let target = targets[e].wrapping_add(at);
                    if past {
                        made.stream(target);
                        if is_next_prefetched {
                            V::prefetch_later(next);
                            next = next.wrapping_add(V::BYTES);
                        }
                    } else {
                        made.store(target);
                    }
                });
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
        let shuffle = program.register.shuffle;
        let pieces = program.together(pieces);
        check_windows(program);
        let group = program.group;
        let input: Vec<u8> =
            (0..400_000u32).map(|at| (at * 31 % 251 + at / 251 % 7).to_le_bytes()[0]).collect();
        for (turns, left_out, outer) in [
            (0, 0, Axis::ONE),
            (1, 0, Axis::ONE),
            (10, 0, Axis::ONE),
            (1, 0, Axis { extent: 3, from: 4_000, to: 0 }),
            (3, 0, Axis { extent: 4, from: -5_003, to: 0 }),
            (3, 1, Axis { extent: 3, from: 0, to: 70 }),
            (2, 1, Axis { extent: 2, from: 7_001, to: 0 }),
        ] {
            // Only turns that fill their registers may make groups again, or leave what others have written.
            let is_plain = left_out == 0 && outer == Axis::ONE;
            if !program.fills_registers() && !is_plain || program.groups < 2 && left_out > 0 {
                continue;
            }
            let count = turns * program.groups - left_out;
            let bytes = count * group.bytes();
            let outer = Axis { to: outer.to + bytes as isize, ..outer };
            // What registers write beyond the turn if it does not fill them.
            let beyond = program.registers * program.register.bytes - program.bytes();
            let all = bytes + outer.to as usize * (outer.extent - 1);
            let mut outputs = vec![vec![0xEE; all + beyond + 1]; pieces];
            let targets: Vec<*mut u8> = outputs.iter_mut().map(Vec::as_mut_ptr).collect();
            let source = input[200_000..].as_ptr();
            let targets = &targets[..];
            let (at, distance, readable_end, next) = (0, 0, null(), null());
            // SAFETY: the input is long enough on both sides, and the outputs are as long as they are to be.
            unsafe {
                shuffle(
                    &Groups {
                        program,
                        source,
                        targets,
                        at,
                        count,
                        outer,
                        readable_end,
                        next,
                        distance,
                    },
                    false,
                );
            };
            for (piece, output) in outputs.iter().enumerate() {
                let mut expected = vec![0xEE; all];
                for step in 0..outer.extent {
                    for byte in 0..bytes {
                        let (g, within) = (byte / group.bytes(), byte % group.bytes());
                        let (u, within) = (within / group.unit, within % group.unit);
                        let from =
                            g as isize * group.from + u as isize * group.apart + within as isize;
                        let from =
                            from + piece as isize * program.apart + step as isize * outer.from;
                        expected[step * outer.to as usize + byte] =
                            input[(200_000 + from) as usize];
                    }
                }
                assert!(
                    output[..all] == expected[..],
                    "piece {piece}: {group:?} {count} {outer:?}"
                );
                assert_eq!(output[all + beyond], 0xEE);
            }
        }
    }
}
