//! A tensor in memory, and the checks that its numbers must pass before anything is touched.

use crate::dtype::DType;
use crate::error::{number, Error, Which};
use crate::shape::{self, element_count};

/// A tensor as a caller describes it. Its extents are known and not negative; everything else is
/// still to be checked by [`Memory::span`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Memory<'a> {
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

/// The outputs of a copy, by index; `None` for one that the caller does not want.
pub(crate) trait Outputs: Sync {
    fn len(&self) -> usize;
    fn get(&self, index: usize) -> Result<Option<Memory<'_>>, Error>;
    /// Where a checked output begins, `None` for one that is not wanted.
    fn data(&self, index: usize) -> Option<*mut u8>;
    /// Where the descriptors themselves lie.
    fn descriptors(&self) -> Span;
    /// Whether the borrow checker has seen to it that outputs are apart.
    const APART: bool;
}

/// The bytes from the lowest to the highest that a tensor touches.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Span {
    pub start: usize,
    /// One past the highest.
    pub end: usize,
}

impl Span {
    pub(crate) fn of_slice<T>(slice: &[T]) -> Self {
        let start = slice.as_ptr() as usize;
        Self { start, end: start + size_of_val(slice) }
    }

    pub(crate) fn intersects(self, other: Self) -> bool {
        !self.is_apart(other) && !self.is_empty() && !other.is_empty()
    }

    /// Whether one lies above the other. Of an empty span within another that is not so.
    pub(crate) fn is_apart(self, other: Self) -> bool {
        other.end <= self.start || self.end <= other.start
    }

    /// From the lowest to the highest byte of both.
    pub(crate) fn hull(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start >= self.end
    }
}

impl Memory<'_> {
    /// Extent and stride of every axis, outermost first, of a tensor with strides of its own.
    fn strided_dims(
        &self,
    ) -> Option<impl DoubleEndedIterator<Item = (i64, i64)> + ExactSizeIterator + Clone + '_> {
        let strides = self.strides?;
        Some(self.shape.iter().copied().zip(strides.iter().copied()))
    }

    /// That the bit offset suits the type: whole elements in a sub-byte one, 0 in others.
    pub(crate) fn check_bit_offset(&self, which: Which) -> Result<(), Error> {
        let (bits, actual) = (self.dtype.bits(), i64::from(self.bit_offset));
        if self.bit_offset == 0 {
            Ok(())
        } else if !self.dtype.is_sub_byte() {
            Err(Error::BitOffsetNotZero { which, expected: 0, actual })
        } else if !self.bit_offset.is_multiple_of(bits) {
            Err(Error::BitOffset { which, expected: bits.into(), actual })
        } else {
            Ok(())
        }
    }

    /// Whether elements follow each other in row-major order without gaps. Not for empty tensors.
    pub(crate) fn is_packed(&self) -> bool {
        self.strided_dims().is_none_or(|dims| shape::is_packed(dims.rev()))
    }

    /// Whether it is sure that no two elements share an address, of a tensor that is not packed.
    pub(crate) fn strides_nest(&self) -> bool {
        self.strided_dims().is_none_or(|dims| shape::strides_nest(&dims))
    }

    /// The bytes that the tensor touches, `None` for a tensor without elements. Checks data,
    /// `data_bytes`, strides and bit offset, and that all of it lies within the address space.
    pub(crate) fn span(&self, which: Which) -> Result<Option<Span>, Error> {
        let count = element_count(self.shape.iter().copied(), self.dtype.bits(), which)?;
        self.span_of(count, which)
    }

    /// From where to where the bytes of a tensor with elements go, relative to its data.
    fn byte_reach(&self, count: i64, which: Which) -> Result<(i64, i64), Error> {
        let (low, high) = match self.strided_dims() {
            None => (0, count - 1),
            Some(dims) => shape::reach(dims, which)?,
        };
        byte_reach(low, high, self.dtype.bits(), self.bit_offset.into())
            .ok_or(Error::StridesOverflow { which })
    }

    /// [`Memory::span`] of a tensor whose `count` of elements is known.
    #[inline(always)]
    #[allow(clippy::inline_always)] // the error of a result is larger than the span
    pub(crate) fn span_of(&self, count: i64, which: Which) -> Result<Option<Span>, Error> {
        if self.bit_offset != 0 {
            self.check_bit_offset(which)?;
        }
        if count == 0 {
            return Ok(None);
        }
        if self.data.is_null() {
            return Err(Error::NullField { which, field: "data" });
        }
        let (low, bytes) = if self.strides.is_none() && self.bit_offset == 0 {
            (0, shape::packed_bytes(count, self.dtype.bits()))
        } else {
            self.byte_reach(count, which)?
        };
        if self.data_bytes != 0 && (self.data_bytes as u64) < bytes.unsigned_abs() {
            let actual = number(self.data_bytes);
            return Err(Error::DataBytes { which, expected: bytes, actual });
        }
        let start =
            isize::try_from(low).ok().and_then(|low| (self.data as usize).checked_add_signed(low));
        let span = start
            .zip(usize::try_from(bytes).ok())
            .and_then(|(start, bytes)| Some(Span { start, end: start.checked_add(bytes)? }));
        span.map(Some).ok_or(Error::AddressOverflow { which })
    }
}

/// From element offsets to bytes: where the lowest begins, relative to data, and how many bytes
/// there are from it to the end of the highest.
pub(crate) fn byte_reach(low: i64, high: i64, bits: u32, bit_offset: i64) -> Option<(i64, i64)> {
    if bits >= 8 {
        let size = i64::from(bits / 8);
        let low = low.checked_mul(size)?;
        let end = high.checked_add(1)?.checked_mul(size)?;
        Some((low, end.checked_sub(low)?))
    } else {
        let bits = i64::from(bits);
        let low = low.checked_mul(bits)?.checked_add(bit_offset)?.div_euclid(8);
        let end = high.checked_add(1)?.checked_mul(bits)?.checked_add(bit_offset)?;
        let end = end.div_euclid(8) + i64::from(end.rem_euclid(8) != 0);
        Some((low, end.checked_sub(low)?))
    }
}
