//! Strided copies: units a step apart on both sides, what pieces with strides of their own are made of.
//! Where they become one run, many are picked at a time (`pick.rs`), and past the caches by way of a
//! write-combining buffer; all others move one by one.
//!
//! # Safety
//! 1. Every unit must be readable at its source and writable at its target, which do not overlap.
//! 2. What lies between the units of a source must be readable.

use super::combine::{Scratch, WriteCombining, MOST};
use super::pick::{self, Pick, Units};
use super::{generic, signed, Kernels, NonTemporal};
use crate::math::{div_rem, parts};
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
        let &Self { source, target, count: units, .. } = self;
        pick::Rows { source, target, units, count: 1, after: 0, from: 0, to: 0, past: None }
    }
}

/// Rows that are alike but for where they are.
pub(crate) struct Rows {
    kernels: &'static Kernels,
    units: Units,
    pick: Option<Pick<1>>,
    past: Option<&'static NonTemporal>,
    /// Bytes to what is prefetched.
    ahead: isize,
}

impl Rows {
    /// Rows of so many units, of which each is made of parts, that become one run; `past` the caches
    /// where that is of use.
    pub(crate) fn runs(
        kernels: &'static Kernels,
        past: Option<&'static NonTemporal>,
        units: Units,
        count: usize,
        ahead: isize,
    ) -> Self {
        let picks = kernels.picks.as_ref().filter(|_| count * units.len() >= LEAST_PICKED);
        let pick = picks.and_then(|picks| Pick::new(&picks.bytes, units, 0));
        Self { kernels, units, pick, past, ahead }
    }

    /// Rows of units that stay apart.
    pub(crate) fn scattered(kernels: &'static Kernels) -> Self {
        Self { kernels, units: Units::whole(0, 0), pick: None, past: None, ahead: 0 }
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
            match &self.pick {
                Some(pick) => self.pick(pick, &row.picked()),
                _ if self.units.parts > 1 => copy_parts(self.kernels, self.units, row),
                _ => copy(self.kernels, row),
            }
        }
    }

    /// Copies a row again and again.
    ///
    /// # Safety
    /// 1, 2 of all of them.
    pub(crate) unsafe fn copy_all(&self, mut row: Row, again: Again) {
        let Again { count, after, from, to } = again;
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(pick) = &self.pick {
                return self.pick(pick, &pick::Rows { count, after, from, to, ..row.picked() });
            }
            for _ in 0..count {
                self.copy(row);
                row.source = row.source.wrapping_offset(from);
                row.target = row.target.wrapping_offset(to);
            }
        }
    }

    /// # Safety
    /// 1, 2.
    unsafe fn pick(&self, pick: &Pick<1>, rows: &pick::Rows) {
        // SAFETY: the caller's promise.
        unsafe {
            match self.past {
                Some(_) if pick.makes_lines(rows) => {
                    pick.copy(&pick::Rows { past: Some(self.ahead), ..*rows });
                }
                Some(past) if rows.units * self.units.len() >= LEAST_PAST => {
                    stream(pick, past, rows);
                }
                _ => pick.copy(rows),
            }
        }
    }
}

/// Shorter rows are partial lines for the most part.
const LEAST_PAST: usize = 512;
/// Shorter rows are as quickly copied one by one.
const LEAST_PICKED: usize = 16;

/// Picks rows of units that fill no lines past the caches.
///
/// # Safety
/// 1, 2; a fence must follow.
unsafe fn stream(pick: &Pick<1>, past: &NonTemporal, rows: &pick::Rows) {
    let mut scratch = Scratch::<MOST>::NEW;
    for at in 0..rows.count {
        let mut source = rows.source.wrapping_offset(rows.from.wrapping_mul(signed(at)));
        let first = rows.target.wrapping_offset(rows.to.wrapping_mul(signed(at)));
        let [mut lines]: [WriteCombining; 1] = scratch.share(&[first]);
        let at_once = div_rem(Scratch::<MOST>::room(1), pick.bytes(1)).0;
        for units in parts(0..rows.units, at_once) {
            let (target, units) = (lines.room(), units.len());
            // SAFETY: the caller's promise; the buffer has room for as many.
            unsafe {
                pick.copy(&pick::Rows { source, target, units, count: 1, after: 0, ..*rows });
                lines.filled(past, pick.bytes(units));
            }
            source = pick.behind(source, units);
        }
        // SAFETY: as above.
        unsafe { lines.finish() };
    }
}

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
            65..=128 => ends::<64>(row),
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
