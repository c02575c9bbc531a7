//! A split prepared once, for Rust callers.

use super::element::Element;
use super::view::{Layout, View};
use crate::copy::Executor;
use crate::error::{number, Error};
use crate::ffi::libsplit_plan_size;
use crate::ffi::parse::ParsedCall;
use crate::ffi::plan::{self, Planned};
use crate::ffi::reads::Reads;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;
use core::fmt;
use core::marker::PhantomData;
use core::mem::MaybeUninit;
use core::ptr::null_mut;

/// A split of one shape, prepared to be run many times by [`Split::plan`](crate::Split::plan). It
/// borrows nothing, and many threads may use it at once.
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
    /// Elements that an input has at the least, and where its element [0, …, 0] is.
    least: usize,
    offset: usize,
    pieces: Box<[Layout]>,
    element: PhantomData<fn() -> T>,
}

impl<T: Element> Plan<T> {
    /// Of a call whose outputs are to be packed, into these pieces of its input.
    pub(crate) fn new(
        call: &ParsedCall<'_>,
        input: &View<'_, T>,
        pieces: Box<[Layout]>,
    ) -> Result<Self, Error> {
        let rank = i32::try_from(input.shape().len()).unwrap_or(i32::MAX);
        let size = libsplit_plan_size(rank, pieces.len());
        let mut memory = vec![0u64; size.div_ceil(size_of::<u64>())].into_boxed_slice();
        let (place, bytes) = (memory.as_mut_ptr().cast(), size_of_val(&*memory));
        // SAFETY: as much memory is there, and nothing else lies in it.
        unsafe { plan::make(place, bytes, call, None, pieces.len()) }?;
        let (least, offset) = (input.least_len(), input.offset());
        Ok(Self { memory, least, offset, pieces, element: PhantomData })
    }

    /// The shapes of the pieces.
    pub fn shapes(&self) -> impl ExactSizeIterator<Item = &[i64]> {
        self.pieces.iter().map(Layout::shape)
    }

    /// The pieces as views of an input that is laid out as the plan was made for.
    ///
    /// # Errors
    /// [`Error::SliceLen`] if the slice ends before the input does.
    pub fn views<'d>(&self, input: &'d [T]) -> Result<Vec<View<'d, T>>, Error> {
        self.check_input(input)?;
        Ok(self.pieces.iter().map(|piece| View::over(input, piece.clone())).collect())
    }

    /// Copies every piece of an input that is laid out as the plan was made for into a slice of its
    /// own, packed.
    ///
    /// # Errors
    /// [`Error::SliceLen`] if a slice has not as many elements as its piece, or the input ends too
    /// early, and [`Error::PlanOutputs`] for another number of outputs. Then nothing is written.
    pub fn copy(&self, input: &[T], outputs: &mut [&mut [T]]) -> Result<(), Error> {
        // SAFETY: exclusive borrows.
        unsafe { self.copy_on(input, outputs.iter_mut().map(|output| &raw mut **output), None) }
    }

    /// [`Plan::copy`] with the work given to an executor, where there is enough of it.
    ///
    /// # Errors
    /// As [`Plan::copy`], and those of the executor.
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

    /// [`Plan::copy`], or [`Plan::copy_with`], into memory that holds no values yet. If it succeeds,
    /// all of it has been written.
    ///
    /// # Errors
    /// As those.
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
    /// The outputs must be writable, by nobody else.
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
        // SAFETY: the plan is one, and input and outputs have as many elements as it is made for; nothing else
        // lies where they do, as the borrow checker has seen to.
        unsafe {
            Planned::for_outputs(plan, count)?.copy(
                first,
                targets.as_ptr(),
                executor,
                &Reads::NOTHING,
            )
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
    /// What the plan will do, in lines for people; the wording may change.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.memory.as_ptr().cast();
        // SAFETY: the memory holds a plan, and the buffer is as long as it says.
        let mut text = vec![0u8; unsafe { plan::describe(place, null_mut(), 0) } + 1];
        // SAFETY: as above.
        let len = unsafe { plan::describe(place, text.as_mut_ptr(), text.len()) };
        text.truncate(len);
        f.write_str(&String::from_utf8_lossy(&text))
    }
}
