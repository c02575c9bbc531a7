//! Few units of pieces with strides, copied one by one: what is small is not worth asking what else it is.

use super::kernel::rules::LOW_THRESHOLDS;
use super::kernel::strided::Axis;
use super::strided::{self, FEW_AXES};
use super::{region, tuning};
use crate::parts::Transfer;
use crate::shape::usize_of;
use core::mem::MaybeUninit;
use core::ops::Range;

/// As many units of all pieces are few.
const FEW: usize = if LOW_THRESHOLDS { 4 } else { 768 };
/// More bytes are for other ways; and more than these, but for runs along the last axis that are as few, have more of
/// them, for the most part. Zen 4, ns before and after: 9 runs of 1,312 bytes 308, 202, 27 of 360 319, 174, 60
/// of 932 1,280, 1,150; 512 units of 64, heads, 1,085, 757.
const MOST: usize = 64 << 10;
const MOST_SHORT: usize = 8 << 10;
/// As many units of so many bytes have loops that are quicker than one by one, where outputs are packed: 200 of 80
/// bytes 474 for 539, 512 of 192 1,350 for 1,630; but 174 of 108 880 for 750.
const MIDDLING: Range<usize> = 33..256;
const FEW_MIDDLING: usize = FEW / 4;

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
    let few = FEW * geometry.dtype.bits() as usize / 8;
    let mut are_few = bytes <= few;
    if !are_few {
        let mut room = [MaybeUninit::uninit(); 1];
        let [first] = parts.iter().list(&mut room) else { return false };
        let goes_on = |strides: Option<&[i64]>| strides.is_none_or(|all| all.last() == Some(&1));
        let run = if geometry.inner == 1 { Some(&first.len) } else { geometry.shape.last() };
        let are_runs = goes_on(strides) && goes_on(output_strides.get(first.index));
        if !are_runs || bytes > run.map_or(0, |run| few * usize_of(*run)).max(MOST_SHORT) {
            return false;
        }
    }
    let (long, count) = (tuning::contiguous(bytes), parts.count());
    let mut axes = [Axis::default(); FEW_AXES];
    strided::each(transfer, parts.iter(), &mut axes, &mut |layout, places| {
        let has_loops = bytes > MOST_SHORT && MIDDLING.contains(&layout.unit);
        let most = if has_loops && output_strides.are_packed() { FEW_MIDDLING } else { FEW };
        are_few = are_few || layout.units().saturating_mul(count) <= most;
        if are_few {
            // SAFETY: the caller's promise.
            unsafe { region::copy_each(places, layout.unit, layout.axes(), long) };
        }
        are_few
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::{parts, transfer};
    use super::super::tuning::Tuning;
    use super::{copy, strided};
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
                    unsafe {
                        if !is_few || !copy(&transfer) {
                            strided::copy(&transfer, &tuning, 0..transfer.bytes);
                        }
                    }
                    prop_assert!(copied == expected);
                }
            }
        }
    }
}
