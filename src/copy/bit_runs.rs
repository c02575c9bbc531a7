//! Kernels for runs of sub-byte elements: runs of bits at equal distances, which are packed one after the other.
//!
//! Elements are counted from the lowest bit of a byte on. Words of 64 bits are read from any byte, shifted to the bit
//! where a run begins, and joined with the bits of the last byte that are held back:
//!
//! ```text
//! input, lowest bits first     |·····abc|defghijk|lmn·····|    a run of 14 bits begins at bit 5 of a byte
//! shifted by 5                 |abcdefgh|ijklmn··|
//! held                         |xyz                             the last three bits of the run before
//! output                       |xyzabcde|fghijklm|              two bytes are written, and n is held
//! ```

// The bodies of unsafe functions need no further blocks: what they require is in their `# Safety`.
#![allow(unsafe_op_in_unsafe_fn)]
// Numbers of bits in a word and of bytes in memory fit into whatever they are cast to.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use super::opaque::opaque;
use crate::math::div_rem_signed;
use core::ops::Range;

/// The most bits that are moved at a time: they fit into a word together with the seven that may be held.
const PUSH_BITS: i64 = 56;
/// Bytes of the chunks in which long runs are copied.
const CHUNK_BYTES: usize = 32;
/// Fewer runs are not worth setting up a loop for.
const MANY_RUNS: i64 = 16;

/// Returns a word whose lowest bits are set, but not all bits.
#[inline(always)]
fn ones(bits: i64) -> u64 {
    (1 << bits) - 1
}

/// Writes bits: whole bytes are before `target`, and less than a byte is held.
#[derive(Clone, Copy)]
pub(super) struct Writer {
    target: *mut u8,
    end: *mut u8,
    held: u64,
    bits: i64,
}

impl Writer {
    /// Begins at a byte of memory that may be written up to its end.
    pub(super) fn new(target: *mut u8, end: *mut u8) -> Self {
        Self { target, end, held: 0, bits: 0 }
    }

    pub(super) fn target(&self) -> *mut u8 {
        self.target
    }

    /// Returns the bits that are held; those above them are 0.
    pub(super) fn held(&self) -> u64 {
        self.held
    }

    /// Returns how many bits are held.
    pub(super) fn held_bits(&self) -> i64 {
        self.bits
    }

    /// Returns how many bytes may still be written.
    #[inline(always)]
    fn room(&self) -> usize {
        debug_assert!(self.target <= self.end, "bits were written beyond the end");
        self.end as usize - self.target as usize
    }

    /// Passes over whole bytes that have been written.
    #[inline(always)]
    pub(super) fn advance(&mut self, bytes: usize) {
        self.target = self.target.wrapping_add(bytes);
        debug_assert!(self.target <= self.end, "bits were written beyond the end");
    }

    /// Holds less than a byte.
    #[inline(always)]
    pub(super) fn hold(&mut self, held: u64, bits: i64) {
        debug_assert!((0..8).contains(&bits) && held >> bits == 0, "{held:#x} is not {bits} bits");
        self.held = held;
        self.bits = bits;
    }

    /// Adds some bits, the lowest of a word, of which there are up to [`PUSH_BITS`].
    ///
    /// # Safety
    /// There must be room for the bits, and everything up to the end must be writable: up to seven bytes behind the bits
    /// may be overwritten, and have to be written later.
    #[inline(always)]
    unsafe fn push(&mut self, word: u64, bits: i64) {
        debug_assert!((0..=PUSH_BITS).contains(&bits), "{bits} bits are pushed at a time");
        self.held |= (word & ones(bits)) << self.bits;
        self.bits += bits;
        let bytes = (self.bits >> 3) as usize;
        let word = self.held.to_le_bytes();
        if self.room() >= 8 {
            self.target.cast::<[u8; 8]>().write_unaligned(word);
        } else {
            write_bytes(self.target, word, bytes);
        }
        self.advance(bytes);
        self.held >>= self.bits & !7;
        self.bits &= 7;
    }

    /// Writes the last byte, if part of one is held.
    ///
    /// # Safety
    /// There must be room for it.
    pub(super) unsafe fn finish(&self) {
        if self.bits > 0 {
            self.target.write(self.held as u8);
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
        target.wrapping_add(at).write(byte);
    }
}

/// The input as bits, counted from its first byte on.
#[derive(Clone, Copy)]
pub(super) struct Source {
    pub bytes: *const u8,
    /// The address up to which everything may be read.
    pub readable: usize,
}

impl Source {
    /// Returns the byte in which a bit lies.
    #[inline(always)]
    pub(super) fn byte(&self, bit: i64) -> *const u8 {
        self.bytes.wrapping_offset((bit >> 3) as isize)
    }

    /// Reads up to [`PUSH_BITS`] bits; those above them may be anything.
    ///
    /// # Safety
    /// The bytes of these bits must be readable, and everything from the first of them up to `readable`.
    #[inline(always)]
    pub(super) unsafe fn read(&self, bit: i64, bits: i64) -> u64 {
        let (at, shift) = (self.byte(bit), bit & 7);
        if self.readable.saturating_sub(at as usize) >= 8 {
            return self.load(bit);
        }
        let mut word = 0;
        for byte in 0..(shift + bits + 7) >> 3 {
            word |= u64::from(at.wrapping_offset(byte as isize).read()) << (8 * byte);
        }
        word >> shift
    }

    /// Copies some bits of a run.
    ///
    /// # Safety
    /// As for [`Source::read`] and [`Writer::push`].
    #[inline(always)]
    pub(super) unsafe fn push_run(&self, out: &mut Writer, mut bit: i64, mut bits: i64) {
        // Without room for whole chunks, the last bits are left for later.
        let is_whole = self.has_room(out, bit, Self::room(bits));
        let some = if is_whole { bits } else { bits - 8 * Self::room(0) as i64 };
        if some > PUSH_BITS {
            self.push_long(out, bit, some);
            bit += some;
            bits -= some;
        }
        while bits > 0 {
            let some = bits.min(PUSH_BITS);
            out.push(self.read(bit, some), some);
            bit += some;
            bits -= some;
        }
    }

    /// Returns at least as many bytes as [`Source::push_long`] may touch on either side: the bits, the rest of a chunk
    /// behind them, and a word.
    #[inline(always)]
    fn room(bits: i64) -> usize {
        (bits / 8) as usize + CHUNK_BYTES + 8
    }

    /// Returns whether `bytes` bytes may be read from a bit on, and written.
    #[inline(always)]
    fn has_room(&self, out: &Writer, bit: i64, bytes: usize) -> bool {
        self.readable.wrapping_sub(self.byte(bit) as usize).cast_signed() >= bytes.cast_signed()
            && out.room() >= bytes
    }

    /// Copies a long run: first a word, which also takes what is held, then chunks from the second byte on.
    ///
    /// # Safety
    /// [`Source::room`] bytes must be readable from the bit's byte on, and writable: the last chunk writes up to
    /// `CHUNK_BYTES` - 1 bytes behind the bits, which have to be written later.
    #[inline(always)]
    unsafe fn push_long(&self, out: &mut Writer, bit: i64, bits: i64) {
        debug_assert!(
            self.has_room(out, bit, Self::room(bits)),
            "{bits} bits have no room for chunks"
        );
        let Writer { target, held, bits: before, .. } = *out;
        let bytes = ((before + bits) >> 3) as usize;
        let second = bit + 8 - before;
        let (at, shift) = (self.byte(second), second & 7);
        let first = held | self.load(bit) << before;
        target.write(first as u8);
        let mut done = 0;
        while done + 1 < bytes {
            let words =
                shifted::<{ CHUNK_BYTES / 8 }>(at.wrapping_add(done), shift).map(u64::to_le);
            target.wrapping_add(done + 1).cast::<[u64; CHUNK_BYTES / 8]>().write_unaligned(words);
            done += CHUNK_BYTES;
        }
        out.target = target.wrapping_add(bytes);
        out.bits = (before + bits) & 7;
        out.held = self.load(bit + bits - out.bits) & ones(out.bits);
    }

    /// Copies bits into words. If there are holes, nothing is read but the bytes of these bits.
    ///
    /// # Safety
    /// As for [`Source::read`], and the words must have room for the bits.
    pub(super) unsafe fn push_words(
        mut self,
        words: &mut [u64],
        bit: i64,
        bits: i64,
        has_holes: bool,
    ) {
        debug_assert!(bits <= 64 * words.len() as i64, "{bits} bits in {} words", words.len());
        if has_holes {
            self.readable = self.byte(bit + bits + 7) as usize;
        }
        let target: *mut u8 = words.as_mut_ptr().cast();
        let mut out = Writer::new(target, target.wrapping_add(size_of_val(words)));
        self.push_run(&mut out, bit, bits);
        out.finish();
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
        u64::from_le_bytes(self.byte(bit).cast::<[u8; 8]>().read_unaligned()) >> (bit & 7)
    }
}

/// Returns words from a bit of a byte on. The byte behind them is read, too.
///
/// # Safety
/// `8 * N + 1` bytes must be readable.
#[inline(always)]
pub(super) unsafe fn shifted<const N: usize>(at: *const u8, shift: i64) -> [u64; N] {
    let next = at.wrapping_add(1).cast::<[u64; N]>().read_unaligned();
    let mut words = at.cast::<[u64; N]>().read_unaligned();
    for (word, next) in words.iter_mut().zip(next) {
        // Bits that both have are the same.
        *word = u64::from_le(*word) >> shift | u64::from_le(next) << (8 - shift);
    }
    words
}

/// Runs at equal distances, which follow each other in the output.
#[derive(Clone, Copy)]
pub(super) struct BitRuns {
    pub source: Source,
    /// The bit at which the first run begins, bits from one run to the next, and bits of each.
    pub begin: i64,
    pub step: i64,
    pub bits: i64,
    /// Bits of an element.
    pub size: i64,
    /// Whether there may be pages between runs.
    pub are_far: bool,
}

/// A chunk of each run of a group: where it begins in its first byte on both sides, and how many bits it has.
#[derive(Clone, Copy, Default)]
struct Chunk {
    bits: i64,
    shift: i64,
    before: i64,
}

impl BitRuns {
    /// Copies some bits of the runs, counted as if they were packed.
    ///
    /// # Safety
    /// The bytes of these bits must be readable; and everything from the lowest of them up to the source's `readable`,
    /// unless runs are far apart. The bits must have room in the output; what is behind them there, up to the writer's
    /// end, may be overwritten and has to be written later. The CPU must have the features of the level.
    #[inline(always)]
    pub(super) unsafe fn pack_runs(&self, out: &mut Writer, range: Range<i64>) {
        let Self { mut source, step, bits, .. } = *self;
        let mut to = *out;
        let (index, mut within) = div_rem_signed(range.start, bits);
        let mut begin = self.begin.wrapping_add(step.wrapping_mul(index));
        let mut left = range.end - range.start;
        let (is_long, room) = (bits > PUSH_BITS, Source::room(bits));
        while left > 0 {
            let some = left.min(bits - within);
            if self.are_far {
                source.readable = source.byte(begin.wrapping_add(bits + 7)) as usize;
            }
            source.push_run(&mut to, begin.wrapping_add(within), some);
            begin = begin.wrapping_add(step);
            within = 0;
            left -= some;
            if self.are_far {
                continue;
            }
            let done = self.pack_many(&mut to, begin, left);
            begin = begin.wrapping_add(done.wrapping_mul(step));
            left -= done * bits;
            while left >= bits && is_long && source.has_room(&to, begin, room) {
                source.push_long(&mut to, begin, bits);
                begin = begin.wrapping_add(step);
                left -= bits;
            }
            while left >= bits && !is_long {
                to.push(source.read(begin, bits), bits);
                begin = begin.wrapping_add(step);
                left -= bits;
            }
        }
        *out = to;
    }

    /// Copies short runs by groups, if there are many. Returns how many runs.
    #[inline(always)]
    unsafe fn pack_many(&self, out: &mut Writer, begin: i64, left: i64) -> i64 {
        let bits = self.bits;
        if left < MANY_RUNS * bits {
            0
        } else if self.size == 4 && bits <= PUSH_BITS {
            self.pack_groups::<2>(out, begin, left)
        } else if bits <= PUSH_BITS || self.size == 4 && bits <= 2 * PUSH_BITS {
            self.pack_groups::<4>(out, begin, left)
        } else {
            0
        }
    }

    /// Copies short runs, each in one or two chunks of up to [`PUSH_BITS`], by groups of runs that are whole bytes on
    /// both sides and have `G` chunks. Returns how many runs.
    #[inline(always)]
    unsafe fn pack_groups<const G: usize>(&self, out: &mut Writer, begin: i64, left: i64) -> i64 {
        let Self { source, step, bits: run_bits, size, .. } = *self;
        let runs = 8 >> size.trailing_zeros();
        let chunks = div_rem_signed(G as i64, runs).0;
        let group_bytes = (runs * run_bits / 8) as usize;
        let run_begin = |run: i64| begin.wrapping_add(step.wrapping_mul(run));
        let has_room = |group: i64| {
            let ends = [group * runs, group * runs + runs - 1].map(run_begin);
            ends.into_iter().all(|bit| source.has_room(out, bit, 8 * chunks as usize))
                && out.room() >= group_bytes * (group as usize + 1) + 8
        };
        let mut count = div_rem_signed(left, runs * run_bits).0;
        if !has_room(0) {
            return 0;
        }
        while !has_room(count - 1) {
            count -= 1;
        }
        let mut from = [source.bytes; G];
        let mut places = [Chunk::default(); G];
        let mut before = out.bits;
        for (at, (from, place)) in (0..).zip(from.iter_mut().zip(&mut places)) {
            let (run, chunk) = if chunks == 1 { (at, 0) } else { (at >> 1, at & 1) };
            let bit = run_begin(run).wrapping_add(chunk * PUSH_BITS);
            let bits = PUSH_BITS.min(run_bits - chunk * PUSH_BITS);
            *from = source.byte(bit);
            *place = Chunk { bits, shift: bit & 7, before };
            before = (before + bits) & 7;
        }
        let apart = (step * runs / 8) as isize;
        let Writer { mut target, mut held, .. } = *out;
        for _ in 0..count {
            for (from, Chunk { bits, shift, before }) in from.iter_mut().zip(places) {
                let bytes = ((before + bits) >> 3) as usize;
                // There is room for whole words on both sides.
                let word = u64::from_le_bytes(from.cast::<[u8; 8]>().read_unaligned()) >> shift;
                let word = (word & ones(bits)) << before | held;
                target.cast::<[u8; 8]>().write_unaligned(word.to_le_bytes());
                held = word >> (8 * bytes);
                target = target.wrapping_add(bytes);
                *from = from.wrapping_offset(apart);
            }
        }
        out.target = target;
        out.held = held;
        count * runs
    }
}

/// Where an element of a byte of the output comes from: the distance in bytes from the first one's byte, and the bit.
#[derive(Clone, Copy)]
struct Place {
    offset: isize,
    shift: u32,
}

impl BitRuns {
    /// Copies runs of single elements, from a bit on that is counted as if they were packed, into some bytes of the
    /// output: `E` elements into each. `KNOWN` is whether steps that people have get loops of their own, for which
    /// compilers find shuffles.
    ///
    /// # Safety
    /// The bytes of the elements must be readable, and the bytes of the output writable; nothing else is touched. The
    /// CPU must have the features of the level.
    #[inline(always)]
    pub(super) unsafe fn pack_elements<const E: usize, const KNOWN: bool>(
        &self,
        target: *mut u8,
        start: i64,
        bytes: usize,
    ) {
        debug_assert!(self.size * E as i64 == 8 && self.bits == self.size);
        let begin =
            self.begin.wrapping_add(self.step.wrapping_mul(start >> self.size.trailing_zeros()));
        let source = self.source.byte(begin);
        let places: [Place; E] = core::array::from_fn(|at| {
            let bit = (begin & 7).wrapping_add(self.step.wrapping_mul(at as i64));
            Place { offset: (bit >> 3) as isize, shift: (bit & 7) as u32 }
        });
        // As many bytes from one byte of the output to the next as elements from one to the next.
        let step = (self.step >> self.size.trailing_zeros()) as isize;
        match step {
            -1 if KNOWN => gather_elements(source, -1, &places, target, bytes),
            2 if KNOWN => gather_elements(source, 2, &places, target, bytes),
            4 if KNOWN => gather_elements(source, 4, &places, target, bytes),
            _ => gather_elements(source, opaque(step), &places, target, bytes),
        }
    }
}

/// Puts `E` elements into each byte; those of the next byte are `step` bytes further on.
#[inline(always)]
unsafe fn gather_elements<const E: usize>(
    source: *const u8,
    step: isize,
    places: &[Place; E],
    target: *mut u8,
    bytes: usize,
) {
    let (places, size) = (*places, 8 / E);
    for at in 0..bytes {
        let mut byte = 0;
        let from = source.offset(step * at as isize);
        for (to, Place { offset, shift }) in places.into_iter().enumerate() {
            byte |= (from.offset(offset).read() >> shift & ((1 << size) - 1)) << (to * size);
        }
        target.add(at).write(byte);
    }
}
