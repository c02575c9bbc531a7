//! A stage in the first-level cache that turns small pieces into whole lines, which then go to
//! memory past the caches.

use super::Past;
use core::mem::MaybeUninit;

pub(crate) const LINE: usize = 64;
/// Bytes that a stage takes at a time.
pub(crate) const STAGE: usize = 1024;

/// Contiguous bytes on their way to `target`.
#[repr(align(64))]
pub(crate) struct Lines {
    stage: [MaybeUninit<u8>; STAGE + LINE],
    /// Bytes on the stage, those of the first line that are not ours included.
    fill: usize,
    /// Bytes of the first line that are not ours: they lie before the target.
    foreign: usize,
    /// The line that the stage's first one goes to.
    line: *mut u8,
}

impl Lines {
    pub(crate) fn new(target: *mut u8) -> Self {
        let foreign = target as usize % LINE;
        Self {
            stage: [const { MaybeUninit::uninit() }; STAGE + LINE],
            fill: foreign,
            foreign,
            line: target.wrapping_sub(foreign),
        }
    }

    /// Where the next bytes go, `STAGE` of them at the most.
    pub(crate) fn room(&mut self) -> *mut u8 {
        self.stage.as_mut_ptr().cast::<u8>().wrapping_add(self.fill)
    }

    /// `bytes` have been put where [`Lines::room`] said: sends the whole lines off.
    ///
    /// # Safety
    /// They must be there, and room for them writable at the target.
    pub(crate) unsafe fn filled(&mut self, past: &Past, bytes: usize) {
        self.fill += bytes;
        let mut whole = self.fill - self.fill % LINE;
        if whole == 0 {
            return;
        }
        let mut stage = self.stage.as_ptr().cast::<u8>();
        // SAFETY: the caller's promise, and that of every call before.
        unsafe {
            if self.foreign > 0 {
                let ours = LINE - self.foreign;
                stage.add(self.foreign).copy_to(self.line.add(self.foreign), ours);
                self.foreign = 0;
                (stage, whole) = (stage.add(LINE), whole - LINE);
                self.line = self.line.add(LINE);
                self.fill -= LINE;
            }
            (past.stream)(stage, self.line, whole);
            self.line = self.line.add(whole);
            self.fill -= whole;
            // At most a line is left; the stage has room for a whole one there.
            let rest = stage.add(whole);
            if self.fill > 0 {
                rest.copy_to(self.stage.as_mut_ptr().cast(), self.fill);
            }
        }
    }

    /// Sends off what is left.
    ///
    /// # Safety
    /// As [`Lines::filled`].
    pub(crate) unsafe fn finish(&mut self) {
        let stage = self.stage.as_ptr().cast::<u8>();
        // SAFETY: as above.
        unsafe {
            let ours = self.fill - self.foreign;
            stage.add(self.foreign).copy_to(self.line.add(self.foreign), ours);
        }
    }
}
