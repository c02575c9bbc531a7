//! Many pieces of one width are columns, which are transposed.

use super::super::columns::{Columns, Targets};
use super::super::kernel::MAX_DEINTERLEAVED;
use super::Nest;
use crate::parts::{Part, Parts};
use core::ops::Range;

impl Nest<'_> {
    /// Copies what all pieces have in a range of rows, if they are many of one width.
    ///
    /// # Safety
    /// As [`Nest::copy_all`].
    #[inline(never)] // which takes much of the stack
    pub(super) unsafe fn transpose(&self, parts: &Parts<'_>, rows: &Range<usize>) -> bool {
        let Some(first) = parts.iter().next() else { return false };
        let (len, unit) = (first.len, self.block.bytes(first.len));
        let is_column = |part: Part| part.len == len && part.offset.checked_rem(len) == Some(0);
        let count = self.block.width.checked_div(unit).unwrap_or(0);
        if !Columns::turns(unit) || count <= MAX_DEINTERLEAVED || !parts.iter().all(is_column) {
            return false;
        }
        let mut blocks = self.blocks(rows.clone());
        let mut block = self.block;
        while let Some(rows) = blocks.next(&mut block) {
            let of_part = |part: Part| {
                let target = blocks.target(&block.run(&part));
                let first = Some(target.wrapping_add(rows.start * unit));
                Targets { first, apart: 0, count: 1 }
            };
            let targets = Targets::of(parts, of_part, len);
            let columns = Columns {
                source: block.source.wrapping_add(rows.start * block.row),
                step: block.row,
                rows: rows.len(),
                unit,
                count,
                targets: &targets,
            };
            // SAFETY: the caller's promise.
            unsafe { columns.copy(block.tuning) };
        }
        true
    }
}
