//! A write-combining buffer: turns small pieces into whole lines, which then go past the caches.
//!
//! The idea: non-temporal stores are quick only by whole lines, and short runs make none. They are put
//! together in a scratch of a kilobyte, which stays in the first-level cache, at the target's own place
//! within a line; its whole lines are streamed, and what is left of the last one is carried to the
//! front for the next turn. So it does not matter where the target begins.
//!
//! # Safety
//! 1. The bytes that a call speaks of must have been put where [`WriteCombining::room`] said.
//! 2. There must be room for all of them, writable, at the target.

use super::NonTemporal;
use core::mem::MaybeUninit;

pub(crate) const LINE: usize = 64;
/// Bytes that the scratch takes at a time.
pub(crate) const SCRATCH: usize = 1024;

/// Contiguous bytes on their way to `target`.
#[repr(align(64))]
pub(crate) struct WriteCombining {
    scratch: [MaybeUninit<u8>; SCRATCH + LINE],
    /// Bytes on the scratch, those of the first line that are not ours included.
    fill: usize,
    /// Bytes of the first line that are not ours: they lie before the target.
    foreign: usize,
    /// The line that the scratch's first one goes to.
    line: *mut u8,
}

impl WriteCombining {
    pub(crate) fn new(target: *mut u8) -> Self {
        let foreign = target as usize % LINE;
        Self {
            scratch: [const { MaybeUninit::uninit() }; SCRATCH + LINE],
            fill: foreign,
            foreign,
            line: target.wrapping_sub(foreign),
        }
    }

    /// Where the next bytes go, `SCRATCH` of them at the most.
    pub(crate) fn room(&mut self) -> *mut u8 {
        self.scratch.as_mut_ptr().cast::<u8>().wrapping_add(self.fill)
    }

    /// `bytes` have been put where [`WriteCombining::room`] said: sends the whole lines off.
    ///
    /// # Safety
    /// They must be there, and room for them writable at the target.
    pub(crate) unsafe fn filled(&mut self, non_temporal: &NonTemporal, bytes: usize) {
        self.fill += bytes;
        let mut whole = self.fill - self.fill % LINE;
        if whole == 0 {
            return;
        }
        let mut scratch = self.scratch.as_ptr().cast::<u8>();
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
                rest.copy_to(self.scratch.as_mut_ptr().cast(), self.fill);
            }
        }
    }

    /// Sends off what is left.
    ///
    /// # Safety
    /// As [`WriteCombining::filled`].
    pub(crate) unsafe fn finish(&mut self) {
        let scratch = self.scratch.as_ptr().cast::<u8>();
        // SAFETY: as above.
        unsafe {
            let ours = self.fill - self.foreign;
            scratch.add(self.foreign).copy_to(self.line.add(self.foreign), ours);
        }
    }
}
