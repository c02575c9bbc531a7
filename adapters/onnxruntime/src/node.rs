//! A Split node of a model, and how it is run: the same for the provider and for custom ops.

use crate::attributes;
use crate::ort::{ort_call, Error, Ort};
use crate::params::{Attributes, Rules};
use crate::plan::{Call, Outputs, Plan};
use crate::strings::Strings;
use crate::tensor::{self, Input};
use core::ffi::c_void;
use core::ptr;
use libsplit::ffi::{libsplit_dtype, libsplit_executor, libsplit_task_fn, libsplit_tensor};
use ort_sys::{OrtKernelContext, OrtKernelInfo};
use smallvec::SmallVec;
use std::sync::RwLock;

/// A node, with what it says of itself.
pub struct Node {
    ort: Ort,
    attributes: Attributes,
    inputs: usize,
    /// The last run's. Runs use it at the same time; one that it is not for leaves another.
    last: RwLock<Option<Plan>>,
}

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
        Ok(Self { ort, attributes, inputs, last: RwLock::new(None) })
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
        let lengths = lengths.as_ref();
        let mut comes_again = false;
        if let Ok(last) = self.last.try_read() {
            let plan = last.as_ref().filter(|plan| plan.is_for(&input, lengths));
            comes_again = plan.is_some();
            if let Some(plan) = plan.filter(|plan| plan.is_ready()) {
                // SAFETY: as above.
                let outputs = unsafe { self.outputs(context, plan) }?;
                if plan.is_for_outputs(&outputs) {
                    // SAFETY: as above; the outputs have the plan's shapes.
                    return unsafe { self.copy(context, plan, &input, &outputs) };
                }
            }
        }
        let Self { attributes, .. } = self;
        // SAFETY: as above.
        let allocate = |plan: &Plan| unsafe { self.outputs(context, plan) };
        let once = |call: &Call, outputs: &mut [libsplit_tensor], values: &Outputs| {
            for (output, value) in outputs.iter_mut().zip(values).filter(|(_, v)| !v.is_null()) {
                // SAFETY: a tensor, not one of strings.
                output.data = unsafe { tensor::data(self.ort, *value) }?;
            }
            let mut pool = Pool { ort: self.ort, context };
            // SAFETY: ONNX Runtime has allocated what the plan's shapes need.
            unsafe { call.copy(outputs, &pool.executor()) }
        };
        let (plan, outputs) = Plan::new(attributes, &input, lengths, comes_again, allocate, once)?;
        if plan.is_ready() {
            // SAFETY: as above; the outputs have the plan's shapes.
            unsafe { self.copy(context, &plan, &input, &outputs) }?;
        }
        // While other runs use the last plan, it stays.
        if let Ok(mut last) = self.last.try_write() {
            *last = Some(plan);
        }
        Ok(())
    }

    /// Asks for the outputs, of the plan's shapes.
    ///
    /// # Safety
    /// As [`Node::run`].
    unsafe fn outputs(
        &self,
        context: *mut OrtKernelContext,
        plan: &Plan,
    ) -> Result<Outputs, Error> {
        // SAFETY: the caller's promise.
        let output = |index| unsafe { tensor::output(self.ort, context, index, plan.shape(index)) };
        (0..self.attributes.outputs).map(output).collect()
    }

    /// Copies the pieces.
    ///
    /// # Safety
    /// As [`Node::run`]; the plan must be for the input, and the outputs must have its shapes.
    unsafe fn copy(
        &self,
        context: *mut OrtKernelContext,
        plan: &Plan,
        input: &Input,
        outputs: &Outputs,
    ) -> Result<(), Error> {
        if input.dtype == libsplit_dtype::STRING {
            let mut strings = Strings::new(self.ort, input, self.attributes.axis);
            for (index, value) in outputs.iter().enumerate() {
                // SAFETY: tensors of strings; the shape is the plan's.
                unsafe { strings.next_to(*value, plan.shape(index)) }?;
            }
            return Ok(());
        }
        let mut targets: SmallVec<[_; 16]> = SmallVec::from_elem(ptr::null_mut(), outputs.len());
        for (target, value) in targets.iter_mut().zip(outputs).filter(|(_, v)| !v.is_null()) {
            // SAFETY: a tensor, not one of strings.
            *target = unsafe { tensor::data(self.ort, *value) }?;
        }
        let mut pool = Pool { ort: self.ort, context };
        // SAFETY: ONNX Runtime has allocated what the plan's shapes need.
        unsafe { plan.copy(input.data, &targets, &pool.executor()) }
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
