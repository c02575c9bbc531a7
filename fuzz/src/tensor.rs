//! The model of tensors in memory, written from the header: spans, strides, and elements bit by
//! bit.

use std::ops::Range;

/// What makes a call invalid; the model does not know which status it gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refused;

/// Bits of the elements by dtype number, from the ONNX documents.
const BITS: [i128; 27] = [
    0, 32, 8, 8, 16, 16, 32, 64, 128, 8, 16, 64, 32, 64, 64, 128, 16, 8, 8, 8, 8, 4, 4, 4, 8, 2, 2,
];

/// Returns the bits of an element; `None` for a number that is no dtype.
pub fn bits_of(dtype: i64) -> Option<i128> {
    let dtype = usize::try_from(dtype).ok()?;
    BITS.get(dtype).copied().filter(|bits| *bits > 0)
}

/// A tensor's numbers.
#[derive(Debug, Clone)]
pub struct Tensor {
    pub data: usize,
    pub data_bytes: usize,
    pub shape: Vec<i64>,
    pub strides: Option<Vec<i64>>,
    pub bits: i128,
    pub bit_offset: u32,
}

/// Known extents must make fewer than 2^63 bits, whatever the empty ones are.
pub fn check_size(shape: &[i64], bits: i128) -> Result<(), Refused> {
    let mut product = bits;
    for extent in shape.iter().filter(|extent| **extent > 0) {
        product = product.saturating_mul(i128::from(*extent));
    }
    if product > i128::from(i64::MAX) {
        return Err(Refused);
    }
    Ok(())
}

/// Returns row-major packed strides; extents of 0 count as 1.
pub fn packed_strides(shape: &[i64]) -> Vec<i64> {
    (0..shape.len()).map(|axis| shape[axis + 1..].iter().map(|e| (*e).max(1)).product()).collect()
}

impl Tensor {
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Returns extent and stride of the axes whose stride matters.
    pub fn axes(&self) -> Vec<(i128, i128)> {
        let strides = self.strides.clone().unwrap_or_else(|| packed_strides(&self.shape));
        let axes = self.shape.iter().zip(strides);
        axes.filter(|(extent, _)| **extent != 1)
            .map(|(extent, stride)| (i128::from(*extent), i128::from(stride)))
            .collect()
    }

    /// Returns the bytes from the lowest to the highest, relative to `data`; an error if they
    /// cannot be represented. Not for empty tensors.
    pub fn reach(&self) -> Result<Range<i128>, Refused> {
        let last = |side: i128| -> i128 {
            let steps = self.axes().into_iter().map(|(extent, stride)| (extent - 1) * stride);
            steps.filter(|step| step.signum() == side).sum()
        };
        let (low, high) = (last(-1), last(1) + 1);
        let offset = i128::from(self.bit_offset);
        let first_bit = low * self.bits + offset;
        let end_bit = high * self.bits + offset;
        let unit = if self.bits < 8 { 1 } else { 8 };
        let fits = |number: i128| i64::try_from(number).is_ok();
        let range = first_bit.div_euclid(8)..-(-end_bit).div_euclid(8);
        if [low, high, first_bit / unit, end_bit / unit, range.end - range.start]
            .into_iter()
            .all(fits)
        {
            Ok(range)
        } else {
            Err(Refused)
        }
    }

    /// Returns the addresses that the tensor touches; `None` if it is empty.
    pub fn span(&self) -> Result<Option<Range<i128>>, Refused> {
        let whole = if self.bits < 8 { self.bits } else { i128::MAX };
        if i128::from(self.bit_offset) % whole != 0 {
            return Err(Refused);
        }
        check_size(&self.shape, self.bits)?;
        if self.shape.iter().any(|extent| *extent < 0) {
            return Err(Refused);
        }
        if self.is_empty() {
            return Ok(None);
        }
        if self.data == 0 {
            return Err(Refused);
        }
        let reach = self.reach()?;
        let bytes = reach.end - reach.start;
        let base = self.data as i128;
        let (start, end) = (base + reach.start, base + reach.end);
        let too_small = self.data_bytes != 0 && (self.data_bytes as i128) < bytes;
        if too_small || start < 0 || end > usize::MAX as i128 {
            return Err(Refused);
        }
        Ok(Some(start..end))
    }

    /// Returns whether elements are contiguous in row-major order. Not for empty tensors.
    pub fn is_packed(&self) -> bool {
        let packed = Self { strides: None, ..self.clone() };
        self.axes() == packed.axes()
    }

    /// The header's rule for outputs: each stride steps over everything that the smaller ones
    /// reach.
    pub fn strides_nest(&self) -> bool {
        let mut axes = self.axes();
        axes.sort_by_key(|(_, stride)| stride.abs());
        let mut reached = 0;
        axes.into_iter().all(|(extent, stride)| {
            let steps_over = stride.abs() > reached;
            reached += (extent - 1) * stride.abs();
            steps_over
        })
    }

    pub fn elements(&self) -> i128 {
        self.shape.iter().map(|extent| i128::from(*extent)).product()
    }

    /// Returns the bit address of every element, in row-major order.
    pub fn positions(&self) -> Vec<i128> {
        self.first_positions(usize::MAX)
    }

    /// Returns the bit addresses of the first elements, at most so many: a list may repeat one for billions.
    pub fn first_positions(&self, most: usize) -> Vec<i128> {
        if self.is_empty() {
            return vec![];
        }
        let mut positions = vec![self.data as i128 * 8 + i128::from(self.bit_offset)];
        for (extent, stride) in self.axes() {
            let step = stride * self.bits;
            positions = positions
                .into_iter()
                .flat_map(|from| (0..extent).map(move |index| from + index * step))
                .take(most)
                .collect();
        }
        positions
    }
}
