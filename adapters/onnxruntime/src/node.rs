//! A Split node of a model, and how it is run: the same for the provider and for custom ops.

use crate::attributes;
use crate::ort::{ort_call, Error, Ort};
use crate::params::{Attributes, Rules};
use crate::plan::{Outputs, Plan};
use crate::strings::Strings;
use crate::tensor::{self, Input};
use core::ffi::c_void;
use core::ptr;
use libsplit::ffi::{libsplit_dtype, libsplit_executor, libsplit_task_fn};
use ort_sys::{OrtKernelContext, OrtKernelInfo};
use smallvec::SmallVec;
use std::sync::RwLock;

/// A node, with what it says of itself.
pub struct Node {
    ort: Ort,
    attributes: Attributes,
    lengths: Lengths,
    /// An attribute `num_outputs` that is not the number of outputs, where ONNX Runtime refuses
    /// that: from release 1.32 on, in every run that goes without lengths.
    wrong_num_outputs: Option<i64>,
    /// For the shape that the model declares, if it does.
    declared: Option<Plan>,
    /// The last run's, of those with other shapes. Runs use it at the same time; one that it is not
    /// for leaves another.
    last: RwLock<Option<Plan>>,
}

/// The second input.
enum Lengths {
    Absent,
    /// A constant of the model, and its elements, which lie where they are aligned.
    Constant(Input, #[allow(dead_code)] Vec<u64>),
    /// Whatever it is in each run.
    Given,
}

// SAFETY: the constant is the node's own, and only read.
unsafe impl Send for Lengths {}
// SAFETY: as above.
unsafe impl Sync for Lengths {}

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
                    "attribute num_outputs is {given}, but the node has {outputs} outputs: remove the \
                     attribute, or make it {outputs}"
                )));
            }
            if lengths.as_ref().is_some_and(Vec::is_empty) {
                return Err(Error::Refused(
                    "attribute split is not a list of integers, or it is empty: remove it, or make it \
                     one of the lengths"
                        .into(),
                ));
            }
        }
        let is_strict = ort.release >= 32 && matches!(rules, Rules::Onnx(18..));
        let is_wrong = |given: &i64| is_strict && usize::try_from(*given) != Ok(outputs);
        let wrong_num_outputs = num_outputs.filter(is_wrong);
        let lengths = lengths.unwrap_or_default();
        let (axis, num_outputs) = (axis.unwrap_or(0), num_outputs.unwrap_or(0));
        let attributes = Attributes { rules, axis, num_outputs, lengths, outputs };
        // SAFETY: the caller's promise.
        let lengths = unsafe { Lengths::new(ort, info, inputs) }?;
        let mut node = Self {
            ort,
            attributes,
            lengths,
            wrong_num_outputs,
            declared: None,
            last: RwLock::new(None),
        };
        // What is wrong with a plan is said where a run needs one.
        // SAFETY: as above.
        node.declared = unsafe { node.plan_declared(info) }.unwrap_or(None);
        Ok(node)
    }

    /// A plan for the shape that the model declares for the input.
    ///
    /// # Safety
    /// As [`Node::new`].
    unsafe fn plan_declared(&self, info: *const OrtKernelInfo) -> Result<Option<Plan>, Error> {
        let ort = self.ort;
        let lengths = match &self.lengths {
            Lengths::Absent => None,
            Lengths::Constant(lengths, _) => Some(lengths),
            Lengths::Given => return Ok(None),
        };
        self.check_num_outputs(lengths)?;
        // SAFETY: the caller's promise; the type is ours, and released when it has been read.
        let declared = unsafe {
            let mut of_input = ptr::null_mut();
            ort_call!(ort, KernelInfo_GetInputTypeInfo, info, 0, &raw mut of_input)?;
            let declared = tensor::declared(ort, of_input);
            ((*ort.table()).ReleaseTypeInfo)(of_input);
            declared
        };
        let (dtype, shape) = declared?;
        if shape.is_empty() || shape.iter().any(|extent| *extent < 0) {
            return Ok(None);
        }
        let is_used = |index| {
            let mut size = 0;
            // SAFETY: the caller's promise. Without a buffer, it returns the size, including the NUL.
            unsafe {
                ort_call!(
                    ort,
                    KernelInfo_GetOutputName,
                    info,
                    index,
                    ptr::null_mut(),
                    &raw mut size
                )
            }
            .map(|()| size > 1)
        };
        let is_used: Vec<_> =
            (0..self.attributes.outputs).map(is_used).collect::<Result<_, _>>()?;
        let input = Input::without_data(dtype, shape)?;
        let (plan, ()) = Plan::new(&self.attributes, &input, lengths, |plan, call, outputs| {
            plan.set_used(is_used.into_iter(), outputs);
            plan.prepare(call, outputs)
        })?;
        Ok(Some(plan))
    }

    /// Runs the node. May be called by many threads at a time.
    ///
    /// # Safety
    /// `context` must be that of this node, running.
    pub unsafe fn run(&self, context: *mut OrtKernelContext) -> Result<(), Error> {
        // SAFETY: the caller's promise.
        let input = unsafe { Input::get(self.ort, context, 0) }?
            .ok_or_else(|| Error::Refused("the node has no input to split".into()))?;
        if let Some(plan) = self.declared.as_ref().filter(|plan| plan.is_for(&input)) {
            // SAFETY: as above; the plan is for the input.
            if unsafe { self.run_plan(plan, context, &input) }? {
                return Ok(());
            }
        }
        let given;
        let lengths = match &self.lengths {
            Lengths::Absent => None,
            Lengths::Constant(lengths, _) => Some(lengths),
            Lengths::Given => {
                // SAFETY: as above.
                given = unsafe { Input::get(self.ort, context, 1) }?;
                given.as_ref()
            }
        };
        self.check_num_outputs(lengths)?;
        let mut comes_again = false;
        if let Ok(last) = self.last.try_read() {
            let is_for = |plan: &&Plan| plan.is_for(&input) && plan.is_for_lengths(lengths);
            if let Some(plan) = last.as_ref().filter(is_for) {
                comes_again = true;
                // SAFETY: as above; the plan is for the input and the lengths.
                if plan.is_ready() && unsafe { self.run_plan(plan, context, &input) }? {
                    return Ok(());
                }
            }
        }
        // SAFETY: as above.
        let plan = unsafe { self.run_anew(context, &input, lengths, comes_again) }?;
        // While other runs use the last plan, it stays.
        if let Ok(mut last) = self.last.try_write() {
            *last = Some(plan);
        }
        Ok(())
    }

    /// Refuses what ONNX Runtime refuses of `num_outputs`, which counts where there are no lengths.
    fn check_num_outputs(&self, lengths: Option<&Input>) -> Result<(), Error> {
        let has_lengths = lengths.is_some_and(|lengths| lengths.shape[..] != [0]);
        match self.wrong_num_outputs.filter(|_| !has_lengths) {
            Some(given) => Err(Error::Refused(format!(
                "num_outputs is {given}, but the node has {0} outputs: make num_outputs {0}",
                self.attributes.outputs
            ))),
            None => Ok(()),
        }
    }

    /// Runs by a plan, unless that is not for the outputs that are used.
    ///
    /// # Safety
    /// As [`Node::run`]; the plan must be for the input and its lengths.
    unsafe fn run_plan(
        &self,
        plan: &Plan,
        context: *mut OrtKernelContext,
        input: &Input,
    ) -> Result<bool, Error> {
        // SAFETY: the caller's promise.
        let outputs = unsafe { self.outputs(context, plan) }?;
        if !plan.is_for_outputs(&outputs) {
            return Ok(false);
        }
        // SAFETY: as above; the outputs have the plan's shapes.
        unsafe { self.copy(context, plan, input, &outputs) }?;
        Ok(true)
    }

    /// Runs where there is no plan yet, and makes one. The first run that is as it is not worth a
    /// whole one: it is prepared where that `comes_again`.
    ///
    /// # Safety
    /// As [`Node::run`].
    unsafe fn run_anew(
        &self,
        context: *mut OrtKernelContext,
        input: &Input,
        lengths: Option<&Input>,
        comes_again: bool,
    ) -> Result<Plan, Error> {
        let (plan, values) = Plan::new(&self.attributes, input, lengths, |plan, call, outputs| {
            // SAFETY: the caller's promise.
            let values = unsafe { self.outputs(context, plan) }?;
            plan.set_used(values.iter().map(|value| !value.is_null()), outputs);
            if comes_again {
                plan.prepare(call, outputs)?;
            } else if input.dtype != libsplit_dtype::STRING {
                for (output, value) in outputs.iter_mut().zip(&values).filter(|(_, v)| !v.is_null())
                {
                    // SAFETY: a tensor, not one of strings.
                    output.data = unsafe { tensor::data(self.ort, *value) }?;
                }
                let mut pool = Pool { ort: self.ort, context };
                // SAFETY: ONNX Runtime has allocated what the plan's shapes need.
                unsafe { call.copy(outputs, &pool.executor()) }?;
            }
            Ok(values)
        })?;
        if plan.is_ready() {
            // SAFETY: the caller's promise; the outputs have the plan's shapes.
            unsafe { self.copy(context, &plan, input, &values) }?;
        }
        Ok(plan)
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
}

impl Lengths {
    /// # Safety
    /// As [`Node::new`].
    unsafe fn new(ort: Ort, info: *const OrtKernelInfo, inputs: usize) -> Result<Self, Error> {
        if inputs < 2 {
            return Ok(Self::Absent);
        }
        let (mut is_constant, mut value) = (0, ptr::null());
        // SAFETY: the caller's promise; a constant is a tensor.
        unsafe {
            ort_call!(
                ort,
                KernelInfoGetConstantInput_tensor,
                info,
                1,
                &raw mut is_constant,
                &raw mut value
            )?;
            if is_constant == 0 || value.is_null() {
                return Ok(Self::Given);
            }
            Ok(Self::constant(Input::of(ort, value)?))
        }
    }

    fn constant(lengths: Input) -> Self {
        let word = |bytes: &[u8]| {
            let mut word = [0; size_of::<u64>()];
            word[..bytes.len()].copy_from_slice(bytes);
            u64::from_ne_bytes(word)
        };
        let words: Vec<_> = lengths.bytes().chunks(size_of::<u64>()).map(word).collect();
        let data = words.as_ptr().cast_mut().cast();
        Self::Constant(Input { value: ptr::null(), data, ..lengths }, words)
    }
}

/// Runs tasks on the thread pool of the session.
struct Pool {
    ort: Ort,
    context: *mut OrtKernelContext,
}

impl Pool {
    fn executor(&mut self) -> libsplit_executor {
        // Not that outputs are read next: whole runs of boxes of 20 MiB were slower by it with one thread
        // (0.90 for 0.77), if faster with two (0.75 for 0.84), and how many there are is not told.
        libsplit_executor::init(Some(parallel_for), ptr::from_mut(self).cast())
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
