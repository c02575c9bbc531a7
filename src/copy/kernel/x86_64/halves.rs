//! Runs of more than half a line by registers of half a line, row by row: for CPUs that load and store whole ones as
//! two halves.
//!
//! Equal runs are copied as in `equal_runs.rs`: they go as far into each target, so that one number says where in all
//! of them. Zen 4, 1 MiB, share of the flat copy for one piece after the other (and by registers of a line): two of 48
//! bytes .81 for .68 (.79), three of 64 .94 for .86 (.88), five of 96 .91 for .84 (.89), twelve of 128 .94 for .89
//! (.92). Where targets begin is as well in memory there as in registers.
//!
//! Longer runs go each by itself, by stores that are aligned up to the last one: one that reaches into another page
//! takes ten nanoseconds. Targets 16 bytes off their lines, share of the flat copy for whole ends: four of 256 bytes .97
//! for .78, of 512 .99 for .91, of 2 KiB 1.00 for .95; in the first-level cache three of 4 KiB 1.12 for .80.
//!
//! # Safety
//! 1. The CPU must have AVX2.
//! 2. Every run must be readable and room for all runs writable at each target; they do not overlap.

use super::super::combine::LINE;
use super::super::generic::{chunk, copy_short, leave_alone};
use super::super::row_major::{are_in_one_set, RowRun};
use super::super::vector::{Vector, LANE};
use super::equal_runs::BLOCK;
use crate::math::{div, parts};
use core::arch::x86_64::__m256i;
use core::ops::Range;

/// Bytes of a register.
const HALF: usize = LINE / 2;

/// Runs of so many bytes are long, and of more than so many if they are equal and each on its half line. Zen 4, four in
/// the second-level cache, on lines and off, share of the flat copy for equal ones as such: 160 bytes .91 for .96, .76
/// for .88; 192 .96 for .98, .92 for .84; 256 .97 for .99, .97 for .82; 4 MiB of 256 .89 for .97, .96 for .82.
pub(super) const LONG: usize = 3 * LINE;
const MOST: usize = 8 * LINE;

/// The most pieces that have lines in one set of the first-level cache, which has eight of each: more go one after the
/// other, all rows at once if these share no lines. Zen 4, share of the flat copy for all at a time: seven of 64 bytes
/// .87 for .87, eight .86 for .70, ten .86 for .49; eight of 96 .86 for .72; and for blocks: sixteen of 128 .93 for .81,
/// of 256 .90 for .84.
const OF_A_SET: usize = 6;

/// Copies contiguous bytes.
///
/// # Safety
/// 1; 2 of `generic.rs`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn copy(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise; no move goes beyond `bytes`.
    unsafe {
        match bytes {
            LONG.. => {}
            129.. => {
                chunk::<LINE>(source, target, 0);
                return chunk::<128>(source, target, bytes - 128);
            }
            _ => return copy_short(source, target, bytes),
        }
        let mut at = (target as usize).wrapping_neg() % HALF;
        if at > 0 {
            chunk::<HALF>(source, target, 0);
        }
        while at + 128 <= bytes {
            chunk::<128>(source, target, at);
            at += 128;
            leave_alone(&mut at);
        }
        while at + HALF <= bytes {
            chunk::<HALF>(source, target, at);
            at += HALF;
            leave_alone(&mut at);
        }
        if at + LANE < bytes {
            chunk::<LANE>(source, target, at);
        }
        if at < bytes {
            chunk::<LANE>(source, target, bytes - LANE);
        }
    }
}

/// Copies the runs of `count` rows, `step` bytes apart, if they are equal, lie side by side and are the quickest so;
/// whether it did.
///
/// # Safety
/// 1, 2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn equal_runs(runs: &[RowRun], step: usize, count: usize) -> bool {
    let Some(&RowRun { source, bytes, .. }) = runs.first() else { return true };
    let is_next = |(at, run): (usize, &RowRun)| {
        run.bytes == bytes && run.source == source.wrapping_add(at * bytes)
    };
    if !(HALF + 1..=MOST).contains(&bytes) || !runs.iter().enumerate().all(is_next) {
        return false;
    }
    let are_few = !are_in_one_set(runs, OF_A_SET);
    let is_on_its_half = |run: &RowRun| (run.target as usize | bytes).is_multiple_of(HALF);
    let shares_lines = !bytes.is_multiple_of(LINE);
    let is_right = if are_few {
        bytes < LONG || runs.iter().all(is_on_its_half)
    } else {
        bytes > LINE && !(bytes >= LONG && shares_lines)
    };
    if !is_right {
        return false;
    }
    let all = runs.len() * bytes;
    let block = if are_few || !shares_lines { count } else { div(BLOCK, all).max(1) };
    for rows in parts(0..count, block) {
        for (some, nth) in runs.chunks(if are_few { runs.len() } else { 1 }).zip(0..) {
            let source = source.wrapping_add(nth * bytes);
            // SAFETY: the caller's promise.
            unsafe { copy_rows(some, source, step, bytes, rows.clone()) };
        }
    }
    true
}

/// # Safety
/// 1, 2.
#[target_feature(enable = "avx2")]
unsafe fn copy_rows(
    runs: &[RowRun],
    source: *const u8,
    step: usize,
    bytes: usize,
    rows: Range<usize>,
) {
    let mut source = source.wrapping_add(rows.start.wrapping_mul(step));
    let (mut row, last) = (rows.start * bytes, bytes - HALF);
    let gap = step.wrapping_sub(runs.len() * bytes);
    for _ in rows {
        for run in runs {
            let target = run.target.wrapping_add(row);
            let mut at = 0;
            // SAFETY: the caller's promise.
            unsafe {
                loop {
                    __m256i::load(source.wrapping_add(at)).store(target.wrapping_add(at));
                    at += HALF;
                    leave_alone(&mut at);
                    if at >= last {
                        break;
                    }
                }
                __m256i::load(source.wrapping_add(last)).store(target.wrapping_add(last));
            }
            source = source.wrapping_add(bytes);
        }
        source = source.wrapping_add(gap);
        row += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::cpu::{Cpu, Level};
    use super::{copy, LINE};

    #[test]
    fn any_bytes_to_any_place_of_a_line_and_no_others() {
        if Cpu::this().level < Level::Avx2 {
            return;
        }
        let source: Vec<u8> = (0..2048u32).map(|at| (at % 251).to_le_bytes()[0]).collect();
        for bytes in (0..700).chain([1023, 1024, 1999]) {
            for begin in 0..LINE {
                let mut target = [255; 2048 + 2 * LINE];
                // SAFETY: both are longer.
                unsafe { copy(source.as_ptr(), target[LINE + begin..].as_mut_ptr(), bytes) };
                let (before, rest) = target.split_at(LINE + begin);
                let (copied, after) = rest.split_at(bytes);
                assert!(copied == &source[..bytes], "{bytes} bytes");
                assert!(before.iter().chain(after).all(|byte| *byte == 255), "{bytes} bytes");
            }
        }
    }
}
