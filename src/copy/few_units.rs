//! Few units of pieces with strides, copied one by one: what is small is not worth asking what else it is.

use super::kernel::rules::LOW_THRESHOLDS;
use super::kernel::strided::Axis;
use super::region;
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
        unsafe { region::copy_each(source, target, unit, layout.axes(), long) };
    }
    true
}
