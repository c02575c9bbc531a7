//! A Split node of a model, and how it is run: the same for the provider and for custom ops.

use crate::attributes;
use crate::ort::{ort_call, Error, Ort};
use crate::params::{Attributes, Rules};
use crate::strings::Strings;
use crate::tensor::{self, Input};
use core::ffi::c_void;
use core::ptr;
use libsplit::ffi::{
    libsplit_copy, libsplit_dtype, libsplit_error, libsplit_executor, libsplit_infer,
    libsplit_status, libsplit_task_fn, libsplit_tensor,
};
use ort_sys::{OrtKernelContext, OrtKernelInfo};
use smallvec::SmallVec;

/// A node, with what it says of itself.
pub struct Node {
    ort: Ort,
    attributes: Attributes,
    inputs: usize,
}

/// The descriptor of an output that nothing uses.
const UNWANTED: libsplit_tensor = libsplit_tensor {
    data: ptr::null_mut(),
    data_bytes: 0,
    shape: ptr::null_mut(),
    strides: ptr::null_mut(),
    rank: 0,
    capacity: 0,
    dtype: libsplit_dtype(0),
    bit_offset: 0,
};

impl Node {
    /// Reads the node's attributes.
    ///
    /// # Safety
    /// `info` must be that of the node whose kernel is being made.
    pub unsafe fn new(ort: Ort, info: *const OrtKernelInfo, rules: Rules) -> Result<Self, Error> {
        let (mut inputs, mut outputs) = (0, 0);
        // SAFETY: the caller's promise.
        unsafe {
            ort_call!(ort, KernelInfo_GetInputCount, info, &raw mut inputs)?;
            ort_call!(ort, KernelInfo_GetOutputCount, info, &raw mut outputs)?;
        }
        // SAFETY: as above.
        let (axis, num_outputs, lengths) = unsafe {
            let axis = attributes::integer(ort, info, c"axis")?;
            let num_outputs = attributes::integer(ort, info, c"num_outputs")?;
            (axis, num_outputs, attributes::integers(ort, info, c"split")?)
        };
        // Of ONNX's own operators, ONNX Runtime has checked them.
        if let Rules::AnySplit | Rules::VariadicSplit = rules {
            if let Some(given) = num_outputs.filter(|&n| usize::try_from(n) != Ok(outputs)) {
                return Err(Error::Refused(format!(
                    "attribute num_outputs is {given}, the node has {outputs} outputs: make them \
                     agree, or leave the attribute out"
                )));
            }
            if lengths.as_ref().is_some_and(Vec::is_empty) {
                return Err(Error::Refused(
                    "attribute split is not a list of integers, or it is empty: make it one of \
                     lengths, or leave it out"
                        .into(),
                ));
            }
        }
        let lengths = lengths.unwrap_or_default();
        let (axis, num_outputs) = (axis.unwrap_or(0), num_outputs.unwrap_or(0));
        let attributes = Attributes { rules, axis, num_outputs, lengths, outputs };
        Ok(Self { ort, attributes, inputs })
    }

    /// Runs the node. May be called by many threads at a time.
    ///
    /// # Safety
    /// `context` must be that of this node, running.
    pub unsafe fn run(&self, context: *mut OrtKernelContext) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let input = unsafe { Input::get(self.ort, context, 0) }?
            .ok_or_else(|| Error::Refused("the node has no input to split".into()))?;
        // SAFETY: as above.
        let lengths = unsafe { self.lengths_input(context) }?;
        let lengths = lengths.as_ref().map(|lengths| (lengths.descriptor(), &lengths.shape[..]));
        let Self { attributes, .. } = self;
        let count = [attributes.lengths.len().try_into().unwrap_or(i64::MAX)];
        let lengths = attributes.lengths(lengths, &count);
        if lengths.is_none() {
            self.check_num_outputs(&input.shape)?;
        }
        let params = attributes.params(lengths.as_ref());
        let source = libsplit_tensor { dtype: attributes.dtype(input.dtype), ..input.descriptor() };

        let rank = input.shape.len();
        let mut shapes: SmallVec<[i64; 64]> = SmallVec::from_elem(0, rank * attributes.outputs);
        let mut outputs: SmallVec<[_; 16]> = SmallVec::from_elem(UNWANTED, attributes.outputs);
        let extents = shapes.as_mut_ptr();
        for (index, output) in outputs.iter_mut().enumerate() {
            output.shape = extents.wrapping_add(index * rank);
            output.capacity = source.rank;
        }
        let (source, params, outputs_ptr) =
            (&raw const source, &raw const params, outputs.as_mut_ptr());
        // SAFETY: the descriptors are complete, and every shape has room for `rank` entries.
        check(|error| unsafe {
            libsplit_infer(source, params, outputs_ptr, attributes.outputs, error)
        })?;

        let mut strings = Strings::new(self.ort, &input, attributes.axis);
        for (index, output) in outputs.iter_mut().enumerate() {
            let shape = &shapes[index * rank..][..rank];
            // SAFETY: the caller's promise.
            let value = unsafe { tensor::output(self.ort, context, index, shape) }?;
            if input.dtype == libsplit_dtype::STRING {
                // SAFETY: tensors of strings; the shape is the one that was inferred.
                unsafe { strings.next_to(value, shape) }?;
            } else if value.is_null() {
                *output = UNWANTED;
            } else {
                // SAFETY: a tensor, not one of strings.
                output.data = unsafe { tensor::data(self.ort, value) }?;
            }
        }
        if input.dtype == libsplit_dtype::STRING {
            return Ok(());
        }
        let mut pool = Pool { ort: self.ort, context };
        let executor = pool.executor();
        // SAFETY: ONNX Runtime has allocated what the inferred shapes need.
        check(|error| unsafe {
            libsplit_copy(
                source,
                params,
                outputs.as_ptr(),
                attributes.outputs,
                &raw const executor,
                error,
            )
        })
    }

    /// ONNX Runtime takes a `num_outputs` that is not the number of outputs, and makes as many parts
    /// as there are outputs; but not where it is more than the extent.
    fn check_num_outputs(&self, shape: &[i64]) -> Result<(), Error> {
        let Attributes { num_outputs, outputs, axis, .. } = self.attributes;
        let rank = i64::try_from(shape.len()).unwrap_or(i64::MAX);
        let index = if axis < 0 { axis.saturating_add(rank) } else { axis };
        // An axis out of range is refused by libsplit.
        let extent = usize::try_from(index).ok().and_then(|index| shape.get(index));
        match extent {
            Some(extent)
                if num_outputs > *extent && usize::try_from(num_outputs) != Ok(outputs) =>
            {
                Err(Error::Refused(format!(
                    "num_outputs is {num_outputs}, the node has {outputs} outputs and axis {axis} \
                     an extent of {extent}: make num_outputs the number of outputs"
                )))
            }
            _ => Ok(()),
        }
    }

    /// The lengths that the node is given at run time, if any.
    ///
    /// # Safety
    /// As [`Node::run`].
    unsafe fn lengths_input(&self, context: *mut OrtKernelContext) -> Result<Option<Input>, Error> {
        if self.inputs < 2 {
            return Ok(None);
        }
        // SAFETY: the caller's promise.
        unsafe { Input::get(self.ort, context, 1) }
    }
}

/// Runs tasks on the thread pool of the session.
struct Pool {
    ort: Ort,
    context: *mut OrtKernelContext,
}

impl Pool {
    fn executor(&mut self) -> libsplit_executor {
        libsplit_executor {
            struct_size: size_of::<libsplit_executor>(),
            parallel_for: Some(parallel_for),
            pool: ptr::from_mut(self).cast(),
            max_tasks: 0,
            flags: 0,
        }
    }
}

unsafe extern "C" fn parallel_for(
    pool: *mut c_void,
    task: libsplit_task_fn,
    task_ctx: *mut c_void,
    count: usize,
) -> i32 {
    // SAFETY: the pool that `run` has given to libsplit, which waits for the return.
    let Pool { ort, context } = unsafe { &*pool.cast::<Pool>() };
    let Some(task) = task else { return 1 };
    // SAFETY: the context is that of the running node; the task may be run from any thread.
    let result =
        unsafe { ort_call!(ort, KernelContext_ParallelFor, *context, task, count, 0, task_ctx) };
    i32::from(result.is_err())
}

/// Calls a function of libsplit; its message becomes the error's.
fn check(call: impl FnOnce(*mut libsplit_error) -> libsplit_status) -> Result<(), Error> {
    let mut error = libsplit_error {
        struct_size: size_of::<libsplit_error>(),
        status: libsplit_status::OK,
        output_index: -1,
        expected: 0,
        actual: 0,
        message: [0; 240],
    };
    let status = call(&raw mut error);
    if status == libsplit_status::OK {
        return Ok(());
    }
    // SAFETY: libsplit ends the message with a NUL.
    let text = unsafe { crate::ort::text(error.message.as_ptr()) }.into_owned();
    Err(match status {
        libsplit_status::ERROR_INTERNAL => Error::Internal(text),
        _ => Error::Refused(text),
    })
}
