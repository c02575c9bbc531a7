//! Pieces that are neighbours in the input and columns of one matrix in their outputs are one piece: so
//! channels are put back together. Copied one after the other, each line of the matrix would be fetched
//! once for every column. Those that are one are plainly apart, too.

use crate::overlap;
use crate::parts::{OutputStrides, Part, Parts, Transfer};
use crate::plan::Geometry;
use crate::shape::strides_nest;
use core::ptr::null_mut;

/// The most pieces that are left: of 16 columns, those that nobody wants may be between any two.
const MOST: usize = 8;
/// The most axes: they take some of the stack.
pub(super) const MOST_AXES: usize = 16;

/// Columns of one matrix, in as few pieces as they are without others between them.
pub(crate) struct Joined {
    parts: [Part; MOST],
    count: usize,
    /// Of the matrix, the split axis' own included, in elements.
    strides: [i64; MOST_AXES],
}

impl Joined {
    pub(crate) const NONE: Self = Self {
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

    /// Whether pieces of a transfer are such, and plainly apart: all elements of the matrix are, and those that are left
    /// of the pieces.
    #[inline(never)] // for its stack
    pub(crate) fn are_apart(transfer: &Transfer<'_>) -> bool {
        let mut joined = Self::NONE;
        joined.join(transfer).is_some_and(|()| {
            let shape = transfer.geometry.shape.iter().copied();
            strides_nest(&shape.zip(joined.strides.iter().copied()))
                && (joined.count == 1 || overlap::clash(&joined.transfer(transfer)).is_none())
        })
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
    use crate::stacked::Stacked;
    use core::ptr::null_mut;
    use proptest::prelude::*;

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

    const UNTOUCHED: u16 = 0xEEEE;
    const MIDDLE: usize = 4000;

    proptest! {
        #![proptest_config(ProptestConfig { cases: 3_000, failure_persistence: None, ..Default::default() })]

        /// Blocks, columns, and what is neither; that are one are copied to where each lies.
        #[test]
        fn what_is_one_is_apart_and_copied(
            count in 2usize..6,
            [outer, len, inner] in [1usize..4, 1usize..4, 1usize..9],
            kind in 0usize..4,
            step in -30isize..30,
            others in [-90isize..90, -90isize..90],
            moved in prop::option::weighted(0.2, 0usize..6),
        ) {
            let signed = |count: usize| isize::try_from(count).unwrap();
            let pitch = signed(count * inner);
            // Blocks of rows beside each other, the same backwards, columns, anything.
            let (step, strides) = match kind {
                0 => (signed(inner), [pitch * signed(len), pitch, 1]),
                1 => (signed(inner), [pitch * signed(len), -pitch, -1]),
                2 => (1, [signed(count * len * inner), pitch, signed(count)]),
                _ => (step, [others[0], others[1], 1]),
            };
            // Each is apart from itself, as outputs are.
            let dims = [outer, len, inner].map(|extent| i64::try_from(extent).unwrap());
            let dims = dims.into_iter().zip(strides.map(|stride| i64::try_from(stride).unwrap()));
            prop_assume!(crate::shape::strides_nest(&dims));
            let input: Vec<u16> = (0..outer * count * len * inner).map(|at| u16::try_from(at).unwrap()).collect();
            let first = |piece: usize| {
                let further = isize::from(moved == Some(piece));
                MIDDLE.checked_add_signed(step * signed(piece) + further).unwrap()
            };
            let place = |piece: usize, [a, b, c]: [usize; 3]| {
                let ahead = [a, b, c].into_iter().zip(strides).map(|(at, stride)| signed(at) * stride);
                first(piece).checked_add_signed(ahead.sum()).unwrap()
            };
            let mut expected = vec![UNTOUCHED; 2 * MIDDLE];
            let mut are_apart = true;
            let steps = (0..outer * count * len * inner).map(|at| {
                let (rest, c) = (at / inner, at % inner);
                let (rest, b) = (rest / len, rest % len);
                (at, rest % count, [rest / count, b, c])
            });
            for (at, piece, index) in steps {
                let slot = &mut expected[place(piece, index)];
                are_apart &= *slot == UNTOUCHED;
                *slot = input[at];
            }
            let mut outputs = vec![UNTOUCHED; 2 * MIDDLE];
            let begin = outputs.as_mut_ptr();
            let targets = (0..count).map(|piece| Some(begin.wrapping_add(first(piece)).cast()));
            let lengths = vec![i64::try_from(len).unwrap(); count];
            let parts = parts(&lengths, targets);
            let shape = [outer, count * len, inner].map(|extent| i64::try_from(extent).unwrap());
            let strides = strides.map(|stride| i64::try_from(stride).unwrap()).repeat(count);
            let output_strides = OutputStrides::Planned { strides: &strides, rank: 3 };
            let packed = transfer(DType::Uint16, &shape, 1, input.as_ptr().cast(), &parts);
            let all = Transfer { output_strides, ..packed };
            let mut one = Stacked::NONE;
            let is_stacked = one.stack(&all).is_some();
            let has_gaps = outer * len * inner > 1 && kind < 3 && moved.is_none_or(|piece| piece >= count);
            prop_assert!(are_apart || !is_stacked);
            prop_assert!(is_stacked || !has_gaps || (kind < 2 && outer * len == 1) || (kind == 2 && inner == 1));
            if are_apart {
                // SAFETY: the input and the outputs are as large as the strides say.
                unsafe { run(&all, count, None, &mut Report::default()) }.unwrap();
                prop_assert!(outputs == expected);
            }
        }

        /// Runs of unequal pieces in rows with a pitch, side by side or not.
        #[test]
        fn columns_of_a_matrix_are_apart(
            lengths in prop::collection::vec(1i64..5, 2..12),
            [outer, inner] in [1i64..4, 1i64..4],
            [gap, pad] in [0i64..3, 0i64..3],
            turn in any::<[bool; 2]>(),
            moved in prop::option::of((any::<prop::sample::Index>(), -3i64..3)),
        ) {
            let extent: i64 = lengths.iter().sum();
            let turned = |is_so: bool, stride: i64| if is_so { -stride } else { stride };
            let step = inner + pad;
            let own = [step * (extent + gap), turned(turn[0], step), turned(turn[1], 1)];
            let mut offset = 0;
            let mut begins = lengths.iter().map(|len| {
                offset += len;
                2000 + (offset - len) * own[1]
            }).collect::<Vec<_>>();
            if let Some((at, by)) = moved {
                begins[at.index(lengths.len())] += by;
            }
            let mut taken = vec![false; 4000];
            let mut are_apart = true;
            for (len, begin) in lengths.iter().zip(&begins) {
                for at in 0..outer * len * inner {
                    let index = [at / inner / len, at / inner % len, at % inner];
                    let ahead: i64 = index.iter().zip(own).map(|(at, stride)| at * stride).sum();
                    let slot = &mut taken[usize::try_from(begin + ahead).unwrap()];
                    are_apart &= !*slot;
                    *slot = true;
                }
            }
            let target = |begin: &i64| null_mut::<u8>().wrapping_add(usize::try_from(*begin).unwrap());
            let parts = parts(&lengths, begins.iter().map(target).map(Some));
            let strides = own.repeat(lengths.len());
            let output_strides = OutputStrides::Planned { strides: &strides, rank: 3 };
            let shape = [outer, extent, inner];
            let packed = transfer(DType::Uint8, &shape, 1, null_mut(), &parts);
            let found = Joined::are_apart(&Transfer { output_strides, ..packed });
            prop_assert!(are_apart || !found);
            prop_assert!(found || moved.is_some() || outer == 1);
        }
    }
}
