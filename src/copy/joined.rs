//! Pieces whose outputs continue each other, which are moved as one, so that each line is written only once. The
//! columns of a matrix in C order, split into four pieces of one column each, and written by a caller into another
//! matrix with the strides of its columns:
//!
//! ```text
//! output     |A B C D|A B C D|A B C D|     four pieces, one byte apart: one piece of four steps, `step` bytes apart
//! ```

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
