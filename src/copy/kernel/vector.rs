//! The vector type that loops are written over.
//!
//! A level of CPU features is an implementation of [`Vector`]: a register of one, two or four lanes of
//! 16 bytes, and the few things that loops do with it. Shuffles and interleavings stay within lanes,
//! as they do on every CPU, so a loop that is right for one lane is right for four. (Permutes across
//! lanes are a trick of one level: `x86_64/vbmi.rs`.)
//!
//! The functions here and the loops over them have no CPU features of their own. They are inlined into
//! functions that have (`level.rs`), and only there do they become instructions.
//!
//! # Safety
//! 1. The CPU must have the features of the level. Every function here needs that.
//! 2. What a function loads must be readable, what it stores writable.
//! 3. A non-temporal store must be aligned to the vector, and a fence must follow the last one.

/// Bytes of a lane: what interleavings and shuffles work within.
pub(in crate::copy) const LANE: usize = 16;

/// A register of bytes.
pub(super) trait Vector: Copy {
    /// Lanes of 16 bytes: 1, 2 or 4.
    const LANES: usize;
    const BYTES: usize = Self::LANES * LANE;

    /// # Safety
    /// 1.
    unsafe fn zero() -> Self;

    /// # Safety
    /// 1, 2.
    unsafe fn load(source: *const u8) -> Self;

    /// A lane from every `apart` bytes (backwards: wrapped).
    ///
    /// # Safety
    /// 1, 2.
    unsafe fn load_lanes(source: *const u8, apart: usize) -> Self;

    /// The same 16 bytes in every lane.
    ///
    /// # Safety
    /// 1.
    unsafe fn splat(lane: &[u8; LANE]) -> Self;

    /// The first `have` bytes of this one, and what follows from where `source` would be if it began
    /// with those: loads may take them too, and they must be readable.
    ///
    /// # Safety
    /// 1, 2; `have` must be less than a vector's bytes.
    unsafe fn load_behind(self, have: usize, source: *const u8) -> Self;

    /// # Safety
    /// 1, 2.
    unsafe fn store(self, target: *mut u8);

    /// Stores past the caches.
    ///
    /// # Safety
    /// 1, 2, 3.
    unsafe fn stream(self, target: *mut u8);

    /// The units of two vectors by turns, `N` of them in a lane: of the low halves of lanes, and of
    /// the high ones.
    ///
    /// # Safety
    /// 1.
    unsafe fn interleaved<const N: usize>(self, other: Self) -> [Self; 2];

    /// The first lanes of four registers of four lanes, the second ones, and so on. Those of fewer lanes are
    /// not asked.
    ///
    /// # Safety
    /// 1.
    #[inline(always)]
    unsafe fn lanes_transposed(registers: [Self; 4]) -> [Self; 4] {
        registers
    }

    /// Bytes by their number within the lane; 0 where the number's top bit is set.
    ///
    /// # Safety
    /// 1.
    unsafe fn shuffled(self, order: Self) -> Self;

    /// # Safety
    /// 1.
    unsafe fn or(self, other: Self) -> Self;

    /// Asks for the line at an address, any address, to be read soon.
    fn prefetch(at: *const u8);

    /// The same, but not into the first-level cache, where the level can tell.
    #[inline(always)]
    fn prefetch_second(at: *const u8) {
        Self::prefetch(at);
    }

    /// Waits for stores past the caches.
    fn fence();

    /// Loads vectors one behind the other.
    ///
    /// # Safety
    /// 1, 2.
    #[inline(always)]
    unsafe fn get<const P: usize>(source: *const u8) -> [Self; P] {
        // SAFETY: 1, 2.
        unsafe {
            let (mut source, mut parts) = (source, [Self::zero(); P]);
            for part in &mut parts {
                *part = Self::load(source);
                source = source.wrapping_add(Self::BYTES);
            }
            parts
        }
    }

    /// Stores vectors one behind the other, past the caches or through them. The parts of a line go
    /// right after each other: several stores to one line take the time of one.
    ///
    /// # Safety
    /// 1, 2; 3 if past the caches.
    #[inline(always)]
    unsafe fn put<const P: usize>(parts: [Self; P], target: *mut u8, past: bool) {
        let mut target = target;
        for part in parts {
            // SAFETY: 1, 2.
            unsafe {
                if past {
                    part.stream(target);
                } else {
                    part.store(target);
                }
            }
            target = target.wrapping_add(Self::BYTES);
        }
    }
}

/// 16 bytes of `LANES * N` rows, `step` bytes apart (backwards: wrapped): the first `N` rows in the
/// first lanes, and so on.
///
/// # Safety
/// 1, 2.
#[inline(always)]
pub(super) unsafe fn load_rows<V: Vector, const N: usize>(
    source: *const u8,
    step: usize,
) -> [V; N] {
    // SAFETY: 1, 2.
    unsafe { load_lanes(source, step, step.wrapping_mul(N)) }
}

/// The same where the rows of a lane are so many bytes from those of the one before.
///
/// # Safety
/// 1, 2.
#[inline(always)]
pub(super) unsafe fn load_lanes<V: Vector, const N: usize>(
    source: *const u8,
    step: usize,
    apart: usize,
) -> [V; N] {
    // SAFETY: 1, 2.
    unsafe {
        let mut rows = [V::zero(); N];
        let mut source = source;
        for row in &mut rows {
            *row = V::load_lanes(source, apart);
            source = source.wrapping_add(step);
        }
        rows
    }
}

/// Transposes `N` rows of `N` units, one matrix in each lane: row i and row i + N / 2, unit by unit
/// in turn, log2(N) times.
///
/// # Safety
/// 1.
#[inline(always)]
pub(super) unsafe fn transposed<V: Vector, const N: usize>(rows: [V; N]) -> [V; N] {
    // SAFETY: 1.
    unsafe { put_together::<V, N, N>(rows) }
}

/// The units of `R` rows, of which `N` make a lane: all of the first column, then of the second one.
///
/// # Safety
/// 1.
#[inline(always)]
pub(super) unsafe fn put_together<V: Vector, const R: usize, const N: usize>(
    mut rows: [V; R],
) -> [V; R] {
    // SAFETY: 1.
    unsafe {
        if R >= 2 {
            rows = by_turns::<V, R, N>(rows);
        }
        if R >= 4 {
            rows = by_turns::<V, R, N>(rows);
        }
        if R >= 8 {
            rows = by_turns::<V, R, N>(rows);
        }
        if R >= 16 {
            rows = by_turns::<V, R, N>(rows);
        }
    }
    rows
}

/// Row i and row i + R / 2, unit by unit in turn.
///
/// # Safety
/// 1.
#[inline(always)]
unsafe fn by_turns<V: Vector, const R: usize, const N: usize>(rows: [V; R]) -> [V; R] {
    let mut mixed = rows;
    let mut pair = |at: usize| {
        let (a, b) = (rows.get(at), rows.get(at + R / 2));
        if let (Some(a), Some(b), Some([low, high, ..])) = (a, b, mixed.get_mut(2 * at..)) {
            // SAFETY: 1.
            [*low, *high] = unsafe { a.interleaved::<N>(*b) };
        }
    };
    // No loop: compilers would keep the rows in memory.
    pair(0);
    pair(1);
    pair(2);
    pair(3);
    pair(4);
    pair(5);
    pair(6);
    pair(7);
    mixed
}

/// Functions of a level's registers that are one instruction: of an implementation of a trait.
macro_rules! instructions {
    ($(fn $name:ident($($argument:tt)*) $(-> $result:ty)? = $instruction:expr;)*) => {$(
        #[inline(always)]
        unsafe fn $name($($argument)*) $(-> $result)? {
            // SAFETY: that of the trait's function.
            unsafe { $instruction }
        }
    )*};
}
pub(super) use instructions;
