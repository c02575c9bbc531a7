//! Blocks that are repeated, as a bias is for every row: the first one is copied, and its outputs go on with
//! what they have already.
//!
//! The idea: from the output itself it is read in as long runs as string instructions like. 24 MiB of one
//! row of 12 KiB into two on Zen 5, GB/s, right after other things were in the caches, and when it is done
//! again: by rows, with string instructions 25, 48, with loops 29, 70, past the caches 38, 40; by 24 KiB
//! of output 31–41, 80–95, by 48 KiB 45, 107, by 192 KiB 35, 98.

use super::Nest;
use crate::math::{div, div_ceil, rem};
use crate::parts::Iter;
use core::ops::Range;

/// Fewer times are not worth it.
const LEAST_TIMES: usize = 4;

impl Nest<'_> {
    /// How often each block comes, if that is worth it.
    #[inline(never)] // once in the library
    pub(in super::super) fn times(&self) -> Option<usize> {
        let &(times, from) = &self.innermost()?;
        let is_short = self.block.width * self.block.count <= self.block.tuning.again;
        let is_in_caches = self.block.tuning.non_temporal.is_none();
        (from == 0 && times >= LEAST_TIMES && is_short && is_in_caches && self.is_into_packed())
            .then_some(times)
    }

    /// Copies what all pieces have in a range of rows. Where that ends within a line of an output,
    /// the line is left to the range that follows.
    ///
    /// # Safety
    /// The input must be readable and the outputs writable over the pieces.
    pub(in super::super) unsafe fn copy_all(&self, parts: &Iter<'_>, rows: Range<usize>) {
        let Some(times) = self.times() else {
            // SAFETY: the caller's promise.
            return unsafe { self.copy_rows(parts, rows) };
        };
        let block = self.block.count;
        let (begin, end) = (div_ceil(rows.start, block), div(rows.end, block));
        // SAFETY: the caller's promise.
        unsafe {
            if begin >= end {
                return self.copy_rows(parts, rows);
            }
            self.copy_rows(parts, rows.start..begin * block);
            let mut at = begin;
            while at < end {
                let next = end.min(at + times - rem(at, times));
                self.copy_rows(parts, at * block..(at + 1) * block);
                for part in parts.clone() {
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
            if chunk < self.block.tuning.again {
                chunk = done;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::testing::{parts, steps, transfer};
    use super::super::Tuning;
    use super::Nest;
    use crate::dtype::DType;
    use crate::parts::Parts;
    use crate::parts::Transfer;

    /// Each part alone, for threads may have them: all bytes of an output are written by one of them, and
    /// none by both.
    fn check(times: i64, rows: i64, lengths: &[i64]) {
        let width: i64 = lengths.iter().sum();
        let source: Vec<u8> = (0..rows * width).map(|at| u8::try_from(at % 251).unwrap()).collect();
        let (shape, strides) = ([times, rows, width], [0, width, 1]);
        let size = |len: i64| usize::try_from(times * rows * len).unwrap();
        // The same for both parts: those past the caches meet where lines do.
        let mut buffers: Vec<_> = lengths.iter().map(|len| vec![0u8; size(*len) + 5]).collect();
        for tuning in Tuning::all() {
            for cut in (0..=times * rows).step_by(2) {
                let mut copy_part = |first: i64, end: i64| {
                    for buffer in &mut buffers {
                        buffer.fill(255);
                    }
                    let targets = buffers.iter_mut().map(|buffer| Some(buffer[5..].as_mut_ptr()));
                    let wanted = parts(lengths, targets);
                    let packed = transfer(DType::Uint8, &shape, 2, source.as_ptr(), &wanted);
                    let repeated = Transfer { strides: Some(&strides), ..packed };
                    let nest = Nest::new(&repeated, &tuning)?;
                    let range = usize::try_from(first).unwrap()..usize::try_from(end).unwrap();
                    // SAFETY: source and buffers are as large as the shape says.
                    unsafe { nest.copy_all(&Parts::Listed(&wanted).iter(), range) };
                    Some((buffers.clone(), wanted))
                };
                let parts = copy_part(0, cut).zip(copy_part(cut, times * rows));
                // Short ones past the caches have another form, and so have those that do not come often.
                let Some(((first, wanted), (second, _))) = parts else {
                    assert!(times < 100 || (width < 512 && tuning.non_temporal.is_some()));
                    continue;
                };
                for (part, (first, second)) in wanted.iter().zip(first.iter().zip(&second)) {
                    let row = usize::try_from(width).unwrap();
                    let once = source.chunks(row).flat_map(|row| &row[steps(part)]);
                    let expected = once.clone().cycle().take(size(part.len));
                    let halves = || first.iter().zip(second).skip(5);
                    assert!(halves().all(|(a, b)| (*a == 255) != (*b == 255)));
                    assert!(halves().map(|(a, b)| a.min(b)).eq(expected));
                }
            }
        }
    }

    #[test]
    fn blocks_that_come_often_in_parts() {
        for (rows, lengths) in
            [(1, vec![513]), (1, vec![500, 12, 300]), (3, vec![40; 16]), (40, vec![5; 3])]
        {
            for times in [2, 4, 7] {
                check(times, rows, &lengths);
            }
        }
        check(100, 1, &[700, 7]);
        check(130, 1, &[34]);
        check(400, 1, &[15, 1, 5]);
    }
}
