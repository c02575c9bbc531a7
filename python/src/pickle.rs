//! Operators and plans on their way to other processes.

use crate::arguments::Operator;
use crate::numpy;
use crate::plan::Plan;
use crate::rule::{Lengths, Rule};
use crate::source::Source;
use crate::tensor::Tensor;
use libsplit::ffi::{libsplit_dtype, libsplit_op};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple};

/// The first thing in each pickle. It changes whenever what follows it does.
pub const FORMAT: i64 = 1;

/// A rule as a tuple of what Python can pickle.
type Fields = (i32, i32, i64, i64, bool, bool, bool, String);
/// Its lengths: a number, a list, or an array's bytes, shape and dtype.
type Sizes = (Option<i64>, Option<Vec<i64>>, Option<(Vec<u8>, Vec<i64>, i32)>);

pub fn fields(rule: &Rule) -> (Fields, Sizes) {
    let fields = (
        rule.op.0,
        rule.opset,
        rule.axis,
        rule.num_outputs,
        rule.keepdims,
        rule.clamp_uneven,
        rule.typed,
        rule.argument.into(),
    );
    let sizes = match &rule.lengths {
        Lengths::Absent => (None, None, None),
        Lengths::Scalar(length) => (Some(*length), None, None),
        Lengths::List(lengths) => (None, Some(lengths.to_vec()), None),
        Lengths::Array { bytes, shape, dtype } => {
            (None, None, Some((bytes.clone(), shape.clone(), dtype.0)))
        }
    };
    (fields, sizes)
}

fn damaged() -> PyErr {
    PyValueError::new_err("the pickle is damaged: its contents are not those of its format")
}

/// Takes apart what follows the number of a format that is known.
fn parts<'py, T>(format: i64, parts: &Bound<'py, PyTuple>) -> PyResult<T>
where
    T: for<'a> FromPyObject<'a, 'py>,
{
    if format != FORMAT {
        return Err(PyValueError::new_err(format!(
            "the pickle has format {format}, but libsplit {} reads only format {FORMAT}: load it with the \
             version that wrote it",
            env!("CARGO_PKG_VERSION")
        )));
    }
    parts.extract().map_err(|_| damaged())
}

fn rule(fields: Fields, sizes: Sizes) -> PyResult<Rule> {
    let (op, opset, axis, num_outputs, keepdims, clamp_uneven, typed, argument) = fields;
    let known = ["split", "split_lengths", "parts_or_lengths"];
    let argument = known.into_iter().find(|known| **known == argument);
    let lengths = match sizes {
        (None, None, None) => Lengths::Absent,
        (Some(length), None, None) => Lengths::Scalar(length),
        (None, Some(lengths), None) => Lengths::List(lengths.into()),
        (None, None, Some((bytes, shape, dtype))) => {
            let dtype = libsplit_dtype(dtype);
            let elements = shape.iter().try_fold(1usize, |product, &extent| {
                usize::try_from(extent).ok().and_then(|extent| product.checked_mul(extent))
            });
            let needed = elements.and_then(|elements| {
                let bits = usize::try_from(libsplit::ffi::libsplit_dtype_bits(dtype)).ok()?;
                elements.checked_mul(bits / 8)
            });
            if needed != Some(bytes.len()) {
                return Err(damaged());
            }
            Lengths::Array { bytes, shape, dtype }
        }
        _ => return Err(damaged()),
    };
    Ok(Rule {
        lengths,
        num_outputs,
        keepdims,
        clamp_uneven,
        typed,
        argument: argument.ok_or_else(damaged)?,
        ..Rule::new(libsplit_op(op), opset, axis)
    })
}

/// What unpickles an Operator.
#[pyfunction]
#[pyo3(signature = (format, *contents))]
pub fn restore_operator(format: i64, contents: &Bound<'_, PyTuple>) -> PyResult<Operator> {
    let (fields, sizes): (Fields, Sizes) = parts(format, contents)?;
    rule(fields, sizes).map(Operator)
}

/// An array's dtype, its extents, its strides in bytes, and the bits before it; of another tensor, the
/// dtype's name, and strides in elements.
type Layout<'py> = (Bound<'py, PyAny>, Vec<i64>, Vec<i64>, u32);

/// What unpickles a Plan.
#[pyfunction]
#[pyo3(signature = (format, *contents))]
pub fn restore_plan(format: i64, contents: &Bound<'_, PyTuple>) -> PyResult<Plan> {
    let (layout, fields, sizes): (Layout<'_>, Fields, Sizes) = parts(format, contents)?;
    let (dtype, shape, strides, bit_offset) = layout;
    let x = if dtype.is_instance_of::<PyString>() {
        let tensor = Tensor::nowhere(crate::tensor::named(&dtype)?, &shape, &strides, bit_offset)?;
        Bound::new(dtype.py(), tensor)?.into_any()
    } else {
        numpy::nowhere(&dtype, &shape, &strides)?
    };
    Plan::of(&Source::of(&x, "x")?, rule(fields, sizes)?)
}
