//! The lengths of pieces as slices: those that lie so in memory in one go, others some at a time, so that
//! nobody who goes over them has to know how they are given.

#![allow(clippy::inline_always)] // on the way of every call

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

    /// The next ones, none at the end.
    #[inline]
    pub(crate) fn next<'b>(&mut self, room: &'b mut Room) -> &'b [i64] {
        let (first, len) = (self.next, LEN.min(self.count - self.next));
        self.next += len;
        write(self.pieces, first, len, room)
    }
}

pub(crate) fn room() -> Room {
    [const { MaybeUninit::uninit() }; LEN]
}

/// Writes lengths down that are few and do not lie in memory as a slice has them.
#[inline(always)]
pub(crate) fn write_down<'a>(pieces: &mut Pieces<'a>, room: &'a mut Room) {
    let count = usize_of(pieces.count());
    if pieces.words().is_none() && count <= LEN {
        *pieces = Pieces::Words(write(pieces, 0, count, room));
    }
}

/// Writes down so many lengths from a piece on.
#[inline(never)]
fn write<'b>(
    pieces: &Pieces<'_>,
    first: usize,
    len: usize,
    room: &'b mut Room,
) -> &'b [i64] {
    let slots = room.iter_mut().take(len);
    match *pieces {
        Pieces::Even { size, extent, .. } => {
            let mut left = if first == 0 { extent } else { pieces.left(first) };
            for slot in slots {
                let len = size.min(left);
                left -= len;
                slot.write(len);
            }
        }
        Pieces::Listed { lengths, rest, .. } if lengths.ints(first).is_some() => {
            for (slot, length) in slots.zip(lengths.ints(first).into_iter().flatten()) {
                slot.write(if *length < 0 { rest } else { (*length).into() });
            }
        }
        _ => {
            for (slot, index) in slots.zip(first..) {
                slot.write(pieces.length(index));
            }
        }
    }
    // SAFETY: so many have been written.
    unsafe { core::slice::from_raw_parts(room.as_ptr().cast(), len) }
}
