//! ONNX's own cases (`cases/`, extracted from the onnx package) through the C functions.

// Calls into C functions are all unsafe, and what they get is made right above them.
#![allow(clippy::undocumented_unsafe_blocks, clippy::borrow_as_ptr)]

mod common;
#[path = "conformance/rules.rs"]
mod rules;

use common::{count, infer, params, view, Tensor};
use libsplit::ffi::{libsplit_copy, libsplit_op, libsplit_params, libsplit_tensor};
use serde::Deserialize;
use std::ptr::null;

#[derive(Deserialize)]
#[serde(untagged)]
enum SplitValue {
    Scalar(i64),
    List(Vec<i64>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Extent {
    Known(i64),
    Named(#[allow(dead_code)] String),
    Unknown(()),
}

#[derive(Deserialize)]
struct Output {
    shape: Vec<i64>,
    data: Vec<f64>,
}

/// What value cases and shape cases have in common.
#[derive(Deserialize)]
struct Node {
    name: String,
    op: String,
    opset: i32,
    dtype: String,
    axis: Option<i64>,
    split: Option<SplitValue>,
    #[serde(default)]
    split_dtype: Option<String>,
    num_outputs: Option<i64>,
    #[serde(default)]
    keepdims: Option<i32>,
}

#[derive(Deserialize)]
struct ValueCase {
    #[serde(flatten)]
    node: Node,
    input_shape: Vec<i64>,
    input: Option<Vec<f64>>,
    outputs: Vec<Output>,
}

#[derive(Deserialize)]
struct ShapeCase {
    #[serde(flatten)]
    node: Node,
    input_shape: Vec<Extent>,
    outputs: Option<Vec<Vec<Extent>>>,
    #[serde(default)]
    seq_elem_shape: Option<Vec<Option<i64>>>,
    error: Option<String>,
}

/// The lengths as memory, which a params structure then points to.
struct Lengths {
    values64: Vec<i64>,
    #[allow(dead_code)] // the tensor points into it
    values32: Vec<i32>,
    tensor: Option<Tensor>,
}

impl Node {
    fn lengths(&self) -> Lengths {
        let (shape, values64) = match &self.split {
            None => return Lengths { values64: vec![], values32: vec![], tensor: None },
            Some(SplitValue::Scalar(length)) => (vec![], vec![*length]),
            Some(SplitValue::List(list)) => {
                (vec![i64::try_from(list.len()).unwrap()], list.clone())
            }
        };
        let values32: Vec<i32> = values64.iter().map(|v| i32::try_from(*v).unwrap()).collect();
        let tensor = match self.split_dtype.as_deref() {
            Some("int32") => Tensor::new(6, &shape)
                .at(values32.as_ptr().cast(), size_of_val(values32.as_slice())),
            _ => Tensor::new(7, &shape)
                .at(values64.as_ptr().cast(), size_of_val(values64.as_slice())),
        };
        Lengths { values64, values32, tensor: Some(tensor) }
    }

    fn params(&self, split: Option<&libsplit_tensor>) -> libsplit_params {
        let op = match self.op.as_str() {
            "Split" => libsplit_op::ONNX_SPLIT,
            "SplitToSequence" => libsplit_op::ONNX_SPLIT_TO_SEQUENCE,
            other => panic!("{other}"),
        };
        libsplit_params {
            axis: self.axis.unwrap_or(0),
            split: split.map_or(null(), std::ptr::from_ref),
            num_outputs: self.num_outputs.unwrap_or(0),
            keepdims: self.keepdims.unwrap_or(1),
            ..params(op, self.opset)
        }
    }

    fn dtype(&self) -> (i32, usize) {
        match self.dtype.as_str() {
            "float32" => (1, 4),
            "float64" => (11, 8),
            other => panic!("{other}"),
        }
    }
}

fn bytes(values: &[f64], size: usize) -> Vec<u8> {
    #[allow(clippy::cast_possible_truncation)]
    let narrow = |v: &f64| (*v as f32).to_ne_bytes().to_vec();
    values
        .iter()
        .flat_map(|v| if size == 4 { narrow(v) } else { v.to_ne_bytes().to_vec() })
        .collect()
}

/// The cases whose input is not given in the file use 0, 1, 2, … (the onnx package does).
fn input_values(case: &ValueCase) -> Vec<f64> {
    let count: i64 = case.input_shape.iter().product();
    let counted = || (0..i32::try_from(count).unwrap()).map(f64::from).collect();
    case.input.clone().unwrap_or_else(counted)
}

#[test]
fn onnx_value_cases() {
    let cases: Vec<ValueCase> = serde_json::from_str(include_str!("cases/onnx.json")).unwrap();
    assert_eq!(cases.len(), 38);
    for case in &cases {
        check_values(case);
    }
}

fn check_values(case: &ValueCase) {
    let name = &case.node.name;
    let (dtype, size) = case.node.dtype();
    let data = bytes(&input_values(case), size);
    let input = Tensor::new(dtype, &case.input_shape).at(data.as_ptr(), data.len());
    let lengths = case.node.lengths();
    let split = lengths.tensor.as_ref().map(Tensor::descriptor);
    let mut params = case.node.params(split.as_ref());
    let outputs = case.outputs.len();
    if params.op == libsplit_op::ONNX_SPLIT && case.node.opset < 18 {
        params.num_outputs = i64::try_from(outputs).unwrap(); // the node's outputs
    }
    assert_eq!(count(&input, &params), Ok(outputs), "{name}");

    let rank = case.outputs.first().map_or(0, |output| output.shape.len());
    let described = infer(&input, &params, outputs, rank).unwrap();
    let mut buffers: Vec<Vec<u8>> =
        described.descriptors.iter().map(|output| vec![0xEE; output.data_bytes]).collect();
    let ready: Vec<libsplit_tensor> = (described.descriptors.iter().zip(&mut buffers))
        .map(|(output, buffer)| libsplit_tensor { data: buffer.as_mut_ptr().cast(), ..*output })
        .collect();
    common::call(|error| unsafe {
        libsplit_copy(&input.descriptor(), &params, ready.as_ptr(), outputs, null(), error)
    })
    .unwrap();
    let views = view(&input, &params, outputs, rank).unwrap();
    for (index, expected) in case.outputs.iter().enumerate() {
        assert_eq!(described.shapes[index], expected.shape, "{name}");
        assert_eq!(views.shapes[index], expected.shape, "{name}");
        assert_eq!(buffers[index], bytes(&expected.data, size), "{name}: output {index}");
        if !expected.data.is_empty() {
            let first = views.descriptors[index].data.cast::<u8>().cast_const();
            let first = unsafe { std::slice::from_raw_parts(first, size) };
            assert_eq!(first, &buffers[index][..size], "{name}: view {index}");
        }
    }
}

#[test]
fn onnx_shape_cases() {
    let cases: Vec<ShapeCase> =
        serde_json::from_str(include_str!("cases/onnx_shape.json")).unwrap();
    assert_eq!(cases.len(), 16);
    for case in &cases {
        check_shapes(case);
    }
}

fn check_shapes(case: &ShapeCase) {
    let name = &case.node.name;
    let shape: Vec<i64> = case.input_shape.iter().map(known).collect();
    let input = Tensor::new(case.node.dtype().0, &shape);
    let lengths = case.node.lengths();
    let split = lengths.tensor.as_ref().map(Tensor::descriptor);
    let params = case.node.params(split.as_ref());
    let counted = count(&input, &params);
    if case.error.is_some() {
        assert_eq!(counted.unwrap_err().status, 12, "{name}");
        return;
    }
    let outputs = counted.unwrap();
    if let Some(expected) = &case.outputs {
        let shapes = infer(&input, &params, outputs, shape.len()).unwrap().shapes;
        assert_eq!(shapes.len(), expected.len(), "{name}");
        for (index, (shape, expected)) in shapes.iter().zip(expected).enumerate() {
            for (axis, (extent, expected)) in shape.iter().zip(expected).enumerate() {
                match expected {
                    // Where ONNX forgets known lengths under an unknown extent, we keep them.
                    Extent::Unknown(()) if lengths.values64.len() == outputs => {
                        assert_eq!(*extent, lengths.values64[index], "{name}");
                    }
                    expected => assert_eq!(*extent, known(expected), "{name}: axis {axis}"),
                }
            }
        }
    }
    if let Some(element) = &case.seq_elem_shape {
        // ONNX knows one shape for the whole sequence, and no extent that differs within it.
        for shape in infer(&input, &params, outputs, element.len()).unwrap().shapes {
            for (extent, expected) in shape.iter().zip(element) {
                assert!(expected.is_none_or(|expected| expected == *extent), "{name}: {shape:?}");
            }
        }
    }
}

fn known(extent: &Extent) -> i64 {
    match extent {
        Extent::Known(extent) => *extent,
        Extent::Named(_) | Extent::Unknown(()) => -1,
    }
}
