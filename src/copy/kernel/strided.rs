//! Strided copies: units a step apart on both sides, what pieces with strides of their own are made of.
//! Where they become one run, many are picked at a time (`pick.rs`), and past the caches by way of a
//! write-combining buffer; all others move one by one.
//!
//! # Safety
//! 1. Every unit must be readable at its source and writable at its target, which do not overlap.
//! 2. What lies between the units of a source must be readable.

use super::combine::{Scratch, WriteCombining, LINE, MOST};
use super::opaque::opaque;
pub(crate) use super::pick::Span;
use super::pick::{self, ByLines, BySpans, Pick, Units};
use super::{are_near, generic, Gather, Kernels, NonTemporal, LANE};
use crate::math::{div, signed};
use core::hint::black_box;
use core::mem::MaybeUninit;
use core::ops::Range;
use core::ptr::null_mut;

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
pub(crate) struct RowSteps {
    pub count: usize,
    pub after: usize,
    pub from: isize,
    pub to: isize,
}

impl From<Gather> for Row {
    fn from(gather: Gather) -> Self {
        let Gather { source, step, target, count, unit } = gather;
        Self { source, source_step: signed(step), target, target_step: signed(unit), count, unit }
    }
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
pub(crate) struct RowCopy<'a> {
    kernels: &'static Kernels,
    units: Units,
    pick: Option<&'a Pick<1>>,
    past: Option<&'static NonTemporal>,
    /// Bytes to what is prefetched.
    ahead: isize,
}

impl<'a> RowCopy<'a> {
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
        let is_lane = [units.part, units.len()] == [LANE; 2] && kernels.by_second && past.is_none();
        let is_worth = count * units.len() >= LEAST_PICKED && !is_lane;
        let picks = kernels.picks.filter(|_| is_worth);
        let pick = picks.and_then(|picks| Pick::new(slot, &picks.bytes, units, 0, count));
        Self { kernels, units, pick, past, ahead }
    }

    /// The same rows, so far from each other, for several pieces, where there is a loop for that.
    pub(crate) fn spans(&self, row: isize) -> Option<SpanCopy<'a>> {
        let pick = self.pick?;
        let by_spans = self.kernels.picks?.spans?;
        let is_backwards =
            self.goes_upwards(row) && self.units.is_backwards() && pick.fills_lanes();
        Some(SpanCopy { pick, by_spans, onwards: if is_backwards { -1 } else { 1 } })
    }

    /// Whether rows so far from each other are read upwards. Those that lie backwards are read in their order: Zen 4,
    /// 17 MB, all backwards to two pieces, GB/s upwards and so: f64 rows of 75 4.9, 19, units of 16 bytes, every
    /// second one of 17 3.3, 13.
    fn goes_upwards(&self, row: isize) -> bool {
        self.kernels.picks_upwards && row >= 0
    }

    /// Whether they are picked, many units at a time.
    pub(crate) fn are_picked(&self) -> bool {
        self.pick.is_some()
    }

    /// Whether so many rows of so many units are worth finding out what of them is picked: else, unless there are masks, they
    /// are as quickly copied one by one. Zen 4 by AVX2, us picked and not, rows backwards: 172 times 2 of 10 23, 1.9, 126
    /// times 3 of 47 11, 6, 288 times 2 of 73 25, 12, but 11 times 25 of 6 1.1, 1.4.
    pub(crate) fn are_worth(&self, count: usize, units: usize) -> bool {
        count * (units + ROW_IN_UNITS) >= LEAST_WORTH
            || self.pick.is_some_and(|pick| pick.is_by_line())
    }

    /// Whether so few rows that lie one behind the other are copied each for itself where there are many such: of two,
    /// nothing that is touched beyond one is the other's. Zen 4, rows of 9 to 40 units backwards, time for those that become
    /// a run: of 2 or 3 rows .42, 5 .55, 8 .66, 12 .9, 20 1.0.
    pub(crate) fn are_few(&self, count: usize) -> bool {
        count <= 12 && self.pick.is_some_and(|pick| pick.is_by_line())
    }

    /// Copies a row again and again, past the caches by way of `lines` if there are such.
    ///
    /// # Safety
    /// 1, 2 of all of them; the lines must be finished, and a fence follow.
    #[inline(never)]
    pub(crate) unsafe fn copy_all(
        &self,
        row: Row,
        steps: RowSteps,
        lines: Option<&mut WriteCombining>,
    ) {
        let RowSteps { count, after, from, to } = steps;
        // SAFETY: the caller's promise.
        unsafe {
            if let Some(pick) = self.pick {
                let rows = pick::Rows { count, after, from, to, ..row.picked() };
                let (bytes, least) = (self.bytes(&rows), self.least_past(&rows));
                let is_long = || {
                    bytes >= least
                        || (count * bytes >= least && self.by_lines(pick, &rows).is_some())
                };
                return match (self.past, lines) {
                    (Some(past), Some(lines)) => self.stream(pick, past, &rows, lines),
                    (Some(past), None) if is_long() => self.stream_alone(pick, past, &rows),
                    _ => pick.copy(&rows),
                };
            }
            let Row { source, source_step, target, target_step, count: extent, unit } = row;
            let inner = Axis { extent, from: source_step, to: target_step };
            let axes = [Axis { extent: count, from, to }, inner];
            Block { unit, axes }.copy((source, target), Axis::ONE, self.kernels);
        }
    }

    /// Of a row.
    fn bytes(&self, rows: &pick::Rows) -> usize {
        rows.units * self.units.len()
    }

    /// Those that are worth going past the caches.
    fn least_past(&self, rows: &pick::Rows) -> usize {
        if self.bytes(rows).is_multiple_of(LINE) {
            LEAST_LINES
        } else {
            LEAST_PAST
        }
    }

    /// The loop for a row, or for rows that become one run, whatever its lines, if there is one.
    #[inline(never)] // once in the library
    fn by_lines(&self, pick: &Pick<1>, rows: &pick::Rows) -> Option<ByLines> {
        let is_run =
            rows.to == signed(self.bytes(rows)) && are_near(rows.from, pick.read(rows.units));
        self.kernels.pick_lines.filter(|_| (rows.count == 1 || is_run) && !pick.lags(rows))
    }

    /// Picks rows past the caches by way of lines of its own.
    ///
    /// # Safety
    /// 1, 2; a fence must follow.
    #[inline(never)] // which takes some of the stack
    unsafe fn stream_alone(&self, pick: &Pick<1>, past: &NonTemporal, rows: &pick::Rows) {
        let mut scratch = Scratch::<MOST>::NEW;
        let mut lines = scratch.alone(rows.target);
        // SAFETY: the caller's promise.
        unsafe {
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
        let rows = pick::Rows { ahead: self.ahead, ..*rows };
        let has_lines = pick.makes_lines(&rows);
        let is_long = rows.count == 1 || self.bytes(&rows) >= self.least_past(&rows);
        let is_straight = has_lines && is_long;
        let by_lines = if is_straight { None } else { self.by_lines(pick, &rows) };
        let makes_lines = has_lines && by_lines.is_none();
        // Of these, what is read beyond a row is read anyhow.
        let over = if by_lines.is_some() && rows.count > 1 { pick.over(&rows).1 } else { 0..0 };
        let mut at = 0;
        while at < rows.count {
            let are_over = over.contains(&at);
            let end = if are_over { over.end } else { at + 1 };
            let some = rows.part(at..end);
            at = end;
            // SAFETY: the caller's promise.
            unsafe {
                if !lines.is_at(some.target) {
                    lines.finish();
                    lines.begin(some.target);
                }
                match by_lines.filter(|_| are_over) {
                    Some(by_lines) => by_lines(pick, &some, self.bytes(&some), lines),
                    None => self.stream_row(pick, past, some, makes_lines, lines),
                }
            }
        }
    }

    /// A row of them.
    ///
    /// # Safety
    /// As [`RowCopy::stream`].
    unsafe fn stream_row(
        &self,
        pick: &Pick<1>,
        past: &NonTemporal,
        mut row: pick::Rows,
        makes_lines: bool,
        lines: &mut WriteCombining,
    ) {
        let is_upwards = self.goes_upwards(row.from);
        let at_once = if makes_lines { 0 } else { div(lines.takes(), self.units.len()) };
        // SAFETY: the caller's promise; the buffer has room for as many.
        unsafe {
            let by_lines = if makes_lines { None } else { self.by_lines(pick, &row) };
            if let Some(by_lines) = by_lines {
                let steps = pick.whole_steps(row.units, usize::MAX);
                pick.copy_merged(by_lines, &mut row, steps, lines);
            }
            while row.units > 0 {
                let mut most = usize::MAX;
                if makes_lines {
                    if lines.of_line() == 0 {
                        lines.skip(pick.copy_lines(&mut row, is_upwards));
                    }
                    most = LINE - lines.of_line();
                }
                // What windows reach over is the row's, though not yet its turn.
                let steps = pick.whole_steps(row.units, at_once);
                let target = row.target;
                row.target = lines.room();
                let bytes = if steps > 0 {
                    pick.copy_steps(&mut row, steps)
                } else {
                    pick.copy_few(&mut row, most)
                };
                row.target = target.wrapping_add(bytes);
                lines.filled(past, bytes);
            }
        }
    }
}

/// Rows of which several pieces have units.
pub(crate) struct SpanCopy<'a> {
    pick: &'a Pick<1>,
    by_spans: BySpans,
    onwards: isize,
}

impl SpanCopy<'_> {
    /// So many rows from a place on.
    fn rows(source: *const u8, RowSteps { count, after, from, .. }: RowSteps) -> pick::Rows {
        pick::Rows { count, after, from, ..pick::Rows::one(source, null_mut(), 0) }
    }

    /// The rows that go to all pieces at a time.
    pub(crate) fn over(
        &self,
        source: *const u8,
        steps: RowSteps,
        spans: &mut [Span],
    ) -> Range<usize> {
        self.pick.over_all(&Self::rows(source, steps), spans)
    }

    /// Copies rows, all of which do so, or not, past the caches by way of a buffer for each piece.
    ///
    /// # Safety
    /// 1, 2 of all of them; `over` must have said so of the rows, and buffers have room for as many and a line. They
    /// must be finished, and a fence follow.
    #[inline(never)] // as above
    pub(crate) unsafe fn send(
        &self,
        source: *const u8,
        steps: RowSteps,
        spans: &mut [Span],
        are_over: bool,
        past: &NonTemporal,
        lines: &mut [WriteCombining],
    ) {
        let rows = Self::rows(source, steps);
        for (span, lines) in spans.iter_mut().zip(&*lines) {
            span.target = lines.room();
        }
        // SAFETY: the caller's promise.
        unsafe {
            if are_over {
                (self.by_spans)(self.pick, &pick::Rows { onwards: self.onwards, ..rows }, spans);
            } else {
                self.pick.copy_all_each(&rows, spans);
            }
            for (span, lines) in spans.iter().zip(lines) {
                lines.filled(past, rows.count * span.bytes);
            }
        }
    }
}

/// Shorter rows go through the caches, for they have partial lines at both ends, but whole lines. Zen 5, floats
/// backwards, 12 MiB, ms past the caches and through them: 516 bytes 1.5, .9, 512 .8, 1.5, 1,024 .7, 1.5.
pub(crate) const LEAST_PAST: usize = 1536;
const LEAST_LINES: usize = 512;
/// Shorter rows are as quickly copied one by one, and on Zen 4 so are units of 16 bytes through the caches: GB/s of 30
/// rows of 300 backwards picked for one by one 48 for 52, of 5,000 42 for 47, of every second 29 for 32.
const LEAST_PICKED: usize = 16;
const LEAST_WORTH: usize = 256;
const ROW_IN_UNITS: usize = 8;
/// There are loops for units of so many bytes.
const LONGEST: usize = 128;
/// Fewer units of a row are copied one by one. Zen 4, ns of 32 rows of 13 of 16 bytes 300 for 185.
const LEAST_GATHERED: usize = 32;

/// Copies a row, unit by unit.
///
/// # Safety
/// 1.
#[inline(never)] // once in the library
pub(crate) unsafe fn copy(kernels: &Kernels, row: Row) {
    let Row { source, source_step, target, target_step, count, unit } = row;
    let axis = Axis { extent: count, from: source_step, to: target_step };
    let block = Block { unit, axes: [Axis::ONE, axis] };
    // SAFETY: the caller's promise.
    unsafe { block.row(kernels).0(source, target, &block, kernels) };
}

/// Copies rows of as many units, of each a unit by turns: some that lie `step` bytes apart and become a run, and
/// as many again from the rows' next units on.
///
/// # Safety
/// 1 of all of them.
#[inline(never)]
pub(crate) unsafe fn copy_by_row(
    kernels: &Kernels,
    rows: &mut [Row],
    some: Range<usize>,
    step: usize,
) {
    for _ in 0..rows.first().map_or(0, |row| row.count) {
        for at in some.clone() {
            for row in &*rows {
                let source = row.source.wrapping_add(at.wrapping_mul(step));
                let target = row.target.wrapping_add(at.wrapping_mul(row.unit));
                // SAFETY: the caller's promise.
                unsafe { (kernels.copy)(source, target, row.unit) };
            }
        }
        for row in &mut *rows {
            row.source = row.source.wrapping_offset(row.source_step);
            row.target = row.target.wrapping_offset(row.target_step);
        }
    }
}

/// One axis of a copy: how many steps, and how far each goes in the source and the target.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Axis {
    pub extent: usize,
    pub from: isize,
    pub to: isize,
}

impl Axis {
    pub(crate) const ONE: Self = Self { extent: 1, from: 0, to: 0 };
    pub(crate) const NONE: Self = Self { extent: 0, ..Self::ONE };

    /// Whether another one goes on where this one ends, in the input and in the output.
    pub(crate) fn continues(&self, outer: &Self) -> bool {
        let extent = signed(self.extent);
        self.from.checked_mul(extent) == Some(outer.from)
            && self.to.checked_mul(extent) == Some(outer.to)
    }

    /// A row of units.
    pub(crate) fn of(self, source: *const u8, target: *mut u8, unit: usize) -> Row {
        let Self { extent: count, from: source_step, to: target_step } = self;
        Row { source, source_step, target, target_step, count, unit }
    }

    /// So many of its steps further.
    pub(crate) fn moved(self, (source, target): Place, steps: isize) -> Place {
        let ahead = |step: isize| step.wrapping_mul(steps);
        (source.wrapping_offset(ahead(self.from)), target.wrapping_offset(ahead(self.to)))
    }

    /// The places of its steps, one after the other.
    pub(crate) fn places(self, (mut source, mut target): Place) -> impl FnMut() -> Option<Place> {
        let mut left = self.extent;
        move || {
            left = left.checked_sub(1)?;
            let place = (source, target);
            source = source.wrapping_offset(self.from);
            target = target.wrapping_offset(self.to);
            Some(place)
        }
    }

    /// Whether a row is filled with one unit that a lane has one or several of.
    pub(crate) fn repeats(self, unit: usize) -> bool {
        self.from == 0
            && self.to == signed(unit)
            && self.extent >= FEWEST_REPEATED
            && self.extent * unit >= LEAST_REPEATED
            && unit <= LANE
            && unit.is_power_of_two()
    }

    /// Goes over its steps.
    #[inline(always)] // with loops of their own
    pub(super) fn each(
        self,
        mut source: *const u8,
        mut target: *mut u8,
        step: impl Fn(*const u8, *mut u8),
    ) {
        for _ in 0..self.extent {
            step(source, target);
            source = source.wrapping_offset(self.from);
            target = target.wrapping_offset(self.to);
        }
    }
}

/// Where something lies in the source and in the target.
pub(crate) type Place = (*const u8, *mut u8);
/// Gives the places of what is alike, one after the other.
pub(crate) type Places<'a> = dyn FnMut() -> Option<Place> + 'a;

/// Units of so many bytes, and axes over them, outermost first.
#[derive(Debug)]
pub(crate) struct Block {
    pub unit: usize,
    pub axes: [Axis; 2],
}

impl Block {
    /// Copies unit by unit, from a place on again and again.
    ///
    /// # Safety
    /// 1.
    pub(crate) unsafe fn copy(&self, place: Place, again: Axis, kernels: &Kernels) {
        // SAFETY: the caller's promise.
        unsafe { self.copy_all(black_box(&mut again.places(place)), kernels) };
    }

    /// The same of as many as there are places.
    ///
    /// # Safety
    /// 1.
    #[inline(never)] // once in the library
    pub(crate) unsafe fn copy_all(&self, places: &mut Places<'_>, kernels: &Kernels) {
        let (row, outer) = self.row(kernels);
        while let Some((source, target)) = places() {
            // SAFETY: the caller's promise.
            outer.each(source, target, |source, target| unsafe {
                row(source, target, self, kernels);
            });
        }
    }

    /// The same of one, by loops for units that become a run, if they do.
    ///
    /// # Safety
    /// 1, and 2 of what lies between units that are near.
    #[inline(never)] // once in the library
    pub(crate) unsafe fn copy_one(&self, (source, target): Place, kernels: &Kernels) {
        let &Self { unit, axes: [outer, Axis { from, to, extent }] } = self;
        let is_run =
            extent >= LEAST_GATHERED && to == signed(unit) && from >= to && are_near(from, unit);
        let (row, outer): (CopyRow, _) = match unit {
            ..=LONGEST if is_run => (gathered, outer),
            32..=LONGEST => (halves, outer),
            _ => self.row(kernels),
        };
        // SAFETY: the caller's promise.
        outer.each(source, target, |source, target| unsafe { row(source, target, self, kernels) });
    }

    /// The loop for a row, and for which rows it is called: some go over them themselves.
    #[inline(never)] // once in the library
    fn row(&self, kernels: &Kernels) -> (CopyRow, Axis) {
        let &Self { unit, axes: [outer, inner] } = self;
        if inner.repeats(unit) {
            return (kernels.repeat, Axis::ONE);
        }
        let apart = kernels.apart.filter(|_| inner.to > signed(unit));
        if let Some((_, copy)) = apart.filter(|(are_many, _)| are_many(self)) {
            return (copy, Axis::ONE);
        }
        let row: CopyRow = match unit {
            1 => elements::<u8>,
            2 => elements::<u16>,
            4 => elements::<u32>,
            8 => elements::<u64>,
            16 => elements::<u128>,
            3 => ends::<2>,
            5..=7 => ends::<4>,
            9..=128 => halves,
            _ => each,
        };
        (row, outer)
    }
}

/// Copies a row of units of so many bytes.
pub(crate) type CopyRow = unsafe fn(*const u8, *mut u8, &Block, &Kernels);

/// Units that a register holds: `T`'s size.
///
/// # Safety
/// 1.
unsafe fn elements<T: Copy>(
    mut source: *const u8,
    mut target: *mut u8,
    &Block { axes: [_, row], .. }: &Block,
    _: &Kernels,
) {
    // SAFETY: the caller's promise; no alignment is assumed.
    let copy_one = |source: *const u8, target: *mut u8| unsafe {
        let element = source.cast::<MaybeUninit<T>>().read_unaligned();
        target.cast::<MaybeUninit<T>>().write_unaligned(element);
    };
    // Zen 4: a quarter quicker than one by one.
    let [from, to] = [row.from, row.to].map(|step| opaque(step.cast_unsigned()));
    let [from3, to3] = [from, to].map(|step| opaque(step.wrapping_mul(3)));
    for _ in 0..row.extent / 4 {
        copy_one(source, target);
        copy_one(source.wrapping_add(from), target.wrapping_add(to));
        copy_one(
            source.wrapping_add(from.wrapping_mul(2)),
            target.wrapping_add(to.wrapping_mul(2)),
        );
        copy_one(source.wrapping_add(from3), target.wrapping_add(to3));
        source = source.wrapping_add(from.wrapping_mul(4));
        target = target.wrapping_add(to.wrapping_mul(4));
    }
    for _ in 0..opaque(row.extent % 4) {
        copy_one(source, target);
        source = source.wrapping_add(from);
        target = target.wrapping_add(to);
    }
}

/// Rows of one unit again and again, by lanes.
///
/// # Safety
/// As [`repeat_by`].
pub(super) unsafe fn repeat(source: *const u8, target: *mut u8, block: &Block, _: &Kernels) {
    // SAFETY: the caller's promise.
    unsafe { repeat_by(source, target, block, |lane| lane) };
}

/// Rows of one unit of 1, 2, 4, 8 or 16 bytes again and again, by registers of lanes.
///
/// # Safety
/// 1; rows must be no shorter than [`LEAST_REPEATED`].
#[inline(always)]
pub(super) unsafe fn repeat_by<R: Copy>(
    source: *const u8,
    target: *mut u8,
    &Block { unit, axes: [outer, row] }: &Block,
    of: impl Fn([u64; 2]) -> R,
) {
    let bytes = row.extent * unit;
    // SAFETY: the caller's promise; those that overlap are whole units apart.
    outer.each(source, target, |source, target| unsafe {
        // There is one loop for all units.
        let (unit, bytes) = (opaque(unit), opaque(bytes));
        let lane = match unit {
            1 => [u64::from(source.read()) * (u64::MAX / 0xFF); 2],
            2 => [u64::from(source.cast::<u16>().read_unaligned()) * (u64::MAX / 0xFFFF); 2],
            4 => [u64::from(source.cast::<u32>().read_unaligned()) * (u64::MAX / 0xFFFF_FFFF); 2],
            8 => [source.cast::<u64>().read_unaligned(); 2],
            _ => source.cast::<[u64; 2]>().read_unaligned(),
        };
        let register = of(lane);
        let store = |at: usize| target.add(at).cast::<R>().write_unaligned(register);
        store(0);
        // On to where registers are within lines, if units are on their own bounds.
        let aligned = size_of::<R>() - target as usize % size_of::<R>();
        let mut at =
            if bytes < LEAST_ON_LINES { size_of::<R>() } else { aligned & unit.wrapping_neg() };
        while at < bytes - size_of::<R>() {
            store(at);
            at += size_of::<R>();
        }
        store(bytes - size_of::<R>());
    });
}

/// Shorter rows are filled one by one, and fewer units the longer way. Zen 4, ns of a row of 48 bytes by lanes and one by
/// one: units of 1 2.0, 14, 2 2.0, 8, 4 1.9, 5, 8 1.9, 3.5; us of 51 rows of three of 16 1.56, 1.1.
const LEAST_REPEATED: usize = LINE / 2;
const FEWEST_REPEATED: usize = 4;
/// A first store that is off its line is not worth it in shorter ones.
const LEAST_ON_LINES: usize = 512;

/// Units of `N` to `2 * N` bytes.
///
/// # Safety
/// 1.
unsafe fn ends<const N: usize>(
    source: *const u8,
    target: *mut u8,
    &Block { unit, axes: [_, row] }: &Block,
    _: &Kernels,
) {
    // SAFETY: the caller's promise.
    row.each(source, target, |source, target| unsafe { generic::ends::<N>(source, target, unit) });
}

/// Units of 9 to 128 bytes, by registers of half a line where there are such.
///
/// # Safety
/// 1.
unsafe fn halves(source: *const u8, target: *mut u8, block: &Block, kernels: &Kernels) {
    let &Block { unit, axes: [_, row] } = block;
    // SAFETY: the caller's promise.
    unsafe {
        match kernels.units {
            Some(units) => units(source, row.from, target, row.to, row.extent, unit),
            // x86-64 without AVX2 is too rare for these.
            None if cfg!(not(target_arch = "x86_64")) => match unit {
                ..=16 => ends::<8>(source, target, block, kernels),
                17..=32 => ends::<16>(source, target, block, kernels),
                33..=64 => ends::<32>(source, target, block, kernels),
                _ => each(source, target, block, kernels),
            },
            None => each(source, target, block, kernels),
        }
    }
}

/// Units that lie apart and become a run.
///
/// # Safety
/// 1, and 3 of `generic.rs`.
unsafe fn gathered(source: *const u8, target: *mut u8, block: &Block, kernels: &Kernels) {
    let &Block { unit, axes: [_, Axis { extent: count, from, .. }] } = block;
    let gather = Gather { source, step: from.cast_unsigned(), target, count, unit };
    // SAFETY: the caller's promise.
    unsafe { (kernels.gather(unit))(gather) };
}

/// Units of any size.
///
/// # Safety
/// 1.
unsafe fn each(source: *const u8, target: *mut u8, block: &Block, kernels: &Kernels) {
    let &Block { unit, axes: [_, row] } = block;
    // SAFETY: the caller's promise.
    row.each(source, target, |source, target| unsafe { (kernels.copy)(source, target, unit) });
}
