//! Tensors of strings, whose characters only ONNX Runtime can get at: copied one by one.

use crate::ort::{ort_call, Error, Ort};
use crate::tensor::{axis_index, Input};
use core::ptr;
use ort_sys::OrtValue;

/// A tensor of strings, of which one piece after another is taken.
pub struct Strings<'a> {
    ort: Ort,
    input: &'a Input,
    axis: usize,
    /// Where the next piece begins in each row.
    begin: usize,
}

impl<'a> Strings<'a> {
    /// To be split along `axis`, which must be in bounds.
    pub fn new(ort: Ort, input: &'a Input, axis: i64) -> Self {
        let axis = axis_index(axis, &input.shape).unwrap_or(0);
        Self { ort, input, axis, begin: 0 }
    }

    /// Copies the next piece to `output`, or passes over it if that is NULL.
    ///
    /// # Safety
    /// The input and `output` must be tensors of strings, `shape` that of the piece.
    pub unsafe fn next_to(&mut self, output: *mut OrtValue, shape: &[i64]) -> Result<(), Error> {
        let (_, row) = rows(&self.input.shape, self.axis);
        let (count, run) = rows(shape, self.axis);
        if !output.is_null() {
            for to in 0..count * run {
                let from = to / run * row + self.begin + to % run;
                // SAFETY: the caller's promise.
                unsafe { copy(self.ort, self.input.value, from, output, to) }?;
            }
        }
        self.begin += run;
        Ok(())
    }
}

/// A packed tensor as rows, one for each index of the axes before `axis`: how many there are, and
/// how many elements each has.
fn rows(shape: &[i64], axis: usize) -> (usize, usize) {
    let count = |extents: &[i64]| {
        extents.iter().map(|&extent| usize::try_from(extent).unwrap_or(0)).product()
    };
    let (outer, inner) = shape.split_at(axis.min(shape.len()));
    (count(outer), count(inner))
}

/// Copies the string at `from` to the place `to` of another tensor, whatever bytes it has.
///
/// # Safety
/// Both must be tensors of strings. (ONNX Runtime checks the positions.)
unsafe fn copy(
    ort: Ort,
    source: *const OrtValue,
    from: usize,
    target: *mut OrtValue,
    to: usize,
) -> Result<(), Error> {
    let (mut len, mut buffer) = (0, ptr::null_mut());
    // SAFETY: the caller's promise; the buffer has room for `len` bytes.
    unsafe {
        ort_call!(ort, GetStringTensorElementLength, source, from, &raw mut len)?;
        ort_call!(ort, GetResizedStringTensorElementBuffer, target, to, len, &raw mut buffer)?;
        ort_call!(ort, GetStringTensorElement, source, len, from, buffer.cast())
    }
}
