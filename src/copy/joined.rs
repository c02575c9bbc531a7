//! Pieces that are neighbours in the input and columns of one matrix in their outputs are one piece: so
//! channels are put back together. Copied one after the other, each line of the matrix would be fetched
//! once for every column.

use crate::parts::{OutputStrides, Part, Parts, Transfer};
use crate::plan::Geometry;
use core::ptr::null_mut;

/// The most pieces that are left: of 16 columns, those that nobody wants may be between any two.
const MOST: usize = 8;
/// The most axes: they take some of the stack.
pub(super) const MOST_AXES: usize = 16;

/// Columns of one matrix, in as few pieces as they are without others between them.
pub(super) struct Joined {
    parts: [Part; MOST],
    count: usize,
    /// Of the matrix, the split axis' own included, in elements.
    strides: [i64; MOST_AXES],
}

impl Joined {
    pub(super) const NONE: Self = Self {
        parts: [Part { index: 0, offset: 0, len: 0, target: null_mut() }; MOST],
        count: 0,
        strides: [0; MOST_AXES],
    };

    /// Makes it the pieces of a checked transfer, if all of them are columns of one matrix, and some
    /// neighbours: in place, for it takes some of the stack.
    pub(super) fn join(&mut self, transfer: &Transfer<'_>) -> Option<()> {
        let Transfer { geometry, output_strides, parts, .. } = transfer;
        self.strides.get(..geometry.shape.len())?;
        let mut first_parts = parts.iter();
        let (first, second) = (first_parts.next()?, first_parts.next()?);
        // A piece of a single step has no use for the axis' stride: where the next one lies tells it.
        let size = isize::try_from(geometry.dtype.bits() / 8).ok()?;
        let steps = isize::try_from(second.offset - first.offset).ok()?.checked_mul(size)?;
        let step = distance(&first, &second).checked_div(steps)?;
        let output = output_strides.get(first.index)?;
        set_strides(&mut self.strides, geometry, output, i64::try_from(step).ok()?)?;
        let mut pieces = 0;
        for part in parts.iter() {
            if !self.is_column(geometry, output_strides.get(part.index)?, part.len) {
                return None;
            }
            self.push(Part { index: 0, ..part }, step.wrapping_mul(size))?;
            pieces += 1;
        }
        (self.count < pieces).then_some(())
    }

    /// Whether an output of so many steps has the matrix' strides.
    fn is_column(&self, geometry: &Geometry<'_>, output: &[i64], len: i64) -> bool {
        let mut output = output.iter();
        geometry.shape.iter().zip(&self.strides).enumerate().all(|(axis, (_, stride))| {
            if axis != geometry.axis {
                return output.next() == Some(stride);
            }
            let own = if geometry.keeps_axis { output.next() } else { None };
            len == 1 || own == Some(stride)
        })
    }

    /// Adds a piece, to the last one if it goes on `step` bytes a step behind it.
    fn push(&mut self, part: Part, step: isize) -> Option<()> {
        let last = self.count.checked_sub(1).and_then(|last| self.parts.get_mut(last));
        if let Some(last) = last {
            let ahead = step.wrapping_mul(isize::try_from(last.len).ok()?);
            if last.offset + last.len == part.offset && distance(last, &part) == ahead {
                last.len += part.len;
                return Some(());
            }
        }
        *self.parts.get_mut(self.count)? = part;
        self.count += 1;
        Some(())
    }

    /// The same transfer of fewer pieces.
    pub(super) fn transfer<'a>(&'a self, transfer: &Transfer<'a>) -> Transfer<'a> {
        let rank = transfer.geometry.shape.len();
        let strides = self.strides.get(..rank).unwrap_or_default();
        Transfer {
            geometry: Geometry { keeps_axis: true, ..transfer.geometry },
            parts: Parts::Listed(self.parts.get(..self.count).unwrap_or_default()),
            output_strides: OutputStrides::Planned { strides, rank },
            ..*transfer
        }
    }
}

/// Bytes from the begin of an output to that of another.
fn distance(from: &Part, to: &Part) -> isize {
    (to.target as isize).wrapping_sub(from.target as isize)
}

/// Sets the strides of the matrix that an output is a column of, if it is one: its steps on the split
/// axis are `step` apart, and those on some other axis further.
fn set_strides(
    strides: &mut [i64; MOST_AXES],
    geometry: &Geometry<'_>,
    output: &[i64],
    step: i64,
) -> Option<()> {
    let mut is_column = false;
    let mut output = output.iter();
    for ((axis, extent), slot) in geometry.shape.iter().enumerate().zip(strides) {
        let is_split = axis == geometry.axis;
        let own = if is_split && !geometry.keeps_axis { None } else { output.next() };
        *slot = if is_split { step } else { *own? };
        is_column |= !is_split && *extent > 1 && slot.unsigned_abs() > step.unsigned_abs();
    }
    (is_column && step != 0).then_some(())
}

#[cfg(test)]
mod tests {
    use super::Joined;
    use crate::copy::run;
    use crate::copy::testing::{parts, transfer};
    use crate::dtype::DType;
    use crate::error::Report;
    use crate::parts::{OutputStrides, Transfer};

    /// Planes of a tensor of any rank, put together to pixels.
    #[test]
    fn planes_become_channels() {
        const PIXELS: u16 = 2000;
        const CHANNELS: u16 = 3;
        let input: Vec<u16> = (0..PIXELS * CHANNELS).collect();
        for ones in [0, 1, 6, 12] {
            let between = std::iter::repeat_n(1, ones);
            let shape: Vec<i64> =
                [3].into_iter().chain(between.clone()).chain([PIXELS.into()]).collect();
            let own: Vec<i64> = [1].into_iter().chain(between).chain([CHANNELS.into()]).collect();
            let mut pixels = vec![0u16; input.len()];
            let first = pixels.as_mut_ptr();
            let parts = parts(&[1; 3], (0..3).map(|at| Some(first.wrapping_add(at).cast())));
            let strides = own.repeat(3);
            let output_strides = OutputStrides::Planned { strides: &strides, rank: shape.len() };
            let packed = transfer(DType::Uint16, &shape, 0, input.as_ptr().cast(), &parts);
            let all = Transfer { output_strides, ..packed };
            let mut joined = Joined::NONE;
            assert!(joined.join(&all).is_some(), "{ones}");
            // SAFETY: the input and the pixels are as large as the shape says.
            unsafe { run(&all, 3, None, &mut Report::default()) }.unwrap();
            let expected = (0..PIXELS).flat_map(|at| (0..3).map(move |of| of * PIXELS + at));
            assert!(pixels.into_iter().eq(expected), "{ones}");
        }
    }
}
