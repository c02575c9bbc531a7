//! Typed tensors over slices, for Rust callers.

use super::element::Element;
use super::split::Split;
use crate::dtype::DType;
use crate::error::{number, Error};
use crate::geometry;
use crate::operator::Operator;
use crate::shape::{self, usize_of, MAX_RANK};
use crate::tensor::Tensor;
use crate::types::{libsplit_dtype, libsplit_tensor};
use crate::words::Argument;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

/// A tensor over a borrowed slice: shape, strides, and the position of element [0, …, 0].
#[derive(Debug, Clone, PartialEq)]
pub struct View<'a, T> {
    pub(super) data: &'a [T],
    pub(super) layout: Layout,
}

/// A tensor over a mutably borrowed slice, into which a piece is copied.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    /// A place that has been initialised always stays so.
    data: &'a mut [MaybeUninit<T>],
    /// `None` if the output is not wanted.
    layout: Option<Layout>,
}

/// The positions of a view's elements in its slice, checked against the slice's length.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layout {
    pub offset: usize,
    pub shape: Box<[i64]>,
    pub strides: Box<[i64]>,
}

impl Layout {
    /// Lays out a packed tensor over a slice of `len` elements.
    fn packed<T: Element>(len: usize, shape: &[i64]) -> Result<Self, Error> {
        let count = check_shape::<T>(shape)?;
        let actual = number(len);
        if count != actual {
            return Err(Error::SliceLen { expected: count, actual });
        }
        let (mut strides, mut stride): (Box<[i64]>, _) = (shape.into(), 1);
        for slot in strides.iter_mut().rev() {
            stride *= core::mem::replace(slot, stride).max(1);
        }
        Ok(Self { offset: 0, shape: shape.into(), strides })
    }

    /// Lays out a tensor in a slice of `len` elements. Checks that all of it lies within.
    fn strided<T: Element>(
        len: usize,
        offset: usize,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        if strides.len() != shape.len() {
            let (expected, actual) = (number(shape.len()), number(strides.len()));
            return Err(Error::StridesLen { expected, actual });
        }
        if check_shape::<T>(shape)? > 0 {
            let dims = shape.iter().copied().zip(strides.iter().copied());
            let overflow = Error::StridesOverflow { argument: Argument::Input };
            let (low, high) = shape::reach(dims).ok_or(overflow)?;
            for reached in [low, high] {
                let at = number(offset).saturating_add(reached);
                if at < 0 || at >= number(len) {
                    return Err(Error::SliceReach { expected: number(len), actual: at });
                }
            }
        }
        Ok(Self { offset, shape: shape.into(), strides: strides.into() })
    }

    /// Returns the number of elements, which has been checked to fit.
    pub(crate) fn count(&self) -> i64 {
        self.shape.iter().product()
    }

    /// Returns the address of element [0, …, 0]; that of the slice if there are no elements.
    fn first<T>(&self, data: *mut T) -> *mut T {
        data.wrapping_add(if self.shape.contains(&0) { 0 } else { self.offset })
    }
}

/// Returns the number of elements. Checks that rank, extents and their product are within bounds.
fn check_shape<T: Element>(shape: &[i64]) -> Result<i64, Error> {
    let counts = geometry::counts(shape, 1, &[], T::DTYPE)
        .filter(|[.., least]| *least >= 0 && shape.len() <= MAX_RANK);
    counts.map(|[count, ..]| count).ok_or_else(|| geometry::refusal(shape, 0, 0))
}

impl<'a, T: Element> View<'a, T> {
    /// Makes a row-major packed tensor over all of `data`.
    ///
    /// # Errors
    /// If `data` does not have exactly as many elements as `shape`, or if `shape` is not a valid shape.
    pub fn packed(data: &'a [T], shape: &[i64]) -> Result<Self, Error> {
        Ok(Self { data, layout: Layout::packed::<T>(data.len(), shape)? })
    }

    /// Makes a tensor whose element [0, …, 0] is `data[offset]`. Strides are in elements, and may be negative or 0.
    ///
    /// ```
    /// // A matrix of 2 rows and 3 columns, seen transposed and with its rows reversed.
    /// let data = [1, 2, 3, 4, 5, 6];
    /// let view = libsplit::View::strided(&data, 3, &[3, 2], &[1, -3])?;
    /// assert_eq!(view.to_vec(), [4, 1, 5, 2, 6, 3]);
    /// # Ok::<(), libsplit::Error>(())
    /// ```
    ///
    /// # Errors
    /// If an element is outside `data`, or if `shape` and `strides` differ in length.
    pub fn strided(
        data: &'a [T],
        offset: usize,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        Ok(Self { data, layout: Layout::strided::<T>(data.len(), offset, shape, strides)? })
    }

    /// Returns the extents, outermost first.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.layout.shape
    }

    /// Returns the strides in elements, outermost first.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        &self.layout.strides
    }

    /// Returns the element at `index`; `None` if it is not in the tensor.
    #[must_use]
    pub fn get(&self, index: &[i64]) -> Option<&'a T> {
        let Layout { offset, shape, strides } = &self.layout;
        if index.len() != shape.len() || index.iter().zip(shape).any(|(i, n)| !(0..*n).contains(i))
        {
            return None;
        }
        let ahead: i64 = index.iter().zip(strides).map(|(i, stride)| i * stride).sum();
        self.data.get(offset.checked_add_signed(isize::try_from(ahead).ok()?)?)
    }

    /// Returns the elements as a slice if they are packed.
    #[must_use]
    pub fn as_slice(&self) -> Option<&'a [T]> {
        let count = usize_of(self.layout.count());
        if count == 0 {
            return Some(&[]);
        }
        self.tensor().is_packed().then(|| self.data.get(self.layout.offset..)?.get(..count))?
    }

    /// Returns the index of element [0, …, 0] in the slice that [`View::data`] returns. It may be any
    /// number if the view has no elements.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.layout.offset
    }

    /// Returns the slice that the view borrows. With offset, shape and strides, that is all that other libraries need.
    #[must_use]
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// Returns the address of element [0, …, 0], for foreign functions. They may read every element
    /// that shape and strides reach.
    #[must_use]
    pub fn as_ptr(&self) -> *const T {
        self.layout.first(self.data.as_ptr().cast_mut())
    }

    /// Returns the elements in row-major order.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        if self.shape().is_empty() {
            return self.get(&[]).copied().into_iter().collect();
        }
        in_one().to_vecs(self).ok().and_then(|mut copies| copies.pop()).unwrap_or_default()
    }

    /// Copies the elements in row-major order to a slice of the same length.
    ///
    /// ```
    /// let data = [1u8, 2, 3, 4, 5, 6];
    /// let column = libsplit::View::strided(&data, 1, &[2], &[3])?;
    /// let mut two = [0; 2];
    /// column.copy_to(&mut two)?;
    /// assert_eq!(two, [2, 5]);
    /// # Ok::<(), libsplit::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SliceLen`] if the slice has a different length.
    pub fn copy_to(&self, target: &mut [T]) -> Result<(), Error> {
        let whole = ViewMut::packed(&mut *target, self.shape())?;
        if !self.shape().is_empty() {
            return in_one().copy(self, &mut [whole]);
        }
        // No operator accepts a scalar.
        target.iter_mut().zip(self.get(&[])).for_each(|(target, element)| *target = *element);
        Ok(())
    }

    pub(crate) fn tensor(&self) -> Tensor<'_> {
        let (data, strides) = (self.as_ptr().cast_mut().cast(), Some(self.strides()));
        Tensor { strides, ..Tensor::packed(data, T::DTYPE, self.shape()) }
    }
}

/// Returns the split that copies a whole view: into one piece.
fn in_one() -> Split<'static> {
    Split::new(Operator::OpenVinoSplit1).num_outputs(1)
}

impl<'a, T: Element> ViewMut<'a, T> {
    /// Makes a row-major packed tensor over all of `data`.
    ///
    /// # Errors
    /// Those of [`View::packed`].
    pub fn packed(data: &'a mut [T], shape: &[i64]) -> Result<Self, Error> {
        Self::packed_uninit(as_uninit(data), shape)
    }

    /// Like [`ViewMut::packed`], but over uninitialised memory. A copy that succeeds initialises all of it.
    ///
    /// ```
    /// use libsplit::{Operator, Split, View, ViewMut};
    ///
    /// let mut left = Vec::with_capacity(2);
    /// Split::new(Operator::VariadicSplit1).lengths(&[2, -1]).copy(
    ///     &View::packed(&[1u8, 2, 3], &[3])?,
    ///     &mut [
    ///         ViewMut::packed_uninit(&mut left.spare_capacity_mut()[..2], &[2])?,
    ///         ViewMut::unwanted(),
    ///     ],
    /// )?;
    /// // SAFETY: the copy has written both elements.
    /// unsafe { left.set_len(2) };
    /// assert_eq!(left, [1, 2]);
    /// # Ok::<(), libsplit::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`View::packed`].
    pub fn packed_uninit(data: &'a mut [MaybeUninit<T>], shape: &[i64]) -> Result<Self, Error> {
        let layout = Some(Layout::packed::<T>(data.len(), shape)?);
        Ok(Self { data, layout })
    }

    /// Makes a tensor whose element [0, …, 0] is `data[offset]`. Strides are in elements, and may be negative.
    ///
    /// # Errors
    /// Those of [`View::strided`]. The copy checks that no two elements share a place.
    pub fn strided(
        data: &'a mut [T],
        offset: usize,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        Self::strided_uninit(as_uninit(data), offset, shape, strides)
    }

    /// Like [`ViewMut::strided`], but over uninitialised memory. A copy that succeeds initialises the
    /// elements of the tensor, and nothing between them.
    ///
    /// # Errors
    /// Those of [`ViewMut::strided`].
    pub fn strided_uninit(
        data: &'a mut [MaybeUninit<T>],
        offset: usize,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        let layout = Some(Layout::strided::<T>(data.len(), offset, shape, strides)?);
        Ok(Self { data, layout })
    }

    /// Makes an output that is not wanted.
    #[must_use]
    pub fn unwanted() -> Self {
        Self { data: &mut [], layout: None }
    }

    /// Returns the tensor that the core writes to; all zero if the output is not wanted.
    pub(crate) fn descriptor(&mut self) -> libsplit_tensor {
        let Some(layout) = &mut self.layout else { return libsplit_tensor::ZERO };
        let data = layout.first(self.data.as_mut_ptr().cast::<T>());
        descriptor(data.cast(), T::DTYPE, &mut layout.shape, Some(&mut layout.strides))
    }
}

/// Returns the values as places that may be written to.
fn as_uninit<T>(values: &mut [T]) -> &mut [MaybeUninit<T>] {
    // SAFETY: a `MaybeUninit<T>` has the layout of a `T`, and only initialised values are written.
    unsafe { &mut *(&raw mut *values as *mut [MaybeUninit<T>]) }
}

/// Returns an output in the form that the core takes.
pub(crate) fn descriptor(
    data: *mut u8,
    dtype: DType,
    shape: &mut [i64],
    strides: Option<&mut [i64]>,
) -> libsplit_tensor {
    let rank = i32::try_from(shape.len()).unwrap_or(i32::MAX);
    libsplit_tensor {
        data: data.cast(),
        shape: shape.as_mut_ptr(),
        strides: strides.map_or(null_mut(), <[i64]>::as_mut_ptr),
        rank,
        capacity: rank,
        dtype: libsplit_dtype(dtype as i32),
        ..libsplit_tensor::ZERO
    }
}
