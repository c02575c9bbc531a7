//! Shape and stride arithmetic, all of it checked. No pointers.

/// The most axes a tensor may have.
pub const MAX_RANK: usize = 64;

/// An extent that is not known yet; in inference only.
pub const DIM_UNKNOWN: i64 = -1;

/// Returns the bytes that so many bits take; the last byte may be partly used.
pub(crate) fn bytes_of_bits(bits: i64) -> i64 {
    ((bits.cast_unsigned() + 7) >> 3).cast_signed()
}

/// Returns a checked count as `usize`: what lies in memory fits.
#[allow(clippy::cast_sign_loss, clippy::cast_possible_truncation)]
pub(crate) fn usize_of(count: i64) -> usize {
    debug_assert!(count >= 0);
    count as usize
}

/// Returns a rank, at most [`MAX_RANK`], as descriptors have it.
#[allow(clippy::cast_possible_truncation, clippy::cast_possible_wrap)]
pub(crate) fn rank_number(rank: usize) -> i32 {
    rank as i32
}

/// Returns the lowest and the highest element of a tensor that is not empty, as offsets in elements from element
/// [0, …, 0], by the extent and stride of every axis. Returns `None` if 63 bits cannot number them.
pub(crate) fn reach(dims: impl Iterator<Item = (i64, i64)>) -> Option<(i64, i64)> {
    let (mut low, mut high) = (0i64, 0i64);
    for (extent, stride) in dims {
        if extent == 1 {
            continue;
        }
        let last = (extent - 1).checked_mul(stride)?;
        let side = if stride < 0 { &mut low } else { &mut high };
        *side = side.checked_add(last)?;
    }
    Some((low, high))
}

/// Returns whether the strides are those of row-major packed elements; extent-1 axes do not matter.
/// `dims` gives extent and stride of every axis, innermost first, none of extent 0.
pub(crate) fn is_packed(dims: impl Iterator<Item = (i64, i64)>) -> bool {
    let mut packed = 1i64;
    for (extent, stride) in dims {
        if stride != packed && extent != 1 {
            return false;
        }
        // The extents of a tensor: their product fits.
        packed = packed.wrapping_mul(extent);
    }
    true
}

/// Returns an axis along which elements may share an address, how many elements the smaller strides reach over, and its
/// stride. Taken by size of stride, each axis must step over everything that the smaller ones reach:
/// layouts that interleave axes in other ways are refused, though in some of them no two elements share an address.
pub(crate) fn colliding(
    dims: &(impl Iterator<Item = (i64, i64)> + Clone),
) -> Option<(usize, i64, i64)> {
    let (mut covered, mut previous) = (0i64, None);
    loop {
        // The axis with the next larger stride, or with the same one, which collides.
        let keyed = (dims.clone().enumerate())
            .map(|(axis, (extent, stride))| (stride.unsigned_abs(), axis, extent, stride));
        let next = keyed
            .filter(|&(size, axis, extent, _)| extent != 1 && Some((size, axis)) > previous)
            .min();
        let (size, axis, extent, stride) = next?;
        if size <= covered.cast_unsigned() {
            return Some((axis, covered.saturating_add(1), stride));
        }
        let last = i64::try_from(size).ok().and_then(|step| step.checked_mul(extent - 1));
        let Some(reached) = last.and_then(|last| covered.checked_add(last)) else {
            return Some((axis, i64::MAX, stride));
        };
        (covered, previous) = (reached, Some((size, axis)));
    }
}

#[cfg(test)]
mod tests {
    use super::{bytes_of_bits, colliding, is_packed, reach};

    #[test]
    fn bits_round_up_to_bytes() {
        assert_eq!([0, 10, 12, 160].map(bytes_of_bits), [0, 2, 2, 20]);
        assert_eq!(bytes_of_bits(i64::MAX), 1 << 60);
    }

    #[test]
    fn reach_follows_the_sign_of_each_stride() {
        let dims = |d: &'static [(i64, i64)]| reach(d.iter().copied());
        assert_eq!(dims(&[(2, 3), (3, 1)]), Some((0, 5)));
        assert_eq!(dims(&[(2, -3), (3, 1)]), Some((-3, 2)));
        assert_eq!(dims(&[(1, i64::MIN), (3, 0)]), Some((0, 0)));
        assert_eq!(dims(&[(3, i64::MAX)]), None);
        assert_eq!(dims(&[(2, i64::MIN), (2, -1)]), None);
    }

    #[test]
    fn packed_means_row_major_without_gaps() {
        assert!(is_packed([(3, 1), (2, 3)].into_iter()));
        assert!(is_packed([(3, 1), (1, -77), (2, 3)].into_iter()));
        assert!(!is_packed([(3, 1), (2, 4)].into_iter()));
        assert!(!is_packed([(3, 2), (2, 3)].into_iter()));
    }

    #[test]
    fn nested_strides_cannot_collide() {
        let nests = |dims: &'static [(i64, i64)]| colliding(&dims.iter().copied()).is_none();
        assert!(nests(&[(2, 3), (3, 1)]));
        assert!(nests(&[(2, -1), (3, 2)]));
        assert!(nests(&[(1, 0), (3, 1)]));
        assert!(!nests(&[(2, 0), (3, 1)]));
        assert!(!nests(&[(2, 2), (3, 1)]));
        assert!(!nests(&[(2, 1), (3, -1)]));
    }
}
