//! The places of what lies under axes, in row-major order.

#![forbid(unsafe_code)]

use super::kernel::strided::{Axis, Place};
use crate::math::{div_rem, signed};

/// Some axes, by their bits: there are no more of more than one step.
pub(super) type Axes = usize;

const MOST: usize = usize::BITS as usize;

/// An axis, if there is one.
pub(super) fn one(axis: Option<usize>) -> Axes {
    axis.map_or(0, |at| 1 << (at % MOST))
}

/// Walks over axes in row-major order, but for some of them, without a division a step of the innermost.
pub(super) struct Odometer<'a> {
    axes: &'a [Axis],
    skipped: Axes,
    inner: Axis,
    /// Steps left of the innermost axis, this one included, and how often it has been gone over.
    left: usize,
    turns: usize,
    /// Bytes to the place in the input and the output.
    pub from: isize,
    pub to: isize,
    /// Whether there is but one position.
    is_one: bool,
}

impl<'a> Odometer<'a> {
    #[inline(never)] // once in the library
    pub(super) fn new(axes: &'a [Axis], skipped: Axes) -> Self {
        let inner = Axis::ONE;
        let (left, turns, from, to, is_one) = (1, 0, 0, 0, false);
        let mut odometer = Self { axes, skipped, inner, left, turns, from, to, is_one };
        if let Some(inner) = odometer.walked().next_back() {
            (odometer.inner, odometer.left) = (inner, inner.extent);
        }
        odometer
    }

    fn walked(&self) -> impl DoubleEndedIterator<Item = Axis> + use<'a> {
        let skipped = self.skipped;
        let walked =
            self.axes.iter().enumerate().filter(move |(at, _)| skipped & one(Some(*at)) == 0);
        walked.map(|(_, axis)| *axis)
    }

    /// The innermost axis.
    pub(super) fn inner(&self) -> Axis {
        self.inner
    }

    /// Leaves out the innermost axis, and gives it.
    #[inline(never)] // as above
    pub(super) fn take_inner(&mut self) -> Axis {
        let inner = self.inner;
        (self.inner.extent, self.left) = (1, 1);
        self.is_one = self.walked().nth(1).is_none();
        inner
    }

    /// The position from such a place on.
    pub(super) fn of(&self, (source, target): Place) -> Place {
        (source.wrapping_offset(self.from), target.wrapping_offset(self.to))
    }

    /// On to the next position; after the last one to the first again, and false.
    #[inline(never)] // its callers have no registers to spare
    pub(super) fn advance(&mut self) -> bool {
        let back = |place: isize, step: isize, steps: usize| {
            place.wrapping_sub(step.wrapping_mul(signed(steps)))
        };
        if self.is_one {
            return false;
        }
        let Axis { extent, from, to } = self.inner;
        self.left -= 1;
        if self.left > 0 {
            self.from = self.from.wrapping_add(from);
            self.to = self.to.wrapping_add(to);
            return true;
        }
        self.from = back(self.from, from, extent - 1);
        self.to = back(self.to, to, extent - 1);
        self.left = extent;
        self.turns += 1;
        let mut turns = self.turns;
        let mut outer = self.walked();
        outer.next_back();
        for Axis { extent, from, to } in outer.rev() {
            let index;
            (turns, index) = div_rem(turns, extent);
            if index > 0 {
                self.from = self.from.wrapping_add(from);
                self.to = self.to.wrapping_add(to);
                return true;
            }
            self.from = back(self.from, from, extent - 1);
            self.to = back(self.to, to, extent - 1);
        }
        false
    }
}
