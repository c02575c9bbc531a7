//! A split prepared once, run many times.

use crate::call::{self, Described, Piece, Pieces};
use crate::copy;
use crate::rule::{self, Rule};
use crate::source::Source;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};

/// A split that is prepared once, for tensors like ``x``: of its dtype, shape and strides.
///
/// >>> import libsplit, numpy
/// >>> plan = libsplit.Plan(numpy.empty((2, 6), numpy.float32), [2, 3, 1], axis=1)
/// >>> plan.shapes
/// [(2, 2), (2, 3), (2, 1)]
/// >>> for step in range(3):
/// ...     q, k, v = plan.split(numpy.full((2, 6), step, numpy.float32))
/// >>> v
/// array([[2.],
///        [2.]], dtype=float32)
#[pyclass(frozen, module = "libsplit")]
pub struct Plan {
    /// Something without elements, of the dtype that it is for.
    sample: Py<PyAny>,
    /// The layout that it is for.
    input: Described,
    rule: Rule,
    in_bytes: bool,
    /// Where the pieces lie in `input`.
    pieces: Pieces,
}

// SAFETY: the address in `input` is only counted from; its numbers are never written again.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

#[pymethods]
impl Plan {
    #[new]
    #[pyo3(signature = (x, sections, axis=None, *, uneven=None))]
    fn new(
        x: &Bound<'_, PyAny>,
        sections: &Bound<'_, PyAny>,
        axis: Option<i64>,
        uneven: Option<&Bound<'_, PyString>>,
    ) -> PyResult<Self> {
        let source = Source::of(x, "x")?;
        let rule = rule::from_arguments(source.shape(), sections, axis, uneven)?;
        let in_bytes = source.in_bytes();
        let prepared = source.prepare(&rule, in_bytes)?;
        let pieces = call::view(&prepared.input.tensor(), &prepared.rule)?;
        let input = prepared.input;
        Ok(Self { sample: source.sample()?.unbind(), input, rule, in_bytes, pieces })
    }

    /// The shapes of the pieces.
    #[getter]
    fn shapes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let shapes = self.pieces.iter().map(|piece| {
            let axes = piece.shape.len() - usize::from(self.in_bytes);
            PyTuple::new(py, &piece.shape[..axes])
        });
        PyList::new(py, shapes.collect::<PyResult<Vec<_>>>()?)
    }

    /// The pieces of ``x`` as views that share its memory, as libsplit.split gives them.
    fn split<'py>(&self, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let source = Source::of(x, "x")?;
        let data = self.check(x.py(), &source)?.data;
        let pieces = self.pieces.iter().map(|piece| {
            let offset = piece.data.addr().wrapping_sub(self.input.data.addr());
            Piece { data: data.wrapping_byte_add(offset), ..piece }
        });
        PyList::new(x.py(), source.views(pieces, self.in_bytes)?)
    }

    /// Copies of the pieces, as libsplit.copy makes them.
    #[pyo3(signature = (x, *, out=None, threads=None))]
    fn copy<'py>(
        &self,
        x: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        threads: Option<i64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let source = Source::of(x, "x")?;
        self.check(x.py(), &source)?;
        PyList::new(x.py(), copy::copy(x.py(), &source, &self.rule, out, threads)?)
    }
}

impl Plan {
    /// Refuses a tensor that is laid out otherwise.
    fn check(&self, py: Python<'_>, x: &Source<'_>) -> PyResult<Described> {
        let sample = Source::of(self.sample.bind(py), "x")?;
        if !sample.same_elements(x)? {
            return Err(PyTypeError::new_err(format!(
                "x has dtype {}, the plan is for {}: make a plan for this",
                x.dtype_name()?,
                sample.dtype_name()?
            )));
        }
        let described = x.describe(self.in_bytes);
        if described.shape != self.input.shape {
            return Err(PyValueError::new_err(format!(
                "x has shape {:?}, the plan is for {:?}: make a plan for this",
                x.shape(),
                &self.input.shape[..self.input.shape.len() - usize::from(self.in_bytes)]
            )));
        }
        let strides = described.strides.iter().zip(&self.input.strides).zip(&described.shape);
        let other = |((one, two), &extent): ((&i64, &i64), &i64)| extent > 1 && one != two;
        let empty = x.elements() == 0;
        if described.bit_offset != self.input.bit_offset
            || self.in_bytes != x.in_bytes()
            || !empty && strides.clone().any(other)
        {
            return Err(PyValueError::new_err(
                "x has other strides than what the plan is for: make a plan for this layout",
            ));
        }
        Ok(described)
    }
}
