//! Whether two strided tensors have a byte in common.
//!
//! They may lie in each other's gaps: columns of one matrix, tiles of one picture, planes with padding.
//! Two of them meet if two index vectors give addresses less than a run apart, which a search axis by
//! axis, longest steps first, decides: what the shorter steps cannot make good is not looked at. Where
//! strides nest, as in all layouts that people have, hardly an index per axis is left; where the
//! search would take too long it gives up and says so.

#![forbid(unsafe_code)]

use crate::math::gcd;
use crate::span::Span;

/// An axis of a tensor: so many steps of so many bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Steps {
    stride: u64,
    count: u64,
}

/// The most axes that a tensor's bytes are searched by.
const MAX_AXES: usize = 12;

/// The bytes of a tensor: runs of contiguous ones, and axes over them, longest steps first.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lattice {
    pub span: Span,
    run: u64,
    axes: [Steps; MAX_AXES],
    rank: usize,
    /// Whether all these bytes are the tensor's.
    is_exact: bool,
}

impl Lattice {
    /// All bytes of a span.
    pub(crate) fn whole(span: Span) -> Self {
        let run = (span.end - span.start) as u64;
        Self { span, run, axes: [Steps::default(); MAX_AXES], rank: 0, is_exact: true }
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
        for (extent, stride) in dims {
            let (count, stride) = (extent.unsigned_abs(), stride.unsigned_abs());
            if count == 1 || stride == 0 {
                continue;
            }
            let steps = Steps { stride: stride.saturating_mul(size), count };
            if !lattice.insert(steps) {
                return Self { is_exact: false, ..Self::whole(span) };
            }
        }
        lattice.extend_run();
        lattice
    }

    fn axes(&self) -> &[Steps] {
        self.axes.get(..self.rank).unwrap_or_default()
    }

    /// Puts an axis in its place; `false` if there is no room.
    fn insert(&mut self, steps: Steps) -> bool {
        let at = self.axes().iter().take_while(|axis| axis.stride >= steps.stride).count();
        let Some(tail) = self.axes.get_mut(at..=self.rank) else { return false };
        let mut held = steps;
        for slot in tail {
            core::mem::swap(slot, &mut held);
        }
        self.rank += 1;
        true
    }

    /// Joins axes that continue the run to it.
    #[inline(never)]
    fn extend_run(&mut self) {
        while let Some(axis) = self.axes().last().filter(|axis| axis.stride <= self.run).copied() {
            self.run = self.run.saturating_add(axis.stride.saturating_mul(axis.count - 1));
            self.rank -= 1;
        }
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

/// The steps of a stride by which two tensors differ: from `low` to `high` of them.
#[derive(Debug, Clone, Copy, Default)]
struct Difference {
    stride: i64,
    low: i64,
    high: i64,
    /// What the shorter strides add at the least and at the most.
    least: i64,
    most: i64,
    /// The greatest divisor of this stride and the shorter ones: distances change by multiples of it.
    divisor: i64,
    /// Where the search stands: the next number of steps, the last, and the distance before.
    next: i64,
    last: i64,
    from: i64,
}

/// The most indices that the searches of one call look at.
pub(crate) const BUDGET: usize = 1 << 20;

/// Whether two tensors have a byte in common, as far as the budget lasts.
#[cold]
#[inline(never)]
pub(crate) fn meet(a: &Lattice, b: &Lattice, budget: &mut usize) -> Answer {
    if !a.span.intersects(b.span) {
        return Answer::Apart;
    }
    // Distances and their sums then fit; and no memory is that large.
    if a.span.hull(b.span).len() as u64 >= 1 << 60 {
        return Answer::GivenUp;
    }
    let mut differences = [Difference::default(); 2 * MAX_AXES];
    let len = differences_of(a, b, &mut differences);
    let Some(differences) = differences.get_mut(..len) else { return Answer::GivenUp };
    // They meet where b's run begins less than a run before or behind a's.
    let (low, high) = (1 - b.run.cast_signed(), a.run.cast_signed() - 1);
    let begin = b.span.start.wrapping_sub(a.span.start).cast_signed() as i64;
    match search(differences, begin, low, high, budget) {
        Answer::Meet if !(a.is_exact && b.is_exact) => Answer::GivenUp,
        answer => answer,
    }
}

/// The axes of both, as differences, longest strides first; how many there are.
fn differences_of(a: &Lattice, b: &Lattice, into: &mut [Difference; 2 * MAX_AXES]) -> usize {
    let (mut len, mut first, mut second) =
        (0, a.axes().iter().peekable(), b.axes().iter().peekable());
    loop {
        let strides = [first.peek().map(|axis| axis.stride), second.peek().map(|axis| axis.stride)];
        let Some(stride) = strides.into_iter().flatten().max() else { break };
        let steps = |axes: &mut core::iter::Peekable<core::slice::Iter<'_, Steps>>| {
            axes.next_if(|axis| axis.stride == stride)
                .map_or(0, |axis| axis.count.cast_signed() - 1)
        };
        let (low, high) = (-steps(&mut first), steps(&mut second));
        if let Some(slot) = into.get_mut(len) {
            *slot = Difference { stride: stride.cast_signed(), low, high, ..Difference::default() };
            len += 1;
        }
    }
    let (mut least, mut most, mut divisor) = (0, 0, 0);
    for difference in into.iter_mut().take(len).rev() {
        (difference.least, difference.most) = (least, most);
        least += difference.low * difference.stride;
        most += difference.high * difference.stride;
        divisor = gcd(usize::try_from(difference.stride).unwrap_or(1), divisor);
        difference.divisor = divisor.cast_signed() as i64;
    }
    len
}

impl Difference {
    /// Begins with the numbers of steps that may lead from a distance to one between `low` and `high`.
    fn enter(&mut self, distance: i64, low: i64, high: i64) {
        self.from = distance;
        self.next = ceil(low - distance - self.most, self.stride).max(self.low);
        self.last = floor(high - distance - self.least, self.stride).min(self.high);
        if distance + ceil(low - distance, self.divisor) * self.divisor > high {
            self.last = i64::MIN;
        }
    }

    /// Where the next number of steps leads, if one is left.
    fn advance(&mut self) -> Option<i64> {
        let steps = self.next;
        self.next += 1;
        (steps <= self.last).then(|| self.from + steps * self.stride)
    }
}

/// Whether steps of the differences lead from a distance to one between `low` and `high`.
fn search(
    differences: &mut [Difference],
    begin: i64,
    low: i64,
    high: i64,
    budget: &mut usize,
) -> Answer {
    let (mut depth, mut distance, mut enters) = (0usize, begin, true);
    while *budget > 0 {
        *budget -= 1;
        let further = match differences.get_mut(depth) {
            Some(here) => {
                if enters {
                    here.enter(distance, low, high);
                }
                here.advance()
            }
            // All steps are taken.
            None if (low..=high).contains(&distance) => return Answer::Meet,
            None => None,
        };
        match (further, depth.checked_sub(1)) {
            (Some(further), _) => (depth, distance, enters) = (depth + 1, further, true),
            (None, Some(back)) => (depth, enters) = (back, false),
            (None, None) => return Answer::Apart,
        }
    }
    Answer::GivenUp
}

/// Rounded down, by a stride, which is above 0.
fn floor(a: i64, b: i64) -> i64 {
    let quotient = a.checked_div(b).unwrap_or(0);
    quotient - i64::from(quotient * b > a)
}

fn ceil(a: i64, b: i64) -> i64 {
    -floor(-a, b)
}
