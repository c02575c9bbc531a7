//! The nodes around a Split: whether ONNX Runtime's optimizer works across it. The optimizer does most of its
//! work after providers have said which nodes they take, and passes over nodes of theirs.

use crate::claims::Crossed;
use crate::ort::{ort_call, text, Error, Ort};
use core::ptr;
use ort_sys::{OrtNode, OrtValueInfo};

/// Operators that only move elements, between a Split and the matrix products of an attention.
const MOVES: [&str; 9] = [
    "Concat",
    "Expand",
    "Flatten",
    "Identity",
    "Reshape",
    "Slice",
    "Squeeze",
    "Transpose",
    "Unsqueeze",
];
/// How many of them in a row are looked past.
const MAX_MOVES: usize = 8;
const FLOAT16: i32 = 10;

/// The graph of a model, or of the body of an If, Loop or Scan.
pub struct Surroundings {
    ort: Ort,
    /// Whether values are quantized within the graph.
    is_quantized: bool,
}

impl Surroundings {
    /// # Safety
    /// `nodes` must be those of a graph that ONNX Runtime asks about.
    pub unsafe fn new(ort: Ort, nodes: &[*const OrtNode]) -> Result<Self, Error> {
        let mut own = Self { ort, is_quantized: false };
        for node in nodes {
            // SAFETY: the caller's promise.
            let operator = unsafe { own.operator(*node) }?;
            own.is_quantized |= operator == "QuantizeLinear" || operator.starts_with("QLinear");
        }
        Ok(own)
    }

    /// What the optimizer would do across the Split of a value of this type, if anything.
    ///
    /// # Safety
    /// `input` and `outputs` must be those of a Split of the graph, NULL where absent.
    pub unsafe fn crossed(
        &self,
        dtype: i32,
        input: *const OrtValueInfo,
        outputs: &[*const OrtValueInfo],
    ) -> Result<Option<Crossed>, Error> {
        let outputs: Vec<_> = outputs.iter().copied().filter(|output| !output.is_null()).collect();
        // SAFETY: the caller's promise.
        unsafe {
            if !self.is_computed(input)? {
                return Ok(None);
            }
            if self.is_quantized {
                return Ok(Some(Crossed::Quantized));
            }
            // The optimizer does not convert what the graph gives, and this is of float16 then.
            if dtype == FLOAT16 && !self.any_of_graph(&outputs)? {
                return Ok(Some(Crossed::Cast));
            }
            if outputs.len() == 3 && self.reach_matmul(outputs)? {
                return Ok(Some(Crossed::Attention));
            }
        }
        Ok(None)
    }

    /// Whether one of these values is an output of the graph.
    ///
    /// # Safety
    /// They must be values of the graph.
    unsafe fn any_of_graph(&self, values: &[*const OrtValueInfo]) -> Result<bool, Error> {
        let (ort, mut is_output) = (self.ort, false);
        for value in values {
            // SAFETY: the caller's promise.
            unsafe { ort_call!(ort, ValueInfo_IsGraphOutput, *value, &raw mut is_output) }?;
            if is_output {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether one of these values, only moved, is multiplied by a matrix, as query, key and value are.
    ///
    /// # Safety
    /// They must be values of the graph.
    unsafe fn reach_matmul(&self, mut values: Vec<*const OrtValueInfo>) -> Result<bool, Error> {
        for _ in 0..=MAX_MOVES {
            let mut moved = Vec::new();
            for value in values {
                // SAFETY: the caller's promise; the outputs of its nodes are values of the graph, too.
                unsafe {
                    for node in self.consumers(value)? {
                        match &*self.operator(node)? {
                            "MatMul" => return Ok(true),
                            operator if MOVES.contains(&operator) => {
                                moved.extend(outputs(self.ort, node)?);
                            }
                            _ => {}
                        }
                    }
                }
            }
            moved.retain(|value| !value.is_null());
            values = moved;
        }
        Ok(false)
    }

    /// Whether a node of the graph computes a value, which otherwise is a constant or comes from outside.
    ///
    /// # Safety
    /// `value` must be NULL or a value of the graph.
    unsafe fn is_computed(&self, value: *const OrtValueInfo) -> Result<bool, Error> {
        let (ort, mut node, mut output) = (self.ort, ptr::null(), 0);
        let mut is_from_outside = true;
        if !value.is_null() {
            // SAFETY: the caller's promise.
            unsafe {
                ort_call!(ort, ValueInfo_IsFromOuterScope, value, &raw mut is_from_outside)?;
                ort_call!(ort, ValueInfo_GetValueProducer, value, &raw mut node, &raw mut output)?;
            }
        }
        Ok(!is_from_outside && !node.is_null())
    }

    /// The nodes that a value goes to.
    ///
    /// # Safety
    /// `value` must be a value of the graph.
    unsafe fn consumers(&self, value: *const OrtValueInfo) -> Result<Vec<*const OrtNode>, Error> {
        let (ort, mut count) = (self.ort, 0);
        // SAFETY: the caller's promise, and room for as many consumers as there are.
        unsafe {
            ort_call!(ort, ValueInfo_GetValueNumConsumers, value, &raw mut count)?;
            let (mut nodes, mut inputs) = (vec![ptr::null(); count], vec![0; count]);
            let (nodes_ptr, inputs_ptr) = (nodes.as_mut_ptr(), inputs.as_mut_ptr());
            ort_call!(ort, ValueInfo_GetValueConsumers, value, nodes_ptr, inputs_ptr, count)?;
            Ok(nodes)
        }
    }

    /// The name of a node's operator.
    ///
    /// # Safety
    /// `node` must be a node of the graph.
    unsafe fn operator(&self, node: *const OrtNode) -> Result<String, Error> {
        let mut name = ptr::null();
        // SAFETY: the caller's promise; the name lives as long as the node.
        unsafe {
            ort_call!(self.ort, Node_GetOperatorType, node, &raw mut name)?;
            Ok(text(name).into_owned())
        }
    }
}

/// A node's inputs, NULL where absent.
///
/// # Safety
/// `node` must be a node of a graph that ONNX Runtime asks about.
pub unsafe fn inputs(ort: Ort, node: *const OrtNode) -> Result<Vec<*const OrtValueInfo>, Error> {
    let mut count = 0;
    // SAFETY: the caller's promise, and room for as many values as there are.
    unsafe {
        ort_call!(ort, Node_GetNumInputs, node, &raw mut count)?;
        let mut values = vec![ptr::null(); count];
        ort_call!(ort, Node_GetInputs, node, values.as_mut_ptr(), count)?;
        Ok(values)
    }
}

/// A node's outputs, NULL where nothing uses them.
///
/// # Safety
/// As [`inputs`].
pub unsafe fn outputs(ort: Ort, node: *const OrtNode) -> Result<Vec<*const OrtValueInfo>, Error> {
    let mut count = 0;
    // SAFETY: the caller's promise, and room for as many values as there are.
    unsafe {
        ort_call!(ort, Node_GetNumOutputs, node, &raw mut count)?;
        let mut values = vec![ptr::null(); count];
        ort_call!(ort, Node_GetOutputs, node, values.as_mut_ptr(), count)?;
        Ok(values)
    }
}
