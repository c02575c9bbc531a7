//! Many pieces of one width are columns, which are transposed.

use super::super::columns::{Columns, Targets};
use super::super::kernel::MAX_DEINTERLEAVED;
use super::Nest;
use crate::parts::{Iter, Part};
use crate::shape::usize_of;
use core::ops::Range;

impl Nest<'_> {
    /// Copies what all pieces have in a range of rows, if they are many of one width.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    #[inline(never)] // which takes much of the stack
    pub(super) unsafe fn transpose(&self, parts: &Iter<'_>, rows: &Range<usize>) -> bool {
        let Some(first) = parts.clone().next() else { return false };
        let (len, unit) = (first.len, self.block.bytes(first.len));
        let is_transposed = self.gathers
            || (self.block.width > MAX_DEINTERLEAVED * unit
                && Columns::turns(unit)
                && (self.is_one_block() || self.block.count > 1));
        let mut end = first.offset;
        let mut is_column = |part: Part| {
            end = part.offset + len;
            is_column(&part, len)
        };
        if !is_transposed || !parts.clone().all(&mut is_column) {
            return false;
        }
        let begin = self.block.bytes(first.offset);
        let count = usize_of((end - first.offset).checked_div(len).unwrap_or(0));
        // What is gathered is told where the first row of all goes.
        let mut blocks = self.blocks(if self.gathers { 0..rows.end } else { rows.clone() });
        let mut block = self.block;
        while let Some(some) = blocks.next(&mut block) {
            let of_part = |part: Part| {
                let target = blocks.target(&block.run(&part));
                let first = Some(target.wrapping_add(some.start * unit));
                Targets { first, apart: 0, count: 1 }
            };
            let targets = Targets::of(parts, first.offset, of_part, len);
            let columns = Columns {
                source: block.source.wrapping_add(some.start * block.row + begin),
                step: block.row,
                rows: some.len(),
                unit,
                count,
                targets: &targets,
            };
            // SAFETY: the caller's promise.
            unsafe {
                if self.gathers {
                    self.transpose_gathered(&columns, begin, rows);
                    break;
                }
                columns.copy(block.tuning);
            }
        }
        true
    }
}

/// Whether it is one of columns of so many steps.
pub(super) fn is_column(part: &Part, len: i64) -> bool {
    part.len == len && part.offset.checked_rem(len) == Some(0)
}
