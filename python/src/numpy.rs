//! NumPy's arrays: read and made by NumPy's own C functions, without a detour through DLPack.

use crate::call::{Described, Numbers, Piece};
use crate::dtype::{carrier, DType};
use crate::rule::Lengths;
use ::numpy::npyffi::{
    get_type_object, npy_intp, NpyTypes, PyArrayObject, PyArrayObject_fields, PyArray_Check,
    PyArray_CheckExact, PyArray_Descr, PyDataType_ELSIZE, PyDataType_FLAGS, NPY_ARRAY_WRITEABLE,
    NPY_ITEM_REFCOUNT, PY_ARRAY_API,
};
use core::ffi::{c_char, c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, Ordering};
use libsplit::ffi::libsplit_dtype;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple, PyType};
use pyo3::{ffi, intern};

/// Whether somebody has imported NumPy; before that there are no arrays.
fn imported(py: Python<'_>) -> PyResult<bool> {
    static IMPORTED: AtomicBool = AtomicBool::new(false);
    if !IMPORTED.load(Ordering::Relaxed) {
        let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
        IMPORTED.store(modules.contains("numpy")?, Ordering::Relaxed);
    }
    Ok(IMPORTED.load(Ordering::Relaxed))
}

/// An array of NumPy's.
pub struct Array<'py> {
    object: Bound<'py, PyAny>,
    /// Bytes of one element.
    item: usize,
}

impl<'py> Array<'py> {
    /// `object` as an array, if it is one.
    pub fn of(object: &Bound<'py, PyAny>) -> PyResult<Option<Self>> {
        let py = object.py();
        // SAFETY: NumPy is there, and `object` is an object.
        if !imported(py)? || unsafe { PyArray_Check(py, object.as_ptr()) } == 0 {
            return Ok(None);
        }
        // SAFETY: as above.
        if unsafe { PyArray_CheckExact(py, object.as_ptr()) } == 0 {
            refuse_masked(object)?;
        }
        let mut array = Self { object: object.clone(), item: 0 };
        // SAFETY: the descriptor is the array's.
        let item = unsafe { PyDataType_ELSIZE(py, array.descr()) };
        array.item = usize::try_from(item).unwrap_or(0);
        Ok(Some(array))
    }

    pub fn object(&self) -> &Bound<'py, PyAny> {
        &self.object
    }

    fn fields(&self) -> &PyArrayObject_fields {
        // SAFETY: `of` has seen that it is an array, and Python's lock is held.
        unsafe { &(*self.object.as_ptr().cast::<PyArrayObject>()).fields }
    }

    fn descr(&self) -> *mut PyArray_Descr {
        self.fields().descr
    }

    fn numbers(&self, first: *mut npy_intp) -> &[i64] {
        const { assert!(size_of::<npy_intp>() == size_of::<i64>()) };
        match usize::try_from(self.fields().nd) {
            // SAFETY: NumPy keeps one number an axis there.
            Ok(rank @ 1..) => unsafe { core::slice::from_raw_parts(first.cast(), rank) },
            _ => &[],
        }
    }

    pub fn shape(&self) -> &[i64] {
        self.numbers(self.fields().dimensions)
    }

    /// In bytes.
    fn strides(&self) -> &[i64] {
        self.numbers(self.fields().strides)
    }

    pub fn writable(&self) -> bool {
        self.fields().flags & NPY_ARRAY_WRITEABLE != 0
    }

    /// Whether libsplit has to see each element as an axis of bytes: there is no type of that
    /// size, or strides are not whole elements (as in a field of a structured array).
    pub fn in_bytes(&self) -> bool {
        let size = i64::try_from(self.item).unwrap_or(0);
        let whole = |(&extent, &stride): (&i64, &i64)| extent <= 1 || stride % size == 0;
        carrier(self.item).is_none() || !self.shape().iter().zip(self.strides()).all(whole)
    }

    /// As the C functions see it; with `in_bytes`, the bytes of an element are one more axis.
    pub fn describe(&self, in_bytes: bool) -> Described {
        let data = self.fields().data.cast();
        let shape = Numbers::from_slice(self.shape());
        if in_bytes {
            let mut described = Described {
                data,
                bit_offset: 0,
                dtype: libsplit_dtype::UINT8,
                shape,
                strides: Numbers::from_slice(self.strides()),
            };
            described.shape.push(i64::try_from(self.item).unwrap_or(i64::MAX));
            described.strides.push(1);
            return described;
        }
        let size = i64::try_from(self.item).unwrap_or(1).max(1);
        let strides = self.strides().iter().map(|stride| stride / size).collect();
        let dtype = carrier(self.item).unwrap_or(libsplit_dtype::UINT8);
        Described { data, bit_offset: 0, dtype, shape, strides }
    }

    /// Bytes of one element.
    pub fn item(&self) -> usize {
        self.item
    }

    /// What libsplit and DLPack call its elements, if anything.
    pub fn dtype(&self) -> PyResult<Option<&'static DType>> {
        // SAFETY: the descriptor is the array's, and lives as long.
        let fields = unsafe { &(*self.descr()).fields };
        if fields.type_num >= FIRST_OF_OTHERS {
            // SAFETY: the descriptor holds its type.
            let kind = unsafe { PyType::from_borrowed_type_ptr(self.object.py(), fields.typeobj) };
            let ours = kind.module()?.to_cow()? == "ml_dtypes";
            return Ok(if ours { DType::named(&kind.name()?.to_cow()?) } else { None });
        }
        Ok(match (byte(fields.kind), self.item) {
            _ if byte(fields.byteorder) == FOREIGN_ORDER => None,
            (b'b', 1) => DType::named("bool"),
            (b'i', 1) => DType::named("int8"),
            (b'i', 2) => DType::named("int16"),
            (b'i', 4) => DType::named("int32"),
            (b'i', 8) => DType::named("int64"),
            (b'u', 1) => DType::named("uint8"),
            (b'u', 2) => DType::named("uint16"),
            (b'u', 4) => DType::named("uint32"),
            (b'u', 8) => DType::named("uint64"),
            (b'f', 2) => DType::named("float16"),
            (b'f', 4) => DType::named("float32"),
            (b'f', 8) => DType::named("float64"),
            (b'c', 8) => DType::named("complex64"),
            (b'c', 16) => DType::named("complex128"),
            _ => None,
        })
    }

    /// Whether its elements are text, ONNX's STRING.
    pub fn is_text(&self) -> bool {
        // SAFETY: the descriptor is the array's.
        let kind = unsafe { (*self.descr()).fields.kind };
        matches!(byte(kind), b'O' | b'U' | b'S' | b'T')
    }

    /// Refuses what bytes alone do not carry over: references, and text outside of the array.
    pub fn check_copies(&self) -> PyResult<()> {
        // SAFETY: the descriptor is the array's.
        let flags = unsafe { PyDataType_FLAGS(self.object.py(), self.descr()) };
        if flags & NPY_ITEM_REFCOUNT == 0 {
            return Ok(());
        }
        let dtype = self.object.getattr(intern!(self.object.py(), "dtype"))?;
        Err(PyTypeError::new_err(format!(
            "elements of dtype {dtype} refer to memory outside the array, which libsplit cannot \
             copy: make views with libsplit.split and copy those"
        )))
    }

    /// Whether both have elements of one type.
    pub fn same_elements(&self, other: &Self) -> bool {
        let (one, two) = (self.descr(), other.descr());
        // SAFETY: the descriptors are the arrays'.
        one == two || unsafe { PY_ARRAY_API.PyArray_EquivTypes(self.object.py(), one, two) } != 0
    }

    /// An array over this one's memory.
    pub fn view(&self, piece: Piece<'_>, in_bytes: bool) -> PyResult<Bound<'py, PyAny>> {
        let (mut shape, mut strides) =
            (Numbers::from_slice(piece.shape), Numbers::from_slice(piece.strides));
        if in_bytes {
            shape.pop();
            strides.pop();
        } else {
            let size = i64::try_from(self.item).unwrap_or(1);
            strides.iter_mut().for_each(|stride| *stride *= size);
        }
        let flags = self.fields().flags & NPY_ARRAY_WRITEABLE;
        let py = self.object.py();
        let made = make(py, self.descr(), &shape, Some(&strides), piece.data, flags)?;
        keep(&made, &self.object)?;
        Ok(made)
    }

    /// A new array of the same type, packed, with bytes of any value.
    pub fn empty(&self, shape: &[i64]) -> PyResult<Self> {
        let made = make(self.object.py(), self.descr(), shape, None, null_mut(), 0)?;
        Ok(Self { object: made, item: self.item })
    }
}

/// `type_num` of the types that NumPy does not have itself.
const FIRST_OF_OTHERS: c_int = 256;
/// `byteorder` of elements in the order that this machine has not.
const FOREIGN_ORDER: u8 = if cfg!(target_endian = "little") { b'>' } else { b'<' };

/// NumPy's letters are plain ones.
fn byte(letter: c_char) -> u8 {
    letter.to_ne_bytes()[0]
}

/// Masked arrays keep their mask apart, where a split would lose it.
fn refuse_masked(object: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = object.py();
    let modules = py.import("sys")?.getattr("modules")?.cast_into::<PyDict>()?;
    let Some(masked) = modules.get_item("numpy.ma")? else { return Ok(()) };
    if object.is_instance(&masked.getattr("MaskedArray")?)? {
        let message = "x is a masked array, whose mask would be lost: split x.data and x.mask";
        return Err(PyTypeError::new_err(message));
    }
    Ok(())
}

/// An array of lengths, if `value` is an array.
pub fn lengths(value: &Bound<'_, PyAny>) -> PyResult<Option<Lengths>> {
    let Some(array) = Array::of(value)? else { return Ok(None) };
    let dtype = array.dtype()?.filter(|dtype| usize::from(dtype.bits) == 8 * array.item);
    let Some(number) = dtype.and_then(|dtype| dtype.onnx) else {
        let kind = value.getattr(intern!(value.py(), "dtype"))?;
        return Err(PyValueError::new_err(format!("the lengths have dtype {kind}: use int64")));
    };
    let bytes = value.call_method0(intern!(value.py(), "tobytes"))?.extract()?;
    let (shape, dtype) = (array.shape().to_vec(), libsplit_dtype(number));
    Ok(Some(Lengths::Array { bytes, shape, dtype }))
}

/// An array of type `dtype` over memory that `owner` keeps.
pub fn over<'py>(
    owner: &Bound<'py, PyAny>,
    dtype: &Bound<'py, PyAny>,
    shape: &[i64],
    strides: &[i64],
    data: *mut c_void,
    writable: bool,
) -> PyResult<Bound<'py, PyAny>> {
    imported(owner.py())?;
    let flags = if writable { NPY_ARRAY_WRITEABLE } else { 0 };
    let made = make(owner.py(), dtype.as_ptr().cast(), shape, Some(strides), data, flags)?;
    keep(&made, owner)?;
    Ok(made)
}

/// An array of this layout whose elements are nowhere, to be described and never read.
pub fn nowhere<'py>(
    dtype: &Bound<'py, PyAny>,
    shape: &[i64],
    strides: &[i64],
) -> PyResult<Bound<'py, PyAny>> {
    let py = dtype.py();
    let numpy = py.import("numpy")?;
    let one = numpy.getattr("empty")?.call1((1, dtype))?;
    let as_strided = numpy.getattr("lib")?.getattr("stride_tricks")?.getattr("as_strided")?;
    let options = PyDict::new(py);
    options.set_item("shape", PyTuple::new(py, shape)?)?;
    options.set_item("strides", PyTuple::new(py, strides)?)?;
    as_strided.call((one,), Some(&options))
}

/// Lets the array `made` keep `owner` alive.
fn keep(made: &Bound<'_, PyAny>, owner: &Bound<'_, PyAny>) -> PyResult<()> {
    let py = owner.py();
    // SAFETY: NumPy takes over the reference to the owner.
    let failed = unsafe {
        PY_ARRAY_API.PyArray_SetBaseObject(py, made.as_ptr().cast(), owner.clone().into_ptr())
    };
    if failed == 0 {
        Ok(())
    } else {
        Err(PyErr::fetch(py))
    }
}

fn make<'py>(
    py: Python<'py>,
    descr: *mut PyArray_Descr,
    shape: &[i64],
    strides: Option<&[i64]>,
    data: *mut c_void,
    flags: c_int,
) -> PyResult<Bound<'py, PyAny>> {
    let rank = c_int::try_from(shape.len()).unwrap_or(c_int::MAX);
    let strides = strides.map_or(null_mut(), |strides| strides.as_ptr().cast_mut().cast());
    // SAFETY: NumPy copies shape and strides, and takes over a reference to the type, which is
    // counted before.
    unsafe {
        ffi::Py_IncRef(descr.cast());
        let kind = get_type_object(py, NpyTypes::PyArray_Type);
        let shape = shape.as_ptr().cast_mut().cast();
        let made = PY_ARRAY_API.PyArray_NewFromDescr(
            py,
            kind,
            descr,
            rank,
            shape,
            strides,
            data,
            flags,
            null_mut(),
        );
        Bound::from_owned_ptr_or_err(py, made)
    }
}
