//! Bytes transposed past the caches, to targets that begin anywhere in a line.
//!
//! The idea: a line of columns is taken down all rows, square by square. One permute makes a line of a target of
//! what the square above left of it and of what this one has.
//!
//! The trick: lines go off one by one, as they are made. Stores are done in their order, and those past the
//! caches wait for the memory: 64 of them in a row would keep all others waiting.
//!
//! # Safety
//! That of `transpose.rs`, and that of `vector.rs`.

use super::super::combine::LINE;
use super::super::opaque::opaque;
use super::super::transpose::{ask, lines_of_eight, take_eight, Transpose, EIGHT};
use super::super::vector::{Vector, LANE};
use super::permute::first_bytes;
use crate::math::{div_ceil, rem};
use core::arch::asm;
use core::arch::x86_64::*;

type V = __m512i;

/// Rows that are taken before the next columns: part of each of their lines is read with those, from the
/// second-level cache.
const ROWS: usize = 64 * LINE;

/// A square of a line of columns.
struct Square {
    source: *const u8,
    /// Where a line of each row is prefetched: any address.
    soon: *const u8,
    by_second: bool,
    step: usize,
    /// Where in the targets its rows go to.
    targets: *const *mut u8,
    at: usize,
    /// The lines of the square above, one for each column, or room for its own if it is the first one.
    above: *mut u8,
    is_first: bool,
    /// As much room.
    scratch: *mut u8,
}

/// # Safety
/// That of the transpose; there must be a square, and a scratch of three.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
pub(super) unsafe fn bytes(matrix: &Transpose<'_>) {
    let &Transpose { source, step, rows, columns, scratch, follows, by_second, .. } = matrix;
    let mut row = 0;
    while row < rows {
        let count = if rows - row < 2 * ROWS { rows - row } else { ROWS };
        let source = source.wrapping_add(step.wrapping_mul(row));
        let mut column = 0;
        while column < columns {
            // The last ones lie partly over those before.
            let first = column.min(columns - LINE);
            let (targets, at) = matrix.targets_from(first);
            column = first + LINE;
            let next = if column < columns { source.wrapping_add(column) } else { follows };
            let mut square = Square {
                source: source.wrapping_add(first),
                soon: next,
                by_second,
                step,
                targets: targets.as_ptr(),
                at: at.wrapping_add(row),
                above: scratch,
                is_first: true,
                scratch: scratch.wrapping_add(LINE * LINE),
            };
            // SAFETY: the caller's promise.
            unsafe { square.take_all(count, next) };
        }
        row += count;
    }
}

impl Square {
    /// This one and those below, of so many rows in all.
    ///
    /// # Safety
    /// 1, 2, 3.
    #[inline(always)]
    unsafe fn take_all(&mut self, rows: usize, next: *const u8) {
        let below = self.step.wrapping_mul(LINE);
        let rest = rem(rows, LINE);
        let [take, put_ends] = [take as Step, put_ends].map(once);
        // SAFETY: the caller's promise.
        unsafe {
            for column in 0..opaque(LINE) {
                V::prefetch((*self.targets.add(column)).wrapping_add(self.at));
            }
            for left in (0..div_ceil(rows, LINE)).rev() {
                self.soon = if left > 0 { self.source.wrapping_add(below) } else { next };
                // The line that the columns end in: the one that they begin in was read with those before.
                self.soon = self.soon.wrapping_add(LINE - 1);
                if left == 0 && opaque(rest) > 0 {
                    // The last rows, of which some have been taken.
                    let above = self.step.wrapping_mul(LINE - rest);
                    self.source = self.source.wrapping_sub(above);
                    self.above = self.above.wrapping_add(2 * LINE * LINE);
                    self.is_first = true;
                    take(self, 0);
                    self.above = self.above.wrapping_sub(2 * LINE * LINE);
                    self.is_first = false;
                    break;
                }
                take(self, 0);
                if self.is_first {
                    put_ends(self, 0);
                    self.is_first = false;
                }
                self.source = self.source.wrapping_add(below);
                self.at = self.at.wrapping_add(LINE);
            }
            put_ends(self, rest);
        }
    }
}

/// In the two stages of `transpose.rs`.
///
/// # Safety
/// 1, 2, 3.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn take(square: &Square, _: usize) {
    let &Square { mut source, mut soon, step, mut targets, at, mut above, .. } = square;
    let &Square { is_first, by_second, scratch, .. } = square;
    let numbers = numbers();
    // SAFETY: the caller's promise.
    unsafe {
        for eighth in 0..opaque(EIGHT) {
            soon = ask::<V>(soon, step, EIGHT, by_second);
            take_eight::<V>(source, step, scratch.wrapping_add(eighth * LINE), None);
            source = source.wrapping_add(step.wrapping_mul(EIGHT));
        }
        for group in 0..opaque(EIGHT) {
            let columns = lines_of_eight::<V>(scratch.wrapping_add(group * EIGHT * LINE));
            for (second, lines) in columns.into_iter().enumerate() {
                for (lane, line) in lines.into_iter().enumerate() {
                    let column = lane * LANE + second;
                    let above = above.wrapping_add(column * LINE);
                    if !is_first {
                        let place = (*targets.add(column)).wrapping_add(at);
                        let owed = place as usize % LINE;
                        let whole = line_at(owed, V::load(above), line, &numbers);
                        whole.stream(begin_of_line(place));
                    }
                    line.store(above);
                }
            }
            targets = targets.wrapping_add(2);
            above = above.wrapping_add(2 * LINE);
        }
    }
}

/// Stores what the first square has of lines that begin before it; or what squares left of lines that go on
/// behind them, and so many rows more. That goes through the caches, and touches no other lines, for which it
/// would wait.
///
/// # Safety
/// 1, 2.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn put_ends(square: &Square, rest: usize) {
    let &Square { targets, at, above, is_first, .. } = square;
    let numbers = numbers();
    // SAFETY: the caller's promise.
    unsafe {
        for column in 0..opaque(LINE) {
            let place = (*targets.add(column)).wrapping_add(at);
            let above = above.wrapping_add(column * LINE);
            let before = V::load(above);
            let own = place as usize % LINE;
            let mut target = begin_of_line(place);
            if is_first {
                let line = line_at(own, before, before, &numbers);
                _mm512_mask_storeu_epi8(target.cast(), !first_bytes(own), line);
                continue;
            }
            // The rows that are left, behind others.
            let last = V::load(if rest > 0 { above.wrapping_add(2 * LINE * LINE) } else { above });
            let behind = line_at(rest, last, last, &numbers);
            let mut left = own + rest;
            for before in [before, behind] {
                let line = line_at(own, before, behind, &numbers);
                if left > 0 {
                    _mm512_mask_storeu_epi8(target.cast(), first_bytes(left), line);
                }
                left = left.saturating_sub(LINE);
                target = target.wrapping_add(LINE);
            }
        }
    }
}

/// What is done with a square, which so many rows follow.
type Step = unsafe fn(&Square, usize);

/// The same one, of which the compiler knows nothing, or it writes it out for each use.
#[inline(always)]
fn once(mut step: Step) -> Step {
    // SAFETY: no instruction at all.
    unsafe {
        asm!("/* {0} */", inout(reg) step, options(nostack, preserves_flags));
    }
    step
}

fn begin_of_line(place: *mut u8) -> *mut u8 {
    place.wrapping_sub(place as usize % LINE)
}

/// The line of which so many bytes are the last ones of a register, and the others the first ones of another.
///
/// # Safety
/// 1.
#[inline(always)]
pub(super) unsafe fn line_at(owed: usize, before: V, next: V, numbers: &[u8; LINE]) -> V {
    // SAFETY: 1.
    unsafe { _mm512_permutex2var_epi8(before, behind(owed, numbers), next) }
}

/// Its order.
///
/// # Safety
/// 1.
#[inline(always)]
pub(super) unsafe fn behind(owed: usize, numbers: &[u8; LINE]) -> V {
    // SAFETY: 1.
    unsafe {
        #[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)] // it is below 64
        let owed = _mm512_set1_epi8(owed as i8);
        _mm512_sub_epi8(V::load(numbers.as_ptr()), owed)
    }
}

/// Of the bytes of the second register, for a permute of two.
#[inline(always)]
pub(super) fn numbers() -> [u8; LINE] {
    let mut numbers = [0; LINE];
    for (number, slot) in (64..).zip(&mut numbers) {
        *slot = number;
    }
    numbers
}
