//! A write-combining buffer: turns small pieces into whole lines, which then go past the caches.
//!
//! The idea: non-temporal stores are quick only by whole lines, and short runs make none. They are put
//! together in a scratch, which stays in the first-level cache, at the target's own place within a line;
//! its whole lines are streamed, and what is left of the last one is carried to the front for the next
//! turn. So it does not matter where the target begins.
//!
//! # Safety
//! 1. The bytes that a call speaks of must have been put where [`WriteCombining::room`] said.
//! 2. There must be room for all of them, writable, at the target.

use super::{NonTemporal, PAGE};
use crate::math::div;
use core::mem::MaybeUninit;

pub(crate) const LINE: usize = 64;

/// The most bytes of a buffer.
pub(crate) const MOST: usize = 19 * LINE;

/// Room for lines, the first of which it begins: what buffers share, and others need.
#[repr(align(64))]
pub(crate) struct Scratch<const BYTES: usize>([MaybeUninit<u8>; BYTES]);

impl<const BYTES: usize> Scratch<BYTES> {
    pub(crate) const NEW: Self = Self([const { MaybeUninit::uninit() }; BYTES]);

    #[inline(always)] // an address
    pub(crate) fn as_mut_ptr(&mut self) -> *mut u8 {
        self.0.as_mut_ptr().cast()
    }

    /// Bytes from one of so many buffers to the next: odd lines, for a power of two would have all of
    /// them in a few sets of the first-level cache.
    fn apart(buffers: usize) -> usize {
        let share = div(BYTES, buffers.max(1)).min(MOST);
        (((share / LINE).saturating_sub(1)) | 1) * LINE
    }

    /// Bytes that each of so many buffers takes at a time, whole lines. It has two lines more.
    pub(crate) fn room(buffers: usize) -> usize {
        Self::apart(buffers).saturating_sub(2 * LINE)
    }

    /// Makes a buffer of it for each target, all of which take as much at a time.
    pub(crate) fn share(
        &mut self,
        lines: &mut [WriteCombining],
        targets: impl Iterator<Item = *mut u8>,
    ) {
        let (apart, room) = (Self::apart(lines.len()), Self::room(lines.len()));
        let mut place = self.as_mut_ptr();
        for (lines, target) in lines.iter_mut().zip(targets) {
            *lines = WriteCombining::new(target, place, room);
            place = place.wrapping_add(apart);
        }
    }

    /// As much of it as a buffer as lies in one page: at least half, if it is no larger than a page.
    pub(crate) fn alone(&mut self, target: *mut u8) -> WriteCombining {
        let first = self.as_mut_ptr();
        let left = (PAGE - first as usize % PAGE).min(BYTES);
        let (ahead, bytes) = if 2 * left >= BYTES { (0, left) } else { (left, BYTES - left) };
        WriteCombining::new(target, first.wrapping_add(ahead), bytes - 2 * LINE)
    }

    /// Bytes from one of so many buffers to the next where none lies in two pages.
    fn apart_in_pages(buffers: usize) -> usize {
        Self::apart(buffers + BYTES.div_ceil(PAGE))
    }

    /// Bytes that each of those takes at a time.
    pub(crate) fn room_in_pages(buffers: usize) -> usize {
        Self::apart_in_pages(buffers).saturating_sub(2 * LINE)
    }

    /// Makes buffers without a target of it, none of which lies in two pages. Zen 4, runs of 100 bytes, share of the flat
    /// copy with one that does .53, without .78.
    #[inline(never)] // once for each number of bytes
    pub(crate) fn share_in_pages(&mut self, lines: &mut [WriteCombining]) {
        let (apart, room) = (Self::apart_in_pages(lines.len()), Self::room_in_pages(lines.len()));
        let mut place = self.as_mut_ptr();
        for lines in lines {
            place = in_page(place, apart);
            *lines = WriteCombining::new(core::ptr::null_mut(), place, room);
            place = place.wrapping_add(apart);
        }
    }
}

/// Room for so many bytes in one page, from a place on. On Zen 4 a store to two pages waits for those past the caches
/// before it, some 90 ns: three of 12 bytes in 9 MiB 18 GB/s for 13, sixteen of 6 14 for 10.
pub(super) fn in_page(room: *mut u8, bytes: usize) -> *mut u8 {
    let left = PAGE - room as usize % PAGE;
    if left < bytes {
        room.wrapping_add(left)
    } else {
        room
    }
}

/// Contiguous bytes on their way to `target`.
#[derive(Clone, Copy)]
pub(crate) struct WriteCombining {
    scratch: *mut u8,
    /// Bytes on the scratch, those of the first line that are not ours included.
    fill: usize,
    /// Bytes of the first line that are not ours: they lie before the target.
    foreign: usize,
    /// The line that the scratch's first one goes to.
    line: *mut u8,
    /// Bytes that it takes at a time.
    room: usize,
}

impl WriteCombining {
    pub(crate) const NONE: Self = Self {
        scratch: core::ptr::null_mut(),
        fill: 0,
        foreign: 0,
        line: core::ptr::null_mut(),
        room: 0,
    };

    fn new(target: *mut u8, scratch: *mut u8, room: usize) -> Self {
        let foreign = target as usize % LINE;
        Self { scratch, fill: foreign, foreign, line: target.wrapping_sub(foreign), room }
    }

    /// Begins anew, at another target.
    pub(crate) fn begin(&mut self, target: *mut u8) {
        *self = Self::new(target, self.scratch, self.room);
    }

    /// Whether the next bytes go to such a target.
    pub(crate) fn is_at(&self, target: *mut u8) -> bool {
        self.line.wrapping_add(self.fill) == target
    }

    /// Bytes of a line that are on the scratch, or are not ours.
    pub(crate) fn of_line(&self) -> usize {
        self.fill
    }

    /// Bytes that it takes at a time.
    pub(crate) fn takes(&self) -> usize {
        self.room
    }

    /// So many whole lines have been stored otherwise, where no bytes of one were on the scratch.
    pub(crate) fn skip(&mut self, bytes: usize) {
        self.line = self.line.wrapping_add(bytes);
    }

    /// Where its first line is put together, and where that goes; how many bytes of it are there or not ours, and how many
    /// are not ours.
    #[cfg_attr(not(all(target_arch = "x86_64", feature = "avx512")), allow(dead_code))]
    pub(super) fn first(&self) -> (*mut u8, *mut u8, usize, usize) {
        (self.scratch, self.line, self.fill, self.foreign)
    }

    /// That of a line further on is there now, and so many bytes of it, none of which is not ours.
    #[cfg_attr(not(all(target_arch = "x86_64", feature = "avx512")), allow(dead_code))]
    pub(super) fn go_on(&mut self, line: *mut u8, fill: usize) {
        if line != self.line {
            self.foreign = 0;
        }
        (self.line, self.fill) = (line, fill);
    }

    /// Where the next bytes go, as many as [`Scratch::room`] says at the most. There is room for a
    /// line more.
    pub(crate) fn room(&self) -> *mut u8 {
        self.scratch.wrapping_add(self.fill)
    }

    /// `bytes` have been put where [`WriteCombining::room`] said: sends the whole lines off.
    ///
    /// # Safety
    /// They must be there, and room for them writable at the target.
    #[inline(never)] // once in the library
    pub(crate) unsafe fn filled(&mut self, non_temporal: &NonTemporal, bytes: usize) {
        self.fill += bytes;
        let mut whole = self.fill - self.fill % LINE;
        if whole == 0 {
            return;
        }
        let mut scratch = self.scratch;
        // SAFETY: the caller's promise, and that of every call before.
        unsafe {
            if self.foreign > 0 {
                let ours = LINE - self.foreign;
                scratch.add(self.foreign).copy_to(self.line.add(self.foreign), ours);
                self.foreign = 0;
                (scratch, whole) = (scratch.add(LINE), whole - LINE);
                self.line = self.line.add(LINE);
                self.fill -= LINE;
            }
            (non_temporal.stream)(scratch, self.line, whole);
            self.line = self.line.add(whole);
            self.fill -= whole;
            // At most a line is left; the scratch has room for a whole one there.
            let rest = scratch.add(whole);
            if self.fill > 0 {
                rest.copy_to(self.scratch, self.fill);
            }
        }
    }

    /// Sends off what is left.
    ///
    /// # Safety
    /// As [`WriteCombining::filled`].
    #[inline(never)] // once at the end of an output
    pub(crate) unsafe fn finish(&mut self) {
        let scratch = self.scratch;
        // SAFETY: as above.
        unsafe {
            let ours = self.fill - self.foreign;
            if ours > 0 {
                scratch.add(self.foreign).copy_to(self.line.add(self.foreign), ours);
            }
        }
    }
}
