//! A tensor as a caller describes it, and the checks that its numbers must pass before anything is
//! touched.

#![forbid(unsafe_code)]

use crate::dtype::DType;
use crate::error::{number, Error};
use crate::shape;
use crate::span::Span;
use crate::words::{Field, Which};

/// A tensor as a caller describes it. Its extents are known and not negative; everything else is
/// still to be checked by [`Tensor::reach`] and [`Reach::place`].
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

impl Tensor<'_> {
    /// Extent and stride of every axis, outermost first, of a tensor with strides of its own.
    fn strided_dims(
        &self,
    ) -> Option<impl DoubleEndedIterator<Item = (i64, i64)> + ExactSizeIterator + Clone + '_> {
        let strides = self.strides?;
        Some(self.shape.iter().copied().zip(strides.iter().copied()))
    }

    /// Whether elements follow each other in row-major order without gaps. Not for empty tensors.
    #[inline]
    pub(crate) fn is_packed(&self) -> bool {
        match self.strided_dims() {
            None => true,
            Some(dims) => shape::is_packed(dims.rev()),
        }
    }

    /// Extent and stride of every axis, none if it is packed.
    pub(crate) fn dims(&self) -> impl Iterator<Item = (i64, i64)> + Clone + '_ {
        self.strided_dims().into_iter().flatten()
    }

    /// That the bit offset suits the type: whole elements in a sub-byte one, 0 in others.
    #[inline(always)]
    pub(crate) fn check_bit_offset(&self, which: Which) -> Result<(), Error> {
        if self.bit_offset == 0 {
            return Ok(());
        }
        let (bits, actual) = (i64::from(self.dtype.bits()), i64::from(self.bit_offset));
        if !self.dtype.is_sub_byte() {
            Err(Error::BitOffsetNotZero { which, expected: 0, actual })
        } else if actual & (bits - 1) != 0 {
            Err(Error::BitOffset { which, expected: bits, actual })
        } else {
            Ok(())
        }
    }

    /// What a tensor of `count` elements, more than none, reaches over.
    #[inline(never)] // once in the library
    pub(crate) fn reach(&self, count: i64, which: Which) -> Result<Reach, Error> {
        let elements = match self.strided_dims() {
            None => Some((0, count - 1)),
            Some(dims) => shape::reach(dims),
        };
        let bits = self.dtype.bits();
        match elements.and_then(|(low, high)| byte_reach(low, high, bits, self.bit_offset.into())) {
            Some(reach) => Ok(reach),
            None if self.strides.is_none() => Err(Error::TooManyElements { which }),
            None => Err(Error::StridesOverflow { which }),
        }
    }

    /// That so much memory is there, as far as the caller says.
    #[inline(always)]
    pub(crate) fn check_data_bytes(&self, reach: Reach, which: Which) -> Result<(), Error> {
        if self.data_bytes != 0 && (self.data_bytes as u64) < reach.bytes.cast_unsigned() {
            let (expected, actual) = (reach.bytes, number(self.data_bytes));
            return Err(Error::DataBytes { which, expected, actual });
        }
        Ok(())
    }

    /// The bytes that a tensor of `count` elements touches; an empty span if there are none. Checks
    /// everything about it but its extents.
    #[inline(always)]
    pub(crate) fn span(&self, count: i64, which: Which) -> Result<Span, Error> {
        // Of most tensors, nothing is stated that needs a closer look.
        if self.bit_offset == 0 && self.strides.is_none() && self.data_bytes == 0 && count > 0 {
            let reach = Reach { low: 0, bytes: shape::packed_bytes(count, self.dtype.bits()) };
            if let (false, Some(span)) = (self.data.is_null(), reach.at(self.data)) {
                return Ok(span);
            }
        }
        Self::span_closely(*self, count, which)
    }

    /// The same of any tensor. A copy, so that others stay in registers.
    #[inline(never)]
    fn span_closely(self, count: i64, which: Which) -> Result<Span, Error> {
        self.check_bit_offset(which)?;
        if count == 0 {
            return Ok(Span::default());
        }
        if self.data.is_null() {
            return Err(Error::NullField { which, field: Field::Data });
        }
        let reach = self.reach(count, which)?;
        self.check_data_bytes(reach, which)?;
        reach.place(self.data, which)
    }
}

impl Reach {
    /// Checks that the bytes have numbers in `isize`; where that has 64 bits they do.
    pub(crate) fn check_fits(self, which: Which) -> Result<(), Error> {
        match (isize::try_from(self.low), isize::try_from(self.bytes)) {
            (Ok(_), Ok(_)) => Ok(()),
            _ => Err(Error::AddressOverflow { which }),
        }
    }

    /// The addresses of a tensor whose data lies there.
    #[inline(always)]
    pub(crate) fn place(self, data: *const u8, which: Which) -> Result<Span, Error> {
        match self.at(data) {
            Some(span) => Ok(span),
            None => Err(Error::AddressOverflow { which }),
        }
    }

    /// The same; `None` where there are none.
    #[inline(always)]
    pub(crate) fn at(self, data: *const u8) -> Option<Span> {
        let start = match self.low {
            0 => data as usize,
            low => (data as usize).checked_add_signed(isize::try_from(low).ok()?)?,
        };
        let end = start.checked_add(usize::try_from(self.bytes).ok()?)?;
        Some(Span { start, end })
    }
}

/// From element offsets to bytes.
pub(crate) fn byte_reach(low: i64, high: i64, bits: u32, bit_offset: i64) -> Option<Reach> {
    let (low, end) = if bits >= 8 {
        let size = i64::from(bits / 8);
        (low.checked_mul(size)?, high.checked_add(1)?.checked_mul(size)?)
    } else {
        let bits = i64::from(bits);
        let low = low.checked_mul(bits)?.checked_add(bit_offset)?;
        let end = high.checked_add(1)?.checked_mul(bits)?.checked_add(bit_offset)?;
        // Rounded down and up to whole bytes.
        (low >> 3, (end >> 3) + i64::from(end & 7 != 0))
    };
    Some(Reach { low, bytes: end.checked_sub(low)? })
}
