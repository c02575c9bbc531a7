//! The kernel that runs shuffle programs (`program.rs`).
//!
//! # Safety
//! Of all that is unsafe here: the CPU must have the features of the level; from the first byte of each turn to the
//! program's `high` must be readable, and the output of all groups writable. What goes past the caches must be whole
//! lines, and a fence must follow.

use super::program::{Program, Step};
use super::vector::Vector;

/// Whole turns of a program, and then some groups, for pieces that read the same rows.
#[derive(Clone, Copy)]
pub(super) struct Turns<'a> {
    pub program: &'a Program,
    pub source: *const u8,
    /// Pieces, each so many bytes of input from the one before it.
    pub targets: &'a [*mut u8],
    pub apart: isize,
    /// Bytes of each target that others have made before.
    pub at: usize,
    pub turns: usize,
    /// Groups after them, no more than a turn has.
    pub rest: usize,
    /// What is read next: with each line that goes past the caches, one of these is asked for.
    pub next: *const u8,
}

/// Runs all turns for one register of the program, and then for the next, so that the indices stay in registers. What the
/// last register of a turn writes beyond it, the first one of the next turn writes again: so the last one goes first.
///
/// # Safety
/// As the module says.
#[inline(always)]
pub(super) unsafe fn run<V: Vector, const PAST: bool>(all: &Turns<'_>) {
    let program = all.program;
    let (mut first, mut next) = (program.counts.iter().sum(), all.next);
    for number in (0..program.registers).rev() {
        let count = program.counts.get(number).copied().unwrap_or(0);
        first -= count;
        let steps = program.steps.as_ptr().wrapping_add(first).cast::<Step>();
        let at = all.at + number * V::BYTES;
        // SAFETY: the program has so many steps; the caller's promise.
        next = unsafe {
            match count {
                1 => one_register::<V, PAST, 1>(all, steps, at, next),
                2 => one_register::<V, PAST, 2>(all, steps, at, next),
                3 => one_register::<V, PAST, 3>(all, steps, at, next),
                4 => one_register::<V, PAST, 4>(all, steps, at, next),
                5 => one_register::<V, PAST, 5>(all, steps, at, next),
                6 => one_register::<V, PAST, 6>(all, steps, at, next),
                7 => one_register::<V, PAST, 7>(all, steps, at, next),
                _ => one_register::<V, PAST, 8>(all, steps, at, next),
            }
        };
    }
    if all.rest > 0 {
        // SAFETY: the caller's promise.
        unsafe { rest::<V>(all) };
    }
}

/// One register of each turn, of all pieces.
#[inline(always)]
unsafe fn one_register<V: Vector, const PAST: bool, const N: usize>(
    all: &Turns<'_>,
    steps: *const Step,
    mut at: usize,
    mut next: *const u8,
) -> *const u8 {
    let (from, to) = (all.program.from(), all.program.bytes());
    let mut source = all.source;
    // SAFETY: there are `N` steps; the caller's promise.
    unsafe {
        let steps = &*steps.cast::<[Step; N]>();
        let index = steps.map(|step| V::load(step.index.as_ptr()));
        let mask = steps.map(|step| step.mask);
        let offsets = steps.map(|step| step.offsets);
        for _ in 0..all.turns {
            let mut piece = source;
            for target in all.targets {
                let mut made = V::pick(piece, offsets[0], index[0]);
                for n in 1..N {
                    made = made.pick_more(piece, offsets[n], index[n], mask[n]);
                }
                let target = target.wrapping_add(at);
                if PAST {
                    made.stream(target);
                    V::prefetch(next);
                    next = next.wrapping_add(V::BYTES);
                } else {
                    made.store(target);
                }
                piece = piece.wrapping_offset(all.apart);
            }
            at += to;
            source = source.wrapping_offset(from);
        }
    }
    next
}

/// The groups after the last turn, exactly.
#[inline(always)]
unsafe fn rest<V: Vector>(all: &Turns<'_>) {
    let program = all.program;
    let mut source = all.source.wrapping_offset(program.from().wrapping_mul(all.turns.cast_signed()));
    for target in all.targets {
        let mut target = target.wrapping_add(all.at + program.bytes() * all.turns);
        let mut left = program.group.bytes() * all.rest;
        let mut steps = program.steps.as_ptr().cast::<Step>();
        for count in program.counts {
            if left == 0 {
                break;
            }
            let bytes = left.min(V::BYTES);
            // SAFETY: the program has so many steps; the caller's promise.
            unsafe {
                let made = register::<V>(steps, count, source);
                if bytes < V::BYTES {
                    made.store_part(target, bytes);
                } else {
                    made.store(target);
                }
            }
            steps = steps.wrapping_add(count);
            (target, left) = (target.wrapping_add(bytes), left - bytes);
        }
        source = source.wrapping_offset(all.apart);
    }
}

/// A register by any number of steps.
#[inline(always)]
unsafe fn register<V: Vector>(steps: *const Step, count: usize, source: *const u8) -> V {
    // SAFETY: the caller's promise.
    unsafe {
        let step = &*steps;
        let mut made = V::pick(source, step.offsets, V::load(step.index.as_ptr()));
        for n in 1..count {
            let step = &*steps.wrapping_add(n);
            made = made.pick_more(source, step.offsets, V::load(step.index.as_ptr()), step.mask);
        }
        made
    }
}
