//! A split to be done, for Rust callers: parameters first, then what to do with an input.

use crate::copy::{self, Executor};
use crate::element::Element;
use crate::error::Error;
use crate::lengths::Lengths;
use crate::memory::{Memory, Outputs, Span};
use crate::operator::Operator;
use crate::plan::Plan;
use crate::rules::Request;
use crate::view::{View, ViewMut};

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
            outputs: None,
        })
    }

    /// The axis to split, in [-rank, rank-1]; a negative one counts from the back.
    pub fn axis(self, axis: i64) -> Self {
        Self(Request { axis, ..self.0 })
    }

    /// The operator's lengths: a slice or array, one a piece, or [`Lengths::scalar`].
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
        let plan = Plan::new(&self.0, T::DTYPE, shape, true)?;
        usize::try_from(plan.count()).map_err(|_| Error::Internal)
    }

    /// The shapes of the outputs. Extents may be [`DIM_UNKNOWN`](crate::DIM_UNKNOWN), in the
    /// input and then in the outputs.
    ///
    /// ```
    /// use libsplit::{Operator, Split, DIM_UNKNOWN};
    ///
    /// let split = Split::new(Operator::onnx_split(13)?).lengths(&[3i64, 1]);
    /// let shapes = split.shapes::<f32>(&[DIM_UNKNOWN, 8])?;
    /// assert_eq!(shapes, [[3, 8], [1, 8]]);
    /// # Ok::<(), libsplit::Error>(())
    /// ```
    ///
    /// # Errors
    /// As `libsplit_infer`: whatever the operator's rules refuse.
    pub fn shapes<T: Element>(&self, shape: &[i64]) -> Result<Vec<Vec<i64>>, Error> {
        let plan = Plan::new(&self.0, T::DTYPE, shape, true)?;
        Ok(plan.pieces().map(|piece| plan.output_shape(piece).collect()).collect())
    }

    /// The pieces as views of the input's data.
    ///
    /// # Errors
    /// As `libsplit_view`: whatever the operator's rules refuse.
    pub fn views<'d, T: Element>(&self, input: &View<'d, T>) -> Result<Vec<View<'d, T>>, Error> {
        let plan = Plan::new(&self.0, T::DTYPE, input.shape(), false)?;
        let stride = input.strides().get(plan.axis).copied().unwrap_or(0);
        let view = |piece: crate::plan::Piece| {
            let shape: Box<[i64]> = plan.output_shape(piece).collect();
            // A view without elements may begin anywhere, so it begins where the input does.
            let ahead = if shape.contains(&0) { 0 } else { piece.offset.wrapping_mul(stride) };
            let ahead = isize::try_from(ahead).unwrap_or(0);
            let offset = input.offset().wrapping_add_signed(ahead);
            input.part(offset, shape, plan.output_strides(input.strides()).collect())
        };
        Ok(plan.pieces().map(view).collect())
    }

    /// The pieces as packed copies.
    ///
    /// # Errors
    /// As `libsplit_view`: whatever the operator's rules refuse.
    pub fn to_vecs<T: Element>(&self, input: &View<'_, T>) -> Result<Vec<Vec<T>>, Error> {
        let plan = Plan::new(&self.0, T::DTYPE, input.shape(), false)?;
        let size = |piece| plan.output_shape(piece).map(|n| usize::try_from(n).unwrap_or(0));
        let mut copies: Vec<Vec<T>> =
            plan.pieces().map(|piece| Vec::with_capacity(size(piece).product())).collect();
        let shapes: Vec<Vec<i64>> =
            plan.pieces().map(|piece| plan.output_shape(piece).collect()).collect();
        let memories = copies.iter_mut().zip(&shapes).map(|(copy, shape)| {
            Some(Memory {
                data: copy.as_mut_ptr().cast(),
                data_bytes: 0,
                dtype: T::DTYPE,
                shape,
                strides: None,
                bit_offset: 0,
            })
        });
        let outputs = Memories(memories.collect());
        // SAFETY: `input` borrows its data, and each vector has room for its piece.
        unsafe { run(&plan, &input.memory(), &outputs, None) }?;
        for (piece, copy) in plan.pieces().zip(&mut copies) {
            // SAFETY: all elements of the piece have just been written.
            unsafe { copy.set_len(size(piece).product()) };
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

    fn copy_on<T: Element>(
        &self,
        input: &View<'_, T>,
        outputs: &mut [ViewMut<'_, T>],
        executor: Option<&dyn Executor>,
    ) -> Result<(), Error> {
        let request = Request { outputs: Some(outputs.len()), ..self.0 };
        let plan = Plan::new(&request, T::DTYPE, input.shape(), false)?;
        let outputs = Memories(outputs.iter_mut().map(ViewMut::memory).collect());
        // SAFETY: views borrow what they reach over, outputs exclusively.
        unsafe { run(&plan, &input.memory(), &outputs, executor) }
    }
}

/// # Safety
/// As [`copy::run`].
unsafe fn run(
    plan: &Plan<'_>,
    input: &Memory<'_>,
    outputs: &Memories<'_>,
    executor: Option<&dyn Executor>,
) -> Result<(), Error> {
    let checked = copy::check::copy(plan, input, None, outputs)?;
    // SAFETY: the caller's promise, and the checks have passed.
    unsafe { copy::run(plan, input, outputs, &checked, executor) }
}

/// The outputs of a copy from Rust.
pub(crate) struct Memories<'a>(pub Vec<Option<Memory<'a>>>);

// SAFETY: the memories are only read; what they point to is the copy engine's care.
unsafe impl Sync for Memories<'_> {}

impl Outputs for Memories<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn get(&self, index: usize) -> Result<Option<Memory<'_>>, Error> {
        Ok(self.0.get(index).copied().flatten())
    }

    fn data(&self, index: usize) -> Option<*mut u8> {
        Some(self.0.get(index)?.as_ref()?.data)
    }

    fn descriptors(&self) -> Span {
        Span::default()
    }

    const APART: bool = true;
}
