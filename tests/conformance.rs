//! Runs every case of `cases/` through the C functions: ONNX's own, one for every rule of every operator, and bugs that
//! other libraries had. `tests/conformance/` runs the same cases on `libsplit.so` and on those libraries.

// Calls into C functions are all unsafe, and their arguments are made right above them.
#![allow(clippy::undocumented_unsafe_blocks, clippy::borrow_as_ptr)]

mod common;

use common::{copy, count, params, view, Failure, Tensor};
use half::{bf16, f16};
use libsplit::ffi::{
    libsplit_dtype, libsplit_dtype_bits, libsplit_dtype_name, libsplit_infer, libsplit_op,
    libsplit_params, libsplit_status, libsplit_status_name, libsplit_tensor,
    LIBSPLIT_FLAG_CLAMP_UNEVEN,
};
use libsplit::Operator;
use serde::Deserialize;
use serde_json::Value;
use std::ffi::CStr;
use std::ptr::{from_ref, null};

/// The fields that `cases/README.md` describes.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Case {
    name: String,
    op: String,
    opset: i32,
    dtype: String,
    input_shape: Vec<Option<i64>>,
    axis: i64,
    kind: String,
    first: i64,
    bytes: Option<Vec<u8>>,
    input: Option<Vec<f64>>,
    split: Value,
    split_dtype: String,
    split_shape: Option<Vec<i64>>,
    num_outputs: i64,
    n_outputs: Option<usize>,
    keepdims: Option<i32>,
    flags: Vec<String>,
    unwanted: Vec<usize>,
    sizes: Option<Vec<i64>>,
    axis_dropped: bool,
    outputs: Vec<Vec<Option<i64>>>,
    /// What ONNX infers for every output of a sequence.
    seq_elem_shape: Option<Vec<Option<i64>>>,
    error: Option<String>,
    /// What the outputs hold according to ONNX.
    #[serde(skip)]
    data: Vec<Vec<f64>>,
}

#[test]
fn rules() {
    check_all(include_str!("cases/rules.json"), 176, Case::of);
}

/// A new operator version is not forgotten here, either.
#[test]
fn every_operator_version_has_cases_with_lengths_and_without() {
    let cases: Vec<Value> = serde_json::from_str(include_str!("cases/rules.json")).unwrap();
    for operator in Operator::ALL {
        for has_lengths in [false, true] {
            let is_of_it = |case: &Case| {
                let governing = match &*case.op {
                    "Split" => Operator::onnx_split(case.opset).map(|op| op.to_string()),
                    "SplitToSequence" => {
                        Operator::onnx_split_to_sequence(case.opset).map(|op| op.to_string())
                    }
                    op => Ok(format!("{}-{}", op.replace('.', " "), case.opset.max(1))),
                };
                let name = operator.to_string().replace("OpenVINO", "openvino");
                governing.is_ok_and(|governing| governing == name)
                    && case.split.is_null() != has_lengths
            };
            let found = cases.iter().cloned().map(Case::of).any(|case| is_of_it(&case));
            assert!(found, "{operator}, lengths: {has_lengths}");
        }
    }
}

#[test]
fn bugs_that_peers_had() {
    check_all(include_str!("cases/issues.json"), 20, Case::of);
}

#[test]
fn onnx_value_cases() {
    check_all(include_str!("cases/onnx.json"), 38, Case::of_onnx_values);
}

#[test]
fn onnx_shape_cases() {
    check_all(include_str!("cases/onnx_shape.json"), 16, Case::of_onnx_shapes);
}

fn check_all(cases: &str, count: usize, of: fn(Value) -> Case) {
    let cases: Vec<Value> = serde_json::from_str(cases).unwrap();
    assert_eq!(cases.len(), count);
    for case in cases {
        check(&of(case));
    }
}

impl Case {
    fn of(fields: Value) -> Self {
        serde_json::from_value(fields).unwrap()
    }

    /// Returns a case of ONNX's with these outputs instead of its own.
    fn of_onnx(mut fields: Value) -> (Self, Vec<Value>) {
        let object = fields.as_object_mut().unwrap();
        object.retain(|_, value| !value.is_null());
        let outputs = object.remove("outputs");
        without_names(&mut object["input_shape"]);
        let outputs = outputs.and_then(|outputs| outputs.as_array().cloned());
        (Self::of(fields), outputs.unwrap_or_default())
    }

    fn of_onnx_values(fields: Value) -> Self {
        let (case, outputs) = Self::of_onnx(fields);
        let axis = case.normal_axis();
        let shape_of = |output: &Value| -> Vec<i64> { of_json(&output["shape"]) };
        let shapes: Vec<_> = outputs.iter().map(shape_of).collect();
        let axis_dropped = shapes.iter().any(|shape| shape.len() < case.input_shape.len());
        let size = |shape: &Vec<i64>| if axis_dropped { 1 } else { shape[axis] };
        // Before Split-18, the number of outputs is the node's.
        let of_node = case.n_outputs.filter(|_| case.opset < 18);
        let num_outputs = of_node.map_or(case.num_outputs, |count| i64::try_from(count).unwrap());
        let case = Self {
            sizes: Some(shapes.iter().map(size).collect()),
            data: outputs.iter().map(|output| of_json(&output["data"])).collect(),
            axis_dropped,
            num_outputs,
            ..case
        };
        assert!(shapes.iter().enumerate().all(|(at, shape)| *shape == case.shape_of(at)));
        case
    }

    fn of_onnx_shapes(fields: Value) -> Self {
        let (case, mut outputs) = Self::of_onnx(fields);
        let axis = case.normal_axis();
        for (index, output) in outputs.iter_mut().enumerate() {
            without_names(output);
            // Where ONNX forgets known lengths under an unknown extent, libsplit keeps them.
            if let Some(length) = case.split.get(index) {
                output[axis] = length.clone();
            }
        }
        let outputs = outputs.iter().map(of_json).collect();
        Self { outputs, error: case.error.map(|_| "SPLIT_SIZES".to_owned()), ..case }
    }
}

fn of_json<T: serde::de::DeserializeOwned>(value: &Value) -> T {
    serde_json::from_value(value.clone()).unwrap()
}

/// Extents that only have a name are unknown.
fn without_names(shape: &mut Value) {
    let extents = shape.as_array_mut().unwrap().iter_mut();
    extents.filter(|extent| !extent.is_i64()).for_each(|extent| *extent = Value::Null);
}

fn check(case: &Case) {
    let name = &case.name;
    match (run(case), &case.error) {
        (Ok(()), None) => {}
        (Ok(()), Some(error)) => panic!("{name}: expected {error}"),
        (Err(failure), None) => panic!("{name}: {failure:?}"),
        (Err(failure), Some(error)) => {
            let status = libsplit_status_name(libsplit_status(failure.status));
            let status = unsafe { CStr::from_ptr(status) }.to_str().unwrap();
            let expected = format!("LIBSPLIT_STATUS_ERROR_{error}");
            assert_eq!(status, expected, "{name}: {}", failure.message);
        }
    }
}

fn run(case: &Case) -> Result<(), Failure> {
    let shape: Vec<i64> = case.input_shape.iter().map(|e| e.unwrap_or(-1)).collect();
    let lengths = Lengths::of(case);
    let split = lengths.tensor.as_ref().map(Tensor::descriptor);
    let params = libsplit_params {
        axis: case.axis,
        split: split.as_ref().map_or(null(), from_ref),
        num_outputs: case.num_outputs,
        keepdims: case.keepdims.unwrap_or(1),
        flags: if case.flags.is_empty() { 0 } else { LIBSPLIT_FLAG_CLAMP_UNEVEN },
        ..params(operator(&case.op), case.opset)
    };
    let dtype = dtype(&case.dtype);
    let elements = Elements::of(case, dtype, &shape);
    let data = elements.pack();
    let mut input = Tensor::new(dtype.0, &shape);
    if case.kind != "shape" {
        input = input.at(data.as_ptr(), data.len());
    }
    let outputs = match case.n_outputs {
        Some(outputs) => outputs,
        None => count(&input, &params)?,
    };

    // Capacities are generous, because the rank of the outputs is part of the answer.
    let mut shapes = vec![[0_i64; 65]; outputs];
    let mut ready: Vec<libsplit_tensor> = (shapes.iter_mut().enumerate())
        .map(|(index, shape)| {
            let mut output = Tensor::unwanted();
            if !case.unwanted.contains(&index) {
                output.shape = shape.as_mut_ptr();
                output.capacity = 64;
            }
            output
        })
        .collect();
    let described = input.descriptor();
    common::call(|error| unsafe {
        libsplit_infer(&described, &params, ready.as_mut_ptr(), outputs, error)
    })?;
    match count(&input, &params) {
        Ok(counted) => assert_eq!(counted, outputs, "{}", case.name),
        // Only the number of outputs says how many pieces there are.
        Err(failure) => assert!(case.n_outputs.is_some(), "{}: {failure:?}", case.name),
    }
    for (index, output) in ready.iter().enumerate().filter(|(_, output)| output.rank > 0) {
        let found = &shapes[index][..usize::try_from(output.rank).unwrap()];
        case.check_shape(index, found);
    }
    if case.kind == "shape" {
        return Ok(());
    }
    check_copies(case, &input, &params, ready, &elements)
}

/// Checks that copies have the expected bytes, and those that ONNX gives.
fn check_copies(
    case: &Case,
    input: &Tensor,
    params: &libsplit_params,
    mut ready: Vec<libsplit_tensor>,
    elements: &Elements,
) -> Result<(), Failure> {
    let mut buffers: Vec<Vec<u8>> = ready.iter().map(|o| vec![0xEE; o.data_bytes]).collect();
    for (output, buffer) in ready.iter_mut().zip(&mut buffers) {
        if !output.shape.is_null() {
            output.data = buffer.as_mut_ptr().cast();
        }
    }
    copy(input, params, &ready, None)?;
    if case.unwanted.is_empty() {
        check_views(case, input, params, &buffers);
    }
    let mut begin = 0;
    for (index, size) in case.sizes.iter().flatten().enumerate() {
        if !case.unwanted.contains(&index) {
            let expected = elements.piece(case.axis, begin, *size).pack();
            assert!(buffers[index] == expected, "{}: bytes of output {index}", case.name);
            let data = case.data.get(index).map(|data| float_bytes(data, elements.bits));
            assert!(data.is_none_or(|data| data == expected), "{}: ONNX's {index}", case.name);
        }
        begin += size;
    }
    Ok(())
}

/// Checks that views have the shapes of the copies, and begin with the same element.
fn check_views(case: &Case, input: &Tensor, params: &libsplit_params, copies: &[Vec<u8>]) {
    let rank = case.input_shape.len() - usize::from(case.axis_dropped);
    let views = view(input, params, copies.len(), rank).unwrap();
    let element = libsplit_dtype_bits(libsplit_dtype(input.dtype)) as usize / 8;
    for (index, copy) in copies.iter().enumerate() {
        case.check_shape(index, &views.shapes[index]);
        let data = views.descriptors[index].data.cast::<u8>();
        for (at, byte) in copy.iter().enumerate().take(element) {
            assert_eq!(unsafe { *data.add(at) }, *byte, "{}: view {index}", case.name);
        }
    }
}

impl Case {
    fn check_shape(&self, index: usize, found: &[i64]) {
        let Some(element) = &self.seq_elem_shape else {
            return assert_eq!(found, self.shape_of(index), "{}: output {index}", self.name);
        };
        // One shape for the whole sequence, without extents that differ within it.
        assert_eq!(found.len(), element.len(), "{}", self.name);
        let mut both = found.iter().zip(element);
        assert!(both.all(|(found, known)| known.is_none_or(|known| known == *found)));
    }

    fn normal_axis(&self) -> usize {
        normal(self.axis, self.input_shape.len())
    }

    /// Returns the shape that is expected.
    fn shape_of(&self, index: usize) -> Vec<i64> {
        let Some(sizes) = &self.sizes else {
            return self.outputs[index].iter().map(|e| e.unwrap_or(-1)).collect();
        };
        let mut shape: Vec<i64> = self.input_shape.iter().map(|e| e.unwrap()).collect();
        if self.axis_dropped {
            shape.remove(self.normal_axis());
        } else {
            shape[self.normal_axis()] = sizes[index];
        }
        shape
    }
}

fn normal(axis: i64, rank: usize) -> usize {
    usize::try_from(axis).unwrap_or_else(|_| rank - usize::try_from(-axis).unwrap())
}

fn operator(name: &str) -> libsplit_op {
    match name {
        "Split" => libsplit_op::ONNX_SPLIT,
        "SplitToSequence" => libsplit_op::ONNX_SPLIT_TO_SEQUENCE,
        "openvino.VariadicSplit" => libsplit_op::OPENVINO_VARIADIC_SPLIT,
        "openvino.Split" => libsplit_op::OPENVINO_SPLIT,
        other => panic!("{other}"),
    }
}

/// Returns the type by its name in Python: ONNX's, except for four.
fn dtype(name: &str) -> libsplit_dtype {
    let name = match name {
        "float32" => "FLOAT".to_owned(),
        "float64" => "DOUBLE".to_owned(),
        "float8_e8m0fnu" => "FLOAT8E8M0".to_owned(),
        "float4_e2m1fn" => "FLOAT4E2M1".to_owned(),
        other => other.to_uppercase().replace('_', ""),
    };
    let named = |number: &i32| {
        let found = unsafe { CStr::from_ptr(libsplit_dtype_name(libsplit_dtype(*number))) };
        found.to_str() == Ok(name.as_str())
    };
    libsplit_dtype((1..=26).find(named).unwrap_or_else(|| panic!("no type {name}")))
}

/// Lengths in memory, to which a params structure points.
struct Lengths {
    #[allow(dead_code)] // the tensor points into it
    bytes: Vec<u8>,
    tensor: Option<Tensor>,
}

impl Lengths {
    fn of(case: &Case) -> Self {
        let dtype = dtype(if case.split_dtype.is_empty() { "int64" } else { &case.split_dtype });
        let known = !case.split.is_null();
        if !known && case.split_shape.is_none() {
            return Self { bytes: vec![], tensor: None };
        }
        let list = case.split.as_array();
        let own_shape = || list.map(|l| i64::try_from(l.len()).unwrap()).into_iter().collect();
        let shape: Vec<i64> = case.split_shape.clone().unwrap_or_else(own_shape);
        let values = list.map_or(std::slice::from_ref(&case.split), Vec::as_slice);
        let values = if known { values } else { &[] };
        let mut bytes: Vec<u8> = values.iter().flat_map(|v| length_bytes(v, dtype)).collect();
        bytes.reserve(1); // so that an empty list has an address, too
        let mut tensor = Tensor::new(dtype.0, &shape);
        if known {
            tensor = tensor.at(bytes.as_ptr(), bytes.len());
        }
        Self { bytes, tensor: Some(tensor) }
    }
}

fn length_bytes(value: &Value, dtype: libsplit_dtype) -> Vec<u8> {
    if let (Some(wide), 13) = (value.as_u64(), dtype.0) {
        return wide.to_ne_bytes().to_vec();
    }
    match (value.as_i64(), value.as_f64()) {
        (_, Some(length)) if dtype.0 == 1 => {
            #[allow(clippy::cast_possible_truncation)] // halves at most
            let narrow = length as f32;
            narrow.to_ne_bytes().to_vec()
        }
        (Some(length), _) => number_bytes(length, dtype),
        _ => panic!("{value}"),
    }
}

/// Returns the number as bytes of the element type; for 8 bits and less, and bool, its lowest bits.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn number_bytes(number: i64, dtype: libsplit_dtype) -> Vec<u8> {
    let zero_after = |part: &[u8]| [part, &vec![0; part.len()]].concat();
    match dtype.0 {
        1 => (number as f32).to_ne_bytes().to_vec(),
        9 => vec![u8::from(number % 2 != 0)],
        10 => f16::from_f64(number as f64).to_ne_bytes().to_vec(),
        11 => (number as f64).to_ne_bytes().to_vec(),
        14 => zero_after(&(number as f32).to_ne_bytes()),
        15 => zero_after(&(number as f64).to_ne_bytes()),
        16 => bf16::from_f64(number as f64).to_ne_bytes().to_vec(),
        _ => {
            let size = libsplit_dtype_bits(dtype).div_ceil(8) as usize;
            match size {
                1 => (number as u8).to_ne_bytes().to_vec(),
                2 => (number as u16).to_ne_bytes().to_vec(),
                4 => (number as u32).to_ne_bytes().to_vec(),
                8 => number.to_ne_bytes().to_vec(),
                // STRING: nothing looks behind the address.
                _ => [number.to_ne_bytes(), number.to_ne_bytes()].concat(),
            }
        }
    }
}

/// Returns floats of so many bits.
fn float_bytes(values: &[f64], bits: usize) -> Vec<u8> {
    #[allow(clippy::cast_possible_truncation)]
    let narrow = |value: &f64| (*value as f32).to_ne_bytes().to_vec();
    let bytes = |value| if bits == 32 { narrow(value) } else { value.to_ne_bytes().to_vec() };
    values.iter().flat_map(bytes).collect()
}

/// A tensor as a list of elements: the oracle, which knows no strides.
struct Elements {
    shape: Vec<usize>,
    bits: usize,
    /// The bytes of each element, one after the other; elements of 4 and 2 bits have one byte each.
    list: Vec<u8>,
}

impl Elements {
    fn of(case: &Case, dtype: libsplit_dtype, shape: &[i64]) -> Self {
        let bits = libsplit_dtype_bits(dtype) as usize;
        let known: Option<Vec<usize>> = shape.iter().map(|e| usize::try_from(*e).ok()).collect();
        let (Some(shape), true) = (known, case.kind != "shape") else {
            return Self { shape: vec![], bits, list: vec![] };
        };
        let total: usize = if shape.contains(&0) { 0 } else { shape.iter().product() };
        let end = case.first + i64::try_from(total).unwrap();
        let numbers = (case.first..end).flat_map(|number| number_bytes(number, dtype));
        let floats = || case.input.as_ref().map(|values| float_bytes(values, bits));
        let list = case.bytes.clone().or_else(floats).unwrap_or_else(|| numbers.collect());
        Self { shape, bits, list }
    }

    /// Returns `size` elements of the axis from `begin` on.
    fn piece(&self, axis: i64, begin: i64, size: i64) -> Self {
        let axis = normal(axis, self.shape.len());
        let inner = self.shape[axis + 1..].iter().product::<usize>() * self.bits.div_ceil(8);
        let [begin, size] = [begin, size].map(|n| usize::try_from(n).unwrap() * inner);
        let row = self.shape[axis] * inner;
        let rows = self.list.chunks(row.max(1));
        let list = rows.flat_map(|row| &row[begin..begin + size]).copied().collect();
        Self { shape: vec![], bits: self.bits, list }
    }

    /// Returns the tensor as it lies in memory: sub-byte elements low bits first.
    fn pack(&self) -> Vec<u8> {
        if self.bits >= 8 {
            return self.list.clone();
        }
        let mut bytes = vec![0; (self.list.len() * self.bits).div_ceil(8)];
        for (index, element) in self.list.iter().enumerate() {
            let at = index * self.bits;
            bytes[at / 8] |= (element & ((1 << self.bits) - 1)) << (at % 8);
        }
        bytes
    }
}
