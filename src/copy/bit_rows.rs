//! Rows of elements that share bytes: runs of bits, packed one after the other.
//!
//! # Safety
//! For everything unsafe here: the bits must be readable; everything up to the writer's end must be writable, and have
//! room for what is written; and the CPU must have the features of the level.

// Numbers of bits in a word and of bytes in memory fit into whatever they are cast to.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use super::level::Kernels;
use super::opaque::opaque;
use crate::math::div_rem_signed;
use core::ops::Range;

/// The most bits that are moved at a time: they fit into a word together with the seven that may be held.
const PUSH_BITS: i64 = 56;
/// Bytes of the chunks in which long runs are copied.
const CHUNK_BYTES: usize = 32;
/// Rows of fewer runs are not worth setting up a loop for.
const MANY_RUNS: i64 = 16;

/// Returns a word whose lowest bits are set, but not all bits.
#[inline(always)]
fn ones(bits: i64) -> u64 {
    (1 << bits) - 1
}

/// Writes bits: whole bytes are before `target`, and less than a byte is held.
pub(super) struct Writer {
    pub target: *mut u8,
    pub end: *mut u8,
    pub held: u64,
    pub bits: i64,
}

impl Writer {
    /// Adds up to [`PUSH_BITS`] bits. May overwrite seven bytes more, up to the end: these are written later.
    #[inline(always)]
    unsafe fn push(&mut self, word: u64, bits: i64) {
        self.held |= (word & ones(bits)) << self.bits;
        self.bits += bits;
        let bytes = (self.bits >> 3) as usize;
        let word = self.held.to_le_bytes();
        // SAFETY: the caller's promise.
        unsafe {
            if self.end as usize - self.target as usize >= 8 {
                self.target.cast::<[u8; 8]>().write_unaligned(word);
            } else {
                write_bytes(self.target, word, bytes);
            }
        }
        self.target = self.target.wrapping_add(bytes);
        self.held >>= self.bits & !7;
        self.bits &= 7;
    }

    /// Writes the last byte, if part of one is held.
    pub(super) unsafe fn finish(&self) {
        if self.bits > 0 {
            // SAFETY: the caller's promise.
            unsafe { self.target.write(self.held as u8) };
        }
    }
}

/// Writes the first bytes of a word.
///
/// # Safety
/// `bytes` bytes must be writable.
#[inline(always)]
pub(super) unsafe fn write_bytes(target: *mut u8, word: [u8; 8], bytes: usize) {
    for (at, byte) in word.into_iter().enumerate().take(bytes) {
        // SAFETY: the caller's promise.
        unsafe { target.wrapping_add(at).write(byte) };
    }
}

/// The input as bits.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub bytes: *const u8,
    /// The address up to which everything may be read.
    pub readable: usize,
}

impl Source {
    #[inline(always)]
    pub(super) fn byte(&self, bit: i64) -> *const u8 {
        self.bytes.wrapping_offset((bit >> 3) as isize)
    }

    /// Reads up to [`PUSH_BITS`] bits; those above them may be anything.
    #[inline(always)]
    pub(super) unsafe fn read(&self, bit: i64, bits: i64) -> u64 {
        let (at, shift) = (self.byte(bit), bit & 7);
        // SAFETY: the caller's promise.
        unsafe {
            if self.readable.saturating_sub(at as usize) >= 8 {
                return self.load(bit);
            }
            let mut word = 0;
            for byte in 0..(shift + bits + 7) >> 3 {
                word |= u64::from(at.wrapping_offset(byte as isize).read()) << (8 * byte);
            }
            word >> shift
        }
    }

    /// Copies some bits of a run.
    #[inline(always)]
    pub(super) unsafe fn push_run(&self, out: &mut Writer, mut bit: i64, mut bits: i64) {
        // SAFETY: the caller's promise.
        unsafe {
            // Without room for whole chunks, the last bits are left for later.
            let is_whole = self.has_room(out, bit, Self::room(bits));
            let some = if is_whole { bits } else { bits - 8 * Self::room(0) as i64 };
            if some > PUSH_BITS {
                self.push_long(out, bit, some);
                (bit, bits) = (bit + some, bits - some);
            }
            while bits > 0 {
                let some = bits.min(PUSH_BITS);
                out.push(self.read(bit, some), some);
                (bit, bits) = (bit + some, bits - some);
            }
        }
    }

    /// Returns at least as many bytes as [`Source::push_long`] may touch on either side.
    #[inline(always)]
    fn room(bits: i64) -> usize {
        (bits / 8) as usize + CHUNK_BYTES + 8
    }

    /// Returns whether `bytes` bytes may be read from a bit on, and written.
    #[inline(always)]
    fn has_room(&self, out: &Writer, bit: i64, bytes: usize) -> bool {
        self.readable.wrapping_sub(self.byte(bit) as usize).cast_signed() >= bytes.cast_signed()
            && out.end as usize - out.target as usize >= bytes
    }

    /// Copies a long run: first a word, which also takes what is held, then chunks from the second byte on.
    #[inline(always)]
    unsafe fn push_long(&self, out: &mut Writer, bit: i64, bits: i64) {
        let Writer { target, held, bits: before, .. } = *out;
        let bytes = ((before + bits) >> 3) as usize;
        let second = bit + 8 - before;
        let (at, shift) = (self.byte(second), second & 7);
        // SAFETY: the caller's promise.
        unsafe {
            let first = held | self.load(bit) << before;
            target.write(first as u8);
            let mut done = 0;
            while done + 1 < bytes {
                let words =
                    shifted::<{ CHUNK_BYTES / 8 }>(at.wrapping_add(done), shift).map(u64::to_le);
                target
                    .wrapping_add(done + 1)
                    .cast::<[u64; CHUNK_BYTES / 8]>()
                    .write_unaligned(words);
                done += CHUNK_BYTES;
            }
            out.target = target.wrapping_add(bytes);
            out.bits = (before + bits) & 7;
            out.held = self.load(bit + bits - out.bits) & ones(out.bits);
        }
    }

    /// Copies bits into words. If there are holes, nothing is read but the bytes of these bits.
    ///
    /// # Safety
    /// The bits must be readable, and the words must have room for them.
    pub(super) unsafe fn push_words(
        mut self,
        words: &mut [u64],
        bit: i64,
        bits: i64,
        has_holes: bool,
    ) {
        if has_holes {
            self.readable = self.byte(bit + bits + 7) as usize;
        }
        let target: *mut u8 = words.as_mut_ptr().cast();
        let mut out =
            Writer { target, end: target.wrapping_add(size_of_val(words)), held: 0, bits: 0 };
        // SAFETY: the caller's promise.
        unsafe {
            self.push_run(&mut out, bit, bits);
            out.finish();
        }
        for word in words {
            *word = u64::from_le(*word);
        }
    }

    /// Loads a word, of which the bits from `bit` on are left.
    ///
    /// # Safety
    /// Eight bytes must be readable.
    #[inline(always)]
    pub(super) unsafe fn load(&self, bit: i64) -> u64 {
        // SAFETY: the caller's promise.
        u64::from_le_bytes(unsafe { self.byte(bit).cast::<[u8; 8]>().read_unaligned() })
            >> (bit & 7)
    }
}

/// Returns words from a bit of a byte on. The byte behind them is read, too.
///
/// # Safety
/// All must be readable.
#[inline(always)]
pub(super) unsafe fn shifted<const N: usize>(at: *const u8, shift: i64) -> [u64; N] {
    // SAFETY: the caller's promise.
    let (mut words, next) = unsafe {
        let next = at.wrapping_add(1).cast::<[u64; N]>().read_unaligned();
        (at.cast::<[u64; N]>().read_unaligned(), next)
    };
    for (word, next) in words.iter_mut().zip(next) {
        // Bits that both have are the same.
        *word = u64::from_le(*word) >> shift | u64::from_le(next) << (8 - shift);
    }
    words
}

/// A row: runs at equal distances, for one step of all outer axes.
#[derive(Clone, Copy)]
pub(super) struct Row {
    pub source: Source,
    /// The bit at which the first run begins, bits from one run to the next, and bits of each.
    pub begin: i64,
    pub step: i64,
    pub run: i64,
    /// Bits of an element.
    pub size: i64,
    /// Whether there may be pages between runs.
    pub are_far: bool,
}

impl Row {
    /// Copies some bits of a row by runs, counted as if it were packed.
    #[inline(always)]
    pub(super) unsafe fn pack_runs(&self, out: &mut Writer, bits: Range<i64>) {
        let Self { mut source, step, run, .. } = *self;
        let mut to = Writer { ..*out };
        let (index, mut within) = div_rem_signed(bits.start, run);
        let (mut begin, mut left) =
            (self.begin.wrapping_add(step.wrapping_mul(index)), bits.end - bits.start);
        let (is_long, room) = (run > PUSH_BITS, Source::room(run));
        // SAFETY: the caller's promise.
        unsafe {
            while left > 0 {
                let some = left.min(run - within);
                if self.are_far {
                    source.readable = source.byte(begin.wrapping_add(run + 7)) as usize;
                }
                source.push_run(&mut to, begin.wrapping_add(within), some);
                (begin, within, left) = (begin.wrapping_add(step), 0, left - some);
                if !self.are_far {
                    let done = if left < MANY_RUNS * run {
                        0
                    } else if self.size == 4 && run <= PUSH_BITS {
                        self.pack_groups::<2>(&mut to, begin, left)
                    } else if run <= PUSH_BITS || self.size == 4 && run <= 2 * PUSH_BITS {
                        self.pack_groups::<4>(&mut to, begin, left)
                    } else {
                        0
                    };
                    (begin, left) =
                        (begin.wrapping_add(done.wrapping_mul(step)), left - done * run);
                    while left >= run && is_long && source.has_room(&to, begin, room) {
                        source.push_long(&mut to, begin, run);
                        (begin, left) = (begin.wrapping_add(step), left - run);
                    }
                    while left >= run && run <= PUSH_BITS {
                        to.push(source.read(begin, run), run);
                        (begin, left) = (begin.wrapping_add(step), left - run);
                    }
                }
            }
        }
        *out = to;
    }

    /// Copies short runs, each in one or two parts of up to [`PUSH_BITS`], by groups of runs that are whole bytes on
    /// both sides and have `G` parts. Returns how many runs.
    #[inline(always)]
    unsafe fn pack_groups<const G: usize>(&self, out: &mut Writer, begin: i64, left: i64) -> i64 {
        let Self { source, step, run, size, .. } = *self;
        let runs = 8 >> size.trailing_zeros();
        let (parts, group_bytes) = (div_rem_signed(G as i64, runs).0, (runs * run / 8) as usize);
        let run_begin = |at: i64| begin.wrapping_add(step.wrapping_mul(at));
        let has_room = |group: i64| {
            let ends = [group * runs, group * runs + runs - 1].map(run_begin);
            ends.into_iter().all(|bit| source.has_room(out, bit, 8 * parts as usize))
                && out.end as usize - out.target as usize >= group_bytes * (group as usize + 1) + 8
        };
        let mut count = div_rem_signed(left, runs * run).0;
        if !has_room(0) {
            return 0;
        }
        while !has_room(count - 1) {
            count -= 1;
        }
        // The bits of each part, and where they begin in their first byte on both sides.
        let (mut from, mut places) = ([source.bytes; G], [(0, 0, 0); G]);
        let mut before = out.bits;
        for (at, (from, place)) in (0..).zip(from.iter_mut().zip(&mut places)) {
            let (run_at, part) = if parts == 1 { (at, 0) } else { (at >> 1, at & 1) };
            let bit = run_begin(run_at).wrapping_add(part * PUSH_BITS);
            let bits = PUSH_BITS.min(run - part * PUSH_BITS);
            (*from, *place) = (source.byte(bit), (bits, bit & 7, before));
            before = (before + bits) & 7;
        }
        let apart = (step * runs / 8) as isize;
        let (mut target, mut held) = (out.target, out.held);
        for _ in 0..count {
            for (from, (bits, shift, before)) in from.iter_mut().zip(places) {
                let bytes = ((before + bits) >> 3) as usize;
                // SAFETY: the caller's promise; there is room for whole words.
                unsafe {
                    let word = u64::from_le_bytes(from.cast::<[u8; 8]>().read_unaligned()) >> shift;
                    let word = (word & ones(bits)) << before | held;
                    target.cast::<[u8; 8]>().write_unaligned(word.to_le_bytes());
                    held = word >> (8 * bytes);
                }
                target = target.wrapping_add(bytes);
                *from = from.wrapping_offset(apart);
            }
        }
        (out.target, out.held) = (target, held);
        count * runs
    }
}

/// Copies some bits of a row, counted as if it were packed.
pub(super) unsafe fn pack(row: &Row, kernels: &Kernels, out: &mut Writer, bits: Range<i64>) {
    let mut start = bits.start;
    // SAFETY: the caller's promise.
    unsafe {
        let head = -out.bits & 7;
        if row.run == row.size && bits.end - start >= head + 8 {
            (kernels.pack_runs)(row, out, start..start + head);
            start += head;
            let bytes = (bits.end - start) >> 3;
            let [of_4, of_2] = kernels.pack_single;
            (if row.size == 4 { of_4 } else { of_2 })(row, out.target, start, bytes as usize);
            out.target = out.target.wrapping_add(bytes as usize);
            start += 8 * bytes;
        }
        (kernels.pack_runs)(row, out, start..bits.end);
    }
}

/// Where the elements of a byte of the output come from: the distance in bytes from the first one's, and the bit.
type Places<const E: usize> = [(isize, u32); E];

impl Row {
    /// Copies single elements from a bit on, counted as if the row were packed, into some bytes of the output: `E` into
    /// each. `KNOWN` is whether steps that people have get loops of their own, for which compilers find shuffles.
    #[inline(always)]
    pub(super) unsafe fn pack_single<const E: usize, const KNOWN: bool>(
        &self,
        target: *mut u8,
        start: i64,
        bytes: usize,
    ) {
        let begin =
            self.begin.wrapping_add(self.step.wrapping_mul(start >> self.size.trailing_zeros()));
        let source = self.source.byte(begin);
        let places: Places<E> = core::array::from_fn(|at| {
            let bit = (begin & 7).wrapping_add(self.step.wrapping_mul(at as i64));
            ((bit >> 3) as isize, (bit & 7) as u32)
        });
        // As many bytes from one byte of the output to the next as elements from one to the next.
        let step = (self.step >> self.size.trailing_zeros()) as isize;
        // SAFETY: the caller's promise.
        unsafe {
            match step {
                -1 if KNOWN => take(source, -1, &places, target, bytes),
                2 if KNOWN => take(source, 2, &places, target, bytes),
                4 if KNOWN => take(source, 4, &places, target, bytes),
                _ => take(source, opaque(step), &places, target, bytes),
            }
        }
    }
}

/// Puts `E` elements into each byte; those of the next byte are `step` bytes further on.
#[inline(always)]
unsafe fn take<const E: usize>(
    source: *const u8,
    step: isize,
    places: &Places<E>,
    target: *mut u8,
    bytes: usize,
) {
    let (places, size) = (*places, 8 / E);
    for at in 0..bytes {
        let mut byte = 0;
        // SAFETY: the caller's promise.
        unsafe {
            let from = source.offset(step * at as isize);
            for (to, (offset, shift)) in places.into_iter().enumerate() {
                byte |= (from.offset(offset).read() >> shift & ((1 << size) - 1)) << (to * size);
            }
            target.add(at).write(byte);
        }
    }
}
