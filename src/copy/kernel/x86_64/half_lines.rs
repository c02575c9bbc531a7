//! Equal pieces of 12 or 24 bytes, deinterleaved by whole halves of lines: for CPUs that
//! load and store registers of a line as two.
//!
//! The idea: eight rows, or four, give whole half lines of each piece, so that what is stored begins where the last
//! store ended, at a half line throughout. A register is loaded from each row, for two pieces where it holds both, and
//! each half line is put together by permutes of those that it is from: four at the most. Zen 4 makes two of these in
//! the time of one of whole registers. Share of the flat copy on lines, for `permute.rs`: in 1 MiB 2×12 bytes .92 for
//! .87, 8×12 .73 for .63, 12×12 .85 for .54, 3×24 .95 for .83, 5×24 .94 for .69, 16×24 .79 for .56; past the caches,
//! where targets begin alike and two steps have whole lines, 2×12 1.00 for .78, 8×12 .89 for .59, 16×12 .84 for .45,
//! 2×24 1.01 for .76, 16×24 .90 for .57.
//!
//! The first and the last step take rows that others take as well.
//!
//! # Safety
//! That of `permute.rs`.

use super::super::combine::LINE;
use super::super::generic::copy_rare;
use super::super::opaque::opaque;
use super::super::row_major::are_in_one_set;
use super::super::rules::LOW_THRESHOLDS;
use super::super::vector::Vector;
use super::super::{Deinterleave, NextBlock};
use super::equal_runs::MOST_OF_HALVES;
use super::halves::HALF;
use super::permute::MOST_PIECES;
use core::arch::x86_64::*;

/// Units of elements, and elements of a register.
const ELEMENT: usize = 4;
const ELEMENTS: usize = HALF / ELEMENT;
/// The most rows of a step.
const MOST: usize = ELEMENTS;

/// Where targets have their lines in one set of the first-level cache, as many as it has room for go over so many rows
/// at a time.
const TURN: usize = 8 * MOST;
/// The least rows of a block, and bytes of a piece where ends count: past the caches, to which they do not go, and of
/// one of many blocks, for which there is `blocks.rs`. Zen 4, 256 KiB, time for these: 3×12 bytes in blocks of 64 rows
/// .49, of 300 .76, of 1,000 1.01, 4×24 of 64 .93, of 128 1.51, but 8×24 of 32 2.05.
const LEAST: usize = 4 * MOST;
const LONG: usize = if LOW_THRESHOLDS { 1 } else { 12 << 10 };

/// Takes rows of neighbouring pieces by steps: from the first one on, the second step's, and the last one's.
type Steps = unsafe fn(&Deinterleave, &[*mut u8], usize, [usize; 3]);

/// How rows are taken.
struct Way {
    width: usize,
    /// Rows of a step.
    each: usize,
    /// Pieces that take turns of so many rows.
    together: usize,
    turn: usize,
    through: Steps,
    /// By two steps at a time.
    past: Option<Steps>,
}

/// Takes all rows of each block, or none; whether it did.
///
/// # Safety
/// 1, 2; 3 if `past`.
#[inline(never)] // for its stack
pub(super) unsafe fn deinterleave(
    block: &mut Deinterleave,
    len: usize,
    width: usize,
    past: bool,
    next: &mut NextBlock<'_>,
) -> bool {
    let (each, through, by_two): (_, Steps, Steps) = match width {
        12 => (8, steps::<3, 8, 3, 2, 1>, steps::<3, 8, 3, 2, 2>),
        24 => (4, steps::<6, 4, 3, 1, 1>, steps::<6, 4, 3, 1, 2>),
        _ => return false,
    };
    let Some(targets) = block.targets.get(..len) else { return false };
    let may_be_past = block.step == len * width && have_lines(targets, width);
    let has_seams = len <= MOST_PIECES && block.more.extent > 0;
    let is_long = block.count * width >= LONG || !(past || has_seams);
    if len < 2 || block.count < LEAST || !is_long || (past && !may_be_past) {
        return false;
    }
    let (mut together, mut turn) = (len, usize::MAX / 2);
    if !past && are_in_one_set(targets.iter().copied(), MOST_OF_HALVES) {
        (together, turn) = (MOST_OF_HALVES, TURN);
    }
    let way = Way { width, each, together, turn, through, past: past.then_some(by_two) };
    loop {
        let done = if block.count < LEAST { 0 } else { block.count };
        if done > 0 {
            // SAFETY: the caller's promise.
            unsafe { way.copy(block, len) };
        }
        if !next(block, done) {
            return true;
        }
    }
}

/// Whether targets begin alike, and some row of them a line: widths are odd but for so much.
#[inline(never)]
fn have_lines(targets: &[*mut u8], width: usize) -> bool {
    let first = targets.first().map_or(0, |target| *target as usize);
    let is_alike = |target: &*mut u8| (*target as usize ^ first).is_multiple_of(LINE);
    first.is_multiple_of(width & width.wrapping_neg()) && targets.iter().all(is_alike)
}

impl Way {
    /// The first of so many rows, as many as steps have, that begins so many bytes, or 0.
    #[inline(never)]
    fn head(&self, target: usize, rows: usize, bytes: usize) -> usize {
        (0..rows).find(|row| (target + row * self.width).is_multiple_of(bytes)).unwrap_or(0)
    }

    /// Takes all rows of a block.
    ///
    /// # Safety
    /// 1, 2; 3 if past the caches.
    #[inline(always)]
    unsafe fn copy(&self, block: &Deinterleave, len: usize) {
        let &Self { width, each, together, turn, through, past } = self;
        let Some(targets) = block.targets.get(..len) else { return };
        // What is read behind a row is of the next one.
        let rows = block.count - usize::from(block.after == 0);
        let begin = targets.first().map_or(0, |target| *target as usize);
        let (last, two) = (rows - each, 2 * each);
        // SAFETY: the caller's promise.
        unsafe {
            let mut turn_of = [0, 1 + self.head(begin + width, each, HALF), last];
            if let Some(past) = past.filter(|_| have_lines(targets, width)) {
                let head = self.head(begin, two, LINE);
                let end = rows - ((rows - head) & (two - 1));
                if head > 0 {
                    let second = head.saturating_sub(each);
                    through(block, targets, 0, [0, second, second]);
                }
                past(block, targets, 0, [head, head + two, end - two]);
                turn_of = [end.min(last), last, last];
            }
            loop {
                let [_, second, to] = &mut turn_of;
                *to = last.min(*second + turn);
                let to = *to;
                for (some, nth) in targets.chunks(together).zip(0..) {
                    through(block, some, nth * together * width, turn_of);
                }
                if to == last {
                    break;
                }
                turn_of = [(to + each).min(last), to + two, last];
            }
            let mut source = block.source.wrapping_add(rows * block.step);
            for target in targets.iter().filter(|_| rows < block.count) {
                copy_rare(source, target.wrapping_add(rows * width), width);
                source = source.wrapping_add(width);
            }
        }
    }
}

/// Where the elements of `H` half lines of a piece come from: of each row but the first one of a half line, which of
/// those before are kept.
struct Orders<const U: usize, const H: usize>;

impl<const U: usize, const H: usize> Orders<U, H> {
    /// Of pieces that begin what is loaded, and of the ones behind them.
    const FIRST: [[u8; ELEMENTS]; MOST] = Self::of(0);
    const SECOND: [[u8; ELEMENTS]; MOST] = Self::of(U);

    #[allow(clippy::indexing_slicing, clippy::cast_possible_truncation)] // done by the compiler
    const fn of(begin: usize) -> [[u8; ELEMENTS]; MOST] {
        let mut orders = [[0; ELEMENTS]; MOST];
        let (mut half, mut order) = (0, 0);
        while half < H {
            let first = half * ELEMENTS / U;
            let mut row = first + 1;
            while row * U < (half + 1) * ELEMENTS {
                let mut at = 0;
                while at < ELEMENTS {
                    let element = half * ELEMENTS + at;
                    let (of, from) = (element / U, begin + element % U);
                    orders[order][at] = if of == row {
                        (ELEMENTS + from) as u8
                    } else if row == first + 1 {
                        from as u8
                    } else {
                        at as u8
                    };
                    at += 1;
                }
                (row, order) = (row + 1, order + 1);
            }
            half += 1;
        }
        orders
    }
}

/// Takes rows of pieces of `U` elements, `R` of them in a step to `H` half lines each, `G` pieces at a time, `S` steps
/// of them: two go past the caches, for these have whole lines.
///
/// # Safety
/// 1, 2, 3; there must be a row behind them that can be read.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn steps<const U: usize, const R: usize, const H: usize, const G: usize, const S: usize>(
    block: &Deinterleave,
    targets: &[*mut u8],
    offset: usize,
    [mut at, mut next, last]: [usize; 3],
) {
    let &Deinterleave { source, step, prefetch, .. } = block;
    let width = U * ELEMENT;
    // SAFETY: 1; the caller's promise.
    unsafe {
        let mut orders = [[_mm256_setzero_si256(); MOST]; G];
        for (orders, tables) in
            orders.iter_mut().zip([&Orders::<U, H>::FIRST, &Orders::<U, H>::SECOND])
        {
            for (order, table) in orders.iter_mut().zip(tables) {
                let table = opaque(table.as_ptr());
                *order = _mm256_cvtepu8_epi32(_mm_loadl_epi64(table.cast()));
            }
        }
        let source = source.wrapping_add(offset);
        loop {
            let mut source = source.wrapping_add(at * step);
            let mut soon = source.wrapping_add(prefetch);
            for some in targets.chunks(G) {
                for number in 0..if S > 1 { opaque(S) } else { 1 } {
                    let rows = load::<R>(source.wrapping_add(number * R * step), step);
                    let ahead = (at + number * R) * width;
                    // Past the caches there is time for a loop.
                    match (some, &orders[..]) {
                        ([first, second], [one, two]) if S == 1 => {
                            put::<U, S>(rows, one, first.wrapping_add(ahead));
                            put::<U, S>(rows, two, second.wrapping_add(ahead));
                        }
                        ([first], [one, ..]) if S == 1 => {
                            put::<U, S>(rows, one, first.wrapping_add(ahead));
                        }
                        _ => {
                            for (target, orders) in some.iter().zip(&orders).take(opaque(G)) {
                                put::<U, S>(rows, orders, target.wrapping_add(ahead));
                            }
                        }
                    }
                }
                if S > 1 {
                    for _ in 0..S * R * G * width / LINE {
                        __m256i::prefetch(soon);
                        soon = soon.wrapping_add(LINE);
                    }
                }
                source = source.wrapping_add(G * width);
            }
            if at == last {
                break;
            }
            at = next.min(last);
            next += R * S;
        }
    }
}

/// So many rows.
///
/// # Safety
/// 1, 2.
#[inline(always)]
unsafe fn load<const R: usize>(source: *const u8, step: usize) -> [__m256i; MOST] {
    let mut row = source;
    // SAFETY: the caller's promise.
    unsafe {
        let mut rows = [_mm256_setzero_si256(); MOST];
        for slot in rows.iter_mut().take(R) {
            *slot = _mm256_loadu_si256(row.cast());
            row = row.wrapping_add(step);
        }
        rows
    }
}

/// Stores the half lines that a piece has of so many rows, past the caches or through them.
///
/// # Safety
/// 1, 2, 3.
#[inline(always)]
#[allow(clippy::many_single_char_names)] // rows
unsafe fn put<const U: usize, const S: usize>(
    rows: [__m256i; MOST],
    orders: &[__m256i; MOST],
    target: *mut u8,
) {
    let [a, b, c, d, e, f, g, h] = rows;
    let mut orders = orders.iter();
    let mut target = target;
    // No loop: the compiler would have one.
    macro_rules! put {
        ($($first:ident $($row:ident)+),+) => {
            // SAFETY: the caller's promise.
            unsafe {
                $(
                    let mut line = $first;
                    $(if let Some(order) = orders.next() {
                        line = _mm256_permutex2var_epi32(line, *order, $row);
                    })+
                    if S > 1 {
                        _mm256_stream_si256(target.cast(), line);
                    } else {
                        _mm256_storeu_si256(target.cast(), line);
                    }
                    target = target.wrapping_add(HALF);
                )+
            }
        };
    }
    if U == 3 {
        put!(a b c, c d e f, f g h);
    } else {
        put!(a b, b c, c d);
    }
    _ = target;
}

#[cfg(test)]
mod tests {
    use super::super::super::cpu::{Cpu, Level};
    use super::super::super::strided::Axis;
    use super::super::super::MAX_DEINTERLEAVED;
    use super::{deinterleave, Deinterleave, LINE};

    #[test]
    fn any_number_of_rows_to_any_element_of_a_line_and_nothing_beside_them() {
        if Cpu::this().level < Level::Vbmi {
            return;
        }
        let all: Vec<u8> = (0..256u32 << 10).map(|at| (at * 31 % 251).to_le_bytes()[0]).collect();
        let mut taken = 0;
        for (len, width) in [(2, 12), (3, 12), (5, 12), (8, 24), (3, 24), (7, 12), (16, 12)] {
            for begin in [0, 4, 8, 16, 20, 44] {
                for (apart, past) in [(0, false), (0, true), (4, false), (LINE, true)] {
                    for (count, after, gap) in [(32, 0, 0), (45, 2, 0), (1029, 0, 0), (64, 1, 8)] {
                        let (step, room) = (len * width + gap, 32 << 10);
                        let bytes = (count + after - 1) * step + len * width;
                        let source = all[all.len() - bytes..].as_ptr();
                        let mut memory = vec![0xEE_u8; (len + 2) * room];
                        let first = memory.as_ptr().align_offset(room) + begin;
                        let mut expected = memory.clone();
                        let mut targets = [std::ptr::null_mut(); MAX_DEINTERLEAVED];
                        for (piece, slot) in targets.iter_mut().enumerate().take(len) {
                            let at = first + piece * (room + apart);
                            *slot = memory[at..].as_mut_ptr();
                            for row in 0..count {
                                let from = source.wrapping_add(row * step + piece * width);
                                // SAFETY: it lies in a row.
                                let run = unsafe { std::slice::from_raw_parts(from, width) };
                                expected[at + row * width..][..width].copy_from_slice(run);
                            }
                        }
                        let mut block = Deinterleave {
                            source,
                            step,
                            targets,
                            count,
                            after,
                            prefetch: 512,
                            more: Axis::NONE,
                        };
                        let mut done = 0;
                        let mut next = |_: &mut Deinterleave, rows| {
                            done = rows;
                            false
                        };
                        // SAFETY: source and targets are as large.
                        if unsafe { deinterleave(&mut block, len, width, past, &mut next) } {
                            assert_eq!(done, count);
                            assert!(memory == expected, "{len} of {width}, {count} from {begin}");
                            taken += 1;
                        }
                    }
                }
            }
        }
        assert!(taken > 400, "{taken}");
    }
}
