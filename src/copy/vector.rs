//! What kernels are written over: a register of bytes, and the few things that they do with it. A level of CPU
//! features is an implementation of [`Vector`], in a file of its own.
//!
//! # Safety
//! Of all that is unsafe here: the CPU must have the features of the level; what is loaded must be readable and what is
//! stored writable; a stream must go to a multiple of the register's size, and a fence must follow the last one.

/// Bytes of a cache line.
pub(super) const LINE_BYTES: usize = 64;
/// Bytes of a lane, within which unpacks and shuffles stay.
pub(super) const LANE_BYTES: usize = 16;

/// A register of one or more lanes. Those of one lane must say how they prefetch and fence: wider ones ask them.
pub(super) trait Vector: Copy {
    /// A register of one lane, for what is too little for this one.
    type Lane: Vector;
    const BYTES: usize;
    /// A pick finds its bytes among so many that follow each other: all of the register, or a lane of it. Levels that
    /// cannot pick or unpack have 0.
    const WINDOW_BYTES: usize;
    /// Whether a pick is from two windows at once.
    const PICKS_FROM_TWO: bool = false;

    unsafe fn load(source: *const u8) -> Self;
    /// Loads a lane from every `step` bytes. Registers of one lane load just that.
    #[inline(always)]
    unsafe fn load_lanes(source: *const u8, _step: isize) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::load(source) }
    }
    unsafe fn store(self, target: *mut u8);
    /// Stores past the caches, where there are such stores, and CPUs do not do so by themselves.
    #[inline(always)]
    unsafe fn stream(self, target: *mut u8) {
        // SAFETY: the caller's promise.
        unsafe { self.store(target) }
    }
    /// Returns the units of `U` bytes of the low halves of lanes in turn, and those of the high halves.
    #[inline(always)]
    unsafe fn unpack<const U: usize>(self, other: Self) -> (Self, Self) {
        (self, other)
    }
    /// Returns registers of which the first has the first lanes of all, the second the second lanes, and so on. There are as
    /// many as lanes, and what follows them does not count.
    #[inline(always)]
    unsafe fn transpose_lanes(rows: [Self; 4]) -> [Self; 4] {
        rows
    }
    /// Puts the bytes of each lane in the order of the index's lane.
    #[inline(always)]
    unsafe fn shuffle(self, _index: Self) -> Self {
        self
    }
    /// Loads what begins so many bytes ahead; on levels whose window is a lane, each lane by itself.
    #[inline(always)]
    unsafe fn load_window(source: *const u8, [offset, _]: [isize; 2]) -> Self {
        // SAFETY: the caller's promise.
        unsafe { Self::load(source.wrapping_offset(offset)) }
    }
    /// Returns the bytes of this window that the index numbers. Levels that cannot pick are never asked to.
    #[inline(always)]
    unsafe fn pick(self, _index: Self) -> Self {
        self
    }
    /// Returns the bytes that the indices number, of this window and of another, as `Pick` says.
    #[inline(always)]
    unsafe fn pick_two(self, window: Self, [first, second]: [Self; 2]) -> Self {
        // SAFETY: the caller's promise.
        unsafe { self.pick(first).pick_more(window, second) }
    }
    /// Returns these bytes with some of another window.
    #[inline(always)]
    unsafe fn pick_more(self, _window: Self, _index: Self) -> Self {
        self
    }
    /// Asks for the line of an address, which may be any address at all.
    #[inline(always)]
    fn prefetch(at: *const u8) {
        Self::Lane::prefetch(at);
    }
    /// Asks for a line that is not needed at once.
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
