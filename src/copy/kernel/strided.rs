//! Strided copies: units a step apart on both sides, what pieces with strides of their own are made of.
//! Where they become one run, many are picked at a time (`pick.rs`), and past the caches by way of a
//! write-combining buffer; all others move one by one.
//!
//! # Safety
//! 1. Every unit must be readable at its source and writable at its target, which do not overlap.
//! 2. What lies between the units of a source must be readable.

use super::combine::{Scratch, WriteCombining, LINE, MOST};
use super::pick::{self, Pick, Units};
use super::{generic, Kernels, NonTemporal};
use crate::math::div_rem;
use core::mem::MaybeUninit;

/// `count` units of `unit` bytes, each a step from the one before.
#[derive(Clone, Copy)]
pub(crate) struct Row {
    pub source: *const u8,
    pub source_step: isize,
    pub target: *mut u8,
    pub target_step: isize,
    pub count: usize,
    pub unit: usize,
}

/// Rows like one: how many there are, how many more of them are copied later, and bytes from one to the
/// next.
#[derive(Clone, Copy)]
pub(crate) struct Again {
    pub count: usize,
    pub after: usize,
    pub from: isize,
    pub to: isize,
}

impl Row {
    /// The same for loops that pick.
    fn picked(&self) -> pick::Rows {
        pick::Rows::one(self.source, self.target, self.count)
    }
}

/// Room for how units are picked: tables.
pub(crate) type Slot = MaybeUninit<Pick<1>>;

/// Rows that are alike but for where they are.
pub(crate) struct Rows<'a> {
    kernels: &'static Kernels,
    units: Units,
    pick: Option<&'a Pick<1>>,
    past: Option<&'static NonTemporal>,
    /// Bytes to what is prefetched.
    ahead: isize,
}

impl<'a> Rows<'a> {
    /// Rows of so many units, of which each is made of parts, that become one run; `past` the caches
    /// where that is of use.
    pub(crate) fn runs(
        slot: &'a mut Slot,
        kernels: &'static Kernels,
        past: Option<&'static NonTemporal>,
        units: Units,
        count: usize,
        ahead: isize,
    ) -> Self {
        let picks = kernels.picks.as_ref().filter(|_| count * units.len() >= LEAST_PICKED);
        let pick = picks.and_then(|picks| Pick::new(slot, &picks.bytes, units, 0, count));
        Self { kernels, units, pick, past, ahead }
    }

    /// Whether they are picked, many units at a time.
    pub(crate) fn are_picked(&self) -> bool {
        self.pick.is_some()
    }

    /// Copies a row.
    ///
    /// # Safety
    /// 1, 2.
    pub(crate) unsafe fn copy(&self, row: Row) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.pick {
                Some(pick) => self.pick(pick, &row.picked()),
                _ if self.units.parts > 1 => copy_parts(self.kernels, self.units, row),
                _ => copy(self.kernels, row),
            }
        }
    }

    /// Copies a row again and again, past the caches by way of `lines` if there are such.
    ///
    /// # Safety
    /// 1, 2 of all of them; the lines must be finished, and a fence follow.
    #[inline(never)]
    pub(crate) unsafe fn copy_all(
        &self,
        mut row: Row,
        again: Again,
        lines: Option<&mut WriteCombining>,
    ) {
        let Again { count, after, from, to } = again;
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(pick) = self.pick {
                let rows = pick::Rows { count, after, from, to, ..row.picked() };
                return match (self.past, lines) {
                    (Some(past), Some(lines)) => self.stream(pick, past, &rows, lines),
                    _ => self.pick(pick, &rows),
                };
            }
            for _ in 0..count {
                self.copy(row);
                row.source = row.source.wrapping_offset(from);
                row.target = row.target.wrapping_offset(to);
            }
        }
    }

    /// # Safety
    /// 1, 2; a fence must follow.
    #[inline(never)]
    unsafe fn pick(&self, pick: &Pick<1>, rows: &pick::Rows) {
        let is_long = rows.units * self.units.len() >= LEAST_PAST;
        // SAFETY: the caller's promise.
        unsafe {
            let Some(past) = self.past.filter(|_| is_long) else { return pick.copy(rows) };
            let mut scratch = Scratch::<MOST>::NEW;
            let [mut lines]: [WriteCombining; 1] = scratch.share(&[rows.target]);
            self.stream(pick, past, rows, &mut lines);
            lines.finish();
        }
    }

    /// Picks rows past the caches: where units fill lines, straight from registers.
    ///
    /// # Safety
    /// 1, 2; the lines must be finished, and a fence follow.
    unsafe fn stream(
        &self,
        pick: &Pick<1>,
        past: &NonTemporal,
        rows: &pick::Rows,
        lines: &mut WriteCombining,
    ) {
        let makes_lines = pick.makes_lines(rows);
        let at_once = if makes_lines { 0 } else { div_rem(lines.takes(), self.units.len()).0 };
        for at in 0..rows.count {
            let mut row = pick::Rows { ahead: self.ahead, ..rows.part(at..at + 1) };
            // SAFETY: the caller's promise; the buffer has room for as many.
            unsafe {
                if !lines.is_at(row.target) {
                    lines.finish();
                    lines.begin(row.target);
                }
                while makes_lines && row.units > 0 {
                    if lines.of_line() == 0 {
                        lines.skip(pick.copy_lines(&mut row));
                    }
                    let bytes = pick.copy_few(&mut row, lines.room(), LINE - lines.of_line());
                    lines.filled(past, bytes);
                }
                while row.units > 0 {
                    let rest = row.units.saturating_sub(at_once);
                    row.units -= rest;
                    row.target = lines.room();
                    let bytes = pick.bytes(row.units);
                    pick.copy_row(&mut row);
                    lines.filled(past, bytes);
                    row.units = rest;
                }
            }
        }
    }
}

/// Shorter rows are partial lines for the most part.
const LEAST_PAST: usize = 512;
/// Shorter rows are as quickly copied one by one.
const LEAST_PICKED: usize = 16;

/// Copies a row part by part.
///
/// # Safety
/// 1.
unsafe fn copy_parts(kernels: &Kernels, units: Units, row: Row) {
    let Units { part, parts, part_step, .. } = units;
    for at in 0..parts {
        let ahead = part_step.wrapping_mul(super::signed(at));
        let source = row.source.wrapping_offset(ahead);
        let target = row.target.wrapping_add(at * part);
        // SAFETY: the caller's promise.
        unsafe { copy(kernels, Row { source, target, unit: part, ..row }) };
    }
}

/// Copies a row, unit by unit.
///
/// # Safety
/// 1.
pub(crate) unsafe fn copy(kernels: &Kernels, row: Row) {
    // SAFETY: the caller's promise.
    unsafe {
        match row.unit {
            1 => elements::<u8>(row),
            2 => elements::<u16>(row),
            4 => elements::<u32>(row),
            8 => elements::<u64>(row),
            16 => elements::<u128>(row),
            3 => ends::<2>(row),
            5..=7 => ends::<4>(row),
            9..=15 => ends::<8>(row),
            17..=32 => ends::<16>(row),
            33..=64 => ends::<32>(row),
            _ => runs(kernels, row),
        }
    }
}

/// Units that a register holds.
///
/// # Safety
/// As [`copy`]; `row.unit` must be the size of `T`.
unsafe fn elements<T: Copy>(row: Row) {
    debug_assert_eq!(row.unit, size_of::<T>());
    let (mut source, mut target) = (row.source, row.target);
    for _ in 0..row.count {
        // SAFETY: the caller's promise; no alignment is assumed.
        unsafe {
            let element = source.cast::<MaybeUninit<T>>().read_unaligned();
            target.cast::<MaybeUninit<T>>().write_unaligned(element);
        }
        source = source.wrapping_offset(row.source_step);
        target = target.wrapping_offset(row.target_step);
    }
}

/// Units of `N` to `2 * N` bytes.
///
/// # Safety
/// As [`copy`].
unsafe fn ends<const N: usize>(row: Row) {
    let (mut source, mut target) = (row.source, row.target);
    for _ in 0..row.count {
        // SAFETY: the caller's promise.
        unsafe { generic::ends::<N>(source, target, row.unit) };
        source = source.wrapping_offset(row.source_step);
        target = target.wrapping_offset(row.target_step);
    }
}

/// Units of any size.
///
/// # Safety
/// As [`copy`].
unsafe fn runs(kernels: &Kernels, row: Row) {
    let (mut source, mut target) = (row.source, row.target);
    for _ in 0..row.count {
        // SAFETY: the caller's promise.
        unsafe { (kernels.copy)(source, target, row.unit) };
        source = source.wrapping_offset(row.source_step);
        target = target.wrapping_offset(row.target_step);
    }
}
