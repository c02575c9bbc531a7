//! Whether two strided tensors have a byte in common.
//!
//! They have one if steps along the axes of both lead from the distance between them to one that is less than a
//! run of contiguous bytes. The search goes axis by axis, longest steps first, and takes only as many steps as the
//! shorter ones could make good. Where strides nest, as in all layouts that people have, that is hardly one
//! an axis; where it would take too long, the search gives up and says so.

#![forbid(unsafe_code)]

use crate::math::gcd;
use crate::span::Span;

/// The most axes of a tensor that a search goes along.
const MAX_AXES: usize = 12;

/// The bytes of a tensor: runs of contiguous ones, and axes over them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lattice {
    pub span: Span,
    run: u64,
    /// Stride in bytes, and steps beyond the first.
    axes: [(u64, u64); MAX_AXES],
    /// More than there is room for: of such a tensor nothing is known but its span.
    rank: usize,
}

impl Lattice {
    /// All bytes of a span.
    pub(crate) fn whole(span: Span) -> Self {
        Self { span, run: span.len() as u64, axes: [(0, 0); MAX_AXES], rank: 0 }
    }

    /// Elements of `size` bytes with extents and strides in elements, none of extent 0.
    #[inline(never)] // once in the library
    pub(crate) fn strided(
        span: Span,
        size: i64,
        dims: &mut dyn Iterator<Item = (i64, i64)>,
    ) -> Self {
        let size = size.unsigned_abs();
        let mut lattice = Self { run: size, ..Self::whole(span) };
        for (extent, stride) in dims.filter(|(extent, stride)| *extent > 1 && *stride != 0) {
            let stride = stride.unsigned_abs().saturating_mul(size);
            if let Some(slot) = lattice.axes.get_mut(lattice.rank) {
                *slot = (stride, extent.unsigned_abs() - 1);
            }
            lattice.rank += 1;
        }
        // Axes that continue the run belong to it.
        while let Some(axis) = lattice.axes().iter().position(|axis| axis.0 <= lattice.run) {
            let last = lattice.axes().last().copied().unwrap_or_default();
            let Some(slot) = lattice.axes.get_mut(axis) else { break };
            let (stride, steps) = core::mem::replace(slot, last);
            lattice.run = lattice.run.saturating_add(stride.saturating_mul(steps));
            lattice.rank -= 1;
        }
        lattice
    }

    /// None where there are too many.
    fn axes(&self) -> &[(u64, u64)] {
        self.axes.get(..self.rank).unwrap_or_default()
    }
}

/// What a search has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    Apart,
    Meet,
    /// It would have taken too long.
    GivenUp,
}

/// An axis of both tensors: so many bytes further from the first tensor's element by each step of the second, and
/// back by each of the first.
#[derive(Debug, Clone, Copy, Default)]
struct Steps {
    stride: i64,
    low: i64,
    high: i64,
    /// What the shorter strides add at the least and at the most, and what divides the sum.
    least: i64,
    most: i64,
    divisor: i64,
}

/// The most steps that the searches of one call take.
pub(crate) const BUDGET: usize = 1 << 20;

/// Whether two tensors have a byte in common, as far as the budget lasts.
#[cold]
#[inline(never)]
pub(crate) fn meet(a: &Lattice, b: &Lattice, budget: &mut usize) -> Answer {
    if !a.span.intersects(b.span) {
        return Answer::Apart;
    }
    // Distances and their sums then fit; and no memory is that large.
    let is_too_large = a.span.hull(b.span).len() as u64 >= 1 << 60;
    if is_too_large || a.rank.max(b.rank) > MAX_AXES {
        return Answer::GivenUp;
    }
    let mut axes = [Steps::default(); 2 * MAX_AXES];
    a.axes().iter().for_each(|&(stride, steps)| insert(&mut axes, stride, steps, true));
    b.axes().iter().for_each(|&(stride, steps)| insert(&mut axes, stride, steps, false));
    let (mut least, mut most, mut divisor, mut rank) = (0, 0, 0, 0);
    for axis in axes.iter_mut().rev().filter(|axis| axis.stride > 0) {
        (axis.least, axis.most) = (least, most);
        least += axis.low * axis.stride;
        most += axis.high * axis.stride;
        divisor = gcd(usize::try_from(axis.stride).unwrap_or(1), divisor);
        axis.divisor = divisor.cast_signed() as i64;
        rank += 1;
    }
    // They meet where b's run begins less than a run before or behind a's.
    let (low, high) = (1 - b.run.cast_signed(), a.run.cast_signed() - 1);
    let distance = b.span.start.wrapping_sub(a.span.start).cast_signed() as i64;
    search(axes.get(..rank).unwrap_or_default(), distance, low, high, budget)
}

/// Puts an axis among those of a longer stride and those of a shorter one, or to those of the same. There is room.
#[inline(never)] // once in the library
fn insert(axes: &mut [Steps; 2 * MAX_AXES], stride: u64, steps: u64, is_first: bool) {
    let (stride, steps) = (stride.cast_signed(), steps.cast_signed());
    let (low, high) = if is_first { (-steps, 0) } else { (0, steps) };
    let mut held = Steps { stride, low, high, ..Steps::default() };
    for slot in axes.iter_mut().skip_while(|axis| axis.stride > stride) {
        if slot.stride == held.stride {
            slot.low += held.low;
            slot.high += held.high;
            return;
        }
        core::mem::swap(slot, &mut held);
    }
}

/// Whether steps along axes lead from a distance to one between `low` and `high`.
fn search(axes: &[Steps], distance: i64, low: i64, high: i64, budget: &mut usize) -> Answer {
    let Some((axis, shorter)) = axes.split_first() else {
        return if (low..=high).contains(&distance) { Answer::Meet } else { Answer::Apart };
    };
    if distance + ceil(low - distance, axis.divisor) * axis.divisor > high {
        return Answer::Apart;
    }
    let first = ceil(low - distance - axis.most, axis.stride).max(axis.low);
    let last = floor(high - distance - axis.least, axis.stride).min(axis.high);
    for steps in first..=last {
        let Some(left) = budget.checked_sub(1) else { return Answer::GivenUp };
        *budget = left;
        match search(shorter, distance + steps * axis.stride, low, high, budget) {
            Answer::Apart => {}
            answer => return answer,
        }
    }
    Answer::Apart
}

/// Rounded down, by a stride, which is above 0.
fn floor(a: i64, b: i64) -> i64 {
    let quotient = a.checked_div(b).unwrap_or(0);
    quotient - i64::from(quotient * b > a)
}

fn ceil(a: i64, b: i64) -> i64 {
    -floor(-a, b)
}
