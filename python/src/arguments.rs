//! What a caller asks for: a number of parts with a policy, a list of lengths, or an `Operator`.

use crate::call::{self, Numbers};
use crate::numpy;
use crate::pickle;
use crate::rule::{Lengths, Rule};
use libsplit::ffi::{libsplit_op, LIBSPLIT_DIM_UNKNOWN};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyInt, PyIterator, PyList, PyString, PyTuple};
use smallvec::SmallVec;

/// What is to be done where an extent does not divide into equal parts.
#[derive(Clone, Copy, PartialEq)]
enum Uneven {
    Refuse,
    LastSmaller,
    EvenOut,
    Chunk,
}

impl Uneven {
    fn named(name: &str) -> PyResult<Self> {
        match name {
            "refuse" => Ok(Self::Refuse),
            "last_smaller" => Ok(Self::LastSmaller),
            "even_out" => Ok(Self::EvenOut),
            "chunk" => Ok(Self::Chunk),
            _ => Err(PyValueError::new_err(format!(
                "uneven is '{name}': use 'refuse', 'last_smaller', 'even_out' or 'chunk'"
            ))),
        }
    }
}

/// The arguments `parts_or_lengths`, `axis` and `uneven` of a call, on an input of this shape.
pub fn from_arguments(
    shape: &[i64],
    parts_or_lengths: &Bound<'_, PyAny>,
    axis: Option<i64>,
    uneven: Option<&Bound<'_, PyString>>,
) -> PyResult<Rule> {
    if let Ok(operator) = parts_or_lengths.cast::<Operator>() {
        if axis.is_some() || uneven.is_some() {
            let message = "axis and uneven go with a number or a list of lengths: an Operator has \
                           parameters of its own";
            return Err(PyTypeError::new_err(message));
        }
        return Ok(operator.get().0.clone());
    }
    let axis = axis.unwrap_or(0);
    let uneven = match uneven {
        None => Uneven::Refuse,
        Some(name) => Uneven::named(&name.to_cow()?)?,
    };
    match integer(parts_or_lengths, "parts_or_lengths") {
        Some(parts) => equal_parts(shape, parts?, axis, uneven),
        None => Ok(Rule {
            lengths: Lengths::List(list(parts_or_lengths, "parts_or_lengths")?),
            typed: false,
            argument: "parts_or_lengths",
            ..Rule::new(libsplit_op::OPENVINO_VARIADIC_SPLIT, 1, axis)
        }),
    }
}

/// An argument that is a whole number. One that 64 bits do not hold is a wrong value, as every other
/// number that is too large is.
pub fn whole(value: &Bound<'_, PyAny>, argument: &str) -> PyResult<i64> {
    value.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(value.py()) {
            return PyValueError::new_err(format!("{argument} {value} does not fit in 64 bits"));
        }
        if error.is_instance_of::<PyTypeError>(value.py()) {
            let kind = value.get_type();
            return PyTypeError::new_err(format!(
                "{argument} has type {kind}: pass a whole number"
            ));
        }
        error
    })
}

/// The same, which may be None.
fn optional(value: &Bound<'_, PyAny>, argument: &str) -> PyResult<Option<i64>> {
    if value.is_none() {
        Ok(None)
    } else {
        whole(value, argument).map(Some)
    }
}

pub fn axis(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    whole(value, "axis")
}

pub fn optional_axis(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    optional(value, "axis")
}

pub fn threads(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    optional(value, "threads")
}

pub fn num_outputs(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    optional(value, "num_outputs")
}

pub fn num_splits(value: &Bound<'_, PyAny>) -> PyResult<i64> {
    whole(value, "num_splits")
}

/// A shape, which may be None.
pub fn extents(value: &Bound<'_, PyAny>) -> PyResult<Option<Numbers>> {
    if value.is_none() {
        return Ok(None);
    }
    in_order(value, "shape")?
        .map(|extent| whole(&extent?, "shape"))
        .collect::<PyResult<_>>()
        .map(Some)
}

/// A number, if it is one rather than a list.
fn integer(value: &Bound<'_, PyAny>, argument: &str) -> Option<PyResult<i64>> {
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        return None;
    }
    if value.is_instance_of::<PyBool>() {
        return Some(Err(PyTypeError::new_err(format!(
            "{argument} is {value}: pass a whole number or a list of lengths"
        ))));
    }
    match value.extract::<i64>() {
        Err(_) if !value.is_instance_of::<PyInt>() => None,
        Err(_) => {
            Some(Err(PyValueError::new_err(format!("{argument} {value} does not fit in 64 bits"))))
        }
        number => Some(number),
    }
}

/// Refuses what has no order, or another than the caller sees: sets and dicts.
pub fn in_order<'py>(
    value: &Bound<'py, PyAny>,
    argument: &str,
) -> PyResult<Bound<'py, PyIterator>> {
    let py = value.py();
    if !value.is_instance_of::<PyList>() && !value.is_instance_of::<PyTuple>() {
        let kinds = py.import(intern!(py, "collections.abc"))?;
        for kind in [intern!(py, "Set"), intern!(py, "Mapping")] {
            if value.is_instance(&kinds.getattr(kind)?)? {
                return Err(PyTypeError::new_err(format!(
                    "{argument} has type {}, which is not a sequence: pass a list",
                    value.get_type()
                )));
            }
        }
    }
    value.try_iter()
}

/// A list of lengths, of anything that can be counted with.
fn list(value: &Bound<'_, PyAny>, argument: &str) -> PyResult<SmallVec<[i64; 8]>> {
    let length = |(index, item): (usize, Bound<'_, PyAny>)| length(&item, argument, index);
    if let Ok(list) = value.cast::<PyList>() {
        return list.iter().enumerate().map(length).collect();
    }
    if let Ok(tuple) = value.cast::<PyTuple>() {
        return tuple.iter().enumerate().map(length).collect();
    }
    let is_text = value.is_instance_of::<PyString>() || value.is_instance_of::<PyBytes>();
    if is_text || value.get_type().getattr_opt(intern!(value.py(), "__iter__"))?.is_none() {
        let kind = value.get_type();
        return Err(PyTypeError::new_err(format!(
            "{argument} has type {kind}: pass a whole number or a list of lengths"
        )));
    }
    let items = in_order(value, argument)?;
    items.enumerate().map(|(index, item)| length((index, item?))).collect()
}

fn length(item: &Bound<'_, PyAny>, argument: &str, index: usize) -> PyResult<i64> {
    item.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(item.py()) {
            let message = format!("{argument}[{index}] {item} does not fit in 64 bits");
            return PyValueError::new_err(message);
        }
        if !error.is_instance_of::<PyTypeError>(item.py()) {
            return error;
        }
        let kind = item.get_type();
        PyTypeError::new_err(format!(
            "{argument}[{index}] has type {kind}, but lengths are numbers of elements: pass int"
        ))
    })
}

fn equal_parts(shape: &[i64], parts: i64, axis: i64, uneven: Uneven) -> PyResult<Rule> {
    let general =
        |rule| Rule { typed: false, argument: "parts_or_lengths", num_outputs: parts, ..rule };
    let equal = general(Rule::new(libsplit_op::OPENVINO_SPLIT, 1, axis));
    let extent = call::axis(shape.len(), axis).and_then(|axis| shape.get(axis)).copied();
    let Some(extent) = extent.filter(|&extent| parts > 0 && extent >= LIBSPLIT_DIM_UNKNOWN) else {
        return Ok(equal); // which finds what is wrong
    };
    let unknown = extent == LIBSPLIT_DIM_UNKNOWN;
    let piece = extent / parts + i64::from(extent % parts > 0);
    match uneven {
        Uneven::Refuse | Uneven::EvenOut if unknown || extent % parts == 0 => Ok(equal),
        Uneven::Refuse => Err(PyValueError::new_err(format!(
            "parts_or_lengths is {parts}, which does not divide the extent {extent} of axis {axis}: give \
             lengths, or uneven='last_smaller', 'even_out' or 'chunk'"
        ))),
        Uneven::LastSmaller => Ok(general(Rule::new(libsplit_op::ONNX_SPLIT, 18, axis))),
        Uneven::EvenOut => {
            let count = usize::try_from(parts).unwrap_or(usize::MAX);
            let longer = extent % parts;
            let mut lengths = SmallVec::new();
            lengths.try_reserve(count).map_err(|_| call::no_memory())?;
            lengths.extend((0..parts).map(|index| extent / parts + i64::from(index < longer)));
            Ok(Rule {
                lengths: Lengths::List(lengths),
                num_outputs: 0,
                ..general(Rule::new(libsplit_op::OPENVINO_VARIADIC_SPLIT, 1, axis))
            })
        }
        Uneven::Chunk if unknown => Err(PyValueError::new_err(format!(
            "uneven='chunk' makes at most {parts} pieces of an extent that is not known: infer \
             when it is"
        ))),
        Uneven::Chunk if extent == 0 => Ok(equal), // as torch.chunk has it
        Uneven::Chunk => Ok(Rule {
            lengths: Lengths::Scalar(piece),
            num_outputs: 0,
            ..general(Rule::new(libsplit_op::ONNX_SPLIT_TO_SEQUENCE, 24, axis))
        }),
    }
}

/// The lengths of an operator: an array with a dtype of its own, a number, or a list.
fn lengths(value: Option<&Bound<'_, PyAny>>, argument: &str) -> PyResult<Lengths> {
    let Some(value) = value else { return Ok(Lengths::Absent) };
    if let Some(lengths) = numpy::lengths(value)? {
        return Ok(lengths);
    }
    match integer(value, argument) {
        Some(length) => Ok(Lengths::Scalar(length?)),
        None => Ok(Lengths::List(list(value, argument)?)),
    }
}

/// An operator of ONNX or OpenVINO with its parameters, which can be passed to `split`, `copy`,
/// `infer` and `Plan` instead of a number of parts.
///
/// >>> import libsplit
/// >>> halves = libsplit.Operator.onnx_split(num_outputs=2, axis=1)
/// >>> libsplit.infer((4, 7), halves)
/// [(4, 4), (4, 3)]
#[pyclass(frozen, module = "libsplit")]
pub struct Operator(pub Rule);

#[pymethods]
impl Operator {
    /// ONNX Split: equal parts, or pieces with the lengths in ``split``.
    ///
    /// The newest version that is not above ``opset``, the model's opset import, applies. Before
    /// version 18, ``num_outputs`` is the number of outputs of the node. From 18 on the last piece
    /// may be smaller; if its length would be below 0, ``clamp_uneven`` shortens other pieces too
    /// instead of raising an error.
    #[staticmethod]
    #[pyo3(signature = (split=None, *, axis=0, num_outputs=None, opset=18, clamp_uneven=false))]
    pub fn onnx_split(
        split: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = axis)] axis: i64,
        #[pyo3(from_py_with = num_outputs)] num_outputs: Option<i64>,
        opset: i32,
        clamp_uneven: bool,
    ) -> PyResult<Self> {
        let lengths = lengths(split, "split")?;
        let rule = Rule::new(libsplit_op::ONNX_SPLIT, opset, axis);
        let num_outputs = num_outputs.unwrap_or(0);
        Ok(Self(Rule { lengths, num_outputs, clamp_uneven, ..rule }))
    }

    /// ONNX SplitToSequence: a number as ``split`` is the length of every piece (the last may be
    /// smaller), a list has one length for each piece. Without ``split`` each piece has length 1,
    /// and ``keepdims=False`` drops the axis, as torch.unbind does.
    #[staticmethod]
    #[pyo3(signature = (split=None, *, axis=0, keepdims=true, opset=24))]
    pub fn split_to_sequence(
        split: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = axis)] axis: i64,
        keepdims: bool,
        opset: i32,
    ) -> PyResult<Self> {
        let lengths = lengths(split, "split")?;
        let rule = Rule::new(libsplit_op::ONNX_SPLIT_TO_SEQUENCE, opset, axis);
        Ok(Self(Rule { lengths, keepdims, ..rule }))
    }

    /// OpenVINO VariadicSplit-1: pieces with these lengths; one may be -1, which means the rest.
    #[staticmethod]
    #[pyo3(signature = (split_lengths, *, axis=0))]
    pub fn variadic_split(
        split_lengths: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = axis)] axis: i64,
    ) -> PyResult<Self> {
        let lengths = lengths(Some(split_lengths), "split_lengths")?;
        let rule = Rule::new(libsplit_op::OPENVINO_VARIADIC_SPLIT, 1, axis);
        Ok(Self(Rule { lengths, argument: "split_lengths", ..rule }))
    }

    /// OpenVINO Split-1: ``num_splits`` equal parts, which must divide the extent.
    #[staticmethod]
    #[pyo3(signature = (num_splits, *, axis=0))]
    pub fn openvino_split(
        #[pyo3(from_py_with = num_splits)] num_splits: i64,
        #[pyo3(from_py_with = axis)] axis: i64,
    ) -> Self {
        let rule = Rule::new(libsplit_op::OPENVINO_SPLIT, 1, axis);
        Self(Rule { num_outputs: num_splits, ..rule })
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let restore = py.import("libsplit._libsplit")?.getattr("restore_operator")?;
        let (fields, sizes) = pickle::fields(&self.0);
        (restore, (pickle::FORMAT, fields, sizes)).into_pyobject(py)
    }

    fn __repr__(&self) -> String {
        let Rule { op, opset, axis, num_outputs, keepdims, clamp_uneven, .. } = &self.0;
        let lengths = match &self.0.lengths {
            Lengths::Absent => String::new(),
            Lengths::Scalar(length) => format!("{length}, "),
            Lengths::List(lengths) => format!("{lengths:?}, "),
            Lengths::Array { shape, .. } => format!("<array of shape {shape:?}>, "),
        };
        let written = |name: &str, rest: String| format!("Operator.{name}({rest})");
        let flag = |flag: bool| if flag { "True" } else { "False" };
        match *op {
            libsplit_op::ONNX_SPLIT => written(
                "onnx_split",
                format!(
                    "{lengths}axis={axis}, num_outputs={num_outputs}, opset={opset}, \
                     clamp_uneven={}",
                    flag(*clamp_uneven)
                ),
            ),
            libsplit_op::ONNX_SPLIT_TO_SEQUENCE => written(
                "split_to_sequence",
                format!("{lengths}axis={axis}, keepdims={}, opset={opset}", flag(*keepdims)),
            ),
            libsplit_op::OPENVINO_VARIADIC_SPLIT => {
                written("variadic_split", format!("{lengths}axis={axis}"))
            }
            _ => written("openvino_split", format!("{num_outputs}, axis={axis}")),
        }
    }
}
