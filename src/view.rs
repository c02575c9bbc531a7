//! Typed tensors over slices, for Rust callers.

use crate::element::Element;
use crate::error::{number, Error, Which};
use crate::memory::Memory;
use crate::shape::{self, MAX_RANK};

/// A tensor over a borrowed slice: shape, strides, and where element [0, …, 0] lies.
#[derive(Debug, Clone, PartialEq)]
pub struct View<'a, T> {
    data: &'a [T],
    layout: Layout,
}

/// A tensor over a mutably borrowed slice, to copy a piece into.
#[derive(Debug)]
pub struct ViewMut<'a, T> {
    data: &'a mut [T],
    layout: Layout,
    wanted: bool,
}

/// Where the elements of a view lie in its slice; checked against its length.
#[derive(Debug, Clone, PartialEq)]
struct Layout {
    offset: usize,
    shape: Box<[i64]>,
    strides: Box<[i64]>,
}

impl Layout {
    fn packed<T: Element>(len: usize, shape: &[i64]) -> Result<Self, Error> {
        let count = check_shape::<T>(shape)?;
        let actual = number(len);
        if count != actual {
            return Err(Error::SliceLen { expected: count, actual });
        }
        let strides = shape::packed_strides(shape);
        let strides = strides.get(..shape.len()).unwrap_or_default().into();
        Ok(Self { offset: 0, shape: shape.into(), strides })
    }

    fn strided<T: Element>(
        len: usize,
        offset: usize,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        if strides.len() != shape.len() {
            return Err(Error::StridesLen {
                expected: number(shape.len()),
                actual: number(strides.len()),
            });
        }
        if check_shape::<T>(shape)? > 0 {
            let dims = shape.iter().copied().zip(strides.iter().copied());
            let (low, high) = shape::reach(dims, Which::Input)?;
            for reached in [low, high] {
                let at = number(offset).saturating_add(reached);
                if at < 0 || at >= number(len) {
                    return Err(Error::SliceReach { expected: number(len), actual: at });
                }
            }
        }
        Ok(Self { offset, shape: shape.into(), strides: strides.into() })
    }

    fn memory<T: Element>(&self, data: *mut T) -> Memory<'_> {
        let has_elements = !self.shape.contains(&0);
        Memory {
            data: if has_elements { data.wrapping_add(self.offset) } else { data }.cast(),
            data_bytes: 0,
            dtype: T::DTYPE,
            shape: &self.shape,
            strides: Some(&self.strides),
            bit_offset: 0,
        }
    }
}

/// The number of elements, where rank, extents and their product are in bounds.
fn check_shape<T: Element>(shape: &[i64]) -> Result<i64, Error> {
    if shape.len() > MAX_RANK {
        return Err(Error::Rank { which: Which::Input, expected: 64, actual: number(shape.len()) });
    }
    for (axis, &actual) in shape.iter().enumerate() {
        if actual < 0 {
            return Err(Error::ExtentNegative { axis, expected: 0, actual });
        }
    }
    shape::element_count(shape.iter().copied(), T::DTYPE.bits(), Which::Input)
}

impl<'a, T: Element> View<'a, T> {
    /// A row-major packed tensor over all of `data`.
    ///
    /// # Errors
    /// If `data` has not exactly as many elements as `shape`, or `shape` is no shape.
    pub fn packed(data: &'a [T], shape: &[i64]) -> Result<Self, Error> {
        Ok(Self { data, layout: Layout::packed::<T>(data.len(), shape)? })
    }

    /// A tensor with strides in elements, of any sign or 0, whose element [0, …, 0] is
    /// `data[offset]`.
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
    /// If an element lies outside of `data`, or shape and strides do not fit each other.
    pub fn strided(
        data: &'a [T],
        offset: usize,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        Ok(Self { data, layout: Layout::strided::<T>(data.len(), offset, shape, strides)? })
    }

    /// Extents, outermost first.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.layout.shape
    }

    /// Strides in elements, outermost first.
    #[must_use]
    pub fn strides(&self) -> &[i64] {
        &self.layout.strides
    }

    /// The element at `index`; `None` if that is not in the tensor.
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

    /// The elements as a slice, if they are packed.
    #[must_use]
    pub fn as_slice(&self) -> Option<&'a [T]> {
        let memory = self.memory();
        let count = usize::try_from(self.layout.shape.iter().product::<i64>()).ok()?;
        if count == 0 {
            return Some(&[]);
        }
        memory.is_packed().then(|| self.data.get(self.layout.offset..)?.get(..count))?
    }

    /// The elements in row-major order.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        let mut index = vec![0; self.layout.shape.len()];
        let mut elements = Vec::new();
        while let Some(element) = self.get(&index) {
            elements.push(*element);
            // On to the next index, outermost last to move.
            let mut axes = index.iter_mut().zip(&self.layout.shape).rev();
            let moved = axes.any(|(i, extent)| {
                *i = if *i + 1 < *extent { *i + 1 } else { 0 };
                *i > 0
            });
            if !moved {
                break;
            }
        }
        elements
    }

    /// The part of this view that has other extents and begins elsewhere in the same slice.
    pub(crate) fn part(&self, offset: usize, shape: Box<[i64]>, strides: Box<[i64]>) -> Self {
        Self { data: self.data, layout: Layout { offset, shape, strides } }
    }

    pub(crate) fn offset(&self) -> usize {
        self.layout.offset
    }

    pub(crate) fn memory(&self) -> Memory<'_> {
        self.layout.memory(self.data.as_ptr().cast_mut())
    }
}

impl<'a, T: Element> ViewMut<'a, T> {
    /// A row-major packed tensor over all of `data`.
    ///
    /// # Errors
    /// As [`View::packed`].
    pub fn packed(data: &'a mut [T], shape: &[i64]) -> Result<Self, Error> {
        let layout = Layout::packed::<T>(data.len(), shape)?;
        Ok(Self { data, layout, wanted: true })
    }

    /// A tensor with strides in elements, of any sign, whose element [0, …, 0] is `data[offset]`.
    ///
    /// # Errors
    /// As [`View::strided`]. That no two elements share a place is checked by the copy.
    pub fn strided(
        data: &'a mut [T],
        offset: usize,
        shape: &[i64],
        strides: &[i64],
    ) -> Result<Self, Error> {
        let layout = Layout::strided::<T>(data.len(), offset, shape, strides)?;
        Ok(Self { data, layout, wanted: true })
    }

    /// In the place of an output that is not wanted.
    #[must_use]
    pub fn unwanted() -> Self {
        let layout = Layout { offset: 0, shape: Box::new([]), strides: Box::new([]) };
        Self { data: &mut [], layout, wanted: false }
    }

    /// The memory behind it, `None` if unwanted.
    pub(crate) fn memory(&mut self) -> Option<Memory<'_>> {
        self.wanted.then(|| self.layout.memory(self.data.as_mut_ptr()))
    }
}
