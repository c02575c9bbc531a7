//! Pieces of 4-bit and 2-bit elements: rows of bits that begin anywhere in a byte, gathered into
//! packed bytes 64 bits at a time.

use super::kernel::steps::copy_bytes;
use crate::memory::Memory;
use crate::plan::{Piece, Plan};
use crate::shape::MAX_RANK;
use core::ops::Range;

/// One axis of the input, outermost first: steps, and bits from one to the next.
#[derive(Clone, Copy, Default)]
struct Axis {
    extent: i64,
    bits: i64,
}

/// A piece as axes over runs of contiguous bits in the input; the output is packed.
pub(super) struct Layout {
    source: *const u8,
    /// Bits from `source` to the piece's first element.
    begin: i64,
    target: *mut u8,
    /// Bits of a run.
    run: i64,
    /// Bits of the piece.
    total: i64,
    axes: [Axis; MAX_RANK],
    rank: usize,
}

impl Layout {
    /// The layout of a checked piece that has elements, of a sub-byte type.
    pub(super) fn new(
        plan: &Plan<'_>,
        piece: Piece,
        input: &Memory<'_>,
        output: &Memory<'_>,
    ) -> Self {
        let bits = i64::from(plan.dtype.bits());
        let mut layout = Self {
            source: input.data,
            begin: input.bit_offset.into(),
            target: output.data,
            run: bits,
            total: bits,
            axes: [Axis::default(); MAX_RANK],
            rank: 0,
        };
        let mut packed = bits;
        for (axis, &input_extent) in plan.shape.iter().enumerate().rev() {
            let is_split = axis == plan.axis;
            let extent = if is_split { piece.len } else { input_extent };
            let own = input.strides.and_then(|strides| strides.get(axis));
            // Only strides of extent-1 axes may overflow, and those are not used.
            let step = own.map_or(packed, |stride| stride.wrapping_mul(bits));
            if is_split {
                layout.begin = layout.begin.wrapping_add(piece.offset.wrapping_mul(step));
            }
            packed = packed.wrapping_mul(input_extent);
            layout.push(Axis { extent, bits: step });
            layout.total *= extent;
        }
        if let Some(axes) = layout.axes.get_mut(..layout.rank) {
            axes.reverse();
        }
        layout
    }

    /// Adds an axis outside of those there, or lengthens the run by one that continues it.
    fn push(&mut self, axis: Axis) {
        if axis.extent == 1 {
            return;
        }
        if self.rank == 0 && axis.bits == self.run {
            self.run *= axis.extent;
        } else if let Some(slot) = self.axes.get_mut(self.rank) {
            *slot = axis;
            self.rank += 1;
        }
    }

    /// Copies the bytes `part` of the packed output.
    ///
    /// # Safety
    /// The input must be readable and the output writable over the piece.
    pub(super) unsafe fn copy(&self, part: Range<usize>) {
        let bit_of = |byte: usize| i64::try_from(byte).map_or(self.total, |byte| byte * 8);
        let (mut bit, end) = (bit_of(part.start), bit_of(part.end).min(self.total));
        let mut writer = Writer::new(self.target.wrapping_add(part.start));
        while bit < end {
            let within = bit % self.run;
            let bits = (self.run - within).min(end - bit);
            // SAFETY: the bits lie within the piece.
            unsafe { writer.push_run(self.source, self.run_begin(bit / self.run) + within, bits) };
            bit += bits;
        }
        // SAFETY: as above; `end` is at the end of a byte or of the output.
        unsafe { writer.finish() };
    }

    /// Bits from `source` to a run.
    fn run_begin(&self, mut run: i64) -> i64 {
        let mut begin = self.begin;
        for axis in self.axes.get(..self.rank).unwrap_or_default().iter().rev() {
            begin = begin.wrapping_add(axis.bits.wrapping_mul(run % axis.extent));
            run /= axis.extent;
        }
        begin
    }
}

/// Puts bits together, low ones first, and writes them out as whole bytes.
struct Writer {
    target: *mut u8,
    held: u64,
    /// Bits in `held`, below 64; those above them are 0.
    count: u32,
}

impl Writer {
    fn new(target: *mut u8) -> Self {
        Self { target, held: 0, count: 0 }
    }

    /// Appends the `bits` that lie `begin` bits from `source`.
    ///
    /// # Safety
    /// They must be readable, and room for them writable at the target.
    unsafe fn push_run(&mut self, source: *const u8, begin: i64, bits: i64) {
        // Bit positions in memory fit in bytes.
        #[allow(clippy::cast_possible_truncation)]
        let mut at = source.wrapping_offset(begin.div_euclid(8) as isize);
        let mut shift = u32::try_from(begin.rem_euclid(8)).unwrap_or(0);
        let mut left = u64::try_from(bits).unwrap_or(0);
        // SAFETY: the caller's promise; every load stays within the bytes of the bits left.
        unsafe {
            if shift == 0 && self.count % 8 == 0 && left >= 8 {
                self.flush();
                let bytes = usize::try_from(left / 8).unwrap_or(0);
                copy_bytes(at, self.target, bytes);
                self.target = self.target.add(bytes);
                at = at.add(bytes);
                left %= 8;
            }
            while left + u64::from(shift) >= 64 {
                let word = u64::from_le(at.cast::<u64>().read_unaligned()) >> shift;
                self.push(word, 64 - shift);
                left -= u64::from(64 - shift);
                at = at.add(8);
                shift = 0;
            }
            while left > 0 {
                let taken = u32::try_from(left).map_or(8 - shift, |left| left.min(8 - shift));
                let mask = (1u64 << taken) - 1;
                self.push(u64::from(at.read() >> shift) & mask, taken);
                left -= u64::from(taken);
                at = at.add(1);
                shift = 0;
            }
        }
    }

    /// Appends the low `bits` (1 to 64) of `word`, whose others are 0.
    ///
    /// # Safety
    /// Room for them must be writable at the target.
    unsafe fn push(&mut self, word: u64, bits: u32) {
        self.held |= word << self.count;
        if self.count + bits < 64 {
            self.count += bits;
            return;
        }
        // SAFETY: the caller's promise: 64 bits of it are there to write.
        unsafe {
            self.target.cast::<u64>().write_unaligned(self.held.to_le());
            self.target = self.target.add(8);
        }
        self.held = word.checked_shr(64 - self.count).unwrap_or(0);
        self.count = self.count + bits - 64;
    }

    /// Writes out the whole bytes held, all of which `held` is then free of.
    ///
    /// # Safety
    /// As [`Writer::push`]; `count` must be a multiple of 8, or this the end of the output.
    unsafe fn flush(&mut self) {
        while self.count > 0 {
            #[allow(clippy::cast_possible_truncation)] // the low byte is meant
            let byte = self.held as u8;
            // SAFETY: the caller's promise.
            unsafe {
                self.target.write(byte);
                self.target = self.target.add(1);
            }
            self.held >>= 8;
            self.count = self.count.saturating_sub(8);
        }
    }

    /// Writes out what is left; bits past the last in its byte are 0.
    ///
    /// # Safety
    /// As [`Writer::flush`].
    unsafe fn finish(mut self) {
        // SAFETY: the caller's promise.
        unsafe { self.flush() };
    }
}
