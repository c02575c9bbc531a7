//! Few units of pieces with strides, copied one by one: what is small is not worth asking what else it is. And the
//! layouts of many pieces, which is one where they are alike but for where they are.

use super::kernel::combine::LINE;
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
/// In the caches, a unit of fewer bytes is copied at once, and so are so few of a line and more. Zen 5, ns a piece:
/// of 32 bytes 20 before, 5; of five units of 182 bytes 52, 29.
const SHORT: usize = 1 << 10;
const FEW_RUNS: usize = 8;

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
            let &mut Layout { source, target, unit, .. } = layout;
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
    let is_cached = tuning.scattered.is_none();
    transfer.geometry.shape.len() <= FEW_AXES
        && each(transfer, &mut |layout| {
            let &mut Layout { source, target, unit, .. } = layout;
            let copy = tuning.kernels.copy;
            // SAFETY: the caller's promise.
            unsafe {
                match layout.axes() {
                    [] if is_cached && unit < SHORT => copy(source, target, unit),
                    row @ [Axis { extent: ..=FEW_RUNS, .. }]
                        if is_cached && (LINE..SHORT).contains(&unit) =>
                    {
                        region::copy_each(source, target, unit, row, copy);
                    }
                    _ => layout.copy(0..layout.units() * unit, tuning),
                }
            }
            true
        })
}

/// Visits the layout of each part, until that is of no more use; whether it was to the end.
fn each(transfer: &Transfer<'_>, visit: &mut dyn FnMut(&mut Layout<'_>) -> bool) -> bool {
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
                if !visit(&mut layout) {
                    return false;
                }
            }
        }
        if list.len() < FEW_PARTS {
            return true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{parts, transfer};
    use super::{copy, copy_each_part, Tuning};
    use crate::dtype::DType;
    use crate::parts::{OutputStrides, Part, Transfer};
    use proptest::prelude::*;

    const UNTOUCHED: u16 = 0xEEEE;

    /// Strides of a matrix, how many elements lie before its first one, and how many there are in all.
    fn lie(rows: i64, columns: i64, (gap, is_back): (i64, bool)) -> ([i64; 2], usize, usize) {
        let pitch = columns + gap;
        let all = usize::try_from(rows * pitch).unwrap();
        let last = usize::try_from(columns - 1).unwrap();
        ([pitch, if is_back { -1 } else { 1 }], if is_back { last } else { 0 }, all)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..Default::default() })]

        /// Pieces that are alike, and such that are not, of a matrix of any pitch, either way.
        #[test]
        fn pieces_with_strides(
            lengths in prop_oneof![
                (1i64..5, 1usize..50).prop_map(|(len, pieces)| vec![len; pieces]),
                prop::collection::vec(0i64..5, 1..50),
            ],
            other in prop_oneof![1i64..20, 60i64..700],
            axis in 0usize..2,
            from in (0i64..5, any::<bool>()),
            to in prop::option::of(prop::collection::vec((0i64..3, any::<bool>()), 2)),
        ) {
            let extent: i64 = lengths.iter().sum();
            prop_assume!(extent > 0);
            let of = |len: i64| if axis == 0 { [len, other] } else { [other, len] };
            let shape @ [rows, columns] = of(extent);
            let (strides, before, all) = lie(rows, columns, from);
            let source: Vec<u16> = (0..all).map(|at| u16::try_from(at % 60_000).unwrap()).collect();
            let packed = (0, false);
            let lies = |at: usize| to.as_ref().map_or(packed, |to| to[at / 3 % 2]);
            let mut to_strides = Vec::new();
            let (mut copied, mut expected, mut begins, mut offset) = (vec![], vec![], vec![], 0);
            for (at, len) in lengths.iter().enumerate() {
                let [rows, columns] = of(*len);
                let (strides_to, before_to, all) = lie(rows, columns.max(1), lies(at));
                let mut output = vec![UNTOUCHED; all];
                copied.push(output.clone());
                for row in 0..rows {
                    for column in 0..columns {
                        let (ahead, aside) = if axis == 0 { (offset, 0) } else { (0, offset) };
                        let at = |begin: usize, [pitch, step]: [i64; 2], row: i64, column: i64| {
                            begin.checked_add_signed(isize::try_from(row * pitch + column * step).unwrap()).unwrap()
                        };
                        output[at(before_to, strides_to, row, column)] =
                            source[at(before, strides, row + ahead, column + aside)];
                    }
                }
                expected.push(output);
                to_strides.extend(strides_to);
                begins.push(before_to);
                offset += len;
            }
            let targets = copied.iter_mut().zip(&begins).map(|(output, begin)| {
                Some(output.as_mut_ptr().wrapping_add(*begin).cast())
            });
            let wanted: Vec<Part> = parts(&lengths, targets);
            let source = source.as_ptr().wrapping_add(before).cast();
            let output_strides = match to {
                None => OutputStrides::Packed,
                Some(_) => OutputStrides::Planned { strides: &to_strides, rank: 2 },
            };
            let plain = transfer(DType::Uint16, &shape, axis, source, &wanted);
            let transfer = Transfer { strides: Some(&strides), output_strides, ..plain };
            for tuning in Tuning::all() {
                for is_few in [false, true] {
                    for output in &mut copied {
                        output.fill(UNTOUCHED);
                    }
                    // SAFETY: memory is as large as the strides say.
                    let is_done = unsafe {
                        if is_few { copy(&transfer) } else { copy_each_part(&transfer, tuning) }
                    };
                    prop_assert!(is_few || is_done);
                    prop_assert!(!is_done || copied == expected);
                }
            }
        }
    }
}
