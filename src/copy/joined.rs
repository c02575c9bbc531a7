//! Pieces whose outputs continue each other, which are moved as one, so that each line is written only once. The
//! columns of a matrix in C order, split into four pieces of one column each, and written by a caller into another
//! matrix with the strides of its columns:
//!
//! ```text
//! output     |A B C D|A B C D|A B C D|     four pieces, one byte apart: one piece of four steps, `step` bytes apart
//! ```

use super::nest::Nest;
use crate::math::isize_of;
use crate::parts::{Part, Transfer};

/// A piece, or several whose outputs continue each other along the split axis.
pub(super) struct Joined {
    pub part: Part,
    /// If there are several, bytes from one step along the split axis to the next in the output.
    pub step: Option<isize>,
}

/// Returns the pieces of a transfer; those that continue each other are joined.
pub(super) fn joined<'a>(transfer: &'a Transfer<'a>) -> impl Iterator<Item = Joined> + 'a {
    let mut parts = transfer.parts.iter().peekable();
    core::iter::from_fn(move || {
        let mut piece = Joined { part: parts.next()?, step: None };
        if !transfer.output_strides.are_packed() {
            while let Some(step) = parts.peek().and_then(|next| continues(transfer, &piece, next)) {
                piece.step = Some(step);
                piece.part.len += parts.next()?.len;
            }
        }
        Some(piece)
    })
}

/// Returns whether all pieces continue each other, and no two elements of what they make lie over each other.
pub(crate) fn are_one_tensor(transfer: &Transfer<'_>) -> bool {
    let mut pieces = joined(transfer);
    let (Some(all), None) = (pieces.next(), pieces.next()) else { return false };
    let mut nest = Nest::EMPTY;
    nest.set_up(transfer, &all.part, all.step);
    nest.is_apart()
}

/// Returns the bytes between steps along the split axis if a part continues a piece along it and is otherwise alike.
fn continues(transfer: &Transfer<'_>, piece: &Joined, next: &Part) -> Option<isize> {
    let (geometry, first) = (&transfer.geometry, &piece.part);
    let one = transfer.output_strides.get(first.index)?;
    let other = transfer.output_strides.get(next.index)?;
    let size = isize_of(i64::from(geometry.dtype.bits() / 8));
    if size == 0 || next.offset != first.offset + first.len {
        return None;
    }
    // The step that an output's own stride says, if it has several.
    let own = |strides: &[i64], len: i64| {
        if !geometry.keeps_axis || len <= 1 {
            return None;
        }
        strides.get(geometry.axis).map(|stride| isize_of(*stride).wrapping_mul(size))
    };
    let distance = next.target.addr().wrapping_sub(first.target.addr()).cast_signed();
    let step = match piece.step.or(own(one, first.len)) {
        Some(step) => step,
        None => distance.checked_div(isize_of(first.len))?,
    };
    let is_split = |axis: usize| geometry.keeps_axis && axis == geometry.axis;
    let mut axes = one.iter().zip(other).enumerate();
    let are_alike = axes.all(|(axis, (one, other))| is_split(axis) || one == other);
    let is_next = distance == step.wrapping_mul(isize_of(first.len))
        && own(other, next.len).is_none_or(|own| own == step);
    (are_alike && is_next).then_some(step)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{parts, transfer};
    use super::are_one_tensor;
    use crate::dtype::DType;
    use crate::parts::{OutputStrides, Transfer};
    use crate::pieces::Pieces;
    use std::collections::HashSet;
    use std::ptr::null;

    /// Pieces of 2, 1 and 3 columns, in which each element has two bytes, beside each other in a tensor of any strides.
    #[test]
    fn one_tensor_has_no_byte_twice() {
        const BASE: isize = 1 << 20;
        let (lengths, shape) = ([2i64, 1, 3], [4, 6]);
        let mut found = 0;
        for (row, column) in (-20..=20).flat_map(|row| (-20..=20).map(move |step| (row, step))) {
            let place = |r: i64, c: i64| BASE + 2 * isize::try_from(r * row + c * column).unwrap();
            let targets = [0, 2, 3].map(|first| place(0, first) as *mut u8);
            let strides = [row, column].repeat(3);
            let pieces = Pieces::Int64(&lengths);
            let output_strides = OutputStrides::Planned { strides: &strides, rank: 2 };
            let parts = parts(&pieces, &targets);
            let packed = transfer(DType::Uint16, &shape, 1, null());
            let is_one = are_one_tensor(&Transfer { parts, output_strides, ..packed });
            let mut places = (0..4).flat_map(|r| (0..6).map(move |c| place(r, c)));
            let mut seen = HashSet::new();
            let are_apart = places.all(|at| seen.insert(at) && seen.insert(at + 1));
            assert!(are_apart || !is_one, "strides {row} and {column}");
            if row >= 6 * column.abs() && column != 0 {
                assert!(is_one, "strides {row} and {column}");
                found += 1;
            }
        }
        assert!(found > 10);
    }

    /// Addresses may wrap around, and the fifth piece may lie where the first one does.
    #[test]
    fn steps_that_wrap_around_are_not_apart() {
        let step = usize::MAX / 4 + 1;
        let targets: Vec<_> =
            (0..5usize).map(|n| n.wrapping_mul(step).wrapping_add(64) as *mut u8).collect();
        let output_strides = OutputStrides::Planned { strides: &[1; 10], rank: 2 };
        for (count, is_one) in [(4, true), (5, false)] {
            let (pieces, shape) =
                (Pieces::Int64(&[1; 5][..count]), [1, i64::try_from(count).unwrap()]);
            let parts = parts(&pieces, &targets[..count]);
            let packed = transfer(DType::Uint8, &shape, 1, null());
            assert_eq!(
                are_one_tensor(&Transfer { parts, output_strides, ..packed }),
                is_one,
                "{count} pieces"
            );
        }
    }
}
