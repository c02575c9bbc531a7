//! Few units of pieces with strides, copied one by one: what is small is not worth asking what else it is. And the
//! layouts of many pieces, which is one where they are alike but for where they are.

use super::kernel::rules::LOW_THRESHOLDS;
use super::kernel::strided::Axis;
use super::region;
use super::strided::{stride, Layout, FEW_AXES};
use super::tuning::{self, Tuning};
use crate::math::signed;
use crate::parts::{self, Part, Transfer, FEW_PARTS};
use crate::shape::usize_of;

/// As many units of all pieces are few.
const FEW: usize = if LOW_THRESHOLDS { 4 } else { 768 };
/// More bytes than this have more of them, for the most part.
const MOST: usize = 8 << 10;
/// Units of fewer bytes, alone in their piece, are copied at once.
const SHORT: usize = 1 << 10;

/// Copies all parts unit by unit, if they have few; whether they have.
///
/// # Safety
/// As [`super::run`].
#[inline(never)] // which takes some of the stack
pub(super) unsafe fn copy(transfer: &Transfer<'_>) -> bool {
    let &Transfer { ref geometry, strides, bytes, ref parts, output_strides, .. } = transfer;
    let are_many = geometry.shape.len() > FEW_AXES;
    if bytes > MOST || geometry.dtype.is_sub_byte() || are_many {
        return false;
    }
    let mut are_few = bytes <= FEW * geometry.dtype.bits() as usize / 8;
    let goes_on = |strides: Option<&[i64]>| strides.is_none_or(|all| all.last() == Some(&1));
    let are_runs = |part: Part| goes_on(strides) && goes_on(output_strides.get(part.index));
    if !are_few && !parts.iter().next().is_some_and(are_runs) {
        return false;
    }
    let (long, count) = (tuning::contiguous(bytes), parts.count());
    each(transfer, &mut |layout| {
        are_few = are_few || layout.units().saturating_mul(count) <= FEW;
        if are_few {
            let &Layout { source, target, unit, .. } = layout;
            // SAFETY: the caller's promise.
            unsafe { region::copy_each(source, target, unit, layout.axes(), long) };
        }
        are_few
    })
}

/// Copies all parts, each for itself; whether they have few axes.
///
/// # Safety
/// As [`super::run`].
#[inline(never)] // as above
pub(super) unsafe fn copy_each_part(transfer: &Transfer<'_>, tuning: Tuning) -> bool {
    transfer.geometry.shape.len() <= FEW_AXES
        && each(transfer, &mut |layout| {
            let &Layout { source, target, unit, .. } = layout;
            // SAFETY: the caller's promise.
            unsafe {
                if unit < SHORT && layout.axes().is_empty() {
                    (tuning.kernels.copy)(source, target, unit);
                } else {
                    layout.copy(0..layout.units() * unit, tuning);
                }
            }
            true
        })
}

/// Visits the layout of each part, until that is of no more use; whether it was to the end.
fn each(transfer: &Transfer<'_>, visit: &mut dyn FnMut(&Layout<'_>) -> bool) -> bool {
    let &Transfer { ref geometry, strides, ref parts, output_strides, .. } = transfer;
    let size = geometry.dtype.bits() as usize / 8;
    let packed = signed(usize_of(geometry.inner) * size);
    let step = stride(strides, geometry.axis, size).unwrap_or(packed);
    let mut axes = [Axis::default(); FEW_AXES];
    let (mut all, mut room) = (parts.iter(), parts::ROOM);
    loop {
        let list = all.list(&mut room);
        let mut rest = list;
        while let Some(first) = rest.first() {
            let is_like = |part: &&Part| {
                let strides = |part: &Part| output_strides.get(part.index);
                let are_alike = output_strides.are_packed() || strides(part) == strides(first);
                part.len == first.len && are_alike
            };
            let count = rest.iter().take_while(is_like).count();
            let some = rest.iter().take(count);
            rest = rest.get(count..).unwrap_or_default();
            let mut layout = Layout::new(transfer, first, &mut axes);
            let (source, target) = (layout.source, layout.target as usize);
            for part in some {
                let steps = signed(usize_of(part.offset - first.offset));
                let ahead = target.wrapping_sub(first.target as usize);
                layout.source = source.wrapping_offset(steps.wrapping_mul(step));
                layout.target = part.target.wrapping_add(ahead);
                if !visit(&layout) {
                    return false;
                }
            }
        }
        if list.len() < FEW_PARTS {
            return true;
        }
    }
}
