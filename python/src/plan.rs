//! A split prepared once, run many times.

use crate::arguments;
use crate::call::{self, Described, Piece, Pieces, LARGE};
use crate::copy;
use crate::pickle;
use crate::pool;
use crate::rule::{extent, Rule};
use crate::source::Source;
use crate::tensor::packed;
use core::ffi::c_void;
use core::ptr::{null, null_mut};
use libsplit::ffi::{
    calls, libsplit_executor, libsplit_plan, libsplit_plan_describe, libsplit_plan_size,
};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString, PyTuple};
use smallvec::SmallVec;

/// A split that is prepared once, for tensors with the dtype, shape and strides of ``x``.
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
    /// libsplit's plan, with packed outputs.
    memory: Box<[u64]>,
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
    #[pyo3(signature = (x, parts_or_lengths, axis=None, *, uneven=None))]
    fn new(
        x: &Bound<'_, PyAny>,
        parts_or_lengths: &Bound<'_, PyAny>,
        #[pyo3(from_py_with = arguments::optional_axis)] axis: Option<i64>,
        uneven: Option<&Bound<'_, PyString>>,
    ) -> PyResult<Self> {
        let source = Source::of(x, "x")?;
        let rule = arguments::from_arguments(source.shape(), parts_or_lengths, axis, uneven)?;
        Self::of(&source, rule)
    }

    /// Pickles a plan as what it was made of, without any data.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let (fields, sizes) = pickle::fields(&self.rule);
        let restore = py.import("libsplit._libsplit")?.getattr("restore_plan")?;
        let sample = self.sample.bind(py);
        let Described { shape, strides, bit_offset, .. } = &self.input;
        let (mut shape, mut strides) = (shape.to_vec(), strides.to_vec());
        let dtype = match Source::of(sample, "x")? {
            Source::Array(array) => {
                shape.truncate(shape.len() - usize::from(self.in_bytes));
                strides.truncate(shape.len());
                let size = if self.in_bytes { 1 } else { extent(array.item()) };
                for stride in &mut strides {
                    *stride *= size;
                }
                array.object().getattr("dtype")?
            }
            other => PyString::new(py, &other.dtype_name()?).into_any(),
        };
        (restore, (pickle::FORMAT, (dtype, shape, strides, *bit_offset), fields, sizes))
            .into_pyobject(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let dtype = Source::of(self.sample.bind(py), "x")?.dtype_name()?;
        let axes = self.input.shape.len() - usize::from(self.in_bytes);
        let shape = PyTuple::new(py, &self.input.shape[..axes])?;
        Ok(format!("<libsplit.Plan for {dtype} {shape} into {}>", self.shapes(py)?))
    }

    /// What copy will do, as text for people: the form of the split, the method that was chosen and
    /// why, and the CPU whose loops run.
    fn __str__(&self) -> String {
        // SAFETY: `memory` holds a plan, and nothing is written to a buffer of 0 bytes.
        let length = unsafe { libsplit_plan_describe(self.plan(), null_mut(), 0) };
        let mut text = vec![0u8; length + 1];
        // SAFETY: as above, and `text` has as many bytes as it is said to have.
        unsafe { libsplit_plan_describe(self.plan(), text.as_mut_ptr().cast(), text.len()) };
        text.truncate(length);
        String::from_utf8_lossy(&text).trim_end().to_owned()
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

    /// Splits ``x`` into views that share its memory, as libsplit.split does.
    fn split<'py>(&self, x: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyList>> {
        let source = Source::of(x, "x")?;
        let data = self.check(x.py(), &source)?.data;
        let mut places = Places::from_elem(null_mut(), self.pieces.tensors().len());
        let (at, count) = (places.as_mut_ptr().cast(), places.len());
        // SAFETY: there is room for as many addresses.
        let done = unsafe { calls::plan_view(self.plan(), data.cast(), at, count, null()) };
        done.map_err(|error| call::exception(&error, &self.rule))?;
        let pieces = self.pieces.iter().zip(&places);
        let pieces = pieces.map(|(piece, &data)| Piece { data, ..piece });
        PyList::new(x.py(), source.views(pieces, self.in_bytes)?)
    }

    /// Splits ``x`` into copies, as libsplit.copy does.
    #[pyo3(signature = (x, *, out=None, threads=None))]
    fn copy<'py>(
        &self,
        x: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = arguments::threads)] threads: Option<i64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let source = Source::of(x, "x")?;
        let input = self.check(x.py(), &source)?;
        source.check_copies()?;
        let Some(out) = out else {
            let fresh = self.pieces.iter().map(|piece| {
                let axes = piece.shape.len() - usize::from(self.in_bytes);
                let elements: i64 = piece.shape.iter().product();
                let bits = usize::try_from(elements).unwrap_or(0) * source.bits();
                source.empty(&piece.shape[..axes], bits.div_ceil(8)).map(Some)
            });
            let fresh = fresh.collect::<PyResult<Vec<_>>>()?;
            self.run(x.py(), &source, &input, &fresh, threads)?;
            let given = fresh.into_iter().flatten().map(Source::give);
            return PyList::new(x.py(), given.collect::<PyResult<Vec<_>>>()?);
        };
        let out = arguments::in_order(out, "out")?.collect::<PyResult<Vec<_>>>()?;
        let targets = copy::targets(&source, &out)?;
        if self.suits(&targets) {
            self.run(x.py(), &source, &input, &targets, threads)?;
        } else {
            copy::copy_to_targets(x.py(), &source, &self.rule, &targets, threads)?;
        }
        PyList::new(x.py(), out)
    }
}

/// One address a piece.
type Places = SmallVec<[*mut c_void; 8]>;

/// Lets libsplit prepare a copy to packed outputs.
fn plan(input: &Described, rule: &Rule, count: usize) -> PyResult<Box<[u64]>> {
    let bytes = libsplit_plan_size(input.tensor().rank, count);
    let mut plan = Vec::<u64>::new();
    plan.try_reserve_exact(bytes.div_ceil(8)).map_err(|_| call::no_memory())?;
    plan.resize(bytes.div_ceil(8), 0);
    let at = plan.as_mut_ptr().cast::<libsplit_plan>();
    let done = rule.with_params(|params| {
        let input = input.tensor();
        // SAFETY: `plan` has as many bytes as it takes, and is aligned to 8.
        unsafe { calls::plan_init(at, bytes, &raw const input, params, null(), count, null()) }
    });
    done.map_err(|error| call::exception(&error, rule))?;
    Ok(plan.into_boxed_slice())
}

impl Plan {
    pub fn of(source: &Source<'_>, rule: Rule) -> PyResult<Self> {
        let in_bytes = source.in_bytes();
        let prepared = source.prepare(&rule, in_bytes)?;
        let pieces = call::view(&prepared.input.tensor(), &prepared.rule)?;
        let memory = plan(&prepared.input, &prepared.rule, pieces.tensors().len())?;
        let input = prepared.input;
        Ok(Self { memory, sample: source.sample()?.unbind(), input, rule, in_bytes, pieces })
    }

    fn plan(&self) -> *const libsplit_plan {
        self.memory.as_ptr().cast()
    }

    /// Whether these are what the plan has been made for: all of them, packed.
    fn suits(&self, targets: &[Option<Source<'_>>]) -> bool {
        let suits = |(piece, target): (Piece<'_>, &Option<Source<'_>>)| {
            let Some(target) = target.as_ref().filter(|to| self.in_bytes || !to.in_bytes()) else {
                return false;
            };
            let Described { shape, strides, bit_offset, .. } = target.describe(self.in_bytes);
            bit_offset == 0 && shape[..] == *piece.shape && packed(&shape) == Some(strides)
        };
        targets.len() == self.pieces.tensors().len() && self.pieces.iter().zip(targets).all(suits)
    }

    /// Copies the pieces to packed targets.
    fn run(
        &self,
        py: Python<'_>,
        x: &Source<'_>,
        input: &Described,
        targets: &[Option<Source<'_>>],
        threads: Option<i64>,
    ) -> PyResult<()> {
        struct Call(*const c_void, Places, Option<libsplit_executor>);
        // SAFETY: they are used by the thread that waits for the call.
        unsafe impl Send for Call {}

        let place = |target: &Source<'_>| target.describe(self.in_bytes).data;
        let executor = pool::executor(threads)?;
        let call = Call(input.data, targets.iter().flatten().map(place).collect(), executor);
        let call = move || {
            let Call(input, outputs, executor) = { call };
            let executor = executor.as_ref().map_or(null(), core::ptr::from_ref);
            let (at, count) = (outputs.as_ptr().cast(), outputs.len());
            // SAFETY: `x` and the targets hold the memory; that nobody else writes the targets
            // is the caller's part, as it is for every array that several threads use.
            unsafe { calls::plan_copy(self.plan(), input.cast(), at, count, executor, null()) }
        };
        let done = if x.bytes() >= LARGE { py.detach(call) } else { call() };
        done.map_err(|error| call::exception(&error, &self.rule))
    }
}

impl Plan {
    /// Refuses a tensor that is laid out otherwise.
    fn check(&self, py: Python<'_>, x: &Source<'_>) -> PyResult<Described> {
        let sample = Source::of(self.sample.bind(py), "x")?;
        if !sample.same_elements(x)? {
            return Err(PyTypeError::new_err(format!(
                "x has dtype {}, but the plan is for {}: make a plan for this dtype",
                x.dtype_name()?,
                sample.dtype_name()?
            )));
        }
        let described = x.describe(self.in_bytes);
        if described.shape != self.input.shape {
            return Err(PyValueError::new_err(format!(
                "x has shape {:?}, but the plan is for {:?}: make a plan for this shape",
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
                "x does not have the strides that the plan is for: make a plan for this layout",
            ));
        }
        Ok(described)
    }
}
