//! The feature `ndarray`: array views as inputs, and pieces as array views.

use super::element::Element;
use super::view::View;
use crate::error::{number, Error};
use alloc::vec::Vec;
use ndarray::{ArrayView, ArrayViewD, Axis, Dimension, IxDyn, ShapeBuilder, ShapeError};

/// Makes an input of an array without copying it. The array's axes may be in any order and direction.
///
/// ```
/// use libsplit::{Split, View};
/// use ndarray::{array, ArrayViewD};
///
/// let frames = array![[1, 2], [3, 4], [5, 6]];
/// let channels = Split::unbind(0).views(&View::try_from(frames.t())?)?;
/// assert_eq!(ArrayViewD::try_from(&channels[1]), Ok(array![2, 4, 6].view().into_dyn()));
/// # Ok::<(), libsplit::Error>(())
/// ```
///
/// # Errors
/// [`Error::ArrayGaps`] if there may be other elements between those of the array, because a [`View`]
/// would borrow them too. Split the array that this one is a part of, or a copy.
impl<'a, T: Element, D: Dimension> TryFrom<ArrayView<'a, T, D>> for View<'a, T> {
    type Error = Error;

    fn try_from(array: ArrayView<'a, T, D>) -> Result<Self, Error> {
        let shape: Vec<i64> = array.shape().iter().copied().map(number).collect();
        if array.is_empty() {
            return View::packed(&[], &shape);
        }
        let strides: Vec<i64> = array.strides().iter().map(|stride| *stride as i64).collect();
        let data = array.to_slice_memory_order().ok_or(Error::ArrayGaps)?;
        View::strided(data, behind(&shape, &strides), &shape, &strides)
    }
}

/// Makes an array of a view, such as a piece, without copying it.
///
/// # Errors
/// If an extent or a stride does not fit in a `usize`.
impl<'a, T: Element> TryFrom<&View<'a, T>> for ArrayViewD<'a, T> {
    type Error = ShapeError;

    fn try_from(view: &View<'a, T>) -> Result<Self, ShapeError> {
        let (shape, strides) = (view.shape(), view.strides());
        let extents: Vec<usize> =
            shape.iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX)).collect();
        if shape.contains(&0) {
            return ArrayViewD::from_shape(IxDyn(&extents), &[]);
        }
        // Starts at the lowest address with all axes forwards, and then reverses those that go backwards.
        let steps = shape.iter().zip(strides).map(|(n, stride)| match n {
            1 => 1,
            _ => usize::try_from(stride.unsigned_abs()).unwrap_or(usize::MAX),
        });
        let steps: Vec<usize> = steps.collect();
        let lowest = view.offset().saturating_sub(behind(shape, strides));
        let data = view.data().get(lowest..).unwrap_or_default();
        let mut array = ArrayViewD::from_shape(IxDyn(&extents).strides(IxDyn(&steps)), data)?;
        for (axis, _) in strides.iter().enumerate().filter(|(_, stride)| **stride < 0) {
            array.invert_axis(Axis(axis));
        }
        Ok(array)
    }
}

/// Returns how many elements a tensor reaches back from element [0, …, 0].
fn behind(shape: &[i64], strides: &[i64]) -> usize {
    let back = shape.iter().zip(strides).map(|(n, stride)| (n - 1) * stride.min(&0));
    usize::try_from(-back.sum::<i64>()).unwrap_or(0)
}
