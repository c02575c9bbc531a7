//! Few units of pieces with strides, copied one by one: what is small is not worth asking what else it is.

use super::kernel::rules::LOW_THRESHOLDS;
use super::kernel::strided::Block;
use super::kernel::CopyBytes;
use super::region::Axis;
use super::strided::{Layout, FEW_AXES};
use super::tuning;
use crate::parts::{Part, Transfer};

/// As many units of all pieces are few.
const FEW: usize = if LOW_THRESHOLDS { 4 } else { 768 };
/// More bytes than this have more of them, for the most part.
const MOST: usize = 8 << 10;

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
    let long = tuning::contiguous(bytes);
    for part in parts.iter() {
        let mut axes = [Axis::default(); FEW_AXES];
        let layout = Layout::new(transfer, &part, &mut axes);
        are_few = are_few || layout.units().saturating_mul(parts.count()) <= FEW;
        if !are_few {
            return false;
        }
        let Layout { source, target, unit, .. } = layout;
        // SAFETY: the caller's promise.
        unsafe { copy_each(source, target, unit, layout.axes(), long) };
    }
    true
}

/// Copies units one by one, long ones by that.
///
/// # Safety
/// They must be readable and writable.
pub(super) unsafe fn copy_each(
    mut source: *const u8,
    mut target: *mut u8,
    unit: usize,
    axes: &[Axis],
    long: CopyBytes,
) {
    let mut block = [Axis::ONE; 3];
    if let [outer, inner @ ..] = axes {
        if inner.len() >= block.len() {
            for _ in 0..outer.extent {
                // SAFETY: the caller's promise.
                unsafe { copy_each(source, target, unit, inner, long) };
                source = source.wrapping_offset(outer.from);
                target = target.wrapping_offset(outer.to);
            }
            return;
        }
    }
    for (slot, axis) in block.iter_mut().rev().zip(axes.iter().rev()) {
        *slot = *axis;
    }
    let [outer, middle, inner] = &mut block;
    for axis in [outer, middle] {
        // The longest way without a turn.
        if axis.extent > inner.extent {
            core::mem::swap(axis, inner);
        }
    }
    // SAFETY: the caller's promise.
    unsafe { Block { source, target, unit, axes: block }.copy(long) };
}
