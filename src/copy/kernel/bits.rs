//! Runs of bits, put one behind the other into packed bytes, low bits first. Written once and
//! inlined into the functions of each CPU level, as the loops of `generic.rs` are.

// Numbers of bits in a word and of bytes in a buffer fit whatever they are cast to.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use super::combine::LINE;
use super::pick::Elements;
use super::vector::Vector;
use super::{generic, CopyBytes, NonTemporal, PAGE};
use crate::math::div_rem_signed;

/// `count` runs of `len` bits, each `step` bits from the one before.
#[derive(Clone, Copy)]
pub(crate) struct Runs {
    pub source: *const u8,
    /// Bits from `source` to the first run, which may be negative.
    pub begin: i64,
    pub step: i64,
    pub count: i64,
    pub len: i64,
    /// Bytes below this address may be read whether they hold bits of a run or not.
    pub readable: usize,
    /// What prefetches long runs.
    pub stores: Option<&'static NonTemporal>,
}

impl Runs {
    /// Prefetches the run after the first: where much lies between them, CPUs do not see it coming.
    #[inline(always)]
    fn prefetch_next(&self) {
        let is_cut = self.count > 1 && self.step.wrapping_abs() >= self.len + self.len / 2;
        if let Some(stores) = self.stores.filter(|_| self.len >= LONG && is_cut) {
            let next = byte(self.source, self.begin.wrapping_add(self.step));
            (stores.prefetch)(next, (self.len / 8) as usize);
        }
    }

    /// Whether [`PackLines`] takes them: they are long, and what lies between them is readable.
    pub(crate) fn are_lines(&self) -> bool {
        let gap = self.step.wrapping_sub(self.len);
        let is_readable = self.readable > 0 || gap < 8 * PAGE as i64;
        let are_apart = self.count > 1 && gap >= 0 && is_readable;
        self.len >= 2 * LINE_BITS && (self.count == 1 || are_apart)
    }

    /// Takes the first `count` away.
    #[inline(always)]
    pub(crate) fn skip(&mut self, count: i64) {
        // Past the last one nothing need be in range.
        self.begin = self.begin.wrapping_add(count.wrapping_mul(self.step));
        self.count -= count;
    }
}

/// The longest runs that a word holds wherever in a byte they begin, with up to 7 bits before.
const SHORT: i64 = 56;
/// Past the caches input is prefetched so many bits ahead, in the runs that follow if there are some that near.
const AHEAD: i64 = 8 * 2048;
const MOST_AHEAD: i64 = 8 * (16 << 10);
/// Runs of so many bits are prefetched.
const LONG: i64 = 8 * 256;
/// Bits of a line.
const LINE_BITS: i64 = 8 * LINE as i64;

/// Appends runs to what is packed already, whole bytes by `copy`; `SMALL` code takes single elements as other runs.
///
/// # Safety
/// The runs must be readable, and from the first byte of each on everything up to `readable`;
/// there must be room for them.
#[inline(always)]
pub(super) unsafe fn pack<const SMALL: bool>(copy: CopyBytes, packed: &mut Packed, runs: &Runs) {
    // A copy, which registers hold.
    let mut to = *packed;
    let mut rest = *runs;
    // SAFETY: the caller's promise; no more than `count` runs are taken.
    unsafe {
        while rest.count > 0 && (to.bits > 0 || runs.len > SHORT) {
            rest.prefetch_next();
            if runs.len <= SHORT {
                to.push_short(&rest);
            } else {
                to.push_long(copy, &rest);
            }
            rest.skip(1);
        }
        if !SMALL && matches!(rest.len, 2 | 4) && (rest.begin | rest.step) % rest.len == 0 {
            to.push_elements(&mut rest);
        }
        while rest.count > 0 {
            to.push_short(&rest);
            rest.skip(1);
        }
    }
    *packed = to;
}

/// Packs runs past the caches, from a bit of the first one on, all but the last bits, a line's at the most: those
/// are what is left of the runs. A fence must follow.
///
/// # Safety
/// As [`pack`]; the target must be aligned to a line. What lies between the runs must be readable; none is shorter
/// than a line and that bit, and each begins behind the one before.
pub(super) type PackLines = unsafe fn(&mut Runs, i64, *mut u8);

/// [`PackLines`]: where a run ends within a line, what is behind it and before the next one is read too, and masked.
///
/// # Safety
/// As [`PackLines`].
#[inline(always)]
pub(super) unsafe fn pack_lines<V: Vector, const P: usize>(
    runs: &mut Runs,
    from: i64,
    target: *mut u8,
) {
    let Runs { source, step, len, .. } = *runs;
    let (mut at, mut left, mut target) = (runs.begin + from, len - from, target);
    let times = 1 + div_rem_signed(AHEAD, len).0;
    let ahead = if len <= MOST_AHEAD { step.wrapping_mul(times) } else { AHEAD };
    let mut put = |words: [u64; LINE / 8], at: i64| {
        // SAFETY: the caller's promise.
        unsafe {
            V::prefetch(byte(source, at.wrapping_add(ahead)));
            V::put(V::get::<P>(words.as_ptr().cast()), target, true);
        }
        target = target.wrapping_add(LINE);
    };
    // SAFETY: the caller's promise. A bit of the last run is left, and so there is a byte behind each line.
    let bits_of = |source, at| unsafe { shifted(byte(source, at), at & 7) };
    loop {
        let is_last = runs.count == 1;
        while left >= LINE_BITS + i64::from(is_last) {
            put(bits_of(source, at), at);
            at += LINE_BITS;
            left -= LINE_BITS;
        }
        if is_last {
            break;
        }
        let next = at + left + (step - len);
        let ours = bits_of(ONES.as_ptr().cast(), LINE_BITS - left);
        let (mut words, behind) = (bits_of(source, at), bits_of(source, next - left));
        for ((word, behind), ours) in words.iter_mut().zip(behind).zip(ours) {
            *word = (*word & ours) | (behind & !ours);
        }
        V::prefetch(byte(source, at.wrapping_add(ahead))); // the run's last line
        put(words, next);
        at = next + (LINE_BITS - left);
        left += len - LINE_BITS;
        runs.count -= 1;
    }
    (runs.begin, runs.len) = (at, left);
}

/// A line of ones and more than one of zeros.
static ONES: [[u64; LINE / 8]; 3] = [[u64::MAX; LINE / 8], [0; LINE / 8], [0; LINE / 8]];

/// Packed bytes that grow.
#[derive(Clone, Copy)]
pub(crate) struct Packed {
    target: *mut u8,
    end: *mut u8,
    /// The last byte, where it is not full; the bits above are 0.
    held: u64,
    /// Bits of it: 0 to 7.
    bits: u32,
}

impl Packed {
    /// No bits yet, and room for `bytes`.
    pub(crate) fn new(target: *mut u8, bytes: usize) -> Self {
        Self { target, end: target.wrapping_add(bytes), held: 0, bits: 0 }
    }

    /// Bits up to the next line.
    pub(crate) fn up_to_line(&self) -> i64 {
        let of_line = (self.target as usize % LINE * 8) as i64 + i64::from(self.bits);
        (LINE_BITS - of_line) % LINE_BITS
    }

    /// Appends runs past the caches as [`PackLines`] does.
    ///
    /// # Safety
    /// As [`PackLines`]; there must be whole lines.
    pub(crate) unsafe fn push_lines(&mut self, past: &NonTemporal, runs: &mut Runs, from: i64) {
        let all = runs.count * runs.len - from;
        // SAFETY: the caller's promise.
        unsafe { (past.pack_lines)(runs, from, self.target) };
        self.target = self.target.wrapping_add(((all - runs.len) / 8) as usize);
    }

    /// Whether there are whole bytes.
    pub(crate) fn is_whole(&self) -> bool {
        self.bits == 0
    }

    /// Appends runs by as many as registers take.
    ///
    /// # Safety
    /// As [`pack`]; what lies between the runs must be readable. There must be whole bytes, and the
    /// elements be those of the runs.
    pub(crate) unsafe fn push_picked(&mut self, elements: &Elements<'_>, runs: &mut Runs) {
        let source = byte(runs.source, runs.begin);
        // SAFETY: the caller's promise.
        let picked = unsafe { elements.copy(source, self.target, runs.count as usize) } as i64;
        self.target = self.target.wrapping_add((picked * runs.len / 8) as usize);
        runs.skip(picked);
    }

    /// Appends the low `bits` (up to [`SHORT`]) of `word`, whose others are 0.
    ///
    /// # Safety
    /// There must be room for them.
    #[inline(always)]
    unsafe fn push(&mut self, word: u64, bits: u32) {
        let word = self.held | word << self.bits;
        let bits = self.bits + bits;
        let bytes = bits as usize / 8;
        // SAFETY: the caller's promise.
        unsafe {
            if self.room() >= 8 {
                self.target.cast::<u64>().write_unaligned(word.to_le());
            } else {
                store_short(word, self.target, bytes);
            }
            self.target = self.target.add(bytes);
        }
        self.held = word >> (bits & !7);
        self.bits = bits % 8;
    }

    /// Bytes that may be written.
    fn room(&self) -> usize {
        self.end as usize - self.target as usize
    }

    /// Appends the first of short runs.
    ///
    /// # Safety
    /// As [`pack`].
    #[inline(always)]
    unsafe fn push_short(&mut self, runs: &Runs) {
        let Runs { source, begin, len, readable, .. } = *runs;
        // SAFETY: the caller's promise.
        unsafe { self.push(load(source, begin, len as u32, readable), len as u32) };
    }

    /// Appends the first of long runs: whole bytes in between as such.
    ///
    /// # Safety
    /// As [`pack`].
    #[inline(always)]
    unsafe fn push_long(&mut self, copy: CopyBytes, runs: &Runs) {
        let Runs { source, begin: at, len, readable, .. } = *runs;
        let head = i64::from((8 - self.bits) % 8).min(len);
        let bytes = (len - head) / 8;
        let tail = (len - head) % 8;
        let (middle, last) = (at + head, at + head + bytes * 8);
        // SAFETY: the caller's promise; each part lies within the run.
        unsafe {
            if head > 0 {
                self.push(load(source, at, head as u32, readable), head as u32);
            }
            let (from, by) = (byte(source, middle), middle & 7);
            shift(copy, from, by, self.target, bytes as usize);
            self.target = self.target.add(bytes as usize);
            if tail > 0 {
                self.push(load(source, last, tail as u32, readable), tail as u32);
            }
        }
    }

    /// Appends runs that begin at multiples of their length, 2 or 4 bits, and so are in one byte each,
    /// as many as fill words.
    ///
    /// # Safety
    /// As [`pack`]; the runs must be such ones.
    #[inline(always)]
    unsafe fn push_elements(&mut self, runs: &mut Runs) {
        while runs.count >= 8 {
            let mut at = runs.begin;
            let mut word = 0;
            for place in 0..8 {
                // SAFETY: the caller's promise.
                let byte = unsafe { byte(runs.source, at).read() } >> (at & 7);
                word |= (u64::from(byte) & ones(runs.len as u32)) << (place * runs.len);
                at = at.wrapping_add(runs.step);
            }
            // SAFETY: as above.
            unsafe { self.push(word, 8 * runs.len as u32) };
            runs.skip(8);
        }
    }

    /// Writes out the last byte if it is not full.
    ///
    /// # Safety
    /// It must be writable.
    pub(crate) unsafe fn finish(self) {
        if self.bits > 0 {
            // SAFETY: the caller's promise.
            unsafe { self.target.write(self.held as u8) };
        }
    }
}

/// Copies bytes that begin at the bit `by` (0 to 7) of the first one, if that is 0 by `copy`.
///
/// # Safety
/// They must be readable at `source` and writable at `target`.
#[inline(always)]
unsafe fn shift(copy: CopyBytes, source: *const u8, by: i64, target: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise; where `by` is not 0, one byte more holds bits of theirs.
    unsafe {
        if by == 0 {
            return copy(source, target, bytes);
        }
        if bytes < 8 {
            return store_short(short_word(source, bytes + 1) >> by, target, bytes);
        }
        let mut at = 0;
        while at + 64 <= bytes {
            shift_words::<8>(source.add(at), by, target.add(at));
            at += 64;
        }
        while at + 8 < bytes {
            shift_words::<1>(source.add(at), by, target.add(at));
            at += 8;
        }
        shift_words::<1>(source.add(bytes - 8), by, target.add(bytes - 8));
    }
}

/// The first `bytes` of a word, 8 at the most. Not inlined: it is for the last bytes only.
///
/// # Safety
/// They must be writable.
#[inline(never)]
unsafe fn store_short(word: u64, target: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe { generic::copy_rare(word.to_le_bytes().as_ptr(), target, bytes) };
}

/// [`shift`] of `N` words.
///
/// # Safety
/// As [`shift`]; `by` is not 0.
#[inline(always)]
unsafe fn shift_words<const N: usize>(source: *const u8, by: i64, target: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe { target.cast::<[u64; N]>().write_unaligned(shifted::<N>(source, by)) };
}

/// `N` words that begin at the bit `by` of the first byte.
///
/// # Safety
/// Their bytes must be readable, and the next one, even if `by` is 0.
#[inline(always)]
pub(super) unsafe fn shifted<const N: usize>(source: *const u8, by: i64) -> [u64; N] {
    // SAFETY: the caller's promise. The bits that one has lost at its end are in the middle of the
    // other.
    let [low, high] =
        unsafe { [source, source.add(1)].map(|source| source.cast::<[u64; N]>().read_unaligned()) };
    let mut words = [0; N];
    for (word, (low, high)) in words.iter_mut().zip(low.into_iter().zip(high)) {
        *word = (u64::from_le(low) >> by | u64::from_le(high) << (8 - by)).to_le();
    }
    words
}

/// The `len` bits (up to [`SHORT`]) from the bit `at` on.
///
/// # Safety
/// As [`pack`].
#[inline(always)]
unsafe fn load(source: *const u8, at: i64, len: u32, readable: usize) -> u64 {
    let first = byte(source, at);
    let before = (at & 7) as u32;
    // SAFETY: the caller's promise.
    let bits = unsafe {
        if readable.saturating_sub(first as usize) >= 8 {
            word(first)
        } else {
            short_word(first, (before + len).div_ceil(8) as usize)
        }
    };
    bits >> before & ones(len)
}

/// The byte that holds the bit `at`.
#[inline(always)]
pub(crate) fn byte(source: *const u8, at: i64) -> *const u8 {
    source.wrapping_offset((at >> 3) as isize)
}

/// # Safety
/// Eight bytes must be readable.
#[inline(always)]
unsafe fn word(source: *const u8) -> u64 {
    // SAFETY: the caller's promise.
    u64::from_le(unsafe { source.cast::<u64>().read_unaligned() })
}

/// A word of which only `bytes` are there, up to 8; the others are 0. Not inlined: most words are whole.
///
/// # Safety
/// They must be readable.
#[inline(never)]
unsafe fn short_word(source: *const u8, bytes: usize) -> u64 {
    let half = |at: usize| {
        // SAFETY: the caller's promise, for halves that lie within the bytes.
        u64::from(u32::from_le(unsafe { source.add(at).cast::<u32>().read_unaligned() }))
    };
    // SAFETY: as above.
    let byte = |at: usize| u64::from(unsafe { source.add(at).read() });
    match bytes {
        1 => byte(0),
        // The first, the last, and the one between or one of them again.
        2..=3 => byte(0) | byte(bytes / 2) << (bytes / 2 * 8) | byte(bytes - 1) << (bytes * 8 - 8),
        _ => half(0) | half(bytes - 4) << (bytes * 8 - 32),
    }
}

/// A word whose low `bits` (1 to 64) are 1.
#[inline(always)]
pub(super) fn ones(bits: u32) -> u64 {
    u64::MAX >> (64 - bits)
}
