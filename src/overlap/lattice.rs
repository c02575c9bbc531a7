//! Decides whether two strided tensors have a byte in common.
//!
//! They do if steps along the axes of both lead from the distance between them to one that is shorter than a run of
//! contiguous bytes. The search goes axis by axis, the longest stride first, and takes no steps that the shorter
//! strides could not make up for. If strides nest, as in all layouts that people use, that leaves hardly more than one
//! step for each axis; where it would take too long, the search gives up and says so.

#![forbid(unsafe_code)]

use crate::math::gcd;
use crate::span::Span;

/// An axis of a tensor: its stride in bytes, and its extent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Steps {
    pub stride: usize,
    pub count: usize,
}

impl Steps {
    /// Joins two axes, if one continues the other.
    fn join(self, other: Self) -> Option<Self> {
        let (inner, outer) = if self.stride < other.stride { (self, other) } else { (other, self) };
        let continues = inner.stride.checked_mul(inner.count) == Some(outer.stride);
        continues.then_some(Self { count: inner.count.saturating_mul(outer.count), ..inner })
    }

    /// Returns the bytes from the first step to the last.
    pub(super) fn reach(self) -> usize {
        self.stride.saturating_mul(self.count.saturating_sub(1))
    }
}

/// The most axes of a tensor, not counting those that continue each other.
pub(super) const MAX_AXES: usize = 12;

/// The bytes of a tensor: runs of contiguous bytes, and axes over these, the longest stride first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lattice {
    pub span: Span,
    pub(super) run: usize,
    axes: [Steps; MAX_AXES],
    rank: usize,
}

impl Lattice {
    /// Returns all bytes of a span.
    pub(crate) fn whole(span: Span) -> Self {
        Self { span, run: span.len(), axes: [Steps::default(); MAX_AXES], rank: 0 }
    }

    /// Returns the bytes of elements of `size` bytes, with extents and strides in elements. No extent may be 0.
    #[inline(never)] // once in the library
    pub(crate) fn strided(
        span: Span,
        size: i64,
        dims: &mut dyn Iterator<Item = (i64, i64)>,
    ) -> Self {
        let bytes = |count: u64| usize::try_from(count).unwrap_or(usize::MAX);
        let size = bytes(size.unsigned_abs());
        let (mut lattice, mut last) = (Self { run: size, ..Self::whole(span) }, Steps::default());
        for (extent, stride) in dims.filter(|(extent, stride)| *extent > 1 && *stride != 0) {
            let stride = bytes(stride.unsigned_abs()).saturating_mul(size);
            let axis = Steps { stride, count: bytes(extent.unsigned_abs()) };
            // The last axes that there is room for are joined if they continue each other.
            let joined = last.join(axis).filter(|_| lattice.rank + 1 >= MAX_AXES);
            last = joined.unwrap_or_else(|| {
                lattice.insert(last);
                axis
            });
        }
        lattice.insert(last);
        // Axes that continue the run become part of it.
        while let Some(axis) = lattice.axes().and_then(<[_]>::last) {
            if axis.stride > lattice.run {
                break;
            }
            lattice.run = lattice.run.saturating_add(axis.reach());
            lattice.rank -= 1;
        }
        lattice
    }

    /// Inserts an axis in the order of strides. If there are too many, the rank says so.
    fn insert(&mut self, axis: Steps) {
        if axis.count <= 1 {
            return;
        }
        let (mut held, places) = (axis, self.axes.iter_mut().take(self.rank + 1));
        for slot in places.skip_while(|own| own.stride > axis.stride) {
            core::mem::swap(slot, &mut held);
        }
        self.rank += 1;
    }

    /// Returns its axes, unless there are too many.
    pub(super) fn axes(&self) -> Option<&[Steps]> {
        self.axes.get(..self.rank)
    }
}

/// What a search has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Apart,
    Meet,
    /// It would take too long.
    GivenUp,
}

/// A stride of either tensor, and by how many steps of it elements of the two may differ.
#[derive(Debug, Clone, Copy, Default)]
struct Difference {
    stride: i64,
    low: i64,
    high: i64,
    /// What the shorter strides add at least and at most.
    least: i64,
    most: i64,
    /// The greatest common divisor of this stride and all shorter ones.
    divisor: i64,
}

/// The most steps that all searches of one call take together.
pub(crate) const BUDGET: usize = 1 << 22;

/// Returns whether two tensors have a byte in common, as far as the budget lasts.
#[cold]
#[inline(never)]
pub(crate) fn meet(a: &Lattice, b: &Lattice, budget: &mut usize) -> Answer {
    if !a.span.intersects(b.span) {
        return Answer::Apart;
    }
    let (Some(first), Some(second)) = (a.axes(), b.axes()) else { return Answer::GivenUp };
    // Distances and their sums then fit; and no memory is that large.
    if a.span.hull(b.span).len() as u64 >= 1 << 60 {
        return Answer::GivenUp;
    }
    let mut differences = [Difference::default(); 2 * MAX_AXES];
    for (axes, is_first) in [(first, true), (second, false)] {
        for axis in axes {
            insert(&mut differences, *axis, is_first);
        }
    }
    let (mut least, mut most, mut divisor, mut len) = (0, 0, 0, 0);
    for difference in differences.iter_mut().rev().filter(|difference| difference.stride > 0) {
        (difference.least, difference.most) = (least, most);
        least += difference.low * difference.stride;
        most += difference.high * difference.stride;
        divisor = gcd(usize::try_from(difference.stride).unwrap_or(1), divisor);
        difference.divisor = signed(divisor);
        len += 1;
    }
    // They meet if b's run begins less than a run before or behind a's.
    let (low, high) = (1 - signed(b.run), signed(a.run) - 1);
    let distance = b.span.start.wrapping_sub(a.span.start).cast_signed() as i64;
    search(differences.get(..len).unwrap_or_default(), distance, low, high, budget)
}

fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

/// Inserts the steps of one tensor among the differences, the longest stride first.
#[inline(never)] // once in the library
fn insert(differences: &mut [Difference], axis: Steps, is_first: bool) {
    let (stride, last) = (signed(axis.stride), signed(axis.count) - 1);
    let (low, high) = if is_first { (-last, 0) } else { (0, last) };
    let mut held = Difference { stride, low, high, ..Difference::default() };
    for slot in differences.iter_mut().skip_while(|longer| longer.stride > stride) {
        if slot.stride == held.stride {
            slot.low += held.low;
            slot.high += held.high;
            return;
        }
        core::mem::swap(slot, &mut held);
    }
}

/// Searches for steps that lead from a distance to one between `low` and `high`.
fn search(
    differences: &[Difference],
    distance: i64,
    low: i64,
    high: i64,
    budget: &mut usize,
) -> Answer {
    let Some(left) = budget.checked_sub(1) else { return Answer::GivenUp };
    *budget = left;
    let Some((longest, shorter)) = differences.split_first() else {
        return if (low..=high).contains(&distance) { Answer::Meet } else { Answer::Apart };
    };
    let &Difference { stride, least, most, divisor, .. } = longest;
    if distance + ceil(low - distance, divisor) * divisor > high {
        return Answer::Apart;
    }
    let first = ceil(low - distance - most, stride).max(longest.low);
    let last = floor(high - distance - least, stride).min(longest.high);
    for steps in first..=last {
        match search(shorter, distance + steps * stride, low, high, budget) {
            Answer::Apart => {}
            answer => return answer,
        }
    }
    Answer::Apart
}

/// Returns the quotient, rounded down; the divisor is above 0.
fn floor(a: i64, b: i64) -> i64 {
    a.checked_div_euclid(b).unwrap_or(0)
}

fn ceil(a: i64, b: i64) -> i64 {
    -floor(-a, b)
}
