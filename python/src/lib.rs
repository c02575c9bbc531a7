//! The Python package `libsplit`: NumPy arrays and whatever speaks DLPack, split by the C functions
//! of the crate `libsplit`.
//!
//! | file | what |
//! |---|---|
//! | `arguments.rs` | arguments of a call to an operator with its parameters |
//! | `source.rs` | what is split: an array, a tensor of ours, a tensor of another library |
//! | `numpy.rs`, `tensor.rs` | NumPy's arrays by NumPy's C functions; all others by DLPack |
//! | `rule.rs`, `call.rs` | an operator with its parameters; the C functions and their errors |
//! | `copy.rs`, `join.rs`, `plan.rs`, `pool.rs` | copies, their inverse, plans, threads |
//! | `pickle.rs` | operators and plans on their way to other processes |

// Most doc comments are Python's docstrings.
#![allow(clippy::doc_link_with_quotes, clippy::doc_markdown)]

mod arguments;
mod call;
mod copy;
mod dtype;
mod join;
mod numpy;
mod pickle;
mod plan;
mod pool;
mod rule;
mod source;
mod tensor;

#[pyo3::pymodule]
mod _libsplit {
    use crate::arguments;
    use crate::call::{self, Numbers};
    use crate::rule::Rule;
    use crate::source::Source;
    use libsplit::ffi::{libsplit_dtype, LIBSPLIT_DIM_UNKNOWN};
    use pyo3::exceptions::{PyTypeError, PyValueError};
    use pyo3::prelude::*;
    use pyo3::types::{PyList, PyString, PyTuple};

    #[pymodule_export]
    use crate::arguments::Operator;
    #[pymodule_export]
    use crate::pickle::{restore_operator, restore_plan};
    #[pymodule_export]
    use crate::plan::Plan;
    #[pymodule_export]
    use crate::pool::forget_pool;
    #[pymodule_export]
    use crate::tensor::Tensor;

    /// The version of this package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// Splits ``x`` along an axis into views that share its memory.
    ///
    /// ``parts_or_lengths`` is a number of equal parts, a list of lengths (one may be -1, which means
    /// the rest), or an Operator. If the extent cannot be divided by the number of parts, ``uneven``
    /// decides: 'refuse' raises ValueError, 'last_smaller' is ONNX Split-18, 'even_out' is
    /// numpy.array_split, and 'chunk' is torch.chunk, which may return fewer pieces.
    ///
    /// NumPy arrays give NumPy arrays. Tensors with ``__dlpack__`` give tensors of their library,
    /// through its ``from_dlpack``, or a libsplit.Tensor if it has none. Data is never read, so it
    /// may be on any device.
    ///
    /// >>> import libsplit, numpy
    /// >>> x = numpy.arange(7)
    /// >>> libsplit.split(x, [2, -1])
    /// [array([0, 1]), array([2, 3, 4, 5, 6])]
    /// >>> [len(piece) for piece in libsplit.split(x, 3, uneven='last_smaller')]
    /// [3, 3, 1]
    /// >>> [len(piece) for piece in libsplit.split(x, 3, uneven='even_out')]
    /// [3, 2, 2]
    #[pyfunction]
    #[pyo3(signature = (x, parts_or_lengths, axis=None, *, uneven=None))]
    fn split<'py>(
        x: &Bound<'py, PyAny>,
        parts_or_lengths: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::optional_axis)] axis: Option<i64>,
        uneven: Option<&Bound<'py, PyString>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let source = Source::of(x, "x")?;
        let rule = arguments::from_arguments(source.shape(), parts_or_lengths, axis, uneven)?;
        views(x.py(), &source, &rule)
    }

    fn views<'py>(py: Python<'py>, x: &Source<'py>, rule: &Rule) -> PyResult<Bound<'py, PyList>> {
        let prepared = x.prepare(rule, x.in_bytes())?;
        let pieces = call::view(&prepared.input.tensor(), &prepared.rule)?;
        PyList::new(py, x.views(pieces.iter(), prepared.in_bytes)?)
    }

    /// Splits ``x`` as split does, into packed copies, each in memory of its own.
    ///
    /// ``out`` is a list of writable arrays to copy the pieces into, with the right shapes and dtype
    /// and any strides; None in it skips a piece. ``threads`` is the number of threads that may work
    /// on a large copy: None for the calling thread only, 0 for one for each CPU. Data must be on
    /// the CPU.
    ///
    /// >>> import libsplit, numpy
    /// >>> x = numpy.arange(12).reshape(2, 6)
    /// >>> right = numpy.empty((2, 4), x.dtype)
    /// >>> _ = libsplit.copy(x, [2, 4], axis=1, out=[None, right])
    /// >>> right
    /// array([[ 2,  3,  4,  5],
    ///        [ 8,  9, 10, 11]])
    #[pyfunction]
    #[pyo3(signature = (x, parts_or_lengths, axis=None, *, uneven=None, out=None, threads=None))]
    fn copy<'py>(
        x: &Bound<'py, PyAny>,
        parts_or_lengths: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::optional_axis)] axis: Option<i64>,
        uneven: Option<&Bound<'py, PyString>>,
        out: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = arguments::threads)] threads: Option<i64>,
    ) -> PyResult<Bound<'py, PyList>> {
        let source = Source::of(x, "x")?;
        let rule = arguments::from_arguments(source.shape(), parts_or_lengths, axis, uneven)?;
        PyList::new(x.py(), crate::copy::copy(x.py(), &source, &rule, out, threads)?)
    }

    /// Joins ``pieces`` along an axis, which undoes split.
    ///
    /// ``out`` and ``threads`` are as for copy. Without ``out`` the result has the type of the first
    /// piece.
    ///
    /// >>> import libsplit, numpy
    /// >>> x = numpy.arange(12).reshape(2, 6)
    /// >>> bool((libsplit.join(libsplit.split(x, 3, axis=1), axis=1) == x).all())
    /// True
    #[pyfunction]
    #[pyo3(signature = (pieces, axis=0, *, out=None, threads=None))]
    fn join<'py>(
        pieces: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::axis)] axis: i64,
        out: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = arguments::threads)] threads: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        crate::join::join(pieces, axis, out, threads)
    }

    /// Stacks ``pieces`` of one shape along a new axis, which undoes split_to_sequence with
    /// ``keepdims=False``.
    ///
    /// ``out`` and ``threads`` are as for copy. Without ``out`` the result has the type of the first
    /// piece.
    ///
    /// >>> import libsplit, numpy
    /// >>> left, right = numpy.arange(3), numpy.arange(3, 6)
    /// >>> libsplit.stack([left, right], axis=1)
    /// array([[0, 3],
    ///        [1, 4],
    ///        [2, 5]])
    #[pyfunction]
    #[pyo3(signature = (pieces, axis=0, *, out=None, threads=None))]
    fn stack<'py>(
        pieces: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::axis)] axis: i64,
        out: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = arguments::threads)] threads: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        crate::join::stack(pieces, axis, out, threads)
    }

    /// Returns the shapes of the pieces of a tensor of this shape. None is an extent that is not
    /// known yet.
    ///
    /// With ``dtype``, a name or a dtype, an Operator's rules on element types are checked too.
    ///
    /// >>> import libsplit
    /// >>> libsplit.infer((None, 6), [2, -1], axis=1)
    /// [(None, 2), (None, 4)]
    #[pyfunction]
    #[pyo3(signature = (shape, parts_or_lengths, axis=None, *, uneven=None, dtype=None))]
    fn infer<'py>(
        py: Python<'py>,
        shape: &Bound<'py, PyAny>,
        parts_or_lengths: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::optional_axis)] axis: Option<i64>,
        uneven: Option<&Bound<'py, PyString>>,
        dtype: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let shape = arguments::in_order(shape, "shape")?
            .map(|extent| known(&extent?))
            .collect::<PyResult<Numbers>>()?;
        let rule = arguments::from_arguments(&shape, parts_or_lengths, axis, uneven)?;
        let dtype = match dtype {
            None => {
                if rule.typed {
                    libsplit_dtype::FLOAT
                } else {
                    libsplit_dtype::UINT8
                }
            }
            Some(dtype) => {
                let dtype = crate::tensor::named(dtype)?;
                match dtype.onnx.filter(|_| rule.typed) {
                    Some(number) => libsplit_dtype(number),
                    None if rule.typed => {
                        return Err(PyTypeError::new_err(format!(
                        "dtype {} is not an element type of ONNX: only libsplit's own rules accept it",
                        dtype.name
                    )))
                    }
                    None => libsplit_dtype::UINT8,
                }
            }
        };
        let pieces = call::infer(&call::shape_only(&shape, dtype), &rule)?;
        let shapes = pieces.iter().map(|piece| {
            let known = |&extent: &i64| (extent != LIBSPLIT_DIM_UNKNOWN).then_some(extent);
            PyTuple::new(py, piece.shape.iter().map(known))
        });
        PyList::new(py, shapes.collect::<PyResult<Vec<_>>>()?)
    }

    /// An extent of a shape; None = not known yet.
    fn known(extent: &Bound<'_, PyAny>) -> PyResult<i64> {
        if extent.is_none() {
            return Ok(LIBSPLIT_DIM_UNKNOWN);
        }
        match arguments::whole(extent, "shape")? {
            LIBSPLIT_DIM_UNKNOWN => {
                Err(PyValueError::new_err("shape has a -1: None stands for an unknown extent"))
            }
            extent => Ok(extent),
        }
    }

    /// ONNX Split: returns views of ``x``, by the rules on lengths and element types of the version
    /// that applies at ``opset``. See Operator.onnx_split for the parameters.
    ///
    /// >>> import libsplit, numpy
    /// >>> x = numpy.arange(7)
    /// >>> libsplit.onnx_split(x, num_outputs=3)
    /// [array([0, 1, 2]), array([3, 4, 5]), array([6])]
    /// >>> libsplit.onnx_split(x, num_outputs=3, opset=13)
    /// Traceback (most recent call last):
    ///     ...
    /// ValueError: num_outputs is 3, but ONNX Split-13 cannot divide an extent of 7 into 3 equal parts...
    #[pyfunction]
    #[pyo3(signature = (x, split=None, *, axis=0, num_outputs=None, opset=18, clamp_uneven=false))]
    fn onnx_split<'py>(
        x: &Bound<'py, PyAny>,
        split: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = arguments::axis)] axis: i64,
        #[pyo3(from_py_with = arguments::num_outputs)] num_outputs: Option<i64>,
        opset: i32,
        clamp_uneven: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let operator = Operator::onnx_split(split, axis, num_outputs, opset, clamp_uneven)?;
        views(x.py(), &Source::of(x, "x")?, &operator.0)
    }

    /// ONNX SplitToSequence: returns views of ``x``. See Operator.split_to_sequence for the parameters.
    ///
    /// >>> import libsplit, numpy
    /// >>> libsplit.split_to_sequence(numpy.arange(5), 2)
    /// [array([0, 1]), array([2, 3]), array([4])]
    /// >>> libsplit.split_to_sequence(numpy.eye(2), keepdims=False)
    /// [array([1., 0.]), array([0., 1.])]
    #[pyfunction]
    #[pyo3(signature = (x, split=None, *, axis=0, keepdims=true, opset=24))]
    fn split_to_sequence<'py>(
        x: &Bound<'py, PyAny>,
        split: Option<&Bound<'py, PyAny>>,
        #[pyo3(from_py_with = arguments::axis)] axis: i64,
        keepdims: bool,
        opset: i32,
    ) -> PyResult<Bound<'py, PyList>> {
        let operator = Operator::split_to_sequence(split, axis, keepdims, opset)?;
        views(x.py(), &Source::of(x, "x")?, &operator.0)
    }

    /// OpenVINO VariadicSplit-1: returns views of ``x``. See Operator.variadic_split for the parameters.
    ///
    /// >>> import libsplit, numpy
    /// >>> libsplit.variadic_split(numpy.arange(5), [1, -1])
    /// [array([0]), array([1, 2, 3, 4])]
    #[pyfunction]
    #[pyo3(signature = (x, split_lengths, *, axis=0))]
    fn variadic_split<'py>(
        x: &Bound<'py, PyAny>,
        split_lengths: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::axis)] axis: i64,
    ) -> PyResult<Bound<'py, PyList>> {
        let operator = Operator::variadic_split(split_lengths, axis)?;
        views(x.py(), &Source::of(x, "x")?, &operator.0)
    }

    /// OpenVINO Split-1: returns views of ``x``. See Operator.openvino_split for the parameters.
    ///
    /// >>> import libsplit, numpy
    /// >>> libsplit.openvino_split(numpy.arange(4), 2)
    /// [array([0, 1]), array([2, 3])]
    #[pyfunction]
    #[pyo3(signature = (x, num_splits, *, axis=0))]
    fn openvino_split<'py>(
        x: &Bound<'py, PyAny>,
        #[pyo3(from_py_with = arguments::num_splits)] num_splits: i64,
        #[pyo3(from_py_with = arguments::axis)] axis: i64,
    ) -> PyResult<Bound<'py, PyList>> {
        let operator = Operator::openvino_split(num_splits, axis);
        views(x.py(), &Source::of(x, "x")?, &operator.0)
    }
}
