//! Sets of the spans that begin in a window of memory, in so little memory that few passes over a
//! million of them will do.

#![forbid(unsafe_code)]

use crate::math::{div, div_rem};
use crate::span::Span;

/// What there is to know of many spans before they are looked at one by one.
pub(crate) struct Summary {
    pub hull: Span,
    /// All that are set in addresses and lengths.
    bits: usize,
    shortest: usize,
    longest: usize,
}

impl Summary {
    pub(crate) const EMPTY: Self =
        Self { hull: Span::NOWHERE, bits: 0, shortest: usize::MAX, longest: 0 };

    pub(crate) fn add(&mut self, span: Span) {
        self.hull = self.hull.hull(span);
        self.bits |= span.start | span.len();
        (self.shortest, self.longest) =
            (self.shortest.min(span.len()), self.longest.max(span.len()));
    }

    /// All begin and end at whole numbers of cells: their size by its logarithm. No longer than
    /// pages, so that windows fit into memory.
    pub(crate) fn cell(&self) -> u32 {
        self.bits.trailing_zeros().min(12)
    }
}

/// Such a set.
pub(crate) trait Window {
    /// Begins anew with a window from `start` on.
    fn open(&mut self, start: usize) -> Span;

    /// Adds a span that begins in the window. Gives the window's end from now on: where there is no
    /// room, what lies furthest up is dropped. Or where a span begins that meets another.
    fn push(&mut self, span: Span) -> Result<usize, usize>;

    /// All have been added: where the window ends, and the highest of the spans, as far as it lies in
    /// the window that was opened; or as above.
    fn close(&mut self) -> Result<(usize, usize), usize>;
}

/// As a bit for each cell of memory: for what lies close together.
pub(crate) struct Bits<'a> {
    words: &'a mut [u64],
    window: Span,
    cell: u32,
}

impl<'a> Bits<'a> {
    pub(crate) fn new(words: &'a mut [u64], summary: &Summary) -> Self {
        Self { words, window: Span::default(), cell: summary.cell() }
    }
}

impl Window for Bits<'_> {
    fn open(&mut self, start: usize) -> Span {
        self.words.fill(0);
        let bytes = self.words.len().saturating_mul(64) << self.cell;
        self.window = Span { start, end: start.saturating_add(bytes) };
        self.window
    }

    fn push(&mut self, span: Span) -> Result<usize, usize> {
        let window = self.window;
        let first = (span.start - window.start) >> self.cell;
        let end = (span.end.min(window.end) - window.start) >> self.cell;
        let mut is_free = true;
        let words = self.words.iter_mut().enumerate().take(end.div_ceil(64));
        for (at, word) in words.skip(first / 64) {
            let bits = !0u64 << first.saturating_sub(64 * at)
                & !0u64 >> (64 * (at + 1)).saturating_sub(end);
            is_free &= *word & bits == 0;
            *word |= bits;
        }
        if is_free {
            Ok(window.end)
        } else {
            Err(span.start)
        }
    }

    fn close(&mut self) -> Result<(usize, usize), usize> {
        Ok((self.window.end, self.window.end))
    }
}

/// In order, as what lies between them, a byte for most: for what lies far apart.
pub(crate) struct Gaps<'a> {
    /// Of each span the gap below it and, unless all are alike, its length, in cells: `len` bytes
    /// from `head` up to `tail`. What is read at one end is written at the other.
    ring: &'a mut [u8],
    head: usize,
    tail: usize,
    len: usize,
    /// Those that are yet to be added.
    batch: Batch<'a>,
    window: Span,
    /// Where those that are kept end: the window, and the highest.
    end: usize,
    highest: usize,
    /// How long windows are: as much as is likely to fill the ring.
    width: usize,
    cell: u32,
    /// The length of all, in cells.
    length: Option<usize>,
}

impl<'a> Gaps<'a> {
    /// For spans like these, in windows of so many bytes at first.
    pub(crate) fn new(
        ring: &'a mut [u8],
        slots: &'a mut [u64],
        summary: &Summary,
        width: usize,
    ) -> Self {
        let cell = summary.cell();
        let longest = summary.longest >> cell;
        let length = (summary.shortest == summary.longest).then_some(longest);
        let low_bits = (usize::BITS - longest.leading_zeros()).min(32);
        Self {
            ring,
            head: 0,
            tail: 0,
            len: 0,
            batch: Batch { slots, highest: Batch::EMPTY, len: 0, low_bits, shift: 0, scale: 0 },
            window: Span::default(),
            end: 0,
            highest: 0,
            width,
            cell,
            length,
        }
    }

    /// In place of a span: above all.
    const NONE: (usize, usize) = (usize::MAX, 0);

    /// Adds the batch to the ring.
    #[inline(never)]
    fn merge(&mut self) -> Result<(), usize> {
        let Self { ref mut ring, ref batch, window, cell, length, .. } = *self;
        let (room, held) = (ring.len(), self.len);
        // Room is left for what is added before it is known what that drops.
        let most = room / 16 * 15;
        let mut reader = Cursor { at: self.head, passed: 0, place: 0 };
        let mut writer = Cursor { at: self.tail, passed: 0, place: 0 };
        let address = |cells: usize| window.start.saturating_add(cells << cell);
        let mut new = batch.iter();
        let mut added = new.next().unwrap_or(Self::NONE);
        let mut old = None;
        let mut result = Ok(());
        loop {
            let kept = old.unwrap_or_else(|| {
                if reader.passed == held {
                    return Self::NONE;
                }
                let first = reader.place + reader.take(ring);
                reader.place = first + length.unwrap_or_else(|| reader.take(ring));
                (first, reader.place)
            });
            let next = kept.min(added);
            if next == Self::NONE {
                break;
            }
            if kept <= added {
                old = None;
            } else {
                old = Some(kept);
                added = new.next().unwrap_or(Self::NONE);
            }
            if next.0 < writer.place {
                result = Err(address(next.0));
                break;
            }
            let is_free = writer.passed + held + 2 * LONGEST <= room + reader.passed;
            if !is_free || writer.passed >= most {
                self.end = address(next.0);
                break;
            }
            writer.put(ring, next.0 - writer.place);
            if length.is_none() {
                writer.put(ring, next.1 - next.0);
            }
            writer.place = next.1;
        }
        (self.head, self.tail, self.len) = (self.tail, writer.at, writer.passed);
        self.highest = address(writer.place);
        result
    }
}

impl Window for Gaps<'_> {
    fn open(&mut self, start: usize) -> Span {
        let cells = self.batch.open(self.width >> self.cell);
        self.window = Span { start, end: start.saturating_add(cells << self.cell) };
        (self.head, self.len) = (self.tail, 0);
        (self.end, self.highest) = (self.window.end, 0);
        self.window
    }

    fn push(&mut self, span: Span) -> Result<usize, usize> {
        let cells = |address: usize| (address - self.window.start) >> self.cell;
        let (first, end) = (cells(span.start), cells(span.end.min(self.window.end)));
        if self.batch.is_full() {
            self.merge()?;
            self.batch.clear();
        }
        if span.start < self.end {
            self.batch.insert(first, end);
        }
        Ok(self.end)
    }

    fn close(&mut self) -> Result<(usize, usize), usize> {
        self.merge()?;
        // The next is to hold nearly as much as it can, if it is as this one.
        let (wanted, used) = (self.ring.len() / 32 * 29, self.len.max(self.ring.len() / 16));
        let (bytes, rest) = div_rem(self.end - self.window.start, used);
        self.width = bytes.saturating_mul(wanted).saturating_add(div(rest * wanted, used));
        Ok((self.end, self.highest))
    }
}

/// Spans in order, each not far behind its share of the way through the window. In cells: the first
/// above the low bits of a number, how many in these.
struct Batch<'a> {
    slots: &'a mut [u64],
    /// One above all others, for which there is no slot.
    highest: u64,
    len: usize,
    low_bits: u32,
    /// A cell's slot: so far up, the upper half of that times this, and the upper half again.
    shift: u32,
    scale: u64,
}

impl Batch<'_> {
    const EMPTY: u64 = u64::MAX;

    /// Begins anew, for a window of as many cells as the answer.
    fn open(&mut self, cells: usize) -> usize {
        let most = usize::try_from(Self::EMPTY >> self.low_bits).unwrap_or(usize::MAX);
        let cells = cells.clamp(1, most);
        self.shift = (cells as u64).leading_zeros();
        let upper = (cells as u64) << self.shift >> 32;
        self.scale = ((self.slots.len() as u64) << 32).checked_div(upper).unwrap_or(0);
        self.clear();
        cells
    }

    fn clear(&mut self) {
        self.slots.fill(Self::EMPTY);
        (self.highest, self.len) = (Self::EMPTY, 0);
    }

    fn is_full(&self) -> bool {
        self.highest != Self::EMPTY || self.len > self.slots.len() / 8 * 7
    }

    #[allow(clippy::cast_possible_truncation)] // a slot
    fn insert(&mut self, first: usize, end: usize) {
        let mut held = (first as u64) << self.low_bits | (end - first) as u64;
        let share = (((first as u64) << self.shift >> 32) * self.scale) >> 32;
        self.len += 1;
        for slot in self.slots.iter_mut().skip(share as usize) {
            if *slot > held {
                core::mem::swap(slot, &mut held);
                if held == Self::EMPTY {
                    return;
                }
            }
        }
        self.highest = held;
    }

    #[allow(clippy::cast_possible_truncation)] // cells of memory
    fn iter(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let all = self.slots.iter().chain(core::iter::once(&self.highest));
        all.filter(|slot| **slot != Self::EMPTY).map(|slot| {
            let first = slot >> self.low_bits;
            (first as usize, (first + (slot & !(!0 << self.low_bits))) as usize)
        })
    }
}

/// Numbers below this take one byte, those below [`MEDIUM`] two; of others, what a byte has more than
/// [`LONG`] says how many follow.
const SHORT: usize = 224;
const LONG: usize = 247;
const MEDIUM: usize = SHORT + ((LONG + 1 - SHORT) << 8);
/// The most bytes of a number.
const LONGEST: usize = 1 + size_of::<usize>();

/// A place in the ring, and in memory.
struct Cursor {
    at: usize,
    passed: usize,
    place: usize,
}

impl Cursor {
    #[inline(always)]
    fn go_on(&mut self, ring: &[u8]) {
        self.passed += 1;
        self.at += 1;
        if self.at == ring.len() {
            self.at = 0;
        }
    }

    #[inline(always)]
    fn byte(&mut self, ring: &[u8]) -> usize {
        let byte = ring.get(self.at).copied().unwrap_or(0);
        self.go_on(ring);
        byte.into()
    }

    #[inline(always)]
    fn take(&mut self, ring: &[u8]) -> usize {
        match self.byte(ring) {
            first @ 0..SHORT => first,
            first @ SHORT..=LONG => SHORT + ((first - SHORT) << 8) + self.byte(ring),
            first => self.take_long(ring, first - LONG),
        }
    }

    #[cold]
    #[inline(never)]
    fn take_long(&mut self, ring: &[u8], bytes: usize) -> usize {
        (0..bytes).fold(0, |number, _| number << 8 | self.byte_of_many(ring))
    }

    #[inline(always)]
    fn write(&mut self, ring: &mut [u8], byte: usize) {
        if let Some(slot) = ring.get_mut(self.at) {
            let [low, ..] = byte.to_le_bytes();
            *slot = low;
        }
        self.go_on(ring);
    }

    #[inline(always)]
    fn put(&mut self, ring: &mut [u8], number: usize) {
        match number {
            0..SHORT => self.write(ring, number),
            SHORT..MEDIUM => {
                self.write(ring, SHORT + ((number - SHORT) >> 8));
                self.write(ring, number - SHORT);
            }
            _ => self.put_long(ring, number),
        }
    }

    #[cold]
    #[inline(never)]
    fn put_long(&mut self, ring: &mut [u8], number: usize) {
        let bytes = (usize::BITS - number.leading_zeros()).div_ceil(8);
        self.write_of_many(ring, LONG + bytes as usize);
        for byte in (0..bytes).rev() {
            self.write_of_many(ring, number >> (8 * byte));
        }
    }

    #[inline(never)] // not written out eight times
    fn byte_of_many(&mut self, ring: &[u8]) -> usize {
        self.byte(ring)
    }

    #[inline(never)] // as above
    fn write_of_many(&mut self, ring: &mut [u8], byte: usize) {
        self.write(ring, byte);
    }
}
