//! The shape of the input as the split axis divides it.

use crate::dtype::DType;
use crate::error::{number, Error};
use crate::operator::Rules;
use crate::rules::Request;
use crate::shape::{self, bytes_of_bits, DIM_UNKNOWN, MAX_RANK};
use crate::tensor::Tensor;
use crate::words::Argument;

/// The input's type and shape, divided by the split axis.
#[derive(Debug, Clone, Copy)]
#[repr(C)] // plans hold it
pub(crate) struct Geometry<'a> {
    pub dtype: DType,
    pub shape: &'a [i64],
    pub axis: usize,
    /// `false` if the pieces, all of length 1, lose the split axis.
    pub keeps_axis: bool,
    /// Extent of the axis, which may be unknown.
    pub extent: i64,
    /// Number of elements of the input, where unknown extents count as 1.
    pub elements: i64,
    /// Number of elements in one step along the axis: the product of the extents inward of it.
    pub inner: i64,
    /// The product of the extents outward of the axis; unknown if any extent but that of the axis is.
    pub outer: i64,
    /// Bits of all elements of one step along the axis; 0 if an extent of another axis is unknown.
    pub step_bits: i64,
}

impl<'a> Geometry<'a> {
    /// Checks type and shape of an input, and the axis. The lengths need not be known yet.
    #[inline(always)] // once in the library
    pub(crate) fn new(
        request: &Request<'_>,
        &Tensor { dtype, shape, .. }: &Tensor<'a>,
    ) -> Result<Self, Error> {
        let &Request { operator, axis, keepdims, may_be_unknown: unknown_allowed, .. } = request;
        let keeps_axis = match operator.rules() {
            Rules::Sequence => keepdims,
            Rules::Split(_) | Rules::Variadic => true,
        };
        if !operator.allows(dtype) {
            let remedy = operator.that_allows(dtype);
            return Err(Error::DTypeNotAllowed { dtype, operator, remedy });
        }
        let back = if axis < 0 { number(shape.len()) } else { 0 };
        let split = usize::try_from(axis.wrapping_add(back).cast_unsigned()).unwrap_or(usize::MAX);
        let lowest = if unknown_allowed { DIM_UNKNOWN } else { 0 };
        let Some((outward, &[extent, ref inward @ ..])) = shape.split_at_checked(split) else {
            return Err(refusal(shape, axis, lowest));
        };
        let counts = counts(outward, extent, inward, dtype);
        let counts = counts.filter(|[.., least]| *least >= lowest && shape.len() <= MAX_RANK);
        let Some([elements, inner, outer, _]) = counts else {
            return Err(refusal(shape, axis, lowest));
        };
        let step_bits = outer.max(0).wrapping_mul(inner).wrapping_mul(dtype.bits().into());
        let axis = split;
        Ok(Self { dtype, shape, axis, keeps_axis, extent, elements, inner, outer, step_bits })
    }

    /// Checks that all elements and all bytes can be numbered by `isize`, which is always so if it has 64 bits.
    pub(crate) fn check_addressable(&self) -> Result<(), Error> {
        let most = self.elements.max(self.output_bytes(self.extent));
        let too_many = Error::TooManyElements { argument: Argument::Input };
        isize::try_from(most).map(drop).map_err(|_| too_many)
    }

    /// Returns the number of bytes of a packed output of `len` steps.
    pub(crate) fn output_bytes(&self, len: i64) -> i64 {
        bytes_of_bits(self.step_bits.wrapping_mul(len))
    }

    /// Returns the rank of every output.
    pub(crate) fn output_rank(&self) -> usize {
        self.shape.len() - usize::from(!self.keeps_axis)
    }

    /// Returns the extents of an output of `len` steps, outermost first.
    pub(crate) fn output_shape(
        &self,
        len: i64,
    ) -> impl DoubleEndedIterator<Item = i64> + ExactSizeIterator + Clone + 'a {
        let Self { axis, shape, .. } = *self;
        self.input_axes().map(move |d| match shape.get(d) {
            Some(extent) if d != axis => *extent,
            _ => len,
        })
    }

    /// Returns whether these are the extents of an output of `len` steps. There must be as many as it has axes.
    pub(crate) fn is_output_shape(&self, len: i64, shape: impl Iterator<Item = i64>) -> bool {
        if !self.keeps_axis {
            return shape.eq(self.output_shape(len));
        }
        let mut dims = shape.zip(self.shape).enumerate();
        dims.all(|(axis, (actual, own))| actual == if axis == self.axis { len } else { *own })
    }

    /// Returns the strides of the input on the axes that outputs have.
    pub(crate) fn output_strides<'b>(
        &self,
        strides: &'b [i64],
    ) -> impl DoubleEndedIterator<Item = i64> + Clone + use<'b> {
        self.input_axes().map(move |d| strides.get(d).copied().unwrap_or(0))
    }

    /// Returns the axes that outputs have, by their numbers in the input.
    fn input_axes(
        &self,
    ) -> impl DoubleEndedIterator<Item = usize> + ExactSizeIterator + Clone + use<> {
        let dropped = if self.keeps_axis { usize::MAX } else { self.axis };
        (0..self.output_rank()).map(move |d| d + usize::from(d >= dropped))
    }
}

/// Returns why a shape has no geometry: its rank, the last of its extents that is not allowed, the axis, or its size.
#[cold]
pub(crate) fn refusal(shape: &[i64], axis: i64, lowest: i64) -> Error {
    let rank = shape.len();
    if rank == 0 {
        return Error::RankZero;
    }
    if rank > MAX_RANK {
        let (argument, expected, actual) = (Argument::Input, number(MAX_RANK), number(rank));
        return Error::Rank { argument, expected, actual };
    }
    match shape.iter().enumerate().rev().find(|(_, extent)| **extent < lowest) {
        Some((axis, &DIM_UNKNOWN)) => Error::ExtentUnknown { axis },
        Some((axis, &actual)) => Error::ExtentNegative { axis, expected: 0, actual },
        None if !(-number(rank)..number(rank)).contains(&axis) => Error::Axis { axis, rank },
        None => Error::TooManyElements { argument: Argument::Input },
    }
}

/// Returns [`Geometry`]'s `elements`, `inner` and `outer`, and the least extent. Returns `None` if 63 bits cannot number
/// the bits of all elements, even if an extent of 0 means that there are none: strides could not be numbered either.
#[inline(always)] // once in the library
pub(crate) fn counts(
    outward: &[i64],
    extent: i64,
    inward: &[i64],
    dtype: DType,
) -> Option<[i64; 4]> {
    // The product of extents above 0, and the least of all.
    let product = |extents: &[i64]| {
        extents.iter().try_fold((1i64, i64::MAX), |(product, least), &extent| {
            Some((product.checked_mul(extent.max(1))?, least.min(extent)))
        })
    };
    let ((inner, least_inward), (outer, least_outward)) = (product(inward)?, product(outward)?);
    let elements = inner.checked_mul(extent.max(1))?.checked_mul(outer)?;
    elements.checked_mul(dtype.bits().into())?;
    let unless_empty = |least: i64, count| if least == 0 { 0 } else { count };
    let least_other = least_inward.min(least_outward);
    let least = least_other.min(extent);
    Some([
        unless_empty(least, elements),
        unless_empty(least_inward, inner),
        if least_other < 0 { DIM_UNKNOWN } else { unless_empty(least_outward, outer) },
        least,
    ])
}

/// The layout of an input, for views of its pieces. Distances are counted in units: bytes, or bits of sub-byte types.
#[derive(Clone, Copy)]
pub(crate) struct Place<'a> {
    pub has_elements: bool,
    /// The strides of the input, if it has strides, and elements for which they matter.
    pub strides: Option<&'a [i64]>,
    /// From one step along the split axis to the next.
    step: i64,
    /// Where the first step begins and ends, relative to its first element.
    low: i64,
    end: i64,
    /// Where the input's first element begins.
    begin: i64,
    /// Units to bytes.
    shift: u32,
}

/// Where a piece lies in the input.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placed {
    /// Bytes from the input's data to the piece's.
    pub ahead: isize,
    /// Bits from there to its first element, below 8.
    pub bit_offset: u32,
    /// Bytes from the lowest to the highest that it touches.
    pub bytes: usize,
}

impl<'a> Place<'a> {
    /// Describes an input whose layout has been checked.
    #[inline]
    pub(crate) fn new(geometry: &Geometry<'a>, input: &Tensor<'a>) -> Self {
        let has_elements = geometry.elements > 0;
        // Strides of a tensor without elements mean nothing, so its views are packed.
        let strides = if has_elements { input.strides } else { None };
        let mut step = 0;
        // The lowest and the highest element of the first step.
        let mut low = 0;
        let mut high = -1;
        if let Some(strides) = strides {
            let dims = geometry.output_shape(1).zip(geometry.output_strides(strides));
            step = strides.get(geometry.axis).copied().unwrap_or(0);
            (low, high) = shape::reach(dims).unwrap_or_default();
        } else if has_elements {
            let Geometry { outer, extent, inner, .. } = *geometry;
            step = inner;
            high = (outer - 1) * extent * inner + inner - 1;
        }
        // The stride of an axis of extent 1 may be anything, and only an empty piece can follow the first step.
        if geometry.extent == 1 {
            step = 0;
        }
        let bits = i64::from(geometry.dtype.bits());
        let (unit, shift) = if bits < 8 { (bits, 3) } else { (bits >> 3, 0) };
        // These and all that follow lie within the reach of the input, which was checked.
        Self {
            has_elements,
            strides,
            step: step.wrapping_mul(unit),
            low: low.wrapping_mul(unit),
            end: high.wrapping_add(1).wrapping_mul(unit),
            begin: if has_elements { input.bit_offset.into() } else { 0 },
            shift,
        }
    }

    /// Returns whether a piece of `len` steps is packed where it lies in the input.
    pub(crate) fn is_packed(&self, geometry: &Geometry<'_>, len: i64) -> bool {
        if !self.has_elements || len == 0 {
            return true;
        }
        match self.strides {
            None => geometry.outer == 1 || len == geometry.extent,
            Some(strides) => {
                let strides = geometry.output_strides(strides);
                shape::is_packed(geometry.output_shape(len).rev().zip(strides.rev()))
            }
        }
    }

    /// Returns where the piece of `len` steps from `offset` on lies.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // within the input's reach
    pub(crate) fn of(&self, offset: i64, len: i64) -> Placed {
        let begin = offset.wrapping_mul(self.step).wrapping_add(self.begin);
        let mask = (1 << self.shift) - 1;
        let bit_offset = begin & mask;
        let mut bytes = 0;
        if len > 0 {
            let last = (len - 1).wrapping_mul(self.step);
            let (low, end) =
                (self.low.wrapping_add(last.min(0)), self.end.wrapping_add(last.max(0)));
            let bytes_to = |units: i64| units.wrapping_add(bit_offset) >> self.shift;
            bytes = bytes_to(end.wrapping_add(mask)).wrapping_sub(bytes_to(low));
        }
        Placed {
            ahead: (begin >> self.shift) as isize,
            bit_offset: bit_offset as u32,
            bytes: bytes as usize,
        }
    }
}
