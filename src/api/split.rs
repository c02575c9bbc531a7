//! A split to be done, for Rust callers: parameters first, then what to do with an input.

use super::element::Element;
use super::plan::Plan;
use super::view::{descriptor, Layout, View, ViewMut};
use crate::copy::Executor;
use crate::dtype::DType;
use crate::error::Error;
use crate::ffi::libsplit_tensor;
use crate::ffi::parse::ParsedCall;
use crate::geometry::Geometry;
use crate::lengths::Lengths;
use crate::operator::Operator;
use crate::pieces::Piece;
use crate::rules::{Request, MAX_OUTPUTS};
use crate::shape::usize_of;
use crate::tensor::Tensor;
use crate::words::Argument;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr::{null, null_mut};

/// An operator version and its parameters. Methods that set one return the split with it set;
/// the others are what the C functions of the same names do.
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
pub struct Split<'a>(Request<'a>);

impl<'a> Split<'a> {
    /// The operator version, on axis 0, without lengths, number of outputs or flags, and with
    /// keepdims.
    pub fn new(operator: Operator) -> Self {
        Self(Request {
            operator,
            axis: 0,
            lengths: None,
            num_outputs: 0,
            keepdims: true,
            clamp_uneven: false,
            may_be_unknown: false,
            outputs: None,
        })
    }

    /// Pieces of 1 along the axis, which they lose: SplitToSequence without lengths and keepdims.
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

    /// The axis to split, in [-rank, rank-1]; a negative one counts from the back.
    pub fn axis(self, axis: i64) -> Self {
        Self(Request { axis, ..self.0 })
    }

    /// The operator's lengths: a slice, array or vector, one a piece, or [`Lengths::scalar`].
    /// Integers may be of any type, and are refused only where int64 does not hold them.
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
        Self(Request { lengths: Some(lengths.into()), ..self.0 })
    }

    /// `num_outputs` of ONNX Split-18, `num_splits` of OpenVINO Split; the number of outputs of
    /// the node for the older ONNX versions. 0 = absent.
    pub fn num_outputs(self, num_outputs: i64) -> Self {
        Self(Request { num_outputs, ..self.0 })
    }

    /// SplitToSequence without lengths: whether the pieces, all 1 long, keep the axis.
    pub fn keepdims(self, keepdims: bool) -> Self {
        Self(Request { keepdims, ..self.0 })
    }

    /// Split-18 with `num_outputs`: whether an extent too small for a last piece of length 0 or
    /// more gives shorter pieces instead of an error (5 into 4: 2, 2, 1, 0).
    pub fn clamp_uneven(self, clamp_uneven: bool) -> Self {
        Self(Request { clamp_uneven, ..self.0 })
    }

    /// How many outputs an input of this shape gives. Extents may be
    /// [`DIM_UNKNOWN`](crate::DIM_UNKNOWN).
    ///
    /// # Errors
    /// As `libsplit_count`: whatever the operator's rules refuse.
    pub fn count<T: Element>(&self, shape: &[i64]) -> Result<usize, Error> {
        let pieces = self.call(Tensor::packed(null_mut(), T::DTYPE, shape), true)?.pieces;
        usize::try_from(pieces.count())
            .map_err(|_| Error::TooManyElements { argument: Argument::Input })
    }

    /// The shapes of the outputs. Extents may be [`DIM_UNKNOWN`](crate::DIM_UNKNOWN), in the
    /// input and then in the outputs.
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
    /// As `libsplit_infer`: whatever the operator's rules refuse.
    pub fn shapes<T: Element>(&self, shape: &[i64]) -> Result<Vec<Vec<i64>>, Error> {
        self.shapes_of(T::DTYPE, shape)
    }

    /// [`Split::shapes`] for a type that is known only at run time.
    ///
    /// # Errors
    /// As [`Split::shapes`].
    pub fn shapes_of(&self, dtype: DType, shape: &[i64]) -> Result<Vec<Vec<i64>>, Error> {
        let ParsedCall { geometry, pieces, .. } =
            self.call(Tensor::packed(null_mut(), dtype, shape), true)?;
        if pieces.count() > MAX_OUTPUTS {
            let (argument, actual) = (Argument::InputShape, usize_of(pieces.count()));
            return Err(Error::TooManyOutputs { argument, expected: MAX_OUTPUTS, actual });
        }
        Ok(pieces.iter().map(|piece| geometry.output_shape(piece.len).collect()).collect())
    }

    /// The pieces as views of the input's data.
    ///
    /// # Errors
    /// As `libsplit_view`: whatever the operator's rules refuse.
    pub fn views<'d, T: Element>(&self, input: &View<'d, T>) -> Result<Vec<View<'d, T>>, Error> {
        let layouts = layouts(&self.call(input.tensor(), false)?, input);
        Ok(layouts.into_iter().map(|layout| View::over(input.data(), layout)).collect())
    }

    /// The pieces of a packed tensor over all of `data` as mutable slices of it: each piece in as many
    /// as it is cut into in memory, in order. That is one where the outermost axis is split, one a row
    /// where a matrix is split into columns, and none where there are no elements.
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
    /// As [`View::packed`] and [`Split::views`].
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
        for _ in 0..if elements == 0 { 0 } else { outer } {
            for (slices, piece) in slices.iter_mut().zip(pieces.iter()) {
                let len = usize_of(piece.len * inner);
                if let Some(slice) = rest.split_off_mut(..len).filter(|_| len > 0) {
                    slices.push(slice);
                }
            }
        }
        Ok(slices)
    }

    /// Prepares the split of an input of this layout, to be run many times on others.
    ///
    /// # Errors
    /// As `libsplit_plan_init`: whatever the operator's rules refuse.
    pub fn plan<T: Element>(&self, input: &View<'_, T>) -> Result<Plan<T>, Error> {
        let tensor = input.tensor();
        let call = self.call(tensor, false)?;
        Plan::new(&call, input, layouts(&call, input).into())
    }

    /// The pieces as packed copies.
    ///
    /// # Errors
    /// As `libsplit_view`: whatever the operator's rules refuse.
    pub fn to_vecs<T: Element>(&self, input: &View<'_, T>) -> Result<Vec<Vec<T>>, Error> {
        self.vecs_on(input, None)
    }

    /// [`Split::to_vecs`] with the work given to an executor, where there is enough of it.
    ///
    /// # Errors
    /// As [`Split::to_vecs`], and those of the executor.
    pub fn to_vecs_with<T: Element>(
        &self,
        input: &View<'_, T>,
        executor: &dyn Executor,
    ) -> Result<Vec<Vec<T>>, Error> {
        self.vecs_on(input, Some(executor))
    }

    fn vecs_on<T: Element>(
        &self,
        input: &View<'_, T>,
        executor: Option<&dyn Executor>,
    ) -> Result<Vec<Vec<T>>, Error> {
        let mut shapes = self.shapes_of(T::DTYPE, input.shape())?;
        let size = |shape: &[i64]| usize_of(shape.iter().product());
        let mut copies: Vec<Vec<T>> =
            shapes.iter().map(|shape| Vec::with_capacity(size(shape))).collect();
        let outputs: Vec<_> = (copies.iter_mut().zip(&mut shapes))
            .map(|(copy, shape)| descriptor(copy.as_mut_ptr().cast(), T::DTYPE, shape, None))
            .collect();
        // SAFETY: `input` borrows its data, and each vector has room for its piece.
        unsafe { self.run(&input.tensor(), &outputs, executor) }?;
        for (copy, shape) in copies.iter_mut().zip(&shapes) {
            // SAFETY: all elements of the piece have just been written.
            unsafe { copy.set_len(size(shape)) };
        }
        Ok(copies)
    }

    /// Copies every piece into its output, whose shape must be the operator's.
    ///
    /// ```
    /// use libsplit::{Operator, Split, View, ViewMut};
    ///
    /// // An interleaved picture of 2 × 2 pixels, into a plane of its own for each colour.
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
    /// As `libsplit_copy`; on an error nothing has been written.
    pub fn copy<T: Element>(
        &self,
        input: &View<'_, T>,
        outputs: &mut [ViewMut<'_, T>],
    ) -> Result<(), Error> {
        self.copy_on(input, outputs, None)
    }

    /// [`Split::copy`] with the work given to an executor, where there is enough of it.
    ///
    /// ```
    /// use libsplit::{Executor, Operator, Split, View, ViewMut};
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
    /// let (mut even, mut odd) = (vec![0; 50_000], vec![0; 50_000]);
    /// Split::new(Operator::OpenVinoSplit1).axis(1).num_outputs(2).copy_with(
    ///     &View::packed(&data, &[50_000, 2])?,
    ///     &mut [
    ///         ViewMut::packed(&mut even, &[50_000, 1])?,
    ///         ViewMut::packed(&mut odd, &[50_000, 1])?,
    ///     ],
    ///     &Threads,
    /// )?;
    /// assert_eq!((even[7], odd[49_999]), (14, 99_999));
    /// # Ok::<(), libsplit::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Split::copy`], and [`Error::ExecutorFailed`] or [`Error::ExecutorSkipped`], after
    /// which any part of the outputs may have been written.
    pub fn copy_with<T: Element>(
        &self,
        input: &View<'_, T>,
        outputs: &mut [ViewMut<'_, T>],
        executor: &dyn Executor,
    ) -> Result<(), Error> {
        self.copy_on(input, outputs, Some(executor))
    }

    /// [`Split::copy`] for a type that is known only at run time, packed 4-bit and 2-bit ones
    /// included: the bytes of a packed input into those of its packed pieces. Slices may be longer
    /// than that; an output may be empty if it is not wanted.
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
    ///     None,
    /// )?;
    /// assert_eq!((left, right), ([0x21], [0x43, 0x65]));
    /// # Ok::<(), libsplit::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Split::copy`], or [`Split::copy_with`] with an executor; [`Error::DataBytes`] for a slice
    /// that is too short, and [`Error::Null`] for an input without bytes that has elements.
    pub fn copy_bytes(
        &self,
        dtype: DType,
        shape: &[i64],
        input: &[u8],
        outputs: &mut [&mut [u8]],
        executor: Option<&dyn Executor>,
    ) -> Result<(), Error> {
        let given = Self(Request { outputs: Some(outputs.len()), ..self.0 });
        let mut shapes = given.shapes_of(dtype, shape)?;
        let data = if input.is_empty() { null() } else { input.as_ptr() };
        let data_bytes = input.len();
        let input = Tensor { data_bytes, ..Tensor::packed(data.cast_mut(), dtype, shape) };
        // Sizes of 0 are not looked at, so empty slices have no address either.
        let outputs: Vec<_> = (outputs.iter_mut().zip(&mut shapes))
            .map(|(output, shape)| match output.len() {
                0 => libsplit_tensor::ZERO,
                data_bytes => libsplit_tensor {
                    data_bytes,
                    ..descriptor(output.as_mut_ptr(), dtype, shape, None)
                },
            })
            .collect();
        // SAFETY: the core looks at the sizes of what is borrowed, outputs exclusively.
        unsafe { self.run(&input, &outputs, executor) }
    }

    fn copy_on<T: Element>(
        &self,
        input: &View<'_, T>,
        outputs: &mut [ViewMut<'_, T>],
        executor: Option<&dyn Executor>,
    ) -> Result<(), Error> {
        let outputs: Vec<_> = outputs.iter_mut().map(ViewMut::descriptor).collect();
        // SAFETY: views borrow what they reach over, outputs exclusively.
        unsafe { self.run(&input.tensor(), &outputs, executor) }
    }

    /// The split of an input.
    fn call<'t>(&self, input: Tensor<'t>, may_be_unknown: bool) -> Result<ParsedCall<'t>, Error>
    where
        'a: 't,
    {
        ParsedCall::new(input, &Request { may_be_unknown, ..self.0 })
    }

    /// # Safety
    /// The input must be readable and every output writable over its span.
    unsafe fn run(
        &self,
        input: &Tensor<'_>,
        outputs: &[libsplit_tensor],
        executor: Option<&dyn Executor>,
    ) -> Result<(), Error> {
        let request = Request { outputs: Some(outputs.len()), ..self.0 };
        let call = ParsedCall::new(*input, &request)?;
        // SAFETY: the caller's promise.
        unsafe { call.copy(outputs, executor) }
    }
}

/// Where the pieces of a view lie.
fn layouts<T: Element>(call: &ParsedCall<'_>, input: &View<'_, T>) -> Vec<Layout> {
    let geometry = &call.geometry;
    let stride = input.strides().get(geometry.axis).copied().unwrap_or(0);
    let layout = |piece: Piece| {
        let shape: Box<[i64]> = geometry.output_shape(piece.len).collect();
        // A view without elements may begin anywhere, so it begins where the input does.
        let ahead = if shape.contains(&0) { 0 } else { piece.offset.wrapping_mul(stride) };
        let offset = input.offset().wrapping_add_signed(isize::try_from(ahead).unwrap_or(0));
        Layout { offset, shape, strides: geometry.output_strides(input.strides()).collect() }
    };
    call.pieces.iter().map(layout).collect()
}
