//! Pieces whose outputs make one tensor: slices of it along the split axis, or such as are alike, and each as far from
//! the one before it, of one that has an axis more. So it is plain that they are apart; and copied one after the other,
//! each line of the tensor would be fetched once for every one of them.

#![cfg_attr(not(test), forbid(unsafe_code))]

use crate::math::div_rem_signed;
use crate::parts::{OutputStrides, Part, Parts, Transfer};
use crate::plan::Geometry;
use crate::shape::strides_nest;
use core::iter::once;
use core::ptr::null_mut;

/// The most pieces that are left, where some between them are not wanted, and the most axes: they take some of the
/// stack.
const MOST: usize = 3;
pub(crate) const MOST_AXES: usize = 12;

/// Pieces as slices of one tensor, in as few as they are without others between them.
pub(crate) struct Joined {
    parts: [Part; MOST],
    count: usize,
    /// So many steps of the split axis are one of the tensor's.
    unit: i64,
    /// Of the input with the tensor's axes.
    shape: [i64; MOST_AXES],
    /// The tensor's, in elements.
    strides: [i64; MOST_AXES],
    rank: usize,
}

impl Joined {
    pub(crate) const NONE: Self = Self {
        parts: [Part { index: 0, offset: 0, len: 0, target: null_mut() }; MOST],
        count: 0,
        unit: 1,
        shape: [0; MOST_AXES],
        strides: [0; MOST_AXES],
        rank: 0,
    };

    /// Makes it the pieces of a transfer, if their outputs make one tensor, and are apart; and whether they are fewer
    /// so. In place, for it takes some of the stack.
    #[inline(never)] // once in the library
    pub(crate) fn join(&mut self, transfer: &Transfer<'_>) -> Option<bool> {
        let Transfer { geometry, output_strides, strides: input, .. } = transfer;
        let mut parts = transfer.parts.iter();
        let (first, second) = (parts.next()?, parts.next()?);
        let strides = output_strides.get(first.index)?;
        let size = i64::from(geometry.dtype.bits() / 8);
        let (step, rest) = div_rem_signed(distance(&first, &second), size);
        // Slices, if the axis goes on from one to the next. A single step has no use for its stride, nor has an output
        // without the axis.
        let (along, uneven) = div_rem_signed(step, second.offset - first.offset);
        let own = if geometry.keeps_axis { strides.get(geometry.axis) } else { None };
        let are_slices = uneven == 0 && (first.len == 1 || own == Some(&along));
        let (step, along) = if are_slices { (along, along) } else { (step, *own?) };
        if rest != 0 || !(are_slices || input.is_none()) {
            return None;
        }
        self.unit = if are_slices { 1 } else { first.len };
        self.set_axes(geometry, strides, step)?;
        let axis = if geometry.keeps_axis { geometry.axis } else { usize::MAX };
        let (mut pieces, mut end) = (0, 0);
        for mut part in transfer.parts.iter() {
            let own = output_strides.get(part.index)?;
            let are_alike = own.iter().zip(strides).enumerate().all(|(at, (own, first))| {
                if at == axis {
                    part.len == 1 || *own == along
                } else {
                    own == first
                }
            });
            if self.unit > 1 {
                if part.len != self.unit || part.offset != end * self.unit {
                    return None;
                }
                (part.offset, part.len) = (end, 1);
            }
            let ahead = step.wrapping_mul(size).wrapping_mul(part.offset - first.offset);
            if !are_alike || distance(&first, &part) != ahead {
                return None;
            }
            end = part.offset + part.len;
            self.push(part);
            pieces += 1;
        }
        let extent = div_rem_signed(geometry.extent, self.unit);
        if !are_slices && extent != (end, 0) {
            return None;
        }
        // All as bytes, so that none is at another one's address for being too far away.
        *self.shape.get_mut(geometry.axis)? = end - first.offset;
        let dims = self.shape.iter().zip(&self.strides).take(self.rank);
        let bytes = dims.map(|(extent, stride)| (*extent, stride.wrapping_mul(size)));
        let are_apart = strides_nest(&once((size, 1)).chain(bytes));
        *self.shape.get_mut(geometry.axis)? = extent.0;
        are_apart.then_some(self.count < pieces && self.count <= MOST)
    }

    /// The input's axes and the tensor's, of which that with so many elements from one step to the next is the split one.
    #[inline(never)]
    fn set_axes(&mut self, geometry: &Geometry<'_>, strides: &[i64], step: i64) -> Option<()> {
        let mut own = strides.iter();
        for (axis, extent) in geometry.shape.iter().enumerate() {
            if axis != geometry.axis {
                self.push_axis(*extent, *own.next()?)?;
                continue;
            }
            self.push_axis(*extent, step)?;
            let own = if geometry.keeps_axis { own.next() } else { None };
            if self.unit > 1 {
                self.push_axis(self.unit, *own?)?;
            }
        }
        Some(())
    }

    fn push_axis(&mut self, extent: i64, stride: i64) -> Option<()> {
        *self.shape.get_mut(self.rank)? = extent;
        *self.strides.get_mut(self.rank)? = stride;
        self.rank += 1;
        Some(())
    }

    /// Adds a piece, to the last one if nothing is between them; beyond [`MOST`] they are but counted.
    fn push(&mut self, part: Part) {
        let last = self.count.checked_sub(1).and_then(|last| self.parts.get_mut(last));
        if let Some(last) = last.filter(|last| last.offset + last.len == part.offset) {
            last.len += part.len;
            return;
        }
        if let Some(slot) = self.parts.get_mut(self.count) {
            *slot = Part { index: 0, ..part };
        }
        self.count += 1;
    }

    /// The same transfer of fewer pieces.
    pub(crate) fn transfer<'a>(&'a self, transfer: &Transfer<'a>) -> Transfer<'a> {
        let &Self { rank, unit, .. } = self;
        let geometry = transfer.geometry;
        let (extent, inner) = (div_rem_signed(geometry.extent, unit).0, geometry.inner * unit);
        let shape = self.shape.get(..rank).unwrap_or_default();
        Transfer {
            geometry: Geometry { shape, extent, inner, keeps_axis: true, ..geometry },
            parts: Parts::Listed(self.parts.get(..self.count).unwrap_or_default()),
            output_strides: OutputStrides::Planned { strides: &self.strides, rank },
            ..*transfer
        }
    }
}

/// Bytes from the begin of an output to that of another.
fn distance(from: &Part, to: &Part) -> i64 {
    (to.target as usize).wrapping_sub(from.target as usize).cast_signed() as i64
}

#[cfg(test)]
mod tests {
    use super::Joined;
    use crate::copy::testing::{parts, transfer};
    use crate::copy::{run, run_joined};
    use crate::dtype::DType;
    use crate::error::Report;
    use crate::parts::{OutputStrides, Transfer};
    use crate::plan::Geometry;
    use proptest::prelude::*;

    /// Planes of a tensor of any rank, put together to pixels.
    #[test]
    fn planes_become_channels() {
        const PIXELS: u16 = 2000;
        const CHANNELS: u16 = 3;
        let input: Vec<u16> = (0..PIXELS * CHANNELS).collect();
        for ones in [0, 1, 6, 10] {
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
            assert_eq!(joined.join(&all), Some(true), "{ones}");
            // SAFETY: the input and the pixels are as large as the shape says.
            unsafe { run_joined(&joined, &all, None, &mut Report::default()) }.unwrap();
            let expected = (0..PIXELS).flat_map(|at| (0..3).map(move |of| of * PIXELS + at));
            assert!(pixels.into_iter().eq(expected), "{ones}");
        }
    }

    /// The fifth would be where the first is. Nothing here is ever read or written.
    #[test]
    #[cfg(target_pointer_width = "64")]
    fn the_address_space_is_no_ring() {
        for (count, are_apart) in [(2, true), (4, false), (5, false)] {
            let target = |at: usize| std::ptr::without_provenance_mut((at << 62) + 4096);
            let parts = parts(&vec![1; count], (0..count).map(|at| Some(target(at))));
            let shape = [2, i64::try_from(count).unwrap()];
            let strides = [1, 2].repeat(count);
            let output_strides = OutputStrides::Planned { strides: &strides, rank: 2 };
            let packed = transfer(DType::Uint32, &shape, 1, std::ptr::null(), &parts);
            let mut one = Joined::NONE;
            let found = one.join(&Transfer { output_strides, ..packed });
            assert_eq!(found.is_some(), are_apart, "{count}");
        }
    }

    const UNTOUCHED: u16 = 0xEEEE;
    const MIDDLE: usize = 6000;

    /// What the outputs make: slices of a tensor, alike ones of a tensor with an axis more, or anything.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Kind {
        Slices,
        Alike,
        Any,
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 4_000, max_global_rejects: 100_000, failure_persistence: None, ..Default::default() })]

        /// Slices of tensors whose axes lie in any order, with padding, steps and backwards, or too near: that make
        /// one are apart, and what is one is copied to where each lies.
        #[test]
        fn what_is_one_is_apart_and_copied(
            lengths in prop_oneof![
                prop::collection::vec(1usize..5, 2..7),
                (1usize..5, 2usize..7).prop_map(|(len, count)| vec![len; count]),
            ],
            [outer, inner] in [1usize..4, 1usize..9],
            kind in prop_oneof![Just(Kind::Slices), Just(Kind::Alike), Just(Kind::Any)],
            order in Just([0, 1, 2, 3]).prop_shuffle(),
            pads in prop::array::uniform4(prop_oneof![5 => Just(1isize), 4 => 1isize..4, 1 => -20isize..0]),
            backwards in prop::array::uniform4(prop::bool::weighted(0.2)),
            any in [-90isize..90, -30isize..30, -9isize..9, -90isize..90],
            moved in prop::option::weighted(0.2, 0usize..7),
            unwanted in prop::option::weighted(0.2, 0usize..7),
            keeps_axis in prop::bool::weighted(0.7),
            is_reversed: bool,
        ) {
            let signed = |count: usize| isize::try_from(count).unwrap();
            let wide = |count: usize| i64::try_from(count).unwrap();
            let lengths = if keeps_axis { lengths } else { vec![1; lengths.len()] };
            let (count, extent) = (lengths.len(), lengths.iter().sum::<usize>());
            let are_alike = lengths.iter().all(|len| *len == lengths[0]);
            let offsets: Vec<usize> = lengths.iter().scan(0, |end, len| {
                *end += len;
                Some(*end - len)
            }).collect();
            // Of the tensor: outer, along the split axis, inner, and from a piece to the next.
            let along = if kind == Kind::Slices { extent } else { lengths[0] };
            let extents = [outer, along, inner, if kind == Kind::Alike { count } else { 1 }];
            let mut strides = any;
            if kind != Kind::Any {
                let mut covered = 0;
                for axis in order {
                    let stride = (covered + pads[axis]).max(1);
                    covered += stride * (signed(extents[axis]) - 1);
                    strides[axis] = if backwards[axis] { -stride } else { stride };
                }
            }
            // Each is apart from itself, as outputs are.
            let longest = *lengths.iter().max().unwrap();
            let dims = [outer, longest, inner].map(wide).into_iter().zip(strides.map(|stride| i64::try_from(stride).unwrap()));
            prop_assume!(crate::shape::strides_nest(&dims));
            let first = |piece: usize| {
                let further = isize::from(moved == Some(piece));
                let steps = match kind {
                    Kind::Slices => strides[1] * signed(offsets[piece]),
                    Kind::Alike => strides[3] * signed(piece),
                    Kind::Any => any[3] * signed(piece),
                };
                MIDDLE.checked_add_signed(steps + further).unwrap()
            };
            let place = |piece: usize, [a, b, c]: [usize; 3]| {
                let ahead = [a, b, c].into_iter().zip(strides).map(|(at, stride)| signed(at) * stride);
                first(piece).checked_add_signed(ahead.sum()).unwrap()
            };
            let input: Vec<u16> = (0..outer * extent * inner).map(|at| u16::try_from(at).unwrap()).collect();
            let mut expected = vec![UNTOUCHED; 2 * MIDDLE];
            let mut are_apart = true;
            let wanted = |piece: usize| unwanted != Some(piece);
            for piece in (0..count).filter(|piece| wanted(*piece)) {
                for a in 0..outer {
                    for (b, c) in (0..lengths[piece]).flat_map(|b| (0..inner).map(move |c| (b, c))) {
                        let at = (a * extent + offsets[piece] + b) * inner + c;
                        let slot = &mut expected[place(piece, [a, b, c])];
                        are_apart &= *slot == UNTOUCHED;
                        *slot = input[if is_reversed { input.len() - 1 - at } else { at }];
                    }
                }
            }
            let mut outputs = vec![UNTOUCHED; 2 * MIDDLE];
            let begin = outputs.as_mut_ptr();
            let targets = (0..count).map(|piece| wanted(piece).then(|| begin.wrapping_add(first(piece)).cast()));
            let lengths: Vec<_> = lengths.into_iter().map(wide).collect();
            let parts = parts(&lengths, targets);
            let shape = [outer, extent, inner].map(wide);
            let strides = strides.map(|stride| i64::try_from(stride).unwrap());
            let own = if keeps_axis { vec![strides[0], strides[1], strides[2]] } else { vec![strides[0], strides[2]] };
            let rank = own.len();
            let strides = own.repeat(count);
            let output_strides = OutputStrides::Planned { strides: &strides, rank };
            let backwards = [-shape[1] * shape[2], -shape[2], -1];
            let source = if is_reversed { input.as_ptr_range().end.wrapping_sub(1) } else { input.as_ptr() };
            let packed = transfer(DType::Uint16, &shape, 1, source.cast(), &parts);
            let geometry = Geometry { keeps_axis, ..packed.geometry };
            let all = Transfer {
                geometry,
                strides: is_reversed.then_some(&backwards),
                output_strides,
                ..packed
            };
            let mut one = Joined::NONE;
            let found = one.join(&all);
            prop_assert!(are_apart || found.is_none());
            let is_plain = pads.into_iter().all(|pad| pad > 0)
                && (kind == Kind::Slices
                || (kind == Kind::Alike && are_alike && unwanted.is_none_or(|piece| piece >= count) && !is_reversed));
            let is_moved = moved.is_some_and(|piece| piece < count && wanted(piece));
            prop_assert!(found.is_some() || !is_plain || is_moved || parts.len() < 2);
            if are_apart {
                // SAFETY: the input and the outputs are as large as the strides say.
                unsafe {
                    match found {
                        Some(true) => run_joined(&one, &all, None, &mut Report::default()),
                        _ => run(&all, parts.len(), None, &mut Report::default()),
                    }
                }.unwrap();
                prop_assert!(outputs == expected);
            }
        }
    }
}
