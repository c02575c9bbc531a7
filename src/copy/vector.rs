//! What kernels are written in: a register of bytes, and the few operations on it. Each level of CPU features is an
//! implementation of [`Vector`] in a file of its own.
//!
//! # Safety
//! For everything unsafe here: the CPU must have the features of the level; what is loaded must be readable, and what
//! is stored writable; a stream must go to a multiple of the register's size, and a fence must follow the last one.

use super::runs::copy_short;

/// Bytes of a cache line.
pub(super) const LINE_BYTES: usize = 64;
/// Bytes of a lane, within which unpacks stay.
pub(super) const LANE_BYTES: usize = 16;

/// The line in which a run ends and the next one begins.
#[repr(C, align(64))]
struct Seam([u8; LINE_BYTES]);

/// A register of one or more lanes. One of a single lane must define how it prefetches and fences; wider ones use that.
pub(super) trait Vector: Copy {
    /// A register of one lane, for what is too little for this one.
    type Lane: Vector;
    const BYTES: usize;
    /// Bytes from which a pick can choose: the whole register, or a lane of it; 0 if the level cannot pick or unpack.
    const WINDOW_BYTES: usize;
    /// Whether a pick chooses from two windows at once.
    const PICKS_FROM_TWO: bool = false;

    unsafe fn load(source: *const u8) -> Self;
    /// Loads one lane from every `step` bytes. A register of one lane loads just that one.
    #[inline(always)]
    unsafe fn load_lanes(source: *const u8, _step: isize) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::load(source) }
    }
    unsafe fn store(self, target: *mut u8);
    /// Stores past the caches, where such stores exist and CPUs do not do so by themselves.
    #[inline(always)]
    unsafe fn stream(self, target: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { self.store(target) }
    }
    /// Streams a line with the last `rest` bytes of a run and the first ones of the next.
    #[inline(always)]
    unsafe fn stream_seam(tail: *const u8, rest: usize, head: *const u8, target: *mut u8) {
        let mut seam = Seam([0; LINE_BYTES]);
        let seam = seam.0.as_mut_ptr();
        let mut at = 0;
        // SAFETY: the caller's promise.
        unsafe {
            copy_short::<Self>(tail, seam, rest);
            copy_short::<Self>(head, seam.wrapping_add(rest), LINE_BYTES - rest);
            while at < LINE_BYTES {
                Self::load(seam.wrapping_add(at)).stream(target.wrapping_add(at));
                at += Self::BYTES;
            }
        }
    }
    /// Returns units of `U` bytes from both registers in turn: from the low halves of lanes, and from the high halves.
    #[inline(always)]
    unsafe fn unpack<const U: usize>(self, other: Self) -> (Self, Self) {
        (self, other)
    }
    /// Transposes lanes: the first register returned has the first lanes of all, the second one the second lanes, and
    /// so on. There are as many as lanes; the others do not count.
    #[inline(always)]
    unsafe fn transpose_lanes(rows: [Self; 4]) -> [Self; 4] {
        rows
    }
    /// Loads what begins at an offset; on levels whose window is a lane, each lane at an offset of its own.
    #[inline(always)]
    unsafe fn load_window(source: *const u8, [offset, _]: [isize; 2]) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::load(source.wrapping_offset(offset)) }
    }
    /// Returns the bytes of this window that have these indices. Never called on levels that cannot pick.
    #[inline(always)]
    unsafe fn pick(self, _index: Self) -> Self {
        self
    }
    /// Returns the bytes of this and of another window that have these indices, as `Pick` says.
    #[inline(always)]
    unsafe fn pick_two(self, window: Self, [first, second]: [Self; 2]) -> Self {
        // SAFETY: the caller's promise.
        unsafe { self.pick(first).pick_more(window, second) }
    }
    /// Returns these bytes together with some of another window.
    #[inline(always)]
    unsafe fn pick_more(self, _window: Self, _index: Self) -> Self {
        self
    }
    /// Prefetches the line of an address, which may be any address at all.
    #[inline(always)]
    fn prefetch(at: *const u8) {
        Self::Lane::prefetch(at);
    }
    /// Prefetches a line that is not needed at once.
    #[inline(always)]
    fn prefetch_later(at: *const u8) {
        Self::Lane::prefetch_later(at);
    }
    /// Orders streams before what follows.
    #[inline(always)]
    fn fence() {
        Self::Lane::fence();
    }
}

/// Two words, which every CPU has: they move bytes and do nothing else.
impl Vector for u128 {
    type Lane = Self;
    const BYTES: usize = LANE_BYTES;
    const WINDOW_BYTES: usize = 0;

    #[inline(always)]
    unsafe fn load(source: *const u8) -> Self {
        // SAFETY: the caller's promise.
        unsafe { source.cast::<u128>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { target.cast::<u128>().write_unaligned(self) }
    }
    #[inline(always)]
    fn prefetch(_: *const u8) {}
    #[inline(always)]
    fn prefetch_later(_: *const u8) {}
    #[inline(always)]
    fn fence() {}
}
