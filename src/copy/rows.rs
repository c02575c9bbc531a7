//! Pieces that share their rows: packed outputs, each of which takes a run of every row of the input. Sub-byte elements
//! come here, too, if all runs are whole bytes.
//!
//! A row is the whole split axis and everything inward of it. An input [2,3,8] of bytes, split on axis 2 into 5 and 3:
//!
//! ```text
//! row 0      |A A A A A B B B|     the runs of piece A, of 5 bytes: 6 rows, `row().from` bytes apart, along the
//! row 1      |A A A A A B B B|     innermost axis outward of the split axis. (The two axes of this input
//! row 2      |A A A A A B B B|     are one of 6 rows, unless there is a gap between rows 2 and 3.)
//! - - - - - - - - - - - - - -
//! row 3      |A A A A A B B B|     piece A in the output     |A A A A A|A A A A A|A A A A A|A A A A A|...
//! ```

use super::call::Call;
use super::nest::Axis;
use crate::math::{div, div_rem, isize_of};
use crate::parts::{Part, Transfer};
use crate::shape::usize_of;

/// The most axes outward of the split axis that do not continue each other. Few tensors have more, which are moved piece
/// by piece.
const MAX_AXES: usize = 8;

/// The rows of a transfer, and how the split axis lies in them.
pub(super) struct Rows {
    pub call: Call,
    source: *const u8,
    /// The axes outward of the split axis, the innermost first: kernels go along that one. Those that continue each
    /// other are joined. In the output, their steps are as if all pieces were one packed tensor.
    axes: [Axis; MAX_AXES],
    rank: usize,
    pub count: usize,
    /// Bytes of input from one step of the split axis to the next, and bits that a piece has of a step. (Bits of long runs
    /// do not fit into 32 bits, even where addresses do.)
    pub apart: isize,
    step_bits: i64,
    /// Bytes that all pieces together have of a row.
    pub row_bytes: usize,
}

/// Where a row begins, and how many rows there are from it on at equal distances.
pub(super) struct RowsFrom {
    pub source: *const u8,
    pub count: usize,
}

impl Rows {
    /// Returns the rows of a transfer; `None` if its pieces do not take runs of whole bytes from them, or if their axes
    /// are too many.
    pub(super) fn of(transfer: &Transfer<'_>, call: Call) -> Option<Self> {
        let geometry = &transfer.geometry;
        if !transfer.output_strides.are_packed() {
            return None;
        }
        let bits = i64::from(geometry.dtype.bits());
        let mut rows = Self {
            call,
            source: transfer.source,
            axes: [Axis::ONE; MAX_AXES],
            rank: 0,
            count: 1,
            apart: 0,
            step_bits: geometry.inner.wrapping_mul(bits),
            row_bytes: 0,
        };
        let are_shared =
            if bits < 8 { rows.share_bits(transfer) } else { rows.share_bytes(transfer) };
        if !are_shared {
            return None;
        }
        // Rows that are contiguous in the input as well make one long run, which the normal form finds.
        let row = rows.row();
        if row.extent > 1 && row.from == rows.run_bytes(1).cast_signed() && bits >= 8 {
            return None;
        }
        rows.row_bytes = div(transfer.bytes, rows.count);
        Some(rows)
    }

    /// Adds an axis outside all others, or joins it with the outermost one, which it may continue. Returns whether there
    /// is room for it.
    fn add(&mut self, axis: Axis) -> bool {
        self.count *= axis.extent;
        if let Some(outermost) = self.rank.checked_sub(1).and_then(|last| self.axes.get_mut(last)) {
            if axis.from == outermost.input_at(outermost.extent) {
                outermost.extent *= axis.extent;
                return true;
            }
        }
        let Some(slot) = self.axes.get_mut(self.rank) else { return false };
        *slot = axis;
        self.rank += 1;
        true
    }

    /// Finds the rows of sub-byte elements. Returns whether pieces share them: the input must be packed, and pieces
    /// begin and end at whole bytes.
    fn share_bits(&mut self, transfer: &Transfer<'_>) -> bool {
        let geometry = &transfer.geometry;
        let is_whole = |len: i64| len.wrapping_mul(self.step_bits) % 8 == 0;
        let are_whole = |part: Part| is_whole(part.offset) && is_whole(part.len);
        if transfer.strides.is_some()
            || !transfer.bit_offset.is_multiple_of(8)
            || !(is_whole(1) || is_whole(geometry.extent) && transfer.parts.iter().all(are_whole))
        {
            return false;
        }
        self.source = transfer.source.wrapping_add(transfer.bit_offset as usize / 8);
        self.apart = isize_of(self.step_bits / 8);
        let width = isize_of(geometry.extent.wrapping_mul(self.step_bits) / 8);
        self.add(Axis { extent: usize_of(geometry.outer), from: width, to: width })
    }

    /// Finds the rows of whole bytes. Returns whether pieces share them: everything inward of the split axis must be
    /// contiguous, and so must steps along it, unless every piece has only one.
    fn share_bytes(&mut self, transfer: &Transfer<'_>) -> bool {
        let geometry = &transfer.geometry;
        let size = isize_of(i64::from(geometry.dtype.bits() / 8));
        let stride = |axis: usize, packed: isize| {
            let own = transfer.strides.and_then(|strides| strides.get(axis));
            own.map_or(packed, |own| isize_of(*own).wrapping_mul(size))
        };
        let mut packed = size;
        for (axis, &extent) in geometry.shape.iter().enumerate().skip(geometry.axis + 1).rev() {
            if extent > 1 && stride(axis, packed) != packed {
                return false;
            }
            packed = packed.wrapping_mul(isize_of(extent));
        }
        self.apart = stride(geometry.axis, packed);
        if self.apart != packed && transfer.parts.iter().any(|part| part.len > 1) {
            return false;
        }
        packed = packed.wrapping_mul(isize_of(geometry.extent));
        for (axis, &extent) in geometry.shape.iter().enumerate().take(geometry.axis).rev() {
            let (extent, from) = (usize_of(extent), stride(axis, packed));
            if extent > 1 && !self.add(Axis { extent, from, to: packed }) {
                return false;
            }
            packed = packed.wrapping_mul(extent.cast_signed());
        }
        true
    }

    /// Returns the axis along which kernels go.
    pub(super) fn row(&self) -> &Axis {
        let [row, ..] = &self.axes;
        row
    }

    /// Returns the axes outward of it, the innermost first.
    fn outer(&self) -> &[Axis] {
        self.axes.get(1..self.rank).unwrap_or_default()
    }

    /// Returns how many bytes a piece has of a row: whole ones, even if a step has not.
    pub(super) fn run_bytes(&self, len: i64) -> usize {
        let bits = len.wrapping_mul(self.step_bits);
        debug_assert!(len == 1 || bits % 8 == 0);
        usize_of(bits / 8)
    }

    /// Returns the bytes of input from the start of a row to the start of a piece.
    pub(super) fn offset_of(&self, part: &Part) -> isize {
        if self.step_bits % 8 == 0 {
            self.apart.wrapping_mul(isize_of(part.offset))
        } else {
            isize_of(part.offset.wrapping_mul(self.step_bits) / 8)
        }
    }

    /// Returns the rows at equal distances that begin with a row.
    pub(super) fn from(&self, row: usize) -> RowsFrom {
        let (mut step, within) = div_rem(row, self.row().extent);
        let mut from = self.row().input_at(within);
        for axis in self.outer() {
            let (outward, own) = div_rem(step, axis.extent);
            from = from.wrapping_add(axis.input_at(own));
            step = outward;
        }
        let source = self.source.wrapping_offset(from);
        RowsFrom { source, count: self.row().extent - within }
    }

    /// Returns the axis outward of rows, with as many of its steps as are whole within `count` rows from one on. There
    /// is only one step if outputs are streamed, or where pages may lie between rows.
    pub(super) fn whole_steps(&self, row: usize, count: usize) -> Axis {
        let (step, within) = div_rem(row, self.row().extent);
        let Some(outer) = self.outer().first() else { return Axis::ONE };
        let left = outer.extent - div_rem(step, outer.extent).1;
        let extent = div(count, self.row().extent).min(left);
        if within == 0 && extent > 1 && !self.call.streams && !self.call.has_holes {
            Axis { extent, ..*outer }
        } else {
            Axis::ONE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::machine::Machine;
    use super::super::tests::transfer;
    use super::{Call, Rows, Transfer};
    use crate::dtype::DType;

    const WIDTH: i64 = 3;

    /// The distances of four axes of which each has a gap behind it, or none; the second may run backwards.
    fn strides([_, b, c]: [i64; 3], gaps: [i64; 3], is_backwards: bool) -> [i64; 4] {
        let row = WIDTH + gaps[2];
        let middle = c * row + gaps[1];
        let outermost = b * middle + gaps[0];
        [outermost, if is_backwards { -middle } else { middle }, row, 1]
    }

    /// Where each row begins, in bytes from the first.
    fn places([a, b, c]: [i64; 3], strides: [i64; 4]) -> Vec<isize> {
        let index = (0..a).flat_map(|i| (0..b).flat_map(move |j| (0..c).map(move |k| [i, j, k])));
        let place = |at: [i64; 3]| -> i64 {
            at.iter().zip(strides).map(|(i, stride)| 2 * i * stride).sum()
        };
        index.map(|at| isize::try_from(place(at)).unwrap()).collect()
    }

    fn check(outer: [i64; 3], strides: [i64; 4]) {
        let memory = [0u16; 1];
        let shape = [outer[0], outer[1], outer[2], WIDTH];
        let packed = transfer(DType::Uint16, &shape, 3, memory.as_ptr().cast());
        let bytes = 2 * usize::try_from(shape.iter().product::<i64>()).unwrap();
        let transfer = Transfer { strides: Some(&strides), bytes, ..packed };
        let call = Call::new(Machine::of_words("").unwrap(), &transfer, None);
        let rows = Rows::of(&transfer, call).expect("rows");
        let places = places(outer, strides);
        let case = format!("{outer:?} of strides {strides:?}");
        assert_eq!(rows.count, places.len(), "{case}");
        for row in 0..rows.count {
            let from = rows.from(row);
            let place = from.source as isize - memory.as_ptr() as isize;
            assert_eq!(place, places[row], "{case}, row {row}");
            for next in 0..from.count {
                let expected = places[row] + rows.row().from * next.cast_signed();
                assert_eq!(places[row + next], expected, "{case}, row {row} and {next} more");
            }
            for count in 1..=rows.count - row {
                let steps = rows.whole_steps(row, count);
                if steps.extent == 1 {
                    continue;
                }
                let of_step = rows.row().extent;
                assert!(of_step * steps.extent <= count, "{case}, rows {row} and {count} more");
                for next in 0..of_step * steps.extent {
                    let (step, within) = (next / of_step, next % of_step);
                    let ahead = steps.input_at(step) + rows.row().input_at(within);
                    assert_eq!(places[row + next], places[row] + ahead, "{case}, row {row}");
                }
            }
        }
    }

    #[test]
    fn rows_lie_where_their_indices_say() {
        let extents = [[1, 1, 1], [1, 1, 5], [1, 4, 1], [3, 1, 1], [2, 3, 4], [3, 1, 4], [2, 4, 1]];
        for outer in extents {
            for gaps in 0..27 {
                for is_backwards in [false, true] {
                    let gap = |number: i64| [0, 1, 7][usize::try_from(gaps / number % 3).unwrap()];
                    check(outer, strides(outer, [gap(1), gap(3), gap(9)], is_backwards));
                }
            }
        }
    }
}
