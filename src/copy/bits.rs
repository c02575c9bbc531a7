//! Elements that share bytes: runs of bits, from anywhere in a byte, packed one behind the other.

use super::call::Call;
use crate::math::div_rem_signed;
use crate::parts::{Part, Transfer};
use crate::shape::MAX_RANK;
use core::ops::Range;

/// Steps along an axis of the input, and bits from one to the next.
#[derive(Clone, Copy, Default)]
struct BitAxis {
    extent: i64,
    bits: i64,
}

/// Bits that are taken at a time.
const WORD: i64 = 32;

/// Packed bytes that grow.
struct Packed {
    target: *mut u8,
    held: u64,
    bits: u32,
}

impl Packed {
    /// # Safety
    /// There must be room for four bytes whenever there are as many bits; no more than [`WORD`] at a time.
    #[inline(always)]
    unsafe fn push(&mut self, word: u64, bits: u32) {
        self.held |= (word & ((1 << bits) - 1)) << self.bits;
        self.bits += bits;
        if self.bits >= 32 {
            // SAFETY: the caller's promise.
            unsafe { self.target.cast::<[u8; 4]>().write_unaligned((self.held as u32).to_le_bytes()) };
            self.target = self.target.wrapping_add(4);
            self.held >>= 32;
            self.bits -= 32;
        }
    }

    /// # Safety
    /// There must be room for what is held.
    unsafe fn flush(&mut self) {
        while self.bits > 0 {
            // SAFETY: the caller's promise.
            unsafe { self.target.write(self.held as u8) };
            self.target = self.target.wrapping_add(1);
            self.held >>= 8;
            self.bits = self.bits.saturating_sub(8);
        }
    }
}

/// So many bits, 32 at the most, from a bit on.
///
/// # Safety
/// Their bytes must be readable, and all before `readable`.
#[inline(always)]
unsafe fn read(source: *const u8, bit: i64, bits: i64, readable: *const u8) -> u64 {
    let at = source.wrapping_offset((bit >> 3) as isize);
    // SAFETY: the caller's promise.
    unsafe {
        if at as usize + 8 <= readable as usize {
            return u64::from_le_bytes(at.cast::<[u8; 8]>().read_unaligned()) >> (bit & 7);
        }
        let mut word = 0;
        for byte in 0..((bit & 7) + bits + 7) >> 3 {
            word |= u64::from(at.wrapping_offset(byte as isize).read()) << (8 * byte);
        }
        word >> (bit & 7)
    }
}

/// Copies some bytes of a piece, as it is packed.
///
/// # Safety
/// The piece must be readable and writable.
#[inline(never)]
pub(super) unsafe fn copy(transfer: &Transfer<'_>, part: &Part, call: &Call, bytes: Range<usize>) {
    let geometry = &transfer.geometry;
    let size = i64::from(geometry.dtype.bits());
    let (mut axes, mut rank) = ([BitAxis::default(); MAX_RANK], 0usize);
    let (mut begin, mut run, mut packed) = (i64::from(transfer.bit_offset), size, size);
    let mut total = size;
    for (axis, &whole) in geometry.shape.iter().enumerate().rev() {
        let is_split = axis == geometry.axis;
        let extent = if is_split { part.len } else { whole };
        let own = transfer.strides.and_then(|strides| strides.get(axis));
        let step = own.map_or(packed, |stride| stride.wrapping_mul(size));
        if is_split {
            begin = begin.wrapping_add(part.offset.wrapping_mul(step));
        }
        packed = packed.wrapping_mul(whole);
        total *= extent;
        let last = rank.checked_sub(1).and_then(|last| axes.get_mut(last));
        match last {
            _ if extent == 1 => {}
            None if step == run => run *= extent,
            Some(last) if last.bits.wrapping_mul(last.extent) == step => last.extent *= extent,
            _ => {
                if let Some(slot) = axes.get_mut(rank) {
                    *slot = BitAxis { extent, bits: step };
                    rank += 1;
                }
            }
        }
    }
    let axes = axes.get(..rank).unwrap_or_default();
    let readable = if call.has_holes { core::ptr::null() } else { call.readable_end };
    let mut out = Packed { target: part.target.wrapping_add(bytes.start), held: 0, bits: 0 };
    let (mut bit, end) = (8 * bytes.start as i64, total.min(8 * bytes.end as i64));
    let inner = axes.first().copied().unwrap_or(BitAxis { extent: 1, bits: 0 });
    while bit < end {
        let (at, mut within) = div_rem_signed(bit, run);
        let (mut index, mut place) = (at, begin);
        for axis in axes {
            let (rest, step) = div_rem_signed(index, axis.extent);
            place = place.wrapping_add(axis.bits.wrapping_mul(step));
            index = rest;
        }
        // All runs up to the next step of an axis further out.
        let mut runs = inner.extent - div_rem_signed(at, inner.extent).1;
        while runs > 0 && bit < end {
            let mut left = (run - within).min(end - bit);
            let mut from = place.wrapping_add(within);
            bit += left;
            // SAFETY: the caller's promise.
            unsafe {
                if out.bits == 0 && from & 7 == 0 && left >= 8 {
                    let whole = (left >> 3) as usize;
                    let source = transfer.source.wrapping_offset((from >> 3) as isize);
                    (call.machine.kernels.copy)(source, out.target, whole);
                    out.target = out.target.wrapping_add(whole);
                    from = from.wrapping_add(left & !7);
                    left &= 7;
                }
                while left > 0 {
                    let some = left.min(WORD);
                    out.push(read(transfer.source, from, some, readable), some as u32);
                    from = from.wrapping_add(some);
                    left -= some;
                }
                if out.bits & 7 == 0 && run >= WORD {
                    out.flush();
                }
            }
            within = 0;
            place = place.wrapping_add(inner.bits);
            runs -= 1;
        }
    }
    // SAFETY: what is left are the last bits of the range.
    unsafe { out.flush() };
}
