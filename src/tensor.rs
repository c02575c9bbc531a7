//! A tensor as a caller describes it, and the checks that its numbers must pass before anything is touched.

use crate::dtype::DType;
use crate::error::{number, Error};
use crate::shape::{self, bytes_of_bits};
use crate::span::Span;
use crate::words::{Argument, Field};

/// A tensor whose extents are known and not negative; everything else is still to be checked by [`Tensor::span`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tensor<'a> {
    /// Address of element [0, …, 0].
    pub data: *mut u8,
    /// Bytes usable from the lowest address touched; 0 = not stated.
    pub data_bytes: usize,
    pub dtype: DType,
    pub shape: &'a [i64],
    /// In elements; `None` = row-major packed.
    pub strides: Option<&'a [i64]>,
    /// Sub-byte types: the first element's offset in bits from `data`.
    pub bit_offset: u32,
}

/// The bytes of a tensor with elements, from the lowest to the highest that it touches: where they
/// begin, relative to its data, and how many they are.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
pub(crate) struct Reach {
    pub low: i64,
    pub bytes: i64,
}

impl<'a> Tensor<'a> {
    /// Returns a packed tensor that does not state its size.
    #[cfg(all(feature = "alloc", not(feature = "capi")))]
    pub(crate) fn packed(data: *mut u8, dtype: DType, shape: &'a [i64]) -> Self {
        Self { data, data_bytes: 0, dtype, shape, strides: None, bit_offset: 0 }
    }

    /// Returns whether the elements follow each other in row-major order without gaps. The tensor must not be empty.
    #[inline(always)]
    pub(crate) fn is_packed(&self) -> bool {
        shape::is_packed(self.dims().rev())
    }

    /// Returns the extent and the stride of every axis; none if the tensor has no strides.
    pub(crate) fn dims(&self) -> impl DoubleEndedIterator<Item = (i64, i64)> + Clone + '_ {
        let strides = self.strides.unwrap_or_default();
        self.shape.iter().copied().zip(strides.iter().copied())
    }

    /// Checks that the bit offset suits the type: whole elements for sub-byte types, 0 for others.
    #[inline(always)]
    pub(crate) fn check_bit_offset(&self, argument: Argument) -> Result<(), Error> {
        if self.bit_offset == 0 {
            return Ok(());
        }
        let (bits, actual) = (i64::from(self.dtype.bits()), i64::from(self.bit_offset));
        if !self.dtype.is_sub_byte() {
            Err(Error::BitOffsetNotZero { argument, expected: 0, actual })
        } else if actual & (bits - 1) != 0 {
            Err(Error::BitOffset { argument, expected: bits, actual })
        } else {
            Ok(())
        }
    }

    /// Returns what a tensor of `count` elements, at least one, reaches over.
    pub(crate) fn reach(&self, count: i64, argument: Argument) -> Result<Reach, Error> {
        let bits = self.dtype.bits();
        match (self.strides, self.bit_offset) {
            // All bits have been found to have numbers.
            (None, 0) => {
                Ok(Reach { low: 0, bytes: bytes_of_bits(count.wrapping_mul(bits.into())) })
            }
            (None, bit_offset) => byte_reach(0, count - 1, bits, bit_offset.into())
                .ok_or(Error::TooManyElements { argument }),
            (Some(_), _) => self.strided_reach(argument),
        }
    }

    /// Returns what a tensor with strides and elements reaches over.
    #[inline(never)] // once in the library
    pub(crate) fn strided_reach(&self, argument: Argument) -> Result<Reach, Error> {
        // The engine counts elements that share bytes as if each had one of its own.
        let is_numbered = |at: i64| !self.dtype.is_sub_byte() || isize::try_from(at).is_ok();
        let elements =
            shape::reach(self.dims()).filter(|(low, high)| is_numbered(*low) && is_numbered(*high));
        let bytes = |(low, high)| byte_reach(low, high, self.dtype.bits(), self.bit_offset.into());
        elements.and_then(bytes).ok_or(Error::StridesOverflow { argument })
    }

    /// Checks that the stated memory, if any is stated, is at least as much as the tensor reaches over.
    pub(crate) fn check_data_bytes(&self, reach: Reach, argument: Argument) -> Result<(), Error> {
        if self.data_bytes != 0 && (self.data_bytes as u64) < reach.bytes.cast_unsigned() {
            let (expected, actual) = (reach.bytes, number(self.data_bytes));
            return Err(Error::DataBytes { argument, expected, actual });
        }
        Ok(())
    }

    /// Returns the bytes that a tensor of `count` elements touches, an empty span if there are none. Checks everything
    /// about the tensor except its extents.
    #[inline(always)]
    pub(crate) fn span(&self, count: i64, argument: Argument) -> Result<Span, Error> {
        self.check_bit_offset(argument)?;
        if count == 0 {
            return Ok(Span::default());
        }
        if self.data.is_null() {
            return Err(Error::Null { argument, field: Field::Data });
        }
        let reach = self.reach(count, argument)?;
        self.check_data_bytes(reach, argument)?;
        reach.at(self.data, argument)
    }
}

impl Reach {
    /// Returns the addresses of a tensor whose element [0, …, 0] is at `data`.
    pub(crate) fn at(self, data: *const u8, argument: Argument) -> Result<Span, Error> {
        let span = || {
            let start = match self.low {
                0 => data as usize,
                low => (data as usize).checked_add_signed(isize::try_from(low).ok()?)?,
            };
            Some(Span { start, end: start.checked_add(usize::try_from(self.bytes).ok()?)? })
        };
        span().ok_or(Error::AddressOverflow { argument })
    }
}

/// Converts offsets in elements, from the lowest to the highest, to bytes. Returns `None` if `isize` cannot number them.
pub(crate) fn byte_reach(low: i64, high: i64, bits: u32, bit_offset: i64) -> Option<Reach> {
    // Counted in bytes, or in bits of sub-byte types.
    let (unit, shift) = if bits < 8 { (bits, 3) } else { (bits >> 3, 0) };
    let at = |element: i64| element.checked_mul(unit.into())?.checked_add(bit_offset);
    let (low, end) = (at(low)?, at(high.checked_add(1)?)?);
    // Rounded down and up to whole bytes.
    let is_partly_used = end & ((1 << shift) - 1) != 0;
    let (low, end) = (low >> shift, (end >> shift) + i64::from(is_partly_used));
    let bytes = end.checked_sub(low)?;
    (isize::try_from(low).is_ok() && isize::try_from(bytes).is_ok()).then_some(Reach { low, bytes })
}
