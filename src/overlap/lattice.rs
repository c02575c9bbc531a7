//! Decides whether two strided tensors have a byte in common.
//!
//! They do if steps along the axes of both lead over the distance between them. The search goes axis by axis, the
//! longest stride first, and takes no steps that the shorter strides could not make up for. If strides nest, as in all
//! layouts that people use, that leaves hardly more than one step for each axis; where it would take too long, the
//! search gives up and says so.

use crate::error::number;
use crate::math::gcd;
use crate::shape::usize_of;
use crate::span::Span;

/// Steps along an axis: its stride in bytes, which is above 0, and the least and the greatest number of steps.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Axis {
    pub stride: i64,
    low: i64,
    pub high: i64,
}

/// The most axes of one tensor, or of two that are compared. Axes of the same stride count once.
pub(super) const MAX_AXES: usize = 24;

/// Axes, the longest stride first, and after them only strides of 0.
type Axes = [Axis; MAX_AXES];

/// Inserts an axis, or adds its steps to those of the same stride. Returns whether there was room for it.
#[inline(never)] // once in the library
fn insert(axes: &mut Axes, new: Axis) -> bool {
    let mut held = new;
    for slot in axes.iter_mut().skip_while(|own| own.stride > new.stride) {
        if slot.stride == held.stride {
            slot.low += held.low;
            slot.high += held.high;
            return true;
        }
        core::mem::swap(slot, &mut held);
    }
    held.stride == 0
}

/// The bytes of a tensor: its lowest one, and those to which steps along axes lead from there. The last axis is that of
/// contiguous bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lattice {
    pub span: Span,
    axes: Axes,
    /// Whether there was room for all axes, and elements are whole bytes.
    pub(super) is_exact: bool,
}

impl Lattice {
    /// Returns all bytes of a span.
    pub(crate) fn whole(span: Span) -> Self {
        Self::strided(span, number(span.len()), &mut [].into_iter())
    }

    /// Returns the bytes of elements of `size` bytes, with extents and strides in elements. No extent may be 0. The size
    /// of sub-byte elements is 0.
    #[inline(never)] // once in the library
    pub(crate) fn strided(
        span: Span,
        size: i64,
        dims: &mut dyn Iterator<Item = (i64, i64)>,
    ) -> Self {
        let mut lattice = Self { span, axes: [Axis::default(); MAX_AXES], is_exact: size > 0 };
        let mut insert = |stride, count| {
            lattice.is_exact &= insert(&mut lattice.axes, Axis { stride, low: 0, high: count - 1 });
        };
        insert(1, size);
        for (extent, stride) in dims.filter(|(extent, stride)| *extent > 1 && *stride != 0) {
            insert(stride.saturating_abs().saturating_mul(size), extent);
        }
        // Axes that continue the contiguous bytes become part of them.
        let mut len = lattice.axes().count();
        while let Some([axis, bytes]) = lattice.axes.get_mut(..len).and_then(<[_]>::last_chunk_mut)
        {
            if axis.stride > bytes.high + 1 {
                break;
            }
            bytes.high += axis.stride.saturating_mul(axis.high);
            *axis = *bytes;
            *bytes = Axis::default();
            len -= 1;
        }
        lattice
    }

    /// Returns the axes that there was room for.
    pub(super) fn axes(&self) -> impl Iterator<Item = &Axis> {
        self.axes.iter().take_while(|axis| axis.stride > 0)
    }
}

/// What all searches of one call may take together, in steps: a second or so.
pub(crate) const BUDGET: usize = 1 << 26;

/// What it takes to begin a search, beside a step for each axis, or to look at an output of a crowd.
pub(super) const SET_UP: usize = 8;

/// Returns whether two tensors have a byte in common; `None` if the budget does not last, or lattices are not exact.
#[cold]
pub(crate) fn meet(a: &Lattice, b: &Lattice, budget: &mut usize) -> Option<bool> {
    *budget = budget.checked_sub(SET_UP + a.axes().chain(b.axes()).count())?;
    // Steps in b, and steps back in a.
    let back = a.axes().map(|axis| Axis { low: -axis.high, high: 0, ..*axis });
    let mut axes = [Axis::default(); MAX_AXES];
    let is_exact = back.chain(b.axes().copied()).all(|axis| insert(&mut axes, axis));
    // Distances and their sums then fit; and no memory is that large.
    let fits = (a.span.hull(b.span).len() as u64) < 1 << 60;
    if !(a.is_exact && b.is_exact && is_exact && fits) {
        return None;
    }
    let mut levels = [Level::default(); MAX_AXES];
    let mut len = 0;
    let mut shorter = Level::default();
    let mut bytes = Axis::default();
    for (level, axis) in levels.iter_mut().zip(&axes).rev().filter(|(_, axis)| axis.stride > 0) {
        if axis.stride == 1 {
            bytes = *axis;
            continue;
        }
        shorter.divisor = number(gcd(usize_of(axis.stride), usize_of(shorter.divisor)));
        *level = Level { axis: *axis, ..shorter };
        shorter.least += axis.low * axis.stride;
        shorter.most += axis.high * axis.stride;
        len += 1;
    }
    let distance = b.span.start.wrapping_sub(a.span.start).cast_signed() as i64;
    let levels = levels.get(..len).unwrap_or_default();
    search(levels, distance + bytes.high, bytes.high - bytes.low, budget)
}

/// An axis in a search.
#[derive(Clone, Copy, Default)]
struct Level {
    axis: Axis,
    /// What the axes of shorter strides, except that of bytes, add at least and at most.
    least: i64,
    most: i64,
    /// The greatest common divisor of this stride and those.
    divisor: i64,
}

/// Returns whether steps lead from a distance to one from 0 to `width`, as far as the budget lasts.
fn search(levels: &[Level], distance: i64, width: i64, budget: &mut usize) -> Option<bool> {
    *budget = budget.checked_sub(1)?;
    let Some((&Level { axis, least, most, divisor }, shorter)) = levels.split_first() else {
        return Some((0..=width).contains(&distance));
    };
    // No stride is 0, so these have an answer.
    if distance.checked_rem_euclid(divisor)? > width {
        return Some(false);
    }
    let first = -(distance + most).checked_div_euclid(axis.stride)?;
    let last = (width - distance - least).checked_div_euclid(axis.stride)?;
    for steps in first.max(axis.low)..=last.min(axis.high) {
        if search(shorter, distance + steps * axis.stride, width, budget)? {
            return Some(true);
        }
    }
    Some(false)
}
