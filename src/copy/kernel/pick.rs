//! Fields a step apart, forwards or backwards, picked out of registers and put one behind the other:
//! bytes, or the 4-bit and 2-bit elements that share them.
//!
//! The idea: a window of memory that holds some units is loaded whole, gaps and all, into up to
//! [`MOST_REGISTERS`] registers; of each a permute takes the bytes that are wanted to their places, and
//! the results are one register of units. Which byte comes from where stands in tables, made once for
//! many rows, so one loop serves every width and step. What a permute works within is a lane: 16 bytes
//! on most CPUs, where each lane of a register has a window of its own; 64 with VBMI. Elements that
//! share bytes are picked as the bytes that hold them, once for each place in a byte that they go to,
//! and then shifted there, with a mask for each place that they come from.
//!
//! A lane is stored whole whether units fill it or not: the next store overwrites what is too much.
//! Where windows or lanes would reach past the last unit, units go by way of buffers, or under masks.
//!
//! # Safety
//! 1. The CPU must have the features of the level.
//! 2. Every byte from the first of the units to the last must be readable, gaps included; the target
//!    must be writable for the units. They do not overlap.

use super::combine::{WriteCombining, LINE};
use super::vector::{Vector, LANE};
use super::{are_near, generic, Kernels, PAGE};
use crate::math::{self, div, div_ceil, rem, signed};
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ops::{Deref, Range};
use core::ptr::null_mut;

/// What a loop needs of a register beyond what all loops do.
pub(super) trait Register: Vector {
    /// Bytes that a permute works within.
    const OWN_LANE: usize = LANE;
    const OWN_LANES: usize = Self::BYTES / Self::OWN_LANE;

    /// A lane from every `apart` bytes (backwards: wrapped).
    ///
    /// # Safety
    /// 1, and everything loaded must be readable.
    #[inline(always)]
    unsafe fn load_windows(source: *const u8, apart: usize) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::load_lanes(source, apart) }
    }

    /// The same bytes in every lane.
    ///
    /// # Safety
    /// 1.
    #[inline(always)]
    unsafe fn table(table: &Table) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::splat(table.short()) }
    }

    /// Bytes by their number within the lane; those of `others`, 0 without, where the number's top bit is
    /// set. What is 0 without others may be anything.
    ///
    /// # Safety
    /// 1.
    #[inline(always)]
    unsafe fn permuted(self, order: Self, others: Option<Self>) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let some = self.shuffled(order);
            others.map_or(some, |others| others.or(some))
        }
    }

    /// # Safety
    /// 1.
    unsafe fn and(self, other: Self) -> Self;

    /// Shifted down by 6, 4, 2, 0, or up by as many (negative) bits, some of which come from, or go
    /// to, the byte next to it.
    ///
    /// # Safety
    /// 1.
    unsafe fn shifted(self, by: i8) -> Self;

    /// Stores the lanes, first to last, so many bytes apart.
    ///
    /// # Safety
    /// 1, and everything stored must be writable.
    unsafe fn store_lanes(self, target: *mut u8, apart: usize);
}

/// A number, or a mask, for each byte of a lane.
#[repr(align(64))]
#[derive(Clone, Copy)]
pub(super) struct Table(pub [u8; LINE]);

impl Table {
    /// That of a lane of 16 bytes.
    #[inline(always)]
    pub fn short(&self) -> &[u8; LANE] {
        self.0.first_chunk().unwrap_or(&[NONE; LANE])
    }
}

/// The number of a byte that comes from elsewhere.
const NONE: u8 = 0x80;
const MOST_REGISTERS: usize = 4;
/// The most bytes that the windows of a step reach over.
const MOST_REACH: usize = MOST_REGISTERS * LINE;

/// Rows of as many units, so many bytes from one to the next.
#[derive(Clone, Copy)]
pub(crate) struct Rows {
    pub source: *const u8,
    pub target: *mut u8,
    /// Of a row, which must be whole bytes in the source and the target.
    pub units: usize,
    pub count: usize,
    /// As many more follow, which are picked later.
    pub after: usize,
    pub from: isize,
    pub to: isize,
    /// How far ahead to prefetch, unless 0.
    pub ahead: isize,
    /// Whether targets go past the caches, by whole lines.
    pub past: bool,
    /// Steps from one that is picked to the next: 1, or -1 where the last one comes first.
    pub onwards: isize,
}

impl Rows {
    /// A row.
    pub(super) fn one(source: *const u8, target: *mut u8, units: usize) -> Self {
        let (count, after, from, to) = (1, 0, 0, 0);
        Self { source, target, units, count, after, from, to, ahead: 0, past: false, onwards: 1 }
    }

    /// Bytes from a step to the next, in the source and the target.
    #[inline(always)]
    fn strides(&self, how: &How) -> [isize; 2] {
        let lanes = self.onwards.wrapping_mul(signed(how.lanes));
        [how.from.wrapping_mul(lanes), signed(how.to).wrapping_mul(lanes)]
    }

    /// Goes over them; of elements that share bytes there is one.
    #[cfg_attr(not(all(target_arch = "x86_64", feature = "avx512")), allow(dead_code))]
    #[inline(always)] // into loops of their own
    pub(super) fn each<const F: usize>(&self, mut row: impl FnMut(*const u8, *mut u8)) {
        let (mut source, mut target) = (self.source, self.target);
        for _ in 0..if F == 1 { self.count } else { 1 } {
            row(source, target);
            source = source.wrapping_offset(self.from);
            target = target.wrapping_offset(self.to);
        }
    }

    /// Some of them.
    #[inline(never)] // once in the library
    pub(super) fn part(&self, rows: Range<usize>) -> Self {
        let first = signed(rows.start);
        Self {
            source: self.source.wrapping_offset(self.from.wrapping_mul(first)),
            target: self.target.wrapping_offset(self.to.wrapping_mul(first)),
            count: rows.len(),
            after: self.after + self.count - rows.end,
            ..*self
        }
    }
}

/// What a piece has of each row.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    /// Bytes from the row's source to the first unit.
    pub from: isize,
    pub target: *mut u8,
    pub units: usize,
    /// That they become.
    pub bytes: usize,
    /// As [`Pick::over_all`] finds.
    steps: usize,
}

impl Span {
    pub(crate) const NONE: Self = Self::of(0, 0, 0);

    pub(crate) const fn of(from: isize, units: usize, bytes: usize) -> Self {
        Self { from, target: null_mut(), units, bytes, steps: 0 }
    }

    /// Its rows, of such.
    fn rows(&self, rows: &Rows) -> Rows {
        let source = rows.source.wrapping_offset(self.from);
        Rows { source, target: self.target, units: self.units, to: signed(self.bytes), ..*rows }
    }
}

/// Picks all steps of each row for each piece, whose targets are behind them then.
pub(super) type BySpans = unsafe fn(&Pick<1>, &Rows, &mut [Span]);

/// Picks so many bytes of each row past the caches, put together to lines in a register; what makes no whole line is in the
/// buffer then.
pub(super) type ByLines = unsafe fn(&Pick<1>, &Rows, usize, &mut WriteCombining);

/// No more units than a step takes.
#[derive(Clone, Copy)]
pub(super) struct Few {
    /// Bytes of the windows of a step that lie before them, and that they reach over.
    pub before: usize,
    pub read: usize,
    /// Whole bytes that they become.
    pub bytes: usize,
}

/// Picks so many steps of each row.
pub(super) type Steps<const F: usize> = unsafe fn(&Pick<F>, &Rows, usize);
/// Picks few units of each row, and touches no more than those.
type PickFew<const F: usize> = unsafe fn(&Pick<F>, &Few, &Rows);

/// The loops of a level for `F` fields a byte, by registers of a window.
pub(super) struct Loops<const F: usize> {
    pub lane: usize,
    pub lanes: usize,
    pub steps: [Steps<F>; MOST_REGISTERS],
    pub few: PickFew<F>,
}

/// The loops of a level.
pub(crate) struct Picks {
    pub(super) bytes: Loops<1>,
    pub(super) nibbles: Loops<2>,
    pub(super) crumbs: Loops<4>,
    pub(super) spans: Option<BySpans>,
}

impl Picks {
    /// Whether lanes are lines.
    pub(crate) fn are_by_line(&self) -> bool {
        cfg!(all(target_arch = "x86_64", feature = "avx512")) && self.bytes.lane == LINE
    }

    /// Whether so many units of so many bytes are picked, each so far from the one before.
    pub(crate) fn have(&self, unit: usize, step: isize, count: usize) -> bool {
        let lanes = (self.bytes.lane, self.bytes.lanes);
        How::new(0, lanes, Units::whole(unit, step), 0, count).is_some()
    }
}

/// Makes them, inlined into functions with the level's features.
macro_rules! picks {
    (#[$feature:meta] register: $register:ty, few: $few:path) => {{
        use $crate::copy::kernel::pick::{self, Few, Loops, Pick, Picks, Register, Rows, Steps};
        #[$feature]
        unsafe fn steps<const F: usize, const R: usize>(pick: &Pick<F>, rows: &Rows, count: usize) {
            // SAFETY: the caller's promise.
            unsafe { pick::steps::<$register, F, R>(pick, rows, count) };
        }
        #[$feature]
        unsafe fn few<const F: usize>(pick: &Pick<F>, few: &Few, rows: &Rows) {
            // SAFETY: the caller's promise.
            unsafe { $few(pick, few, rows) };
        }
        const fn loops<const F: usize>(steps: [Steps<F>; 4]) -> Loops<F> {
            Loops {
                lane: <$register as Register>::OWN_LANE,
                lanes: <$register as Register>::OWN_LANES,
                steps,
                few,
            }
        }
        Picks {
            bytes: loops([steps::<1, 1>, steps::<1, 2>, steps::<1, 3>, steps::<1, 4>]),
            nibbles: loops([steps::<2, 1>, steps::<2, 2>, steps::<2, 4>, steps::<2, 4>]),
            crumbs: loops([steps::<4, 1>, steps::<4, 2>, steps::<4, 4>, steps::<4, 4>]),
            spans: None,
        }
    }};
}
pub(super) use picks;

/// Picks so many steps of each row, in each of which there are as many units as the lanes of a register
/// hold.
///
/// # Safety
/// 1; the windows of all steps must be readable, and whole lanes writable at the target.
#[inline(always)]
pub(super) unsafe fn steps<V: Register, const F: usize, const R: usize>(
    pick: &Pick<F>,
    rows: &Rows,
    count: usize,
) {
    let [from, to] = rows.strides(pick).map(isize::cast_unsigned);
    let (mut row, mut row_target) = (rows.source.wrapping_offset(pick.window), rows.target);
    // SAFETY: the caller's promise.
    unsafe {
        let orders = pick.orders::<V, R>();
        for _ in 0..rows.count {
            let (mut source, mut target) = (row, row_target);
            let prefetch = |source: *const u8| {
                for line in (0..R * V::BYTES).step_by(LINE) {
                    V::prefetch(source.wrapping_offset(rows.ahead).wrapping_add(line));
                }
            };
            // Not one loop: with both branches in it copies past the caches are 10 % slower.
            if F == 1 && rows.past {
                for _ in 0..count {
                    let all = pick.take(&orders, source);
                    prefetch(source);
                    all.stream(target);
                    (source, target) = (source.wrapping_add(from), target.wrapping_add(to));
                }
            } else {
                for _ in 0..count {
                    if F == 1 && rows.ahead != 0 {
                        prefetch(source);
                    }
                    pick.take(&orders, source).store_lanes(target, pick.to);
                    (source, target) = (source.wrapping_add(from), target.wrapping_add(to));
                }
            }
            row = row.wrapping_offset(rows.from);
            row_target = row_target.wrapping_offset(rows.to);
        }
    }
}

/// Picks what all pieces have of each row, row by row, so that memory is read in its order. Zen 4, 24 MiB, every second
/// byte of rows of 400 to two pieces, share of the flat copy: eight rows at a time .41, one .68, this .73.
///
/// # Safety
/// As [`steps`]. A register must be a lane.
#[inline(always)]
#[cfg_attr(not(all(target_arch = "x86_64", feature = "avx512")), allow(dead_code))]
pub(super) unsafe fn spans<V: Register>(pick: &Pick<1>, rows: &Rows, spans: &mut [Span]) {
    let [from, to] = rows.strides(pick).map(isize::cast_unsigned);
    let mut row = rows.source.wrapping_offset(pick.window);
    let (is_backwards, last) = (rows.onwards < 0, spans.len().wrapping_sub(1));
    // SAFETY: the caller's promise.
    unsafe {
        let [[first, orders @ ..]] = pick.orders::<V, MOST_REGISTERS>();
        for _ in 0..rows.count {
            for at in 0..spans.len() {
                let Some(span) = spans.get_mut(if is_backwards { last - at } else { at }) else {
                    break;
                };
                let before = if is_backwards { span.steps.wrapping_sub(1) } else { 0 };
                let mut source = row.wrapping_offset(span.from);
                source = source.wrapping_sub(from.wrapping_mul(before));
                let mut target = span.target.wrapping_sub(to.wrapping_mul(before));
                for _ in 0..span.steps {
                    let mut all = V::load(source).permuted(first, None);
                    for (order, at) in orders.iter().zip(1..) {
                        if at < pick.registers {
                            let window = V::load(source.wrapping_add(at * V::BYTES));
                            all = window.permuted(*order, Some(all));
                        }
                    }
                    all.store(target);
                    (source, target) = (source.wrapping_add(from), target.wrapping_add(to));
                }
                span.target = span.target.wrapping_add(span.bytes);
            }
            row = row.wrapping_offset(rows.from);
        }
    }
}

/// A [`PickFew`] of a row by way of buffers.
///
/// # Safety
/// 1, 2.
#[inline(always)]
pub(super) unsafe fn buffered<V: Register, const F: usize>(pick: &Pick<F>, few: &Few, rows: &Rows) {
    let mut windows = [0u8; MOST_REACH + LINE];
    let mut lanes = [0u8; LINE];
    let first = rows.source.wrapping_offset(pick.begin).wrapping_add(few.before);
    // SAFETY: the caller's promise; no more units than a step's are in the windows of one, and there is
    // room for the lanes of one.
    unsafe {
        generic::copy_rare(first, windows.as_mut_ptr().wrapping_add(few.before), few.read);
        let source = windows.as_ptr().wrapping_offset(pick.window - pick.begin);
        let orders = pick.orders::<V, MOST_REGISTERS>();
        pick.take(&orders, source).store_lanes(lanes.as_mut_ptr(), pick.to);
        generic::copy_rare(lanes.as_ptr(), rows.target, few.bytes);
    }
}

/// Units that become one run: each of so many fields, or of parts of so many, a step apart, of which there
/// may be groups.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Units {
    /// Fields from a unit to the next.
    pub step: isize,
    pub part: usize,
    /// How many parts make a group, and how many groups a unit; fields from one to the next.
    pub parts: [(usize, isize); 2],
}

impl Units {
    /// Of one part each.
    pub(crate) fn whole(unit: usize, step: isize) -> Self {
        Self { step, part: unit, parts: [(1, 0); 2] }
    }

    /// Whether each lies before the one before it.
    pub(crate) fn is_backwards(&self) -> bool {
        self.step < 0
    }

    /// Fields of a unit.
    pub(crate) fn len(&self) -> usize {
        self.part * self.count()
    }

    /// How many parts it has.
    fn count(&self) -> usize {
        let [(parts, _), (groups, _)] = self.parts;
        parts * groups
    }

    /// Fields from the first part to the lowest, at most 0, and to behind the highest.
    fn reach(&self) -> (isize, isize) {
        let last =
            self.parts.map(|(count, step)| step.wrapping_mul(signed(count.saturating_sub(1))));
        let lowest: isize = last.iter().map(|last| last.min(&0)).sum();
        let highest: isize = last.iter().map(|last| last.max(&0)).sum();
        (lowest, highest + signed(self.part))
    }
}

/// How to pick units of fields, `F` a byte.
pub(crate) struct Pick<const F: usize> {
    how: How,
    by_steps: Steps<F>,
    few: PickFew<F>,
    /// By the place in a byte that a field goes to: of each register of a window.
    orders: [[Table; MOST_REGISTERS]; F],
    /// By that place and the one that a field comes from.
    masks: [[Table; F]; F],
}

/// The same without the tables.
pub(crate) struct How {
    /// Fields of a byte, as a power of two.
    shared: u32,
    units: Units,
    /// Fields of the first byte before the first unit.
    first: usize,
    /// Units of a lane.
    each: usize,
    /// Bytes of the source and the target from a lane to the next.
    from: isize,
    to: usize,
    /// Bytes from the source to the first window, and to the lowest of a step, and how many all of
    /// its windows reach over.
    window: isize,
    pub(super) begin: isize,
    reach: usize,
    /// As [`How::steps`] says of so many units.
    known: (usize, usize),
    lane: usize,
    lanes: usize,
    registers: usize,
}

impl<const F: usize> Deref for Pick<F> {
    type Target = How;

    #[inline(always)]
    fn deref(&self) -> &How {
        &self.how
    }
}

impl How {
    /// How to pick such units by so many lanes, if there are enough in a window to win by it.
    #[inline(never)] // once in the library
    fn new(
        shared: u32,
        (lane, lanes): (usize, usize),
        units: Units,
        first: usize,
        count: usize,
    ) -> Option<Self> {
        let fields = 1 << shared;
        let (len, step) = (units.len(), units.step.unsigned_abs());
        let is_whole = |units: usize| ((units * len) | (units * step)) & (fields - 1) == 0;
        let together = [1, 2, 4].into_iter().find(|units| is_whole(*units))?;
        let (lowest, end) = units.reach();
        if !are_near(units.step >> shared, (end - lowest).unsigned_abs() >> shared) {
            return None;
        }
        // Fields may begin, and end, within a byte.
        let most = (((MOST_REGISTERS * lane + 1) << shared) - 2 * (fields - 1)) - 1;
        let fit = div(most.checked_sub((end - lowest).unsigned_abs())?, step) + 1;
        let each = fit.min(div(lane << shared, len)).min(count);
        let each = each - rem(each, together);
        let mut how = Self {
            shared,
            units,
            first,
            each,
            from: units.step.wrapping_mul(signed(each)) >> shared,
            to: (each * len) >> shared,
            window: 0,
            begin: 0,
            reach: 0,
            known: (0, 0),
            lane,
            lanes,
            registers: 0,
        };
        let registers = div_ceil(how.read(each), lane);
        // There are no loops for elements that share bytes in three.
        let registers = registers + usize::from(shared > 0 && registers == 3);
        let window = registers * lane;
        how.reach = (lanes - 1) * how.from.unsigned_abs() + window;
        how.registers = registers;
        // Elements that share bytes take a permute for each place, and win by whole bytes. As many permutes as there are units
        // in a lane are worth it: Zen 4 by AVX2, us for one by one, 12 MB of every second of 8 bytes 765, 1,360, 390 KB of
        // every fourth of 4 21, 30, 31 KB 1.9, 2.2.
        let units_at_once = (each * lanes).min(count) * units.count();
        let at_once = if shared > 0 { 2 * how.to * lanes } else { units_at_once };
        // A lane of a line takes but a load and a permute for each register. Zen 4, GB/s of 12 MB of rows of 7 of 8 bytes, 32
        // apart, 7.1 for 1.7 one by one, of 4 of 8, 56 apart, 3.4 for 1.3; 1,000 of 8, 48 apart, 20 KB 11.3 for 12.
        let is_line = shared == 0 && lane == LINE;
        let least = if is_line { registers + 1 } else { 2 * registers };
        let is_quicker = at_once >= least && at_once >= LEAST && step > 0;
        if each == 0 || !is_quicker || how.reach > MOST_REACH {
            return None;
        }
        (how.window, how.begin) = if units.step < 0 {
            let end = how.byte(end - 1) + 1;
            (end - signed(window), end - signed(how.reach))
        } else {
            (how.byte(lowest), how.byte(lowest))
        };
        how.known = (count, how.steps(count));
        Some(how)
    }

    /// Bytes from the source to a field, counted from the first.
    fn byte(&self, field: isize) -> isize {
        (field + signed(self.first)) >> self.shared
    }

    /// Steps of which the windows, and the lanes, are within what so many units reach over.
    fn steps(&self, count: usize) -> usize {
        if count == self.known.0 {
            return self.known.1;
        }
        let (read, bytes) = (self.read(count), self.bytes(count));
        let mut steps = div(count, self.each * self.lanes);
        while steps > 0 {
            let (to_read, to_store) = self.touched(steps);
            if to_read <= read && to_store <= bytes {
                break;
            }
            steps -= 1;
        }
        steps
    }

    /// Bytes that the windows, and the lanes, of so many steps reach over.
    fn touched(&self, steps: usize) -> (usize, usize) {
        let lanes = steps * self.lanes - 1;
        let before = (steps - 1) * self.lanes;
        (before * self.from.unsigned_abs() + self.reach, lanes * self.to + self.lane)
    }

    /// Units of so many whole steps as are taken at a time, if windows stay within so many units.
    pub(super) fn whole_steps(&self, units: usize, most: usize) -> usize {
        let read = self.read(units).checked_sub(self.reach);
        let step = self.lanes * self.from.unsigned_abs();
        let steps = read.map_or(0, |read| div(read, step) + 1);
        steps.min(div(most, self.each * self.lanes))
    }

    /// Of steps of a lane each: bytes from one to the next, those that each becomes, the registers of its windows, and
    /// where the first of such rows begins.
    #[cfg_attr(not(all(target_arch = "x86_64", feature = "avx512")), allow(dead_code))]
    pub(super) fn course(&self, rows: &Rows) -> (usize, usize, usize, *const u8) {
        let first = rows.source.wrapping_offset(self.window);
        (self.from.cast_unsigned(), self.to, self.registers, first)
    }

    /// Whether rows, or what makes one, are read a line or a few behind where they are written, by their places in pages,
    /// all the way: CPUs take what is loaded for what was just stored then, and let it wait. Zen 4, GB/s of 22 MB of pixels
    /// of 44 bytes 9 for 27, rows of 100 16 for 28.
    pub(super) fn lags(&self, rows: &Rows) -> bool {
        let is_one = rows.count == 1;
        let (from, to) = if is_one { (self.from, signed(self.to)) } else { (rows.from, rows.to) };
        let steps = if is_one { 1 } else { div_ceil(rows.units, self.each * self.lanes) };
        let [_, lowest] = self.ends(rows.units, steps);
        let lowest = rows.source.wrapping_offset(if self.from < 0 { lowest } else { self.begin });
        let behind = (rows.target as usize).wrapping_sub(lowest as usize) % PAGE;
        from == to && to < 2 * signed(LINE) && (LINE / 4..4 * LINE).contains(&behind)
    }

    /// Whether lanes are lines, so that there are masks for what is left of many rows.
    pub(super) fn is_by_line(&self) -> bool {
        cfg!(all(target_arch = "x86_64", feature = "avx512")) && self.lane == LINE
    }

    /// Whether a window is one register.
    #[cfg_attr(not(all(target_arch = "x86_64", feature = "avx512")), allow(dead_code))]
    pub(super) fn has_one_register(&self) -> bool {
        self.registers == 1
    }

    /// Whole bytes that so many units become.
    pub(super) fn bytes(&self, count: usize) -> usize {
        (count * self.units.len()) >> self.shared
    }

    /// Bytes that so many units reach over.
    pub(super) fn read(&self, count: usize) -> usize {
        let (lowest, end) = self.units.reach();
        let last = self.units.step.wrapping_mul(signed(count.saturating_sub(1)));
        let bytes = self.byte(end - 1 + last.max(0)) + 1 - self.byte(lowest + last.min(0));
        bytes.cast_unsigned()
    }

    /// Of rows that become one run: how many steps take all of a row, and for which rows what these touch
    /// beyond it is read anyhow, or written later.
    #[inline(never)] // once in the library
    pub(super) fn over(&self, rows: &Rows) -> (usize, Range<usize>) {
        let bytes = self.bytes(rows.units);
        let all = rows.count + rows.after;
        let row = self.read(rows.units);
        if rows.units == 0 || rows.to != signed(bytes) {
            return (0, 0..0);
        }
        let steps = div_ceil(rows.units, self.each * self.lanes);
        let (read, stored) = self.touched(steps);
        // How many rows further on they reach.
        let further = |bytes: usize, row: usize| match bytes {
            0 => 0,
            bytes if bytes <= row => 1,
            _ if row == 0 => all,
            bytes => div_ceil(bytes, row),
        };
        let stored = further(stored - bytes, bytes);
        let read = further(read - row, rows.from.unsigned_abs());
        let is_forwards = (rows.from > 0) == (self.units.step > 0);
        let (first, last) = if is_forwards { (0, read.max(stored)) } else { (read, stored) };
        let last = all.saturating_sub(last).min(rows.count);
        (steps, first.min(last)..last)
    }

    /// Bytes from the source to the last one that so many units reach over, and to the last one that so many
    /// steps read.
    #[inline(never)] // as above
    fn ends(&self, units: usize, steps: usize) -> [isize; 2] {
        let bytes = [self.read(units), self.touched(steps).0];
        // Units that go backwards, and what is read, begin at the end of the first step.
        bytes.map(|bytes| match self.units.step {
            ..0 => self.begin + signed(self.reach) - signed(bytes),
            _ => self.begin + signed(bytes) - 1,
        })
    }
}

impl<const F: usize> Pick<F> {
    /// Of a field.
    const SHARED: u32 = F.trailing_zeros();
    const BITS: i8 = 8 >> Self::SHARED;

    /// How to pick such units, if there are enough in a window to win by it: in place, for the tables take
    /// much of the stack.
    pub(super) fn new<'a>(
        slot: &'a mut MaybeUninit<Self>,
        loops: &'static Loops<F>,
        units: Units,
        first: usize,
        count: usize,
    ) -> Option<&'a Self> {
        let how = How::new(Self::SHARED, (loops.lane, loops.lanes), units, first, count)?;
        let by_steps = *loops.steps.get(how.registers.checked_sub(1)?)?;
        let pick = slot.as_mut_ptr();
        // SAFETY: the slot is ours; all fields are written.
        let pick = unsafe {
            (&raw mut (*pick).how).write(how);
            (&raw mut (*pick).by_steps).write(by_steps);
            (&raw mut (*pick).few).write(loops.few);
            (&raw mut (*pick).orders).write_bytes(NONE, 1);
            (&raw mut (*pick).masks).write_bytes(0, 1);
            &mut *pick
        };
        pick.fill();
        Some(pick)
    }

    fn fill(&mut self) {
        let Units { part, parts: [(parts, part_step), (groups, group_step)], .. } = self.units;
        let places = self.window * signed(F) - signed(self.first);
        let lane = self.lane.trailing_zeros();
        let mut first = 0;
        for group in 0..groups {
            for at in 0..parts {
                let from =
                    group_step.wrapping_mul(signed(group)) + part_step.wrapping_mul(signed(at));
                let from = (from - places).cast_unsigned();
                for from in from..from + part {
                    self.set_each(from, first, lane);
                    first += 1;
                }
            }
        }
    }

    /// A field of each unit, the first of which goes from one place to another.
    #[inline(always)]
    fn set_each(&mut self, mut from: usize, mut to: usize, lane: u32) {
        let (step, len) = (self.units.step.cast_unsigned(), self.units.len());
        for _ in 0..self.each {
            self.set(from, to, lane);
            (from, to) = (from.wrapping_add(step), to + len);
        }
    }

    /// A field from one place goes to another.
    #[inline(always)]
    fn set(&mut self, from: usize, to: usize, lane: u32) {
        let (byte, at) = (from >> Self::SHARED, to >> Self::SHARED);
        let number = byte & ((1 << lane) - 1);
        let order = self.orders.get_mut(to % F).and_then(|orders| orders.get_mut(byte >> lane));
        if let Some(slot) = order.and_then(|order| order.0.get_mut(at)) {
            *slot = number.to_le_bytes()[0];
        }
        let mask = self.masks.get_mut(to % F).and_then(|masks| masks.get_mut(from % F));
        if let Some(slot) = mask.filter(|_| F > 1).and_then(|mask| mask.0.get_mut(at)) {
            *slot = (u8::MAX >> (8 - 8 / F)) << (to % F * (8 / F));
        }
    }

    /// Whether units fill the lines of such targets, so that these may go past the caches.
    pub(super) fn makes_lines(&self, rows: &Rows) -> bool {
        let places = rows.target as usize | rows.to.cast_unsigned();
        // If they fill a lane, their bytes are a power of two.
        F == 1 && self.fills_lanes() && places & (self.units.len() - 1) == 0
    }

    /// What lies so many units behind a source.
    pub(super) fn behind(&self, source: *const u8, units: usize) -> *const u8 {
        source.wrapping_offset(self.units.step.wrapping_mul(signed(units)) >> Self::SHARED)
    }

    /// Picks rows.
    ///
    /// # Safety
    /// 1, 2.
    pub(super) unsafe fn copy(&self, rows: &Rows) {
        // SAFETY: the caller's promise, which holds for what the steps of some rows touch beyond them.
        unsafe {
            if rows.count + rows.after < 2 {
                return self.copy_row(&mut { *rows });
            }
            let (steps, over) = self.over(rows);
            self.copy_each(&rows.part(0..over.start));
            let mut first = over.start;
            if !over.is_empty() && !are_near(rows.from, self.read(rows.units)) {
                // Rows of which what is read beyond them is in another page are copied each for itself.
                let ends = self.ends(rows.units, steps);
                let leaves_page = |row: &usize| {
                    let source = rows.source.wrapping_offset(rows.from.wrapping_mul(signed(*row)));
                    let [last, end] = ends.map(|at| source.wrapping_offset(at) as usize / PAGE);
                    last != end
                };
                for row in over.clone().filter(leaves_page) {
                    (self.by_steps)(self, &rows.part(first..row), steps);
                    self.copy_each(&rows.part(row..row + 1));
                    first = row + 1;
                }
            }
            (self.by_steps)(self, &rows.part(first..over.end), steps);
            self.copy_each(&rows.part(over.end..rows.count));
        }
    }

    /// The rows for which [`BySpans`] may pick what all pieces have: of others, what its steps touch beyond them is not
    /// read anyhow, or not written later.
    #[inline(never)] // for the stack
    pub(super) fn over_all(&self, rows: &Rows, spans: &mut [Span]) -> Range<usize> {
        let mut all = 0..rows.count;
        for span in spans {
            let (steps, over) = self.over(&span.rows(rows));
            span.steps = steps;
            all = all.start.max(over.start)..all.end.min(over.end);
        }
        all.start..all.end.max(all.start)
    }

    /// Whether steps may be picked in any order: each fills its lane.
    pub(super) fn fills_lanes(&self) -> bool {
        self.to == self.lane
    }

    /// Picks what all pieces have of each row, and touches nothing else.
    ///
    /// # Safety
    /// As [`Pick::copy`].
    pub(super) unsafe fn copy_all_each(&self, rows: &Rows, spans: &mut [Span]) {
        for span in spans {
            // SAFETY: the caller's promise.
            unsafe { self.copy_each(&span.rows(rows)) };
        }
    }

    /// Picks rows, some at a time, and touches nothing else.
    ///
    /// # Safety
    /// As [`Pick::copy`].
    #[inline(never)] // once in the library
    unsafe fn copy_each(&self, rows: &Rows) {
        let at_once = if self.is_by_line() { AT_ONCE } else { 1 };
        for some in math::parts(0..rows.count, at_once) {
            // SAFETY: the caller's promise.
            unsafe { self.copy_row(&mut rows.part(some)) };
        }
    }

    /// Picks a row, or rows, of which nothing is left then.
    ///
    /// # Safety
    /// As [`Pick::copy`].
    pub(super) unsafe fn copy_row(&self, row: &mut Rows) {
        let steps = self.steps(row.units);
        // SAFETY: the caller's promise.
        unsafe {
            (self.by_steps)(self, row, steps);
            self.skip(row, steps * self.each * self.lanes);
            while row.units > 0 {
                self.copy_few(row, usize::MAX);
            }
        }
    }

    /// Picks so many steps of a row, of which the last lane may reach behind their bytes; those bytes.
    ///
    /// # Safety
    /// As [`Pick::copy`]; the windows must be within the row, and whole lanes writable.
    pub(super) unsafe fn copy_steps(&self, row: &mut Rows, steps: usize) -> usize {
        let units = steps * self.each * self.lanes;
        // SAFETY: the caller's promise.
        unsafe { (self.by_steps)(self, row, steps) };
        self.skip(row, units);
        self.bytes(units)
    }

    /// Picks so many steps of a row past the caches by such a loop.
    ///
    /// # Safety
    /// As [`Pick::copy_steps`]; a fence must follow.
    pub(super) unsafe fn copy_merged(
        &self,
        by_lines: unsafe fn(&Self, &Rows, usize, &mut WriteCombining),
        row: &mut Rows,
        steps: usize,
        lines: &mut WriteCombining,
    ) {
        let units = steps * self.each * self.lanes;
        // SAFETY: the caller's promise.
        unsafe { by_lines(self, row, self.bytes(units), lines) };
        self.skip(row, units);
    }

    /// Picks the whole lines of a row past the caches; their bytes. The target must be at the begin of one.
    ///
    /// # Safety
    /// 1, 2; units must make lines, and a fence follow.
    pub(super) unsafe fn copy_lines(&self, row: &mut Rows, upwards: bool) -> usize {
        let is_forwards = (row.from > 0) == (self.units.step > 0);
        let is_near = are_near(row.from, self.read(row.units));
        let is_far_enough = row.from.unsigned_abs() >= self.lane;
        let is_read_over = row.after > 0 && is_forwards && is_near && is_far_enough;
        // All powers of two.
        let vector = (self.lane * self.lanes).trailing_zeros();
        let most = if is_read_over { usize::MAX } else { self.steps(row.units) << vector };
        let bytes = self.bytes(row.units).min(most) / LINE * LINE;
        let steps = bytes >> vector;
        let mut lines = Rows { past: true, ..*row };
        if upwards && self.from < 0 {
            let last = signed(steps).wrapping_sub(1);
            let [source, target] = row.strides(self).map(|step| step.wrapping_mul(last));
            lines.source = row.source.wrapping_offset(source);
            lines.target = row.target.wrapping_offset(target);
            lines.onwards = -1;
        }
        // SAFETY: the caller's promise, which holds for the row that is read next.
        unsafe { (self.by_steps)(self, &lines, steps) };
        self.skip(row, bytes >> self.units.len().trailing_zeros());
        bytes
    }

    /// Picks the first units of a row, or of rows, no more than a step takes and than are so many bytes; their bytes.
    ///
    /// # Safety
    /// 1, 2.
    #[inline(never)] // once a row
    pub(super) unsafe fn copy_few(&self, row: &mut Rows, most: usize) -> usize {
        let count = self.each * self.lanes;
        let count = count.min(row.units).min(most >> self.units.len().trailing_zeros());
        let read = self.read(count);
        let before = if self.units.step < 0 { self.reach - read } else { 0 };
        let few = Few { before, read, bytes: self.bytes(count) };
        if count > 0 {
            // SAFETY: the caller's promise.
            unsafe { (self.few)(self, &few, row) };
            self.skip(row, count);
        }
        few.bytes
    }

    /// Leaves out the first units of a row.
    pub(super) fn skip(&self, row: &mut Rows, count: usize) {
        row.source = self.behind(row.source, count);
        row.target = row.target.wrapping_add(self.bytes(count));
        row.units -= count;
    }

    /// The tables, in registers.
    ///
    /// # Safety
    /// 1.
    #[inline(always)]
    pub(super) unsafe fn orders<V: Register, const R: usize>(&self) -> [[V; R]; F] {
        // SAFETY: the caller's promise.
        unsafe {
            let mut orders = [[V::zero(); R]; F];
            for (orders, tables) in orders.iter_mut().zip(&self.orders) {
                for (order, table) in orders.iter_mut().zip(tables) {
                    *order = V::table(table);
                }
            }
            orders
        }
    }

    /// The units of the windows from a place on.
    ///
    /// # Safety
    /// 1; they must be readable.
    #[inline(always)]
    unsafe fn take<V: Register, const R: usize>(
        &self,
        orders: &[[V; R]; F],
        source: *const u8,
    ) -> V {
        // SAFETY: the caller's promise.
        unsafe {
            let mut windows = [V::zero(); R];
            for (at, window) in windows.iter_mut().enumerate() {
                let from = self.from.cast_unsigned();
                *window = V::load_windows(source.wrapping_add(at * V::OWN_LANE), from);
            }
            self.picked(orders, &windows)
        }
    }

    /// The units of windows.
    ///
    /// # Safety
    /// 1.
    #[inline(always)]
    pub(super) unsafe fn picked<V: Register, const R: usize>(
        &self,
        orders: &[[V; R]; F],
        windows: &[V; R],
    ) -> V {
        // SAFETY: the caller's promise.
        unsafe {
            let mut all = None::<V>;
            for (orders, (to, masks)) in orders.iter().zip((0i8..).zip(&self.masks)) {
                let mut bytes = None;
                for (window, order) in windows.iter().zip(orders) {
                    bytes = Some(window.permuted(*order, bytes));
                }
                let bytes = bytes.unwrap_or_else(|| V::zero());
                if F == 1 {
                    return bytes;
                }
                for (from, mask) in (0i8..).zip(masks) {
                    let some = bytes.shifted((from - to) * Self::BITS).and(V::table(mask));
                    all = Some(all.map_or(some, |all| all.or(some)));
                }
            }
            all.unwrap_or_else(|| V::zero())
        }
    }
}

/// Rows of fewer units are as quickly copied unit by unit as picked, unless the next row continues them.
pub(crate) const LEAST_PICKED: usize = 32;
/// Rows that are picked at a time, first the steps of all, then what is left of them: few lines of the caches.
pub(crate) const AT_ONCE: usize = 32;
/// Fewer units than this in a step are no quicker than one by one.
const LEAST: usize = 4;

/// How to pick runs of elements that share bytes.
#[derive(Clone, Copy)]
pub(crate) enum Elements<'a> {
    Nibbles(&'a Pick<2>),
    Crumbs(&'a Pick<4>),
}

/// Room for it.
pub(crate) union Slot {
    nibbles: ManuallyDrop<MaybeUninit<Pick<2>>>,
    crumbs: ManuallyDrop<MaybeUninit<Pick<4>>>,
}

impl Slot {
    pub(crate) const NEW: Self = Self { crumbs: ManuallyDrop::new(MaybeUninit::uninit()) };
}

impl<'a> Elements<'a> {
    /// Elements of so many bits, the first of them after so many of its byte.
    pub(crate) fn new(
        slot: &'a mut Slot,
        kernels: &'static Kernels,
        bits: i64,
        units: Units,
        first: usize,
        count: usize,
    ) -> Option<Self> {
        let picks = kernels.picks?;
        // SAFETY: either is room for anything.
        unsafe {
            match bits {
                4 => Pick::new(&mut slot.nibbles, &picks.nibbles, units, first, count)
                    .map(Self::Nibbles),
                _ => Pick::new(&mut slot.crumbs, &picks.crumbs, units, first, count)
                    .map(Self::Crumbs),
            }
        }
    }

    /// Picks as many of `count` runs as are whole bytes; their number.
    ///
    /// # Safety
    /// As [`Pick::copy`]; the first must be as far into its byte as was said.
    pub(crate) unsafe fn copy(&self, source: *const u8, target: *mut u8, count: usize) -> usize {
        let units = count & !3;
        let mut row = Rows::one(source, target, units);
        // SAFETY: the caller's promise.
        unsafe {
            match self {
                Self::Nibbles(pick) => pick.copy_row(&mut row),
                Self::Crumbs(pick) => pick.copy_row(&mut row),
            }
        }
        units
    }
}
