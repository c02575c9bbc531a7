//! The kernel for sub-byte elements: runs of bits at equal distances, which are packed one after the other.
//!
//! Elements are counted from the lowest bit of a byte on. Words of 64 bits, or what a run has left, are loaded from any
//! bit, and shifted behind the bits of the last byte that are held back:
//!
//! ```text
//! input, lowest bits first     |·····abc|defghijk|lmn·····|    a run of 14 bits begins at bit 5 of a byte
//! shifted by 5                 |abcdefgh|ijklmn··|
//! held                         |xyz                             the last three bits of the run before
//! output                       |xyzabcde|fghijklm|              two bytes are written, and n is held
//! ```
//!
//! If runs are single elements, a word is gathered. The elements that a byte of the output has at the same place begin
//! at the same bit of bytes of the input that are equally far apart, so they are shifted together. Elements of 4 bits, in
//! a word of two bytes for the drawing:
//!
//! ```text
//! input, in bytes of its own   ····wwww  ····xxxx  ····yyyy  ····zzzz
//! the first of each byte       |····wwww|····yyyy|    shifted down by 4: |wwww    |yyyy    |
//! the second of each byte      |····xxxx|····zzzz|    and up by 4:       |    xxxx|    zzzz|
//! ```

// The bodies of unsafe functions need no further blocks: what they require is in their `# Safety`.
#![allow(unsafe_op_in_unsafe_fn)]
// Numbers of bits in a word and of bytes in memory fit into whatever they are cast to.
#![allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap, clippy::cast_sign_loss)]

use crate::math::div_rem_signed;
use core::ops::Range;

const WORD_BITS: i64 = 64;
/// As many bits fit into a word wherever in a byte they begin.
const PART_BITS: i64 = 56;

/// Writes bits: whole bytes are before `target`, and less than a byte is held.
#[derive(Clone, Copy)]
pub(super) struct Writer {
    target: *mut u8,
    end: *mut u8,
    held: u64,
    held_bits: i64,
}

impl Writer {
    /// Begins at a byte of memory that may be written up to its end.
    pub(super) fn new(target: *mut u8, end: *mut u8) -> Self {
        Self { target, end, held: 0, held_bits: 0 }
    }

    /// Returns how many bytes may still be written.
    #[inline(always)]
    fn room(&self) -> usize {
        self.end as usize - self.target as usize
    }

    /// Adds a word.
    ///
    /// # Safety
    /// Its bits must have room.
    #[inline(always)]
    unsafe fn push_word(&mut self, word: u64) {
        debug_assert!(self.room() >= 8, "8 bytes are written where {} have room", self.room());
        let all = word << self.held_bits | self.held;
        self.target.cast::<[u8; 8]>().write_unaligned(all.to_le_bytes());
        self.target = self.target.wrapping_add(8);
        self.held = word >> 1 >> (63 - self.held_bits);
    }

    /// Adds the lowest bits of a word, up to [`PART_BITS`].
    ///
    /// # Safety
    /// The bits must have room before the writer's end, and everything up to there must be writable: up to seven bytes
    /// behind the bits may be overwritten, and have to be written later.
    #[inline(always)]
    unsafe fn push_part(&mut self, word: u64, bits: i64) {
        debug_assert!((0..=PART_BITS).contains(&bits), "a part of {bits} bits");
        let all = (word & ((1 << bits) - 1)) << self.held_bits | self.held;
        let bits = self.held_bits + bits;
        let (bytes, room) = ((bits >> 3) as usize, self.room());
        debug_assert!(bytes <= room, "{bytes} bytes are written where {room} have room");
        let written = all.to_le_bytes();
        if room >= written.len() {
            self.target.cast::<[u8; 8]>().write_unaligned(written);
        } else {
            written.as_ptr().copy_to_nonoverlapping(self.target, bytes);
        }
        self.target = self.target.wrapping_add(bytes);
        self.held = all >> (bits & !7);
        self.held_bits = bits & 7;
    }

    /// Writes the last byte, if part of one is held. Its other bits become 0.
    ///
    /// # Safety
    /// That byte must be writable.
    pub(super) unsafe fn finish(self) {
        if self.held_bits > 0 {
            debug_assert!(self.target < self.end, "bits are held that have no room");
            self.target.write(self.held as u8);
        }
    }
}

/// Runs of bits at equal distances, which follow each other in the output.
pub(super) struct BitRuns {
    /// The input, whose bits are counted from its first byte on.
    pub source: *const u8,
    /// The end of the input. Everything between a run and this end may be read, unless it is null: then, nothing but the
    /// bytes of the runs.
    pub readable_end: *const u8,
    /// The bit at which the first run begins, bits from one run to the next, and bits of each.
    pub begin: i64,
    pub step: i64,
    pub run: i64,
    /// Bits of an element, of which a byte has a whole number.
    pub size: i64,
}

impl BitRuns {
    /// Packs some bits of the runs, counted as if they were packed.
    ///
    /// # Safety
    /// The bytes of these bits must be readable, and what `readable_end` promises. The rest is as for
    /// [`Writer::push_part`].
    #[inline(never)] // profilers show it
    pub(super) unsafe fn pack(&self, out: &mut Writer, range: Range<i64>) {
        let mut to = *out; // in registers
        let (index, mut within) = div_rem_signed(range.start, self.run);
        let mut begin = self.begin.wrapping_add(self.step.wrapping_mul(index));
        let mut left = range.end - range.start;
        if self.run == self.size {
            let apart = self.step.wrapping_mul(WORD_BITS >> self.size.trailing_zeros());
            while left >= WORD_BITS {
                to.push_word(self.gather(begin));
                begin = begin.wrapping_add(apart);
                left -= WORD_BITS;
            }
        }
        while left > 0 {
            let bits = left.min(self.run - within);
            self.pack_run(&mut to, begin.wrapping_add(within), bits);
            begin = begin.wrapping_add(self.step);
            left -= bits;
            within = 0;
        }
        *out = to;
    }

    /// Packs some bits of a run.
    ///
    /// # Safety
    /// As for [`BitRuns::pack`].
    #[inline(always)]
    unsafe fn pack_run(&self, out: &mut Writer, mut bit: i64, mut left: i64) {
        let end_of_run = self.byte(bit.wrapping_add(left + 7));
        let end = if self.readable_end.is_null() { end_of_run } else { self.readable_end };
        debug_assert!(end_of_run <= end, "a run that ends behind what may be read");
        while left >= WORD_BITS && end as usize - self.byte(bit) as usize > 8 {
            out.push_word(self.load_word(bit));
            bit += WORD_BITS;
            left -= WORD_BITS;
        }
        while left > 0 {
            let bits = left.min(PART_BITS);
            out.push_part(self.load_part(bit, bits, end), bits);
            bit += bits;
            left -= bits;
        }
    }

    /// Returns the byte in which a bit lies.
    #[inline(always)]
    fn byte(&self, bit: i64) -> *const u8 {
        self.source.wrapping_offset((bit >> 3) as isize)
    }

    /// Returns a word from a bit on.
    ///
    /// # Safety
    /// Nine bytes must be readable.
    #[inline(always)]
    unsafe fn load_word(&self, bit: i64) -> u64 {
        let (at, shift) = (self.byte(bit), bit & 7);
        let low = u64::from_le_bytes(at.cast::<[u8; 8]>().read_unaligned());
        low >> shift | u64::from(at.wrapping_add(8).read()) << 1 << (63 - shift)
    }

    /// Returns up to [`PART_BITS`] bits as the lowest of a word; those above them may be anything.
    ///
    /// # Safety
    /// The bytes of these bits must be readable, and everything from the first of them up to `end`.
    #[inline(always)]
    unsafe fn load_part(&self, bit: i64, bits: i64, end: *const u8) -> u64 {
        let (at, shift) = (self.byte(bit), bit & 7);
        let mut bytes = [0; 8];
        if end as usize - at as usize >= bytes.len() {
            bytes = at.cast::<[u8; 8]>().read_unaligned();
        } else {
            let count = (shift + bits + 7) >> 3;
            at.copy_to_nonoverlapping(bytes.as_mut_ptr(), count as usize);
        }
        u64::from_le_bytes(bytes) >> shift
    }

    /// Returns a word of single elements, of which the first begins at a bit of the input.
    ///
    /// # Safety
    /// The bytes of these elements must be readable. Nothing else is read.
    #[inline(always)]
    unsafe fn gather(&self, begin: i64) -> u64 {
        debug_assert!(8 % self.size == 0 && self.run == self.size, "runs are single elements");
        debug_assert!(
            self.readable_end.is_null()
                || self.byte(begin.max(begin + self.step * (WORD_BITS / self.size - 1)))
                    < self.readable_end,
            "single elements that end behind what may be read"
        );
        let mask = 0x0101_0101_0101_0101 * ((1 << self.size) - 1);
        // As many bytes from one byte's element to the next byte's as elements from one to the next.
        let apart = (self.step >> self.size.trailing_zeros()) as isize;
        let (mut word, mut bit, mut place) = (0, begin, 0);
        while place < 8 {
            let from = self.byte(bit);
            let bytes = [0, 1, 2, 3, 4, 5, 6, 7]
                .map(|at| from.wrapping_offset(apart.wrapping_mul(at)).read());
            word |= (u64::from_le_bytes(bytes) >> (bit & 7) & mask) << place;
            bit = bit.wrapping_add(self.step);
            place += self.size;
        }
        word
    }
}
