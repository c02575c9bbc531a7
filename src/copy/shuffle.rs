//! The kernel that runs shuffle programs (`program.rs`).
//!
//! ```text
//! turn 0    load the windows of a set   pick, pick, pick   store a register for each output
//! turn 1    |- turn_from() further on   pick, pick, pick   |- turn_bytes() further on
//! ```

// The bodies of unsafe functions need no further blocks: what they require is in their `# Safety`.
#![allow(unsafe_op_in_unsafe_fn)]

use super::groups::{Groups, Turns};
use super::machine_constants::TURNS_OF_SET;
use super::opaque::unrolled;
use super::program::{is_square, Pick, Set, MAX_OUTPUTS};
use super::tile::transpose_squares;
use super::vector::Vector;

/// Runs all turns for one set of the program, and then for the next, so that indices stay in registers. What the last
/// register of a turn writes beyond the turn, the first one of the next turn writes again; so the last set goes first.
/// If lines are streamed, that happens in order, so each set runs only a few turns at a time.
///
/// # Safety
/// The CPU must have the features of the level. Groups must be whole turns, or more than one turn that fills its
/// registers. For each turn of each step, everything from the lowest byte of its groups to `high` bytes behind its first
/// byte must be readable. All groups must be writable, and if a turn does not fill its registers, so must be what they
/// have beyond the last turn of a step: less than a register for each piece. Nothing else is written. What is streamed
/// must be whole lines that begin lines, and a fence must follow.
#[inline(always)]
pub(super) unsafe fn shuffle<V: Vector>(groups: &Groups<'_>, streams: bool) {
    if V::WINDOW_BYTES == 0 {
        return; // there are no programs
    }
    groups.check();
    debug_assert!(!streams || groups.are_lines(), "turns are streamed that are not whole lines");
    let sets = groups.program.sets();
    let mut next = groups.stretch.ahead.next;
    let (all, turn) = (groups.stretch.count, groups.program.turn_groups());
    let most = if streams && sets.len() > 1 { TURNS_OF_SET * turn } else { all };
    for done in (0..all).step_by(most.max(1)) {
        let some = groups.slice(done, most.min(all - done));
        for set in sets.iter().rev() {
            next = any_set::<V>(&some, streams, set, next);
        }
    }
}

/// Runs some turns of a set. Returns what is to be prefetched next.
#[inline(always)]
unsafe fn any_set<V: Vector>(
    groups: &Groups<'_>,
    streams: bool,
    set: &Set,
    next: *const u8,
) -> *const u8 {
    const { assert!(MAX_OUTPUTS == 5) }
    // The lanes of several registers of one piece are apart: all first ones come before all second ones.
    let is_whole = V::WINDOW_BYTES == V::BYTES || groups.program.pieces() > 1;
    macro_rules! one_of {
        ($($outputs:literal: $($windows:literal)*;)*) => {
            match (set.outputs, set.windows) {
                $($(($outputs, $windows) => match (streams, is_whole || $outputs == 1) {
                    (false, true) => turns::<V, $outputs, $windows, false, false>(groups, set, next),
                    (false, false) => turns::<V, $outputs, $windows, false, true>(groups, set, next),
                    (true, true) => turns::<V, $outputs, $windows, true, false>(groups, set, next),
                    (true, false) => turns::<V, $outputs, $windows, true, true>(groups, set, next),
                },)*)*
                _ => {
                    debug_assert!(false, "no loop for {} outputs of {} windows", set.outputs, set.windows);
                    next
                }
            }
        };
    }
    // No fewer windows than outputs, and no more than `MAX_WINDOWS_OF_SET` says.
    one_of! {
        1: 1 2 3 4 5 6 7 8;
        2: 2 3 4 5 6;
        3: 3 4 5 6;
        4: 4 5;
        5: 5;
    }
}

/// Runs some turns of a set of `E` outputs and `R` windows; streams if `S`, and stores the lanes of an output apart from
/// each other if `A`. Returns what is to be prefetched next.
#[inline(always)]
#[allow(clippy::indexing_slicing)] // by numbers that the compiler knows
unsafe fn turns<V: Vector, const E: usize, const R: usize, const S: bool, const A: bool>(
    groups: &Groups<'_>,
    set: &Set,
    mut next: *const u8,
) -> *const u8 {
    let program = groups.program;
    let (from, to) = (program.turn_from(), program.turn_bytes());
    // A window for each output is what planes have that are woven. Four of them would leave too few registers.
    let are_planes = E == R && E < 4 && V::PICKS_FROM_TWO;
    let is_ahead = if E == 1 { S || from < 0 } else { S && are_planes };
    let distance = groups.stretch.ahead.distance.filter(|_| is_ahead).unwrap_or(0);
    let is_next_prefetched = S && distance == 0 && program.sets().len() > 1;
    let windows = program.windows_of::<R>(set);
    let index =
        program.picks_of::<E, R>(set).map(|picks| picks.map(|Pick(index)| V::load(index.as_ptr())));
    let targets = targets_of::<V, E>(groups, set);
    for Turns { mut source, mut at, count } in groups.turns() {
        let end = at + count * to;
        while at < end {
            if distance != 0 {
                for [window, _] in windows {
                    // At both ends: a window may lie across two lines; and where it does not, asking twice is quicker, too.
                    let ahead = source.wrapping_offset(window.wrapping_add(distance));
                    // The second-level cache is near enough for a single output that is streamed.
                    let prefetch = if S && E == 1 { V::prefetch_later } else { V::prefetch };
                    prefetch(ahead);
                    prefetch(ahead.wrapping_add(V::WINDOW_BYTES - 1));
                }
            }
            let mut loaded = [V::load_window(source, windows[0]); R];
            unrolled!(r in 1..R, {
                loaded[r] = V::load_window(source, windows[r]);
            });
            let is_square = const { is_square(E, R, V::WINDOW_BYTES) };
            if is_square {
                loaded = square(loaded, &index[0], program.pieces() == 1);
            }
            unrolled!(e in 0..E, {
                let mut made = if is_square {
                    loaded[e.min(R - 1)]
                } else if R == 1 {
                    loaded[0].pick(index[0][e])
                } else {
                    loaded[0].pick_two(loaded[R.min(2) - 1], [index[0][e], index[R.min(2) - 1][e]])
                };
                unrolled!(r in 2..R, {
                    if !is_square {
                        made = made.pick_more(loaded[r], index[r][e]);
                    }
                });
                let target = targets[e].wrapping_add(at);
                if A {
                    made.put_lanes::<S>(target, E * V::WINDOW_BYTES);
                } else {
                    made.put::<S>(target);
                }
                if is_next_prefetched {
                    V::prefetch_later(next);
                    next = next.wrapping_add(V::BYTES);
                }
            });
            at += to;
            source = source.wrapping_offset(from);
        }
    }
    next
}

/// Returns the outputs of a square: picked and transposed, or the other way round.
#[inline(always)]
unsafe fn square<V: Vector, const R: usize>(
    mut rows: [V; R],
    index: &[V],
    is_woven: bool,
) -> [V; R] {
    if is_woven {
        rows = transpose_squares::<V, 4, R>(rows);
    }
    for (row, index) in rows.iter_mut().zip(index) {
        *row = row.pick(*index);
    }
    if is_woven {
        rows
    } else {
        transpose_squares::<V, 4, R>(rows)
    }
}

/// Returns where the first lanes of a set's outputs go: a register for each piece, or registers of one piece.
///
/// # Safety
/// There must be a target for each piece of the program.
#[inline(always)]
unsafe fn targets_of<V: Vector, const E: usize>(groups: &Groups<'_>, set: &Set) -> [*mut u8; E] {
    let (pieces, lanes) = if groups.program.pieces() > 1 { (1, 0) } else { (0, V::WINDOW_BYTES) };
    let at = set.register * V::BYTES;
    let mut targets = [core::ptr::null_mut(); E];
    for (number, slot) in targets.iter_mut().enumerate() {
        debug_assert!(number * pieces < groups.stretch.targets.len());
        let target = *groups.stretch.targets.as_ptr().wrapping_add(number * pieces);
        *slot = target.wrapping_add(at + number * lanes);
    }
    targets
}

#[cfg(test)]
#[allow(clippy::cast_possible_wrap, clippy::cast_sign_loss)] // of small numbers
mod tests {
    use super::super::ahead::Ahead;
    use super::super::groups::Stretch;
    use super::super::level::kernels_of;
    use super::super::nest::Axis;
    use super::super::program::{Group, Pattern, Program, ProgramSlot};
    use super::super::tests::levels;
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
                    (1, 0, 4 * unit as isize),
                    (1, 0, -4 * unit as isize),
                    (4, 700, unit as isize),
                    (4, -90, unit as isize),
                    (4, 5, unit as isize),
                    (4, 100, -(unit as isize)),
                ] {
                    let group = Group { unit, units, apart, from };
                    let beside = unit as isize;
                    for (pieces, apart) in
                        [(1, 0), (2, beside), (3, beside), (4, beside), (4, -beside), (6, beside)]
                    {
                        for streams in [false, true] {
                            let mut slot = ProgramSlot::new(kernels.registers.bytes);
                            let (pattern, registers) =
                                (Pattern { group, pieces, apart }, &kernels.registers);
                            if let Some(program) =
                                slot.make(pattern, registers, streams, usize::MAX)
                            {
                                made += 1;
                                check(program, pieces);
                            }
                        }
                    }
                }
            }
        }
        assert!(made > 100 || levels().len() == 1);
    }

    fn check(program: &Program, pieces: usize) {
        let pieces = program.targets_of_call(pieces);
        program.check_windows();
        let (group, groups) = (*program.group(), program.turn_groups());
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
            if !program.fills_registers() && !is_plain || groups < 2 && left_out > 0 {
                continue;
            }
            let count = turns * groups - left_out;
            let bytes = count * group.bytes();
            let outer = Axis { to: outer.to + bytes as isize, ..outer };
            // What registers write beyond the turn if it does not fill them.
            let beyond = program.unfilled_bytes();
            let all = bytes + outer.to as usize * (outer.extent - 1);
            let mut outputs = vec![vec![0xEE; all + beyond + 1]; pieces];
            let targets: Vec<*mut u8> = outputs.iter_mut().map(Vec::as_mut_ptr).collect();
            let source = input[200_000..].as_ptr();
            let targets = &targets[..];
            let stretch = Stretch {
                source,
                targets,
                at: 0,
                count,
                outer,
                readable_end: null(),
                ahead: Ahead::next(null()),
            };
            // SAFETY: the input is long enough on both sides, and the outputs are as long as they are to be.
            unsafe { (program.register.shuffle)(&Groups { program, stretch }, false) };
            for (piece, output) in outputs.iter().enumerate() {
                let mut expected = vec![0xEE; all];
                for step in 0..outer.extent {
                    for byte in 0..bytes {
                        let (g, within) = (byte / group.bytes(), byte % group.bytes());
                        let (u, within) = (within / group.unit, within % group.unit);
                        let from =
                            g as isize * group.from + u as isize * group.apart + within as isize;
                        let from = from
                            + piece as isize * program.pattern.apart
                            + step as isize * outer.from;
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
