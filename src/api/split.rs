//! A split, for Rust callers: first its parameters, then the calls that apply them to an input.

use super::element::Element;
use super::view::{descriptor, Layout, View, ViewMut};
use crate::call::ParsedCall;
use crate::copy::Executor;
use crate::dtype::DType;
use crate::error::Error;
use crate::geometry::Geometry;
use crate::lengths::Lengths;
use crate::operator::Operator;
use crate::pieces::Piece;
use crate::rules::{too_many_outputs, Request, MAX_OUTPUTS};
use crate::shape::usize_of;
use crate::tensor::Tensor;
use crate::types::libsplit_tensor;
use crate::words::Argument;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::ptr::{null, null_mut};

/// An operator version and its parameters. Methods that set a parameter return the changed split;
/// the others correspond to the C functions.
///
/// ```
/// use libsplit::{Operator, Split, View};
///
/// let data = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0];
/// let input = View::packed(&data, &[7])?;
/// let split = Split::new(Operator::onnx_split(18)?).num_outputs(3);
///
/// let views = split.views(&input)?; // nothing is copied
/// assert_eq!(views[2].as_slice(), Some(&data[6..]));
///
/// let copies = split.to_vecs(&input)?;
/// assert_eq!(copies[0], [1.0, 2.0, 3.0]);
/// # Ok::<(), libsplit::Error>(())
/// ```
#[derive(Debug, Clone, Copy)]
#[must_use]
pub struct Split<'a>(Request<'a>, Option<&'a dyn Executor>);

impl fmt::Debug for dyn Executor + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Executor")
    }
}

impl<'a> Split<'a> {
    /// Makes a split with this operator version on axis 0, with `keepdims` and without lengths, a
    /// number of outputs, or flags.
    pub fn new(operator: Operator) -> Self {
        let request = Request {
            operator,
            axis: 0,
            lengths: None,
            num_outputs: 0,
            keepdims: true,
            clamp_uneven: false,
            may_be_unknown: false,
            outputs: None,
        };
        Self(request, None)
    }

    /// Makes a split into pieces of length 1, without the axis: SplitToSequence without lengths, with `keepdims` 0.
    ///
    /// ```
    /// use libsplit::{Split, View};
    ///
    /// let data = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]; // 3 frames of 2 channels
    /// let channels = Split::unbind(-1).to_vecs(&View::packed(&data, &[3, 2])?)?;
    /// assert_eq!(channels, [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]);
    /// assert_eq!(Split::unbind(-1).shapes::<f32>(&[3, 2])?, [[3], [3]]);
    /// # Ok::<(), libsplit::Error>(())
    /// ```
    pub fn unbind(axis: i64) -> Self {
        Self::new(Operator::SplitToSequence24).axis(axis).keepdims(false)
    }

    /// Sets the axis to split, in [-rank, rank-1]; a negative number counts from the last axis.
    pub fn axis(self, axis: i64) -> Self {
        Self(Request { axis, ..self.0 }, self.1)
    }

    /// Sets the operator's lengths: a slice, array or vector with one length for each piece, or
    /// [`Lengths::scalar`]. The integers may have any type; a value that does not fit in int64 is refused.
    ///
    /// ```
    /// use libsplit::{Operator, Split, View};
    ///
    /// let data: Vec<u8> = (0..12).collect();
    /// let input = View::packed(&data, &[2, 6])?;
    /// let pieces = Split::new(Operator::VariadicSplit1).axis(1).lengths(&[1, -1]).views(&input)?;
    /// assert_eq!(pieces[1].shape(), [2, 5]);
    /// assert_eq!(pieces[0].to_vec(), [0, 6]);
    /// # Ok::<(), libsplit::Error>(())
    /// ```
    pub fn lengths(self, lengths: impl Into<Lengths<'a>>) -> Self {
        Self(Request { lengths: Some(lengths.into()), ..self.0 }, self.1)
    }

    /// Sets `num_outputs` of ONNX Split-18, `num_splits` of OpenVINO Split, or the node's number of
    /// outputs for older ONNX versions. 0 means absent.
    pub fn num_outputs(self, num_outputs: i64) -> Self {
        Self(Request { num_outputs, ..self.0 }, self.1)
    }

    /// Sets whether pieces of SplitToSequence without lengths, which are all of length 1, keep the axis.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(Request { keepdims, ..self.0 }, self.1)
    }

    /// Sets whether Split-18 with `num_outputs` gives shorter pieces instead of an error if the extent is too
    /// small for equal pieces and a shorter last one (5 into 4: 2, 2, 1, 0).
    pub fn clamp_uneven(self, clamp_uneven: bool) -> Self {
        Self(Request { clamp_uneven, ..self.0 }, self.1)
    }

    /// Lets an executor run large copies, except those of plans. Without one, they run on the calling thread.
    ///
    /// ```
    /// use libsplit::{Executor, Operator, Split, View};
    ///
    /// struct Threads;
    ///
    /// impl Executor for Threads {
    ///     fn max_tasks(&self) -> usize {
    ///         2
    ///     }
    ///     fn parallel_for(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<(), i32> {
    ///         std::thread::scope(|scope| {
    ///             for index in 0..count {
    ///                 scope.spawn(move || task(index));
    ///             }
    ///         });
    ///         Ok(())
    ///     }
    /// }
    ///
    /// let data: Vec<u64> = (0..100_000).collect();
    /// let split = Split::new(Operator::OpenVinoSplit1).axis(1).num_outputs(2).executor(&Threads);
    /// let columns = split.to_vecs(&View::packed(&data, &[50_000, 2])?)?;
    /// assert_eq!((columns[0][7], columns[1][49_999]), (14, 99_999));
    /// # Ok::<(), libsplit::Error>(())
    /// ```
    pub fn executor(self, executor: &'a dyn Executor) -> Self {
        Self(self.0, Some(executor))
    }

    /// Returns the number of outputs for an input of this shape. Extents may be [`DIM_UNKNOWN`](crate::DIM_UNKNOWN).
    ///
    /// # Errors
    /// Those of `libsplit_count`: everything that the operator's rules refuse.
    pub fn count<T: Element>(&self, shape: &[i64]) -> Result<usize, Error> {
        let request = Request { may_be_unknown: true, ..self.0 };
        let call = ParsedCall::new(Tensor::packed(null_mut(), T::DTYPE, shape), &request)?;
        let too_many = Error::TooManyElements { argument: Argument::Input };
        usize::try_from(call.pieces.count()).map_err(|_| too_many)
    }

    /// Returns the shapes of the outputs. Extents of the input may be
    /// [`DIM_UNKNOWN`](crate::DIM_UNKNOWN), and those of the outputs then may be, too.
    ///
    /// ```
    /// use libsplit::{Operator, Split, DIM_UNKNOWN};
    ///
    /// let split = Split::new(Operator::onnx_split(13)?).lengths(&[3, 1]);
    /// let shapes = split.shapes::<f32>(&[DIM_UNKNOWN, 8])?;
    /// assert_eq!(shapes, [[3, 8], [1, 8]]);
    /// # Ok::<(), libsplit::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `libsplit_infer`: everything that the operator's rules refuse.
    pub fn shapes<T: Element>(&self, shape: &[i64]) -> Result<Vec<Vec<i64>>, Error> {
        self.shapes_of(T::DTYPE, shape)
    }

    /// Like [`Split::shapes`], for a type that is known only at run time.
    ///
    /// # Errors
    /// Those of [`Split::shapes`].
    pub fn shapes_of(&self, dtype: DType, shape: &[i64]) -> Result<Vec<Vec<i64>>, Error> {
        let ParsedCall { geometry, pieces, .. } =
            self.call(Tensor::packed(null_mut(), dtype, shape), true)?;
        Ok(pieces.iter().map(|piece| geometry.output_shape(piece.len).collect()).collect())
    }

    /// Returns the pieces as views of the input's data.
    ///
    /// # Errors
    /// Those of `libsplit_view`: everything that the operator's rules refuse.
    pub fn views<'d, T: Element>(&self, input: &View<'d, T>) -> Result<Vec<View<'d, T>>, Error> {
        let layouts = layouts(&self.call(input.tensor(), false)?, input);
        Ok(layouts.into_iter().map(|layout| View { data: input.data, layout }).collect())
    }

    /// Returns the pieces of a packed tensor over all of `data` as mutable slices of it. Each piece
    /// consists of as many slices as it has contiguous runs in memory, in order: one if the outermost
    /// axis is split, one per row if a matrix is split into columns, and none if it has no elements.
    ///
    /// ```
    /// use libsplit::{Operator, Split};
    ///
    /// let mut data = [0; 6];
    /// let split = Split::new(Operator::VariadicSplit1).axis(1).lengths(&[1, 2]);
    /// let mut pieces = split.slices_mut(&mut data, &[2, 3])?;
    /// pieces[1][0].fill(1);
    /// pieces[0][1].fill(2);
    /// assert_eq!(data, [0, 1, 1, 2, 0, 0]);
    /// # Ok::<(), libsplit::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`View::packed`] and [`Split::views`].
    pub fn slices_mut<'d, T: Element>(
        &self,
        data: &'d mut [T],
        shape: &[i64],
    ) -> Result<Vec<Vec<&'d mut [T]>>, Error> {
        View::packed(data, shape)?;
        let call = self.call(Tensor::packed(null_mut(), T::DTYPE, shape), false)?;
        let (Geometry { elements, outer, inner, .. }, pieces) = (call.geometry, call.pieces);
        let mut slices: Vec<Vec<_>> = pieces.iter().map(|_| Vec::new()).collect();
        let mut rest = data;
        let rows = if elements == 0 { 0 } else { outer };
        for _ in 0..rows {
            for (slices, piece) in slices.iter_mut().zip(pieces.iter()) {
                let len = usize_of(piece.len * inner);
                let slice = rest.split_off_mut(..len);
                if len > 0 {
                    slices.extend(slice);
                }
            }
        }
        Ok(slices)
    }

    /// Returns the pieces as packed copies.
    ///
    /// # Errors
    /// Those of `libsplit_view`: everything that the operator's rules refuse; and those of the executor.
    pub fn to_vecs<T: Element>(&self, input: &View<'_, T>) -> Result<Vec<Vec<T>>, Error> {
        let mut shapes = self.shapes_of(T::DTYPE, input.shape())?;
        let size = |shape: &[i64]| usize_of(shape.iter().product());
        let mut copies: Vec<Vec<T>> =
            shapes.iter().map(|shape| Vec::with_capacity(size(shape))).collect();
        let outputs: Vec<_> = (copies.iter_mut().zip(&mut shapes))
            .map(|(copy, shape)| descriptor(copy.as_mut_ptr().cast(), T::DTYPE, shape, None))
            .collect();
        // SAFETY: `input` borrows its data, and each vector has room for its piece.
        unsafe { self.run(&input.tensor(), &outputs) }?;
        for (copy, shape) in copies.iter_mut().zip(&shapes) {
            // SAFETY: the copy has written all elements of the piece.
            unsafe { copy.set_len(size(shape)) };
        }
        Ok(copies)
    }

    /// Copies each piece into its output, which must have the shape that the operator gives.
    ///
    /// ```
    /// use libsplit::{Operator, Split, View, ViewMut};
    ///
    /// // Splits an interleaved image of 2 × 2 pixels into a plane for each colour that is wanted.
    /// let pixels = [11u8, 12, 13, 21, 22, 23, 31, 32, 33, 41, 42, 43];
    /// let (mut red, mut blue) = ([0; 4], [0; 4]);
    /// Split::new(Operator::onnx_split(18)?).axis(-1).num_outputs(3).copy(
    ///     &View::packed(&pixels, &[2, 2, 3])?,
    ///     &mut [
    ///         ViewMut::packed(&mut red, &[2, 2, 1])?,
    ///         ViewMut::unwanted(),
    ///         ViewMut::packed(&mut blue, &[2, 2, 1])?,
    ///     ],
    /// )?;
    /// assert_eq!((red, blue), ([11, 21, 31, 41], [13, 23, 33, 43]));
    /// # Ok::<(), libsplit::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of `libsplit_copy`. After an error, nothing has been written; but after [`Error::ExecutorFailed`] and
    /// [`Error::ExecutorSkipped`], any part of the outputs may have been.
    pub fn copy<T: Element>(
        &self,
        input: &View<'_, T>,
        outputs: &mut [ViewMut<'_, T>],
    ) -> Result<(), Error> {
        let outputs: Vec<_> = outputs.iter_mut().map(ViewMut::descriptor).collect();
        // SAFETY: views borrow all memory that they reach, and outputs borrow it exclusively.
        unsafe { self.run(&input.tensor(), &outputs) }
    }

    /// Like [`Split::copy`], for a type that is known only at run time, including packed 4-bit and
    /// 2-bit types: copies the bytes of a packed input into packed outputs. Slices may be longer than
    /// needed. An empty slice stands for an output that is not wanted.
    ///
    /// ```
    /// use libsplit::{DType, Operator, Split};
    ///
    /// let nibbles = [0x21, 0x43, 0x65]; // 1 to 6, packed
    /// let (mut left, mut right) = ([0; 1], [0; 2]);
    /// Split::new(Operator::VariadicSplit1).lengths(&[2, -1]).copy_bytes(
    ///     DType::Uint4,
    ///     &[6],
    ///     &nibbles,
    ///     &mut [&mut left, &mut right],
    /// )?;
    /// assert_eq!((left, right), ([0x21], [0x43, 0x65]));
    /// # Ok::<(), libsplit::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of [`Split::copy`]; [`Error::DataBytes`] if a slice is too short; [`Error::Null`] if `input` is empty but
    /// the shape has elements.
    pub fn copy_bytes(
        &self,
        dtype: DType,
        shape: &[i64],
        input: &[u8],
        outputs: &mut [&mut [u8]],
    ) -> Result<(), Error> {
        let counted = Self(Request { outputs: Some(outputs.len()), ..self.0 }, None);
        let mut shapes = counted.shapes_of(dtype, shape)?;
        let data = if input.is_empty() { null() } else { input.as_ptr() };
        let data_bytes = input.len();
        let input = Tensor { data_bytes, ..Tensor::packed(data.cast_mut(), dtype, shape) };
        // A size of 0 means "not checked", so an empty slice gets no address.
        let outputs: Vec<_> = (outputs.iter_mut().zip(&mut shapes))
            .map(|(output, shape)| match output.len() {
                0 => libsplit_tensor::ZERO,
                data_bytes => libsplit_tensor {
                    data_bytes,
                    ..descriptor(output.as_mut_ptr(), dtype, shape, None)
                },
            })
            .collect();
        // SAFETY: the core checks the sizes of the borrowed slices; outputs are borrowed exclusively.
        unsafe { self.run(&input, &outputs) }
    }

    /// Checks the split of an input, and finds its pieces, of which there may be no more than can be listed.
    pub(super) fn call(
        &self,
        input: Tensor<'a>,
        may_be_unknown: bool,
    ) -> Result<ParsedCall<'a>, Error> {
        let call = ParsedCall::new(input, &Request { may_be_unknown, ..self.0 })?;
        if call.pieces.count() > MAX_OUTPUTS {
            return Err(too_many_outputs(Argument::InputShape, call.pieces.count()));
        }
        Ok(call)
    }

    /// # Safety
    /// The input must be readable, and every output writable, over its whole span.
    unsafe fn run(&self, input: &Tensor<'_>, outputs: &[libsplit_tensor]) -> Result<(), Error> {
        let request = Request { outputs: Some(outputs.len()), ..self.0 };
        let call = ParsedCall::new(*input, &request)?;
        // SAFETY: the caller guarantees it.
        unsafe { call.copy(outputs, self.1) }
    }
}

/// Returns the layouts of the pieces of a view.
pub(super) fn layouts<T: Element>(call: &ParsedCall<'_>, input: &View<'_, T>) -> Vec<Layout> {
    let geometry = &call.geometry;
    let stride = input.strides().get(geometry.axis).copied().unwrap_or(0);
    let layout = |piece: Piece| {
        let shape: Box<[i64]> = geometry.output_shape(piece.len).collect();
        // A piece without elements may begin anywhere, so it begins where the input does.
        let ahead = if shape.contains(&0) { 0 } else { piece.offset.wrapping_mul(stride) };
        let offset = input.offset().wrapping_add_signed(isize::try_from(ahead).unwrap_or(0));
        Layout { offset, shape, strides: geometry.output_strides(input.strides()).collect() }
    };
    call.pieces.iter().map(layout).collect()
}
