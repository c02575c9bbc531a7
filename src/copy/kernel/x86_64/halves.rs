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
use super::super::generic::{chunk, copy_short, gather_by};
use super::super::row_major::{are_alike, are_in_one_set, targets, RowRun};
use super::super::rules::LOW_THRESHOLDS;
use super::super::vector::{Vector, LANE};
use super::super::Gather;
use super::avx2::{self, by_halves, moved};
use super::equal_runs::BLOCK;
use crate::math::{div, parts, signed};
use core::arch::asm;
use core::arch::x86_64::{__m256i, _mm256_zeroupper};
use core::mem::offset_of;
use core::ops::Range;

/// Bytes of a register.
pub(super) const HALF: usize = LINE / 2;

/// Runs of so many bytes are long, and of more than so many if they are equal and each on its half line. Zen 4, four in
/// the second-level cache, on lines and off, share of the flat copy for equal ones as such: 160 bytes .91 for .96, .76
/// for .88; 192 .96 for .98, .92 for .84; 256 .97 for .99, .97 for .82; 4 MiB of 256 .89 for .97, .96 for .82.
pub(super) const LONG: usize = 3 * LINE;
const MOST: usize = 8 * LINE;
/// Runs of a line no farther apart go one piece after the other. Zen 4, heads of 64 bytes, µs: 512 apart 94, 79, 1,024
/// 2.8, 2.5, but 2,048 62, 80.
const NEAR: usize = 1024;
/// Runs up to this have loops that are written out.
const SHORT: usize = 2 * LINE;

/// The most pieces that have lines in one set of the first-level cache, which has eight of each: more go one after the
/// other, all rows at once if these share no lines. Zen 4, share of the flat copy for all at a time: seven of 64 bytes
/// .87 for .87, eight .86 for .70, ten .86 for .49; eight of 96 .86 for .72; and for blocks: sixteen of 128 .93 for .81,
/// of 256 .90 for .84.
pub(super) const OF_A_SET: usize = 6;
/// Of so many bytes.
const MOST_ALONE: usize = if LOW_THRESHOLDS { 4 << 10 } else { 2 << 20 };

/// Whether pieces of long runs go one after the other: equal ones that have lines in one set of the first-level cache.
/// Zen 4, us for row by row: 35 of 240 bytes in 30 rows 6.7 for 8.6, 16 of 218 in 60 4.9 for 8.8, 490 in 15 61 for 78; but
/// 12 of 192 to 600 in 800 132 for 107, 32 of 800 in 300 427 for 372.
pub(super) fn go_alone(runs: &[RowRun], rows: usize) -> bool {
    let are_few = |run: &RowRun| run.bytes <= MOST && run.bytes * runs.len() * rows <= MOST_ALONE;
    runs.first().is_some_and(are_few) && are_in_one_set(targets(runs), OF_A_SET) && are_alike(runs)
}

/// Copies contiguous bytes.
///
/// # Safety
/// 1; 2 of `generic.rs`.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn copy(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise; no move goes beyond `bytes`.
    unsafe {
        match bytes {
            LONG.. => copy_long(source, target, bytes),
            129.. => {
                chunk::<LINE>(source, target, 0);
                chunk::<128>(source, target, bytes - 128);
            }
            _ => copy_short(source, target, bytes),
        }
    }
}

/// Gathers units of any size, longer ones without a call for each, and those on their half lines by registers of a line.
/// Zen 4, ns for calls: 24 rows of two of 192 bytes 201, 122, of 256 215, 148; 16 of ten of 175 751, 584.
///
/// # Safety
/// 1, with AVX-512 F; 3 of `generic.rs`.
#[target_feature(enable = "avx2,avx512f")]
pub(super) unsafe fn gather(gather: Gather) {
    let Gather { mut source, step, mut target, count, unit } = gather;
    if unit <= SHORT {
        // SAFETY: the caller's promise.
        return unsafe { gather_by(copy, gather) };
    }
    let is_on_its_half = (target as usize | unit).is_multiple_of(HALF);
    for _ in 0..count {
        // SAFETY: the caller's promise.
        unsafe {
            if is_on_its_half {
                copy_whole(source, target, unit);
            } else {
                copy_long(source, target, unit);
            }
        }
        source = source.wrapping_add(step);
        target = target.wrapping_add(unit);
    }
}

/// Copies more than a line, the last one over the one before it.
///
/// # Safety
/// 1, with AVX-512 F; 2 of `generic.rs`.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn copy_whole(source: *const u8, target: *mut u8, bytes: usize) {
    let last = bytes - LINE;
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            ".p2align 5",
            "2:",
            "vmovups {line}, zmmword ptr [{source} + {at}]",
            "vmovups zmmword ptr [{target} + {at}], {line}",
            "add {at}, 64",
            "cmp {at}, {last}",
            "jb 2b",
            "vmovups {line}, zmmword ptr [{source} + {last}]",
            "vmovups zmmword ptr [{target} + {last}], {line}",
            line = out(zmm_reg) _,
            source = in(reg) source,
            target = in(reg) target,
            at = inout(reg) 0usize => _,
            last = in(reg) last,
            options(nostack),
        );
    }
}

/// Copies half a line and more.
///
/// # Safety
/// 1; 2 of `generic.rs`.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn copy_long(source: *const u8, target: *mut u8, bytes: usize) {
    let mut at = (target as usize).wrapping_neg() % HALF;
    // SAFETY: the caller's promise; no move goes beyond `bytes`.
    unsafe {
        if at > 0 {
            chunk::<HALF>(source, target, 0);
        }
        if at + 128 <= bytes {
            at = copy_lines(source, target, at, bytes - 128);
        }
        if at + LINE <= bytes {
            chunk::<LINE>(source, target, at);
            at += LINE;
        }
        if at + HALF <= bytes {
            chunk::<HALF>(source, target, at);
            at += HALF;
        }
        if at + LANE < bytes {
            chunk::<LANE>(source, target, at);
        }
        if at < bytes {
            chunk::<LANE>(source, target, bytes - LANE);
        }
    }
}

/// Copies two lines from a place on, and again while there are two from there on, up to `last` at the latest; where that
/// ends. As [`copy_until`]: Zen 4, 480 bytes 25 % faster than where the loop lies badly.
///
/// # Safety
/// 1, 2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn copy_lines(source: *const u8, target: *mut u8, begin: usize, last: usize) -> usize {
    let mut at = begin;
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            ".p2align 5",
            "2:",
            "vmovups {a}, ymmword ptr [{source} + {at}]",
            "vmovups {b}, ymmword ptr [{source} + {at} + 32]",
            "vmovups {c}, ymmword ptr [{source} + {at} + 64]",
            "vmovups {d}, ymmword ptr [{source} + {at} + 96]",
            "vmovups ymmword ptr [{target} + {at}], {a}",
            "vmovups ymmword ptr [{target} + {at} + 32], {b}",
            "vmovups ymmword ptr [{target} + {at} + 64], {c}",
            "vmovups ymmword ptr [{target} + {at} + 96], {d}",
            "sub {at}, -128",
            "cmp {at}, {last}",
            "jbe 2b",
            a = out(ymm_reg) _,
            b = out(ymm_reg) _,
            c = out(ymm_reg) _,
            d = out(ymm_reg) _,
            source = in(reg) source,
            target = in(reg) target,
            at = inout(reg) at,
            last = in(reg) last,
            options(nostack),
        );
    }
    at
}

/// Copies the runs of `count` rows, `step` bytes apart, if they are equal, lie side by side and are the quickest so;
/// whether it did.
///
/// # Safety
/// 1, 2.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn equal_runs(runs: &[RowRun], step: usize, count: usize) -> bool {
    let Some(&RowRun { source, bytes, .. }) = runs.first() else { return true };
    if !(HALF + 1..=MOST).contains(&bytes) || !are_alike(runs) {
        return false;
    }
    let are_few = !are_in_one_set(targets(runs), OF_A_SET);
    let is_on_its_half = |run: &RowRun| (run.target as usize | bytes).is_multiple_of(HALF);
    let shares_lines = !bytes.is_multiple_of(LINE);
    // No two runs share a line.
    let are_lines = bytes == LINE && (source as usize | step).is_multiple_of(LINE);
    let is_right = if are_few {
        bytes < LONG || runs.iter().all(is_on_its_half)
    } else {
        are_lines || bytes > LINE && !(bytes >= LONG && shares_lines)
    };
    if !is_right {
        return false;
    }
    let is_half_off = |run: &RowRun| run.target as usize % HALF == LANE;
    let is_off = bytes.is_multiple_of(HALF) && runs.iter().all(is_half_off);
    let all = runs.len() * bytes;
    let block = if are_few || !shares_lines { count } else { div(BLOCK, all).max(1) };
    let by_each = !are_few || are_lines && step > all && step <= NEAR;
    for rows in parts(0..count, block) {
        for (some, nth) in runs.chunks(if by_each { 1 } else { runs.len() }).zip(0..) {
            let source = source.wrapping_add(nth * bytes);
            // SAFETY: the caller's promise.
            unsafe {
                match some {
                    [run] if bytes <= SHORT => {
                        let source = source.wrapping_add(rows.start.wrapping_mul(step));
                        let target = run.target.wrapping_add(rows.start * bytes);
                        avx2::units(source, signed(step), target, signed(bytes), rows.len(), bytes);
                    }
                    _ if bytes <= SHORT => {
                        copy_short_rows(some, source, step, bytes, rows.clone(), is_off);
                    }
                    _ if is_off => copy_rows::<true>(some, source, step, bytes, rows.clone()),
                    _ => copy_rows::<false>(some, source, step, bytes, rows.clone()),
                }
            }
        }
    }
    true
}

/// Copies runs of so many rows that lie side by side, each by as many moves as it takes, which are written out, and of
/// which the last one overlaps the one before; `is_off` as below. Zen 4, µs, by a loop for each run, and so: 9,482 rows
/// of 7 of 37 bytes 99, 82; 32 heads of 80 bytes 11.5, 10.7; W17 .87 of the flat copy for .85.
///
/// # Safety
/// 1, 2; they must be of more than half a line, and no more than [`SHORT`].
#[target_feature(enable = "avx2")]
unsafe fn copy_short_rows(
    runs: &[RowRun],
    source: *const u8,
    step: usize,
    bytes: usize,
    rows: Range<usize>,
    is_off: bool,
) {
    let ends = runs.as_ptr_range();
    if rows.is_empty() || runs.is_empty() {
        return;
    }
    let gap = step.wrapping_sub(runs.len() * bytes);
    let source = source.wrapping_add(rows.start.wrapping_mul(step));
    macro_rules! each {
        ($tail:literal: $($register:ident $at:literal),*) => {
            asm!(
                "2:",
                "mov {run}, {first}",
                ".p2align 5",
                "3:",
                "mov {target}, qword ptr [{run} + {place}]",
                "add {target}, {row}",
                $(moved!($register $at),)*
                "add {source}, {bytes}",
                "add {run}, {size}",
                "cmp {run}, {end}",
                "jne 3b",
                "add {source}, {gap}",
                "add {row}, {bytes}",
                "dec {rows}",
                "jnz 2b",
                "/* {last} {word} {half} */",
                run = out(reg) _,
                first = in(reg) ends.start,
                place = const offset_of!(RowRun, target),
                size = const size_of::<RowRun>(),
                target = out(reg) _,
                row = inout(reg) rows.start * bytes => _,
                source = inout(reg) source => _,
                bytes = in(reg) bytes,
                end = in(reg) ends.end,
                gap = in(reg) gap,
                rows = inout(reg) rows.len() => _,
                last = in(reg) bytes - $tail,
                word = out(reg) _,
                half = out(ymm_reg) _,
                options(nostack),
            )
        };
    }
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            64 if is_off => each!(16: lane "0", half "16", lane "{last}"),
            96 if is_off => each!(16: lane "0", half "16", half "48", lane "{last}"),
            128 if is_off => each!(16: lane "0", half "16", half "48", half "80", lane "{last}"),
            _ => by_halves!(each, bytes),
        }
        _mm256_zeroupper();
    }
}

/// `OFF` says that runs begin in the middle of half a line and end there: a lane goes ahead and one behind, for what
/// crosses lines takes two cycles more.
///
/// # Safety
/// 1, 2.
#[target_feature(enable = "avx2")]
unsafe fn copy_rows<const OFF: bool>(
    runs: &[RowRun],
    source: *const u8,
    step: usize,
    bytes: usize,
    rows: Range<usize>,
) {
    let mut source = source.wrapping_add(rows.start.wrapping_mul(step));
    let (mut row, last) = (rows.start * bytes, bytes - if OFF { LANE } else { HALF });
    let gap = step.wrapping_sub(runs.len() * bytes);
    for _ in rows {
        for run in runs {
            let target = run.target.wrapping_add(row);
            let mut at = 0;
            // SAFETY: the caller's promise.
            unsafe {
                if OFF {
                    chunk::<LANE>(source, target, 0);
                    at = LANE;
                }
                copy_until(source, target, at, last);
                if OFF {
                    chunk::<LANE>(source, target, last);
                } else {
                    __m256i::load(source.wrapping_add(last)).store(target.wrapping_add(last));
                }
            }
            source = source.wrapping_add(bytes);
        }
        source = source.wrapping_add(gap);
        row += bytes;
    }
}

/// Halves of lines from a place on, one at least, to the first that is no more before the last one: a loop that lies in
/// one line of instructions, which no compiler promises. Zen 4, 256 bytes a row, share of the flat copy: .75 for .66.
///
/// # Safety
/// 1, 2.
#[inline]
#[target_feature(enable = "avx2")]
unsafe fn copy_until(source: *const u8, target: *mut u8, begin: usize, last: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        asm!(
            ".p2align 5",
            "2:",
            "vmovups {half}, ymmword ptr [{source} + {at}]",
            "vmovups ymmword ptr [{target} + {at}], {half}",
            "add {at}, 32",
            "cmp {at}, {last}",
            "jb 2b",
            half = out(ymm_reg) _,
            source = in(reg) source,
            target = in(reg) target,
            at = inout(reg) begin => _,
            last = in(reg) last,
            options(nostack),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::cpu::{Cpu, Level};
    use super::{copy, equal_runs, gather, Gather, RowRun, LINE};

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

    #[test]
    fn units_of_any_length_to_any_place_of_a_line_and_no_others() {
        if Cpu::this().level < Level::Avx512 {
            return;
        }
        let source: Vec<u8> = (0..4 * 700u32).map(|at| (at % 251).to_le_bytes()[0]).collect();
        let (step, count) = (700, 4);
        for unit in (1..500).chain([511, 512, 513, 640, 700]) {
            for begin in 0..LINE {
                let mut target = [255; 4 * 700 + 2 * LINE];
                let first = target.as_ptr().align_offset(LINE) + begin;
                let mut expected = target;
                for row in 0..count {
                    expected[first + row * unit..][..unit]
                        .copy_from_slice(&source[row * step..][..unit]);
                }
                let (source, target_begin) = (source.as_ptr(), target[first..].as_mut_ptr());
                // SAFETY: both are as large.
                unsafe { gather(Gather { source, step, target: target_begin, count, unit }) };
                assert!(target == expected, "{unit} bytes from {begin} on");
            }
        }
    }

    const ROOM: usize = 4096;

    #[test]
    fn equal_runs_to_any_place_of_a_line_and_nothing_beside_them() {
        if Cpu::this().level < Level::Avx2 {
            return;
        }
        let source: Vec<u8> = (0..64 * 1024u32).map(|at| (at % 251).to_le_bytes()[0]).collect();
        let mut copied = 0;
        for bytes in [33, 48, 64, 80, 96, 100, 128, 160, 192, 224, 256, 512] {
            for begin in [0, 5, 16, 32, 48] {
                for (pieces, gap) in [(1, 0), (1, 70), (2, 0), (3, 32), (4, 1), (7, 0), (9, 16)] {
                    let (step, rows) = (pieces * bytes + gap, 5);
                    let mut memory = vec![0xEE; (pieces + 1) * ROOM];
                    let first = memory.as_ptr().align_offset(ROOM) + begin;
                    let mut expected = memory.clone();
                    let runs: Vec<RowRun> = (0..pieces)
                        .map(|piece| {
                            let at = first + piece * (ROOM - LINE);
                            for row in 0..rows {
                                let from = row * step + piece * bytes;
                                expected[at + row * bytes..][..bytes]
                                    .copy_from_slice(&source[from..][..bytes]);
                            }
                            let target = memory[at..].as_mut_ptr();
                            RowRun { source: source[piece * bytes..].as_ptr(), bytes, target }
                        })
                        .collect();
                    // SAFETY: source and targets are as large.
                    if unsafe { equal_runs(&runs, step, rows) } {
                        assert!(memory == expected, "{pieces} of {bytes} bytes from {begin} on");
                        copied += 1;
                    }
                }
            }
        }
        assert!(copied > 100, "{copied}");
    }
}
