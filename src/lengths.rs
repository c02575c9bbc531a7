//! The operator's lengths: a scalar or list of any type that some version allows.

use crate::dtype::DType;
use crate::math::isize_of;
use core::marker::PhantomData;

/// A borrowed lengths tensor of rank 0 or 1. Built safely from slices and numbers, or by the C
/// boundary from a descriptor.
#[derive(Debug, Clone, Copy)]
pub struct Lengths<'a> {
    /// Element 0; NULL = values not known yet.
    data: *const u8,
    /// First element's offset in bits from `data`.
    bit_offset: i64,
    /// Bits from one element to the next.
    pub(crate) bit_stride: i64,
    /// The number of entries; 1 for a scalar.
    pub(crate) count: i64,
    pub(crate) is_scalar: bool,
    /// Whether they are Rust integers, of which the operators that take lengths take any type.
    pub(crate) are_rust_integers: bool,
    pub(crate) dtype: DType,
    borrowed: PhantomData<&'a [u8]>,
}

// SAFETY: a shared borrow of plain numbers, never written through.
unsafe impl Sync for Lengths<'_> {}
// SAFETY: as above.
unsafe impl Send for Lengths<'_> {}

impl<'a> Lengths<'a> {
    /// Describes the lengths at `data`, which is NULL if they are not known yet. `len` is `None` for a scalar.
    ///
    /// # Safety
    /// Every element from 0 to `len`, `bit_stride` bits apart from `bit_offset` on, must be
    /// readable for `'a` where `data` is not NULL.
    pub(crate) unsafe fn from_raw(
        data: *const u8,
        bit_offset: i64,
        bit_stride: i64,
        len: Option<i64>,
        dtype: DType,
    ) -> Self {
        Self {
            data,
            bit_offset,
            bit_stride,
            count: len.unwrap_or(1),
            is_scalar: len.is_none(),
            are_rust_integers: false,
            dtype,
            borrowed: PhantomData,
        }
    }

    /// Returns the number of entries of a list, `None` for a scalar.
    pub(crate) fn len(&self) -> Option<i64> {
        (!self.is_scalar).then_some(self.count)
    }

    pub(crate) fn is_known(&self) -> bool {
        !self.data.is_null() || self.count == 0
    }

    /// Returns the entries of a list, if their values are known and lie in memory as a slice of int64 does.
    #[allow(clippy::cast_ptr_alignment)] // which is looked at
    pub(crate) fn int64s(&self) -> Option<&'a [i64]> {
        let data = self.data.cast::<i64>();
        if self.dtype != DType::Int64
            || self.bit_stride != i64::from(i64::BITS)
            || data.is_null()
            || !data.is_aligned()
        {
            return None;
        }
        let len = usize::try_from(self.count).ok()?;
        // SAFETY: they are readable by the promise of `from_raw` or of the borrowed slice.
        Some(unsafe { core::slice::from_raw_parts(data, len) })
    }

    /// Returns entry `index` if it is a whole number that `i64` can hold. `index` must be below the length, and the
    /// values known.
    pub(crate) fn value(&self, index: i64) -> Option<i64> {
        debug_assert!(index >= 0 && index < self.count && self.is_known());
        let bits = self.bit_offset.wrapping_add(index.wrapping_mul(self.bit_stride));
        converted(self.dtype, self.data.wrapping_offset(isize_of(bits >> 3)), bits & 7)
    }
}

/// Returns the entry at an address as [`Lengths::value`] does. `shift` is where it begins in its first byte.
#[inline(never)] // once in the library
fn converted(dtype: DType, at: *const u8, shift: i64) -> Option<i64> {
    macro_rules! number {
        ($t:ty) => {{
            // SAFETY: the promise of `from_raw` or of the borrowed slice; no alignment is assumed.
            unsafe { at.cast::<$t>().read_unaligned() }
        }};
    }
    match dtype {
        DType::Int64 => Some(number!(i64)),
        DType::Int32 => Some(number!(i32).into()),
        DType::Int16 => Some(number!(i16).into()),
        DType::Int8 => Some(number!(i8).into()),
        DType::Uint64 => i64::try_from(number!(u64)).ok(),
        DType::Uint32 => Some(number!(u32).into()),
        DType::Uint16 => Some(number!(u16).into()),
        DType::Uint8 => Some(number!(u8).into()),
        DType::Uint4 => Some(i64::from(number!(u8) >> shift & 0xF)),
        DType::Uint2 => Some(i64::from(number!(u8) >> shift & 0x3)),
        // The element's top bit is moved to bit 7, then back with its sign.
        DType::Int4 => Some(i64::from(number!(i8) << (4 - shift) >> 4)),
        DType::Int2 => Some(i64::from(number!(i8) << (6 - shift) >> 6)),
        DType::Float => whole(number!(f32).into()),
        DType::Double => whole(number!(f64)),
        DType::Float16 => whole(number!(half::f16).into()),
        _ => None,
    }
}

/// Returns a float if it is a whole number within `i64`. NaN and infinities are not.
#[allow(clippy::cast_possible_truncation, clippy::cast_precision_loss, clippy::float_cmp)]
fn whole(value: f64) -> Option<i64> {
    // 2^63
    const LIMIT: f64 = 9_223_372_036_854_775_808.0;
    // `trunc` is not in core; within the limit the cast truncates.
    let inside = (-LIMIT..LIMIT).contains(&value);
    (inside && (value as i64) as f64 == value).then_some(value as i64)
}
