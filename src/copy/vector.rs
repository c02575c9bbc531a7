//! What kernels are written in: a register of bytes, and the few operations on it. Each level of CPU features is an
//! implementation of [`Vector`] in a file of its own.

// The bodies of unsafe functions need no further blocks: what they require is in their `# Safety`.
#![allow(unsafe_op_in_unsafe_fn)]

/// Bytes of a cache line.
pub(super) const LINE_BYTES: usize = 64;
/// Bytes of a lane, within which unpacks stay.
pub(super) const LANE_BYTES: usize = 16;

/// The line in which a run ends and the next one begins.
#[repr(C, align(64))]
struct Seam([u8; LINE_BYTES]);

/// A register of one or more lanes. A register of a single lane must define how it prefetches and fences; wider ones
/// have the prefetches and the fence of their lane.
///
/// # Safety
/// Every unsafe method requires that the CPU has the features of the level. A load requires that as many bytes are
/// readable as the register has, and a store that as many are writable; neither needs any alignment.
pub(super) trait Vector: Copy {
    /// A register of one lane, for what is too short for this one.
    type Lane: Vector;
    const BYTES: usize;
    /// Bytes from which a pick can choose: the whole register, or a lane of it; 0 if the level cannot pick or unpack.
    const WINDOW_BYTES: usize;
    /// Whether a pick chooses from two windows at once.
    const PICKS_FROM_TWO: bool = false;

    unsafe fn load(source: *const u8) -> Self;
    /// Loads one lane from every `step` bytes. A register of one lane loads just that one.
    ///
    /// # Safety
    /// `LANE_BYTES` bytes must be readable at each of these places.
    #[inline(always)]
    unsafe fn load_lanes(source: *const u8, _step: isize) -> Self {
        Self::load(source)
    }
    unsafe fn store(self, target: *mut u8);
    /// Streams the register, where such stores exist and CPUs do not do so by themselves; elsewhere, stores it.
    ///
    /// # Safety
    /// `target` must be a multiple of the register's bytes, and a fence must follow the last stream.
    #[inline(always)]
    unsafe fn stream(self, target: *mut u8) {
        self.store(target);
    }
    /// Streams or stores the register.
    #[inline(always)]
    unsafe fn put<const STREAMED: bool>(self, target: *mut u8) {
        if STREAMED {
            self.stream(target);
        } else {
            self.store(target);
        }
    }
    /// Does what [`Vector::put`] does; on levels whose window is a lane, with one lane every `step` bytes.
    #[inline(always)]
    unsafe fn put_lanes<const STREAMED: bool>(self, target: *mut u8, _step: usize) {
        self.put::<STREAMED>(target);
    }
    /// Streams a line with the last `rest` bytes of a run and the first ones of the next.
    ///
    /// # Safety
    /// `rest` bytes must be readable at `tail`, and the other bytes of a line at `head`. `target` must begin a line.
    #[inline(always)]
    unsafe fn stream_seam(tail: *const u8, rest: usize, head: *const u8, target: *mut u8) {
        let mut seam = Seam([0; LINE_BYTES]);
        let seam = seam.0.as_mut_ptr();
        copy_short::<Self>(tail, seam, rest);
        copy_short::<Self>(head, seam.wrapping_add(rest), LINE_BYTES - rest);
        let mut at = 0;
        while at < LINE_BYTES {
            Self::load(seam.wrapping_add(at)).stream(target.wrapping_add(at));
            at += Self::BYTES;
        }
    }
    /// Returns units of `U` bytes from both registers in turn: from the low halves of lanes, and from the high halves.
    /// Levels that can pick define it; without it they do not compile.
    #[inline(always)]
    unsafe fn unpack<const U: usize>(self, other: Self) -> (Self, Self) {
        const { assert!(Self::WINDOW_BYTES == 0, "no unpack, which tiles need") }
        (self, other)
    }
    /// Transposes lanes: the first register returned has the first lanes of all, the second one the second lanes, and
    /// so on. There are as many as lanes; the others do not count.
    #[inline(always)]
    unsafe fn transpose_lanes(rows: [Self; 4]) -> [Self; 4] {
        rows
    }
    /// Loads what begins at an offset; on levels whose window is a lane, each lane at an offset of its own.
    ///
    /// # Safety
    /// `WINDOW_BYTES` bytes must be readable at each offset.
    #[inline(always)]
    unsafe fn load_window(source: *const u8, [offset, _]: [isize; 2]) -> Self {
        Self::load(source.wrapping_offset(offset))
    }
    /// Returns the bytes of this window that have these indices. Levels that can pick define it; without it they do not
    /// compile.
    #[inline(always)]
    unsafe fn pick(self, _index: Self) -> Self {
        const { assert!(Self::WINDOW_BYTES == 0, "no pick, which programs need") }
        self
    }
    /// Returns the bytes of this and of another window that have these indices, as `Pick` says.
    #[inline(always)]
    unsafe fn pick_two(self, window: Self, [first, second]: [Self; 2]) -> Self {
        self.pick(first).pick_more(window, second)
    }
    /// Returns these bytes together with some of another window. Defined as `pick` is.
    #[inline(always)]
    unsafe fn pick_more(self, _window: Self, _index: Self) -> Self {
        const { assert!(Self::WINDOW_BYTES == 0, "no pick_more, which programs need") }
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

/// Two words of 64 bits, which every CPU has: they move bytes and do nothing else.
impl Vector for u128 {
    type Lane = Self;
    const BYTES: usize = LANE_BYTES;
    const WINDOW_BYTES: usize = 0;

    #[inline(always)]
    unsafe fn load(source: *const u8) -> Self {
        source.cast::<u128>().read_unaligned()
    }
    #[inline(always)]
    unsafe fn store(self, target: *mut u8) {
        target.cast::<u128>().write_unaligned(self);
    }
    #[inline(always)]
    fn prefetch(_: *const u8) {}
    #[inline(always)]
    fn prefetch_later(_: *const u8) {}
    #[inline(always)]
    fn fence() {}
}

/// Copies exactly `N` bytes.
///
/// # Safety
/// `N` bytes must be readable and writable.
#[inline(always)]
pub(super) unsafe fn copy_bytes<V: Vector, const N: usize>(source: *const u8, target: *mut u8) {
    // Through a value, because a loop of copies would become a call to memcpy.
    if N >= V::BYTES {
        let mut at = 0;
        while at < N {
            V::load(source.wrapping_add(at)).store(target.wrapping_add(at));
            at += V::BYTES;
        }
    } else if N.is_multiple_of(LANE_BYTES) {
        copy_bytes::<V::Lane, N>(source, target);
    } else {
        target.cast::<[u8; N]>().write_unaligned(source.cast::<[u8; N]>().read_unaligned());
    }
}

/// Copies the first `N` bytes and the last ones, of `N` to twice as many.
#[inline(always)]
unsafe fn copy_ends<V: Vector, const N: usize>(source: *const u8, target: *mut u8, bytes: usize) {
    let last = bytes - N;
    copy_bytes::<V, N>(source, target);
    copy_bytes::<V, N>(source.wrapping_add(last), target.wrapping_add(last));
}

/// Copies up to two lines, by two moves that may overlap.
///
/// # Safety
/// `bytes` bytes must be readable and writable, and nothing else is touched.
#[inline(always)]
#[allow(clippy::cast_ptr_alignment)] // they are read and written unaligned
pub(super) unsafe fn copy_short<V: Vector>(source: *const u8, target: *mut u8, bytes: usize) {
    debug_assert!(bytes <= 2 * LINE_BYTES, "{bytes} bytes are more than two lines");
    // By words and registers, because compilers keep arrays of bytes in memory.
    macro_rules! both {
        ($word:ty) => {{
            let last = bytes - size_of::<$word>();
            let (a, b) = (source.cast::<$word>(), source.wrapping_add(last).cast::<$word>());
            let (a, b) = (a.read_unaligned(), b.read_unaligned());
            target.cast::<$word>().write_unaligned(a);
            target.wrapping_add(last).cast::<$word>().write_unaligned(b);
        }};
    }
    match bytes {
        64.. => copy_ends::<V, 64>(source, target, bytes),
        32.. => copy_ends::<V, 32>(source, target, bytes),
        16.. => both!(V::Lane),
        8.. => both!(u64),
        4.. => both!(u32),
        2.. => both!(u16),
        1 => target.write(source.read()),
        0 => {}
    }
}
