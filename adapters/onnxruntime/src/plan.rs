//! A split that has been decided: everything but the addresses, for runs whose input has the same
//! shape, and whose lengths are the same.

use crate::ort::Error;
use crate::params::{Attributes, Rules};
use crate::tensor::{axis_index, Input, Shape};
use core::ffi::c_void;
use core::ptr::null;
use libsplit::ffi::{
    calls, libsplit_dtype, libsplit_executor, libsplit_params, libsplit_plan, libsplit_plan_size,
    libsplit_tensor,
};
use libsplit::{ErrorKind, Words};
use ort_sys::OrtValue;
use smallvec::SmallVec;

/// The values of a node's outputs in a run; NULL for one that nothing uses.
pub type Outputs = SmallVec<[*mut OrtValue; 16]>;

pub struct Plan {
    dtype: libsplit_dtype,
    shape: Shape,
    /// Those that the node was given by an input, as bytes.
    lengths: Option<(libsplit_dtype, Shape, Vec<u8>)>,
    /// The extents of every output.
    shapes: Vec<i64>,
    /// Whether each output is used.
    is_used: Vec<bool>,
    /// A `libsplit_plan`; empty until one is prepared, and for strings, which are not libsplit's to
    /// copy.
    words: Vec<u64>,
}

impl Plan {
    /// Decides the split of this input by these lengths, if the node is given any. `finish` is given
    /// the plan, whose shapes are decided, with the call that is planned and its outputs.
    pub fn new<T>(
        attributes: &Attributes,
        input: &Input,
        lengths: Option<&Input>,
        finish: impl FnOnce(&mut Self, &Call, &mut [libsplit_tensor]) -> Result<T, Error>,
    ) -> Result<(Self, T), Error> {
        let count = [attributes.lengths.len().try_into().unwrap_or(i64::MAX)];
        let given = lengths.map(|lengths| (lengths.descriptor(), &lengths.shape[..]));
        let given = attributes.lengths(given, &count);
        if given.is_none() {
            check_num_outputs(attributes, &input.shape)?;
        }
        let params = attributes.params(given.as_ref());
        let source = libsplit_tensor { dtype: attributes.dtype(input.dtype), ..input.descriptor() };

        let rank = input.shape.len();
        let mut shapes = vec![0i64; rank * attributes.outputs];
        let mut outputs: SmallVec<[_; 16]> =
            SmallVec::from_elem(libsplit_tensor::ZERO, attributes.outputs);
        let extents = shapes.as_mut_ptr();
        for (index, output) in outputs.iter_mut().enumerate() {
            output.shape = extents.wrapping_add(index * rank);
            output.capacity = source.rank;
        }
        let (outputs_ptr, num_outputs) = (outputs.as_mut_ptr(), attributes.outputs);
        // SAFETY: the descriptors are complete, and every shape has room for `rank` entries.
        let inferred = unsafe {
            calls::infer(&raw const source, &raw const params, outputs_ptr, num_outputs, null())
        };
        check_in(&words(attributes.rules), inferred)?;

        let mut plan = Self {
            dtype: input.dtype,
            shape: input.shape.clone(),
            lengths: lengths
                .map(|given| (given.dtype, given.shape.clone(), given.bytes().to_vec())),
            shapes,
            is_used: Vec::new(),
            words: Vec::new(),
        };
        let call = Call { source: &source, params: &params };
        let made = finish(&mut plan, &call, &mut outputs)?;
        Ok((plan, made))
    }

    /// Says which outputs are used, here and in what is planned.
    pub fn set_used(
        &mut self,
        is_used: impl Iterator<Item = bool>,
        outputs: &mut [libsplit_tensor],
    ) {
        self.is_used = is_used.collect();
        for (output, _) in outputs.iter_mut().zip(&self.is_used).filter(|(_, is_used)| !**is_used) {
            *output = libsplit_tensor::ZERO;
        }
    }

    /// Prepares the runs to come.
    pub fn prepare(&mut self, call: &Call, outputs: &[libsplit_tensor]) -> Result<(), Error> {
        if self.dtype != libsplit_dtype::STRING {
            self.words = planned(call.source, call.params, outputs)?;
        }
        Ok(())
    }

    /// Whether there is all that a run needs.
    pub fn is_ready(&self) -> bool {
        !self.words.is_empty() || self.dtype == libsplit_dtype::STRING
    }

    /// Whether it is for such an input.
    pub fn is_for(&self, input: &Input) -> bool {
        self.dtype == input.dtype && self.shape == input.shape
    }

    /// Whether it is for such lengths.
    pub fn is_for_lengths(&self, lengths: Option<&Input>) -> bool {
        match (&self.lengths, lengths) {
            (Some((dtype, shape, bytes)), Some(given)) => {
                *dtype == given.dtype && *shape == given.shape && bytes == given.bytes()
            }
            (None, None) => true,
            _ => false,
        }
    }

    /// Whether it is for a run in which these outputs are used.
    pub fn is_for_outputs(&self, outputs: &Outputs) -> bool {
        self.is_used.iter().zip(outputs).all(|(is_used, value)| *is_used != value.is_null())
    }

    /// The shape of an output.
    pub fn shape(&self, index: usize) -> &[i64] {
        let rank = self.shape.len();
        &self.shapes[index * rank..][..rank]
    }

    /// Copies the pieces.
    ///
    /// # Safety
    /// The plan must be for the input at `input`, and not for strings; `outputs` must have room for
    /// the pieces.
    pub unsafe fn copy(
        &self,
        input: *const c_void,
        outputs: &[*mut c_void],
        executor: &libsplit_executor,
    ) -> Result<(), Error> {
        let (plan, targets): (*const libsplit_plan, _) =
            (self.words.as_ptr().cast(), outputs.as_ptr());
        // SAFETY: the caller's promise.
        check(unsafe {
            calls::plan_copy(plan, input.cast(), targets.cast(), outputs.len(), executor, null())
        })
    }
}

/// What is split, and how.
pub struct Call<'a> {
    source: &'a libsplit_tensor,
    params: &'a libsplit_params,
}

impl Call<'_> {
    /// Copies the pieces without a plan.
    ///
    /// # Safety
    /// `outputs` must have room for the pieces.
    pub unsafe fn copy(
        &self,
        outputs: &[libsplit_tensor],
        executor: &libsplit_executor,
    ) -> Result<(), Error> {
        let (Self { source, params }, targets) = (self, outputs.as_ptr());
        // SAFETY: the caller's promise.
        check(unsafe { calls::copy(*source, *params, targets, outputs.len(), executor, null()) })
    }
}

/// The plan itself, of outputs that are packed.
fn planned(
    source: &libsplit_tensor,
    params: &libsplit_params,
    outputs: &[libsplit_tensor],
) -> Result<Vec<u64>, Error> {
    let size = libsplit_plan_size(source.rank, outputs.len());
    let mut words = vec![0u64; size.div_ceil(size_of::<u64>())];
    let (plan, num_outputs) = (words.as_mut_ptr().cast::<libsplit_plan>(), outputs.len());
    // SAFETY: the descriptors are complete; the plan has as much room as it takes.
    check(unsafe {
        calls::plan_init(plan, size, source, params, outputs.as_ptr(), num_outputs, null())
    })?;
    Ok(words)
}

/// ONNX Runtime takes a `num_outputs` that is not the number of outputs, and makes as many parts
/// as there are outputs; but not where it is more than the extent.
fn check_num_outputs(attributes: &Attributes, shape: &[i64]) -> Result<(), Error> {
    let Attributes { num_outputs, outputs, axis, .. } = *attributes;
    // An axis out of range is refused by libsplit.
    match axis_index(axis, shape).map(|index| shape[index]) {
        Some(extent) if num_outputs > extent && usize::try_from(num_outputs) != Ok(outputs) => {
            Err(Error::Refused(format!(
                "num_outputs is {num_outputs}, but the node has {outputs} outputs, and axis {axis} an \
                 extent of {extent}: make num_outputs {outputs}"
            )))
        }
        _ => Ok(()),
    }
}

/// What messages call the inputs and attributes of such a node.
fn words(rules: Rules) -> Words {
    let mut words = Words::ONNX;
    match rules {
        Rules::VariadicSplit => words.lengths = "split_lengths",
        Rules::Onnx(_) | Rules::AnySplit => {}
    }
    words
}

/// Returns an error of libsplit's as one of the adapter's.
fn check(done: Result<(), libsplit::Error>) -> Result<(), Error> {
    check_in(&Words::ONNX, done)
}

/// The same in these words.
fn check_in(words: &Words, done: Result<(), libsplit::Error>) -> Result<(), Error> {
    done.map_err(|error| {
        let text = error.message(words).to_string();
        match error.kind() {
            ErrorKind::Internal => Error::Internal(text),
            _ => Error::Refused(text),
        }
    })
}
