//! A split that is prepared once, for Rust callers.

use super::element::Element;
use super::split::{layouts, Split};
use super::view::{Layout, View};
use crate::copy::Executor;
use crate::error::{number, Error};
use crate::plan::{self, Planned};
use crate::reads::Reads;
use crate::words::Argument;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

/// A split of one shape that is prepared by [`Split::plan`] and run many times.
/// It borrows nothing, and several threads may use it at the same time.
///
/// ```
/// use libsplit::{Operator, Split, View};
///
/// let first = [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let split = Split::new(Operator::onnx_split(18)?).axis(1).lengths(&[1, 2]);
/// let plan = split.plan(&View::packed(&first, &[2, 3])?)?;
///
/// let (mut left, mut right) = ([0.0; 2], [0.0; 4]);
/// for token in [first, first.map(|x| 10.0 * x)] {
///     plan.copy(&token, &mut [&mut left, &mut right])?;
/// }
/// assert_eq!((left, right), ([10.0, 40.0], [20.0, 30.0, 50.0, 60.0]));
/// assert_eq!(plan.views(&first)?[0].to_vec(), [1.0, 4.0]);
/// assert!(plan.to_string().starts_with("FLOAT [2, 3], axis 1 into 2 pieces of [1, 2]"));
/// # Ok::<(), libsplit::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Plan<T> {
    memory: Box<[u64]>,
    /// The least number of elements of an input, and the index of its element [0, …, 0].
    least: usize,
    offset: usize,
    pieces: Box<[Layout]>,
    element: PhantomData<fn() -> T>,
}

impl Split<'_> {
    /// Prepares a plan for this input, which can be run many times on inputs of the same layout.
    ///
    /// # Errors
    /// Those of `libsplit_plan_init`: everything that the operator's rules refuse.
    pub fn plan<T: Element>(&self, input: &View<'_, T>) -> Result<Plan<T>, Error> {
        let call = self.call(input.tensor(), false)?;
        let pieces: Box<[Layout]> = layouts(&call, input).into();
        let rank = i32::try_from(input.shape().len()).unwrap_or(i32::MAX);
        let size = plan::size(rank, pieces.len());
        let mut memory = vec![0u64; size.div_ceil(size_of::<u64>())].into_boxed_slice();
        let bytes = size_of_val(&*memory);
        // SAFETY: the memory has this many bytes, and nothing else uses it.
        unsafe { plan::make(memory.as_mut_ptr().cast(), bytes, &call, None, pieces.len()) }?;
        let end = input.tensor().span(call.geometry.elements, Argument::Input)?.end;
        let least = end.saturating_sub(input.data.as_ptr().addr()) / size_of::<T>();
        Ok(Plan { memory, least, offset: input.offset(), pieces, element: PhantomData })
    }
}

impl<T: Element> Plan<T> {
    /// Returns the shapes of the pieces.
    #[must_use]
    pub fn shapes(&self) -> impl ExactSizeIterator<Item = &[i64]> {
        self.pieces.iter().map(|piece| &*piece.shape)
    }

    /// Returns the pieces as views of an input, which must have the layout that the plan was made for.
    ///
    /// # Errors
    /// [`Error::SliceLen`] if the slice is too short for that layout.
    pub fn views<'d>(&self, input: &'d [T]) -> Result<Vec<View<'d, T>>, Error> {
        self.check_input(input)?;
        Ok(self.pieces.iter().map(|piece| View { data: input, layout: piece.clone() }).collect())
    }

    /// Copies each piece of an input, which must have the layout that the plan was made for, into its
    /// own slice, packed.
    ///
    /// # Errors
    /// [`Error::SliceLen`] if an output does not have exactly as many elements as its piece, or if the input is too
    /// short; [`Error::PlanOutputs`] if the number of outputs is wrong. Nothing is written in these cases.
    pub fn copy(&self, input: &[T], outputs: &mut [&mut [T]]) -> Result<(), Error> {
        // SAFETY: exclusive borrows.
        unsafe { self.copy_on(input, outputs.iter_mut().map(|output| &raw mut **output), None) }
    }

    /// Like [`Plan::copy`], but lets an executor run large copies.
    ///
    /// # Errors
    /// Those of [`Plan::copy`], and those of the executor.
    pub fn copy_with(
        &self,
        input: &[T],
        outputs: &mut [&mut [T]],
        executor: &dyn Executor,
    ) -> Result<(), Error> {
        let outputs = outputs.iter_mut().map(|output| &raw mut **output);
        // SAFETY: exclusive borrows.
        unsafe { self.copy_on(input, outputs, Some(executor)) }
    }

    /// Like [`Plan::copy`], or like [`Plan::copy_with`] if there is an executor, but into uninitialised
    /// memory. If it succeeds, all of that memory has been written.
    ///
    /// # Errors
    /// Those of [`Plan::copy_with`].
    pub fn copy_uninit(
        &self,
        input: &[T],
        outputs: &mut [&mut [MaybeUninit<T>]],
        executor: Option<&dyn Executor>,
    ) -> Result<(), Error> {
        let outputs = outputs.iter_mut().map(|output| &raw mut **output as *mut [T]);
        // SAFETY: exclusive borrows.
        unsafe { self.copy_on(input, outputs, executor) }
    }

    /// # Safety
    /// The outputs must be writable, and nobody else may use them during the call.
    unsafe fn copy_on(
        &self,
        input: &[T],
        outputs: impl ExactSizeIterator<Item = *mut [T]>,
        executor: Option<&dyn Executor>,
    ) -> Result<(), Error> {
        self.check_input(input)?;
        let mut targets: Vec<*mut u8> = Vec::with_capacity(outputs.len());
        for (index, output) in outputs.enumerate() {
            let actual = number(output.len());
            match self.pieces.get(index).map(Layout::count) {
                Some(expected) if expected != actual => {
                    return Err(Error::SliceLen { expected, actual });
                }
                _ => targets.push(output.cast()),
            }
        }
        let first = input.as_ptr().wrapping_add(self.offset).cast();
        let (plan, count) = (self.memory.as_ptr().cast(), targets.len());
        // SAFETY: the memory holds a plan, and input and outputs have as many elements as it was made for. They do
        // not overlap, because the outputs are exclusive borrows.
        unsafe {
            let plan = Planned::for_outputs(plan, count)?;
            plan.copy(first, targets.as_ptr(), executor, &Reads::NOTHING)
        }
    }

    fn check_input(&self, input: &[T]) -> Result<(), Error> {
        if input.len() >= self.least {
            return Ok(());
        }
        Err(Error::SliceLen { expected: number(self.least), actual: number(input.len()) })
    }
}

impl<T> fmt::Display for Plan<T> {
    /// Writes what the plan will do, in lines for people; the wording may change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plan = self.memory.as_ptr().cast();
        // SAFETY: the memory holds a plan, and a buffer of 0 bytes is not written to.
        let mut text = vec![0u8; unsafe { plan::describe(plan, null_mut(), 0) } + 1];
        // SAFETY: the memory holds a plan, and the buffer has this many bytes.
        let len = unsafe { plan::describe(plan, text.as_mut_ptr(), text.len()) };
        text.truncate(len);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}
