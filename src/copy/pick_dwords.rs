//! The kernel that runs programs that pick dwords (`program/dwords.rs`).

// The bodies of unsafe functions need no further blocks: what they require is in their `# Safety`.
#![allow(unsafe_op_in_unsafe_fn)]

use super::groups::{Groups, Turns};
use super::machine_constants::TURNS_OF_SET;
use super::opaque::unrolled;
use super::program::{share_of, Pick, Set, Share};
use super::vector::Vector;

/// Runs all turns of a program.
///
/// # Safety
/// As for [`shuffle`](super::shuffle::shuffle); there may be any number of targets.
#[inline(always)]
pub(super) unsafe fn pick_dwords<V: Vector>(groups: &Groups<'_>) {
    if V::WINDOW_BYTES == 0 {
        return; // there are no programs
    }
    groups.check();
    let [set, ..] = groups.program.sets() else { return };
    macro_rules! one_of {
        ($($outputs:literal: $($windows:literal)*;)*) => {
            match (set.outputs, set.windows) {
                $($(($outputs, $windows) => turns::<V, $outputs, $windows>(groups, set),)*)*
                _ => debug_assert!(false, "no loop for {} outputs of {} windows", set.outputs, set.windows),
            }
        };
    }
    one_of! {
        1: 2 4 8;
        3: 4 8;
        5: 8;
    }
}

/// Runs turns of `E` outputs, each of which has its share of `R` windows.
#[inline(always)]
#[allow(clippy::indexing_slicing, clippy::needless_range_loop)] // by numbers that the compiler knows
unsafe fn turns<V: Vector, const E: usize, const R: usize>(groups: &Groups<'_>, set: &Set) {
    let program = groups.program;
    let (group_from, apart) = (program.group().from, program.pattern.apart);
    let (from, to) = (program.turn_from(), program.turn_bytes());
    let index =
        program.picks_of::<E, R>(set).map(|picks| picks.map(|Pick(index)| V::load(index.as_ptr())));
    for Turns { source, at, count } in groups.turns() {
        let mut done = 0;
        while done < count {
            let end = (done + TURNS_OF_SET).min(count);
            let mut piece = source.wrapping_offset(from.wrapping_mul(done.cast_signed()));
            for target in groups.stretch.targets {
                let mut unit = piece;
                for turn in done..end {
                    let mut loaded = [V::load(unit); R];
                    for loaded in loaded.iter_mut().skip(1) {
                        unit = unit.wrapping_offset(group_from);
                        *loaded = V::load(unit);
                    }
                    unit = unit.wrapping_offset(group_from);
                    let target = target.wrapping_add(at + turn * to);
                    unrolled!(e in 0..E, {
                        let Share { first, last } = share_of(e, E, R);
                        let mut made = loaded[first].pick_two(
                            loaded[first + 1],
                            [index[first][e], index[first + 1][e]],
                        );
                        for r in first + 2..=last {
                            made = made.pick_more(loaded[r], index[r][e]);
                        }
                        made.store(target.wrapping_add(e * V::BYTES));
                    });
                }
                piece = piece.wrapping_offset(apart);
            }
            done = end;
        }
    }
}
