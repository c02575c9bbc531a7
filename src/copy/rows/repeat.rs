//! Blocks that are repeated, as a bias is for every row: the first one is copied, and its outputs go on with
//! what they have already.
//!
//! The idea: from the output itself it is read in as long runs as string instructions like. 24 MiB of one
//! row of 12 KiB into two on Zen 5, GB/s, right after other things were in the caches, and when it is done
//! again: by rows, with string instructions 25, 48, with loops 29, 70, past the caches 38, 40; by 24 KiB
//! of output 31–41, 80–95, by 48 KiB 45, 107, by 192 KiB 35, 98.

use super::{Nest, Parts};
use crate::math::{div_ceil, div_rem};
use core::ops::Range;

/// Bytes that outputs go on with, or up to twice as many.
const CHUNK: usize = 32 << 10;
/// Fewer times are not worth it.
const LEAST_TIMES: usize = 4;

impl Nest<'_> {
    /// How often each block comes, if that is worth it.
    fn times(&self) -> Option<usize> {
        let &(times, from) = &self.innermost()?;
        let is_short = self.block.width * self.block.count <= CHUNK;
        let is_in_caches = self.block.tuning.non_temporal.is_none();
        (from == 0 && times >= LEAST_TIMES && is_short && is_in_caches && self.is_into_packed())
            .then_some(times)
    }

    /// Copies what all pieces have in a range of rows. Where that ends within a line of an output,
    /// the line is left to the range that follows.
    ///
    /// # Safety
    /// The input must be readable and the outputs writable over the pieces.
    pub(in super::super) unsafe fn copy_all(&self, parts: &Parts<'_>, rows: Range<usize>) {
        let Some(times) = self.times() else {
            // SAFETY: the caller's promise.
            return unsafe { self.copy_rows(parts, rows) };
        };
        let block = self.block.count;
        let (begin, end) = (div_ceil(rows.start, block), div_rem(rows.end, block).0);
        // SAFETY: the caller's promise.
        unsafe {
            if begin >= end {
                return self.copy_rows(parts, rows);
            }
            self.copy_rows(parts, rows.start..begin * block);
            let mut at = begin;
            while at < end {
                let next = end.min(at + times - div_rem(at, times).1);
                self.copy_rows(parts, at * block..(at + 1) * block);
                for part in parts.iter() {
                    let run = self.block.run(&part);
                    let bytes = block * run.bytes;
                    self.go_on(run.first.wrapping_add(at * bytes), bytes, (next - at) * bytes);
                }
                at = next;
            }
            self.copy_rows(parts, end * block..rows.end);
        }
    }

    /// Goes on with the first `have` bytes of a target until there are so many.
    ///
    /// # Safety
    /// The former must be readable, the latter writable.
    unsafe fn go_on(&self, target: *mut u8, have: usize, bytes: usize) {
        let (mut chunk, mut done) = (have, have);
        while done < bytes {
            // SAFETY: the caller's promise; no more is read than is before.
            unsafe {
                (self.block.tuning.kernels.copy)(
                    target,
                    target.wrapping_add(done),
                    chunk.min(bytes - done),
                );
            }
            done += chunk;
            if chunk < CHUNK {
                chunk = done;
            }
        }
    }
}
