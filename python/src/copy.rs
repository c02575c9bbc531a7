//! Copies: pieces in memory of their own, or in the caller's.

use crate::arguments::in_order;
use crate::call::{self, Copy, Described};
use crate::pool;
use crate::rule::Rule;
use crate::source::{Prepared, Source};
use libsplit::ffi::libsplit_tensor;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Copies the pieces of `x` by this rule into `out`, or into new memory.
pub fn copy<'py>(
    py: Python<'py>,
    x: &Source<'py>,
    rule: &Rule,
    out: Option<&Bound<'py, PyAny>>,
    threads: Option<i64>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    x.check_copies()?;
    match out {
        None => copy_to_new(py, x, rule, threads),
        Some(out) => copy_to(py, x, rule, in_order(out, "out")?.collect::<PyResult<_>>()?, threads),
    }
}

fn copy_to_new<'py>(
    py: Python<'py>,
    x: &Source<'py>,
    rule: &Rule,
    threads: Option<i64>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let in_bytes = x.in_bytes();
    let prepared = x.prepare(rule, in_bytes)?;
    let pieces = call::infer(&prepared.input.tensor(), &prepared.rule)?;
    let fresh = pieces.iter().map(|piece| {
        let axes = piece.shape.len() - usize::from(in_bytes);
        x.empty(&piece.shape[..axes], piece.data_bytes).map(Some)
    });
    let fresh = fresh.collect::<PyResult<Vec<_>>>()?;
    // SAFETY: nobody else knows the new memory yet.
    unsafe { run(py, x, &prepared, &fresh, threads) }?;
    fresh.into_iter().flatten().map(Source::give).collect()
}

fn copy_to<'py>(
    py: Python<'py>,
    x: &Source<'py>,
    rule: &Rule,
    out: Vec<Bound<'py, PyAny>>,
    threads: Option<i64>,
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let targets = targets(x, &out)?;
    copy_to_targets(py, x, rule, &targets, threads)?;
    Ok(out)
}

pub fn copy_to_targets(
    py: Python<'_>,
    x: &Source<'_>,
    rule: &Rule,
    targets: &[Option<Source<'_>>],
    threads: Option<i64>,
) -> PyResult<()> {
    let in_bytes = x.in_bytes() || targets.iter().flatten().any(Source::in_bytes);
    let prepared = x.prepare(rule, in_bytes)?;
    let count = call::count(&prepared.input.tensor(), &prepared.rule)?;
    if targets.len() != count {
        return Err(PyValueError::new_err(format!(
            "out has length {}, but the number of pieces is {count}: pass an array for each, or None to skip it",
            targets.len()
        )));
    }
    // SAFETY: that nobody else writes the targets is the caller's part, as it is for every array
    // that several threads use.
    unsafe { run(py, x, &prepared, targets, threads) }
}

/// # Safety
/// Nobody else writes the targets.
unsafe fn run(
    py: Python<'_>,
    x: &Source<'_>,
    prepared: &Prepared<'_>,
    targets: &[Option<Source<'_>>],
    threads: Option<i64>,
) -> PyResult<()> {
    let Prepared { input, rule, in_bytes } = prepared;
    let describe = |target: &Option<Source<'_>>| target.as_ref().map(|to| to.describe(*in_bytes));
    let described: Vec<_> = targets.iter().map(describe).collect();
    let output = |described: &Option<Described>| match described {
        Some(described) => libsplit_tensor { dtype: input.dtype, ..described.tensor() },
        None => libsplit_tensor::ZERO,
    };
    let outputs: Vec<_> = described.iter().map(output).collect();
    let executor = pool::executor(threads)?;
    let copying =
        Copy { input: input.tensor(), rule, outputs: &outputs, executor, bytes: x.bytes() };
    // SAFETY: `x` and `targets` hold the memory.
    unsafe { copying.run(py) }
}

/// The arrays of `out`; `None` for a piece that is not wanted.
pub fn targets<'py>(
    x: &Source<'py>,
    out: &[Bound<'py, PyAny>],
) -> PyResult<Vec<Option<Source<'py>>>> {
    let target = |(index, object): (usize, &Bound<'py, PyAny>)| {
        let target = if object.is_none() {
            None
        } else {
            Some(target(x, object, &format!("out[{index}]"))?)
        };
        Ok(target)
    };
    out.iter().enumerate().map(target).collect()
}

/// An array to be written with elements of `x`.
pub fn target<'py>(
    x: &Source<'py>,
    object: &Bound<'py, PyAny>,
    argument: &str,
) -> PyResult<Source<'py>> {
    let target = Source::of(object, argument)?;
    target.check_writable(argument)?;
    target.check_copies()?;
    if !target.same_elements(x)? {
        return Err(PyTypeError::new_err(format!(
            "{argument} has dtype {}, but x has {}: splitting does not convert",
            target.dtype_name()?,
            x.dtype_name()?
        )));
    }
    Ok(target)
}
