//! What can be split or written: NumPy's arrays, our tensors, and whatever exports DLPack.

use crate::call::{self, Described, Piece};
use crate::dtype::DType;
use crate::numpy::Array;
use crate::rule::Rule;
use crate::tensor::{no_tensor, Tensor};
use libsplit::ffi::{libsplit_dtype, libsplit_op, libsplit_tensor, LIBSPLIT_MAX_RANK};
use pyo3::exceptions::{PyBufferError, PyException, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::borrow::Cow;

/// ONNX's STRING.
const STRING: libsplit_dtype = libsplit_dtype(8);

pub enum Source<'py> {
    Array(Array<'py>),
    Tensor(Bound<'py, Tensor>),
    /// A tensor of another library, and what was taken from it.
    Foreign(Bound<'py, PyAny>, Tensor),
}

/// A tensor of a caller's as the C functions are to see it, and the rule to go with that.
pub struct Prepared<'a> {
    pub input: Described,
    pub rule: Cow<'a, Rule>,
    /// Whether the bytes of an element are one more axis.
    pub in_bytes: bool,
}

impl<'py> Source<'py> {
    pub fn of(object: &Bound<'py, PyAny>, argument: &str) -> PyResult<Self> {
        if let Some(array) = Array::of(object)? {
            return Ok(Self::Array(array));
        }
        if let Ok(tensor) = object.cast::<Tensor>() {
            return Ok(Self::Tensor(tensor.clone()));
        }
        match Tensor::import(object)? {
            Some(tensor) => Ok(Self::Foreign(object.clone(), tensor)),
            None => Err(no_tensor(object, argument)),
        }
    }

    pub fn tensor(&self) -> Option<&Tensor> {
        match self {
            Self::Array(_) => None,
            Self::Tensor(tensor) => Some(tensor.get()),
            Self::Foreign(_, tensor) => Some(tensor),
        }
    }

    pub fn shape(&self) -> &[i64] {
        match self {
            Self::Array(array) => array.shape(),
            Self::Tensor(tensor) => &tensor.get().described().shape,
            Self::Foreign(_, tensor) => &tensor.described().shape,
        }
    }

    /// What its elements are, if libsplit has a name for them.
    pub fn dtype(&self) -> PyResult<Option<&'static DType>> {
        match self {
            Self::Array(array) => array.dtype(),
            _ => Ok(self.tensor().map(Tensor::dtype)),
        }
    }

    /// Bits that an element takes in memory.
    pub fn bits(&self) -> usize {
        match self {
            Self::Array(array) => 8 * array.item(),
            _ => self.tensor().map_or(0, |tensor| usize::from(tensor.dtype().bits)),
        }
    }

    pub fn elements(&self) -> usize {
        let extents = self.shape().iter().map(|&extent| usize::try_from(extent).unwrap_or(0));
        extents.fold(1, usize::saturating_mul)
    }

    /// Bytes of all its elements, packed.
    pub fn bytes(&self) -> usize {
        self.elements().saturating_mul(self.bits()).div_ceil(8)
    }

    /// See [`Array::in_bytes`].
    pub fn in_bytes(&self) -> bool {
        matches!(self, Self::Array(array) if array.in_bytes())
    }

    pub fn describe(&self, in_bytes: bool) -> Described {
        match self {
            Self::Array(array) => array.describe(in_bytes),
            Self::Tensor(tensor) => tensor.get().described().clone(),
            Self::Foreign(_, tensor) => tensor.described().clone(),
        }
    }

    /// As the input of a split by this rule.
    pub fn prepare<'a>(&self, rule: &'a Rule, in_bytes: bool) -> PyResult<Prepared<'a>> {
        let mut input = self.describe(in_bytes);
        if in_bytes && input.shape.len() > LIBSPLIT_MAX_RANK as usize {
            return Err(PyValueError::new_err(format!(
                "x has {} axes and elements that are split byte by byte, of dtype {}: at most {} \
                 axes are possible, merge some",
                input.shape.len() - 1,
                self.dtype_name()?,
                LIBSPLIT_MAX_RANK - 1
            )));
        }
        let packed = self.bits() < 8;
        if !rule.typed && !in_bytes {
            let onnx =
                matches!(rule.op, libsplit_op::ONNX_SPLIT | libsplit_op::ONNX_SPLIT_TO_SEQUENCE);
            let rule = if packed && onnx {
                // ONNX has no split of packed elements; libsplit's own policies have.
                let bytes = call::shape_only(self.shape(), libsplit_dtype::UINT8);
                Cow::Owned(call::by_lengths(&bytes, rule)?)
            } else {
                Cow::Borrowed(rule)
            };
            return Ok(Prepared { input, rule, in_bytes });
        }
        let dtype = if rule.typed { self.onnx()? } else { libsplit_dtype::UINT8 };
        if !in_bytes && self.dtype()?.is_some_and(|dtype| usize::from(dtype.bits) == self.bits()) {
            input.dtype = dtype;
            return Ok(Prepared { input, rule: Cow::Borrowed(rule), in_bytes });
        }
        // The elements are moved as others: the operator looks at the true ones first.
        let rule = self.carried(rule, &call::shape_only(self.shape(), dtype))?;
        Ok(Prepared { input, rule: Cow::Owned(rule), in_bytes })
    }

    /// The rule for elements that are moved as bytes.
    fn carried(&self, rule: &Rule, input: &libsplit_tensor) -> PyResult<Rule> {
        let axis = |_| call::axis(self.shape().len(), rule.axis);
        let Some(axis) = call::count(input, rule).map(axis)? else {
            return Ok(rule.clone()); // not to be had: the count has looked at the axis
        };
        let axis = crate::rule::extent(axis);
        Ok(match rule.op {
            libsplit_op::ONNX_SPLIT => Rule { axis, ..call::by_lengths(input, rule)? },
            _ => Rule { axis, ..rule.clone() },
        })
    }

    /// Its element type in ONNX.
    fn onnx(&self) -> PyResult<libsplit_dtype> {
        if let Some(number) = self.dtype()?.and_then(|dtype| dtype.onnx) {
            return Ok(libsplit_dtype(number));
        }
        match self {
            Self::Array(array) if array.is_text() => Ok(STRING),
            _ => Err(PyTypeError::new_err(format!(
                "x.dtype {} is not an element type of ONNX: libsplit.split accepts any",
                self.dtype_name()?
            ))),
        }
    }

    pub fn dtype_name(&self) -> PyResult<String> {
        match self {
            Self::Array(array) => Ok(array.object().getattr("dtype")?.str()?.to_string()),
            _ => Ok(self.tensor().map_or("", |tensor| tensor.dtype().name).into()),
        }
    }

    pub fn same_elements(&self, other: &Self) -> PyResult<bool> {
        if let (Self::Array(one), Self::Array(two)) = (self, other) {
            return Ok(one.same_elements(two));
        }
        let same = |one: Option<&'static DType>, two: Option<&'static DType>| {
            one.zip(two).is_some_and(|(one, two)| core::ptr::eq(one, two))
        };
        Ok(self.bits() == other.bits() && same(self.dtype()?, other.dtype()?))
    }

    /// Refuses what cannot be read or written byte by byte from here.
    pub fn check_copies(&self) -> PyResult<()> {
        match self {
            Self::Array(array) => array.check_copies(),
            _ => self.tensor().map_or(Ok(()), Tensor::check_cpu),
        }
    }

    /// Refuses what must not be written.
    pub fn check_writable(&self, argument: &str) -> PyResult<()> {
        let writable = match self {
            Self::Array(array) => array.writable(),
            _ => self.tensor().is_some_and(Tensor::writable),
        };
        if writable {
            return Ok(());
        }
        let message = "is read-only, or does not say that it may be written: pass a writable array";
        Err(PyValueError::new_err(format!("{argument} {message}")))
    }

    /// The pieces, as whatever this is.
    pub fn views<'a>(
        &self,
        pieces: impl Iterator<Item = Piece<'a>>,
        in_bytes: bool,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        match self {
            Self::Array(array) => pieces.map(|piece| array.view(piece, in_bytes)).collect(),
            Self::Tensor(tensor) => {
                let (py, tensor) = (tensor.py(), tensor.get());
                let give = |piece| Bound::new(py, tensor.piece(piece)).map(Bound::into_any);
                pieces.map(give).collect()
            }
            Self::Foreign(object, tensor) => {
                let consumer = consumer(object)?;
                pieces.map(|piece| consumer.give(object.py(), tensor.piece(piece))).collect()
            }
        }
    }

    /// New memory of this kind, packed, with bytes of any value; [`Source::give`] it when it is
    /// written.
    pub fn empty(&self, shape: &[i64], bytes: usize) -> PyResult<Self> {
        match self {
            Self::Array(array) => Ok(Self::Array(array.empty(shape)?)),
            Self::Tensor(tensor) => {
                let empty = Tensor::empty(tensor.get().dtype(), shape, bytes)?;
                Ok(Self::Tensor(Bound::new(tensor.py(), empty)?))
            }
            Self::Foreign(object, tensor) => {
                let empty = Tensor::empty(tensor.dtype(), shape, bytes)?;
                Ok(Self::Foreign(object.clone(), empty))
            }
        }
    }

    /// Something of the same elements, without any.
    pub fn sample(&self) -> PyResult<Bound<'py, PyAny>> {
        match self.empty(&[0], 0)? {
            Self::Foreign(object, tensor) => Bound::new(object.py(), tensor).map(Bound::into_any),
            other => other.give(),
        }
    }

    /// What was [`Source::empty`], for the caller.
    pub fn give(self) -> PyResult<Bound<'py, PyAny>> {
        match self {
            Self::Array(array) => Ok(array.object().clone()),
            Self::Tensor(tensor) => Ok(tensor.into_any()),
            Self::Foreign(object, tensor) => consumer(&object)?.give(object.py(), tensor),
        }
    }
}

/// The function `from_dlpack` of a library, where it has one; else our own tensors are given.
struct Consumer<'py>(Option<Bound<'py, PyAny>>);

impl<'py> Consumer<'py> {
    fn give(&self, py: Python<'py>, tensor: Tensor) -> PyResult<Bound<'py, PyAny>> {
        let tensor = Bound::new(py, tensor)?;
        match &self.0 {
            Some(from_dlpack) => {
                let taken = from_dlpack.call1((&tensor,));
                taken.map_err(|error| refused(from_dlpack, tensor.get(), error))
            }
            None => Ok(tensor.into_any()),
        }
    }
}

/// The error for a piece that its own library did not take. Some, like JAX, take only packed
/// tensors, and say it in words that do not tell a caller what to do.
fn refused(from_dlpack: &Bound<'_, PyAny>, piece: &Tensor, error: PyErr) -> PyErr {
    let py = from_dlpack.py();
    if piece.is_packed() || !error.is_instance_of::<PyException>(py) {
        return error;
    }
    let name = intern!(py, "__module__");
    let module = from_dlpack.getattr(name).and_then(|module| module.extract::<String>());
    let module = module.unwrap_or_default();
    let library = module.split('.').next().unwrap_or_default().trim_start_matches('_');
    let Described { shape, strides, .. } = piece.described();
    let better = PyBufferError::new_err(format!(
        "{library} accepts only packed tensors, and this view of shape {shape:?} has strides \
         {strides:?}: use libsplit.copy"
    ));
    better.set_cause(py, Some(error));
    better
}

/// Finds `from_dlpack` where the array API puts it, in the package of the object's type, or in the
/// type itself.
fn consumer<'py>(object: &Bound<'py, PyAny>) -> PyResult<Consumer<'py>> {
    let py = object.py();
    let name = intern!(py, "from_dlpack");
    if let Some(namespace) = object.getattr_opt(intern!(py, "__array_namespace__"))? {
        if let Some(function) = namespace.call0()?.getattr_opt(name)? {
            return Ok(Consumer(Some(function)));
        }
    }
    let kind = object.get_type();
    let module = kind.module()?;
    let package = module.to_cow()?;
    let package = package.split('.').next().unwrap_or_default();
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    if let Some(package) = modules.get_item(package)? {
        if let Some(function) = package.getattr_opt(name)? {
            return Ok(Consumer(Some(function)));
        }
    }
    Ok(Consumer(kind.getattr_opt(name)?))
}
