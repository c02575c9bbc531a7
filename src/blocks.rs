//! The lengths of pieces as slices: those that lie so in memory in one go, others some at a time, so that
//! nobody who goes over them has to know how they are given.

use crate::rules::Pieces;
use crate::shape::usize_of;
use core::mem::MaybeUninit;

/// So many at a time.
const LEN: usize = 16;

/// Room for them.
pub(crate) type Room = [MaybeUninit<i64>; LEN];

/// Lengths, block by block.
pub(crate) struct Blocks<'a> {
    pieces: &'a Pieces<'a>,
    /// How many pieces there are, and the first of the next block.
    count: usize,
    next: usize,
}

impl<'a> Blocks<'a> {
    pub(crate) fn new(pieces: &'a Pieces<'a>) -> Self {
        Self { pieces, count: usize_of(pieces.count()), next: 0 }
    }

    /// The first ones, all of those that lie in memory as a slice has them.
    #[inline(always)]
    pub(crate) fn first<'b>(&mut self, room: &'b mut Room) -> &'b [i64]
    where
        'a: 'b,
    {
        let Some(words) = self.pieces.words() else { return self.next(room) };
        self.next = self.count;
        words
    }

    /// The next ones, none at the end.
    #[inline]
    pub(crate) fn next<'b>(&mut self, room: &'b mut Room) -> &'b [i64] {
        if self.next == self.count {
            return &[];
        }
        let (first, len) = (self.next, LEN.min(self.count - self.next));
        self.next += len;
        write(self.pieces, first, room.get_mut(..len).unwrap_or_default())
    }
}

pub(crate) fn room() -> Room {
    [const { MaybeUninit::uninit() }; LEN]
}

/// Writes lengths down that are few and do not lie in memory as a slice has them.
#[inline(always)]
pub(crate) fn write_down<'a>(pieces: &mut Pieces<'a>, room: &'a mut Room) {
    let count = usize_of(pieces.count());
    if pieces.words().is_some() {
        return;
    }
    if let Some(slots) = room.get_mut(..count) {
        *pieces = Pieces::Words(write(pieces, 0, slots));
    }
}

/// Writes down lengths from a piece on. Of a slice, for of an array loops are written out.
#[inline(never)]
fn write<'b>(pieces: &Pieces<'_>, first: usize, slots: &'b mut [MaybeUninit<i64>]) -> &'b [i64] {
    match *pieces {
        Pieces::Even { size, extent, .. } if first == 0 => write_even(size, extent, slots),
        Pieces::Even { size, .. } => write_even(size, pieces.left(first), slots),
        Pieces::Listed { lengths, rest, .. } => match lengths.ints(first) {
            Some(ints) => write_ints(ints, rest, slots),
            None => write_each(pieces, first, slots),
        },
        _ => write_each(pieces, first, slots),
    }
}

#[inline(never)] // as are those below, so that this one needs no memory
fn write_even(size: i64, mut left: i64, slots: &mut [MaybeUninit<i64>]) -> &[i64] {
    for slot in slots.iter_mut() {
        let len = size.min(left);
        left -= len;
        slot.write(len);
    }
    // SAFETY: each has been written.
    unsafe { written(slots) }
}

#[inline(never)]
fn write_ints<'b>(ints: &[i32], rest: i64, slots: &'b mut [MaybeUninit<i64>]) -> &'b [i64] {
    let (mut at, count) = (0, slots.len());
    // There are as many.
    let Some(ints) = ints.get(..count) else { return &[] };
    // The count is read again each time, or compilers write the loop out for more than these few.
    // SAFETY: within both, and each is written.
    unsafe {
        while at < (&raw const count).read_volatile() {
            let length = *ints.as_ptr().add(at);
            let length = if length < 0 { rest } else { length.into() };
            slots.as_mut_ptr().add(at).cast::<i64>().write(length);
            at += 1;
        }
        written(slots)
    }
}

#[inline(never)]
fn write_each<'b>(
    pieces: &Pieces<'_>,
    first: usize,
    slots: &'b mut [MaybeUninit<i64>],
) -> &'b [i64] {
    for (slot, index) in slots.iter_mut().zip(first..) {
        slot.write(length(pieces, index));
    }
    // SAFETY: as above.
    unsafe { written(slots) }
}

/// # Safety
/// Each must have been written.
unsafe fn written(slots: &[MaybeUninit<i64>]) -> &[i64] {
    // SAFETY: the caller's.
    unsafe { core::slice::from_raw_parts(slots.as_ptr().cast(), slots.len()) }
}

/// [`Pieces::length`] off the way of others.
#[inline(never)]
pub(crate) fn length(pieces: &Pieces<'_>, index: usize) -> i64 {
    pieces.length(index)
}

/// Where a piece begins on the axis.
pub(crate) fn offset(pieces: &Pieces<'_>, index: usize) -> i64 {
    match *pieces {
        Pieces::Even { extent, .. } => extent - pieces.left(index),
        _ => (0..index).map(|index| length(pieces, index)).sum(),
    }
}
