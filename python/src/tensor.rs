//! Tensors that are not NumPy's: taken and given away by DLPack.

use crate::arguments::extents;
use crate::call::{self, Described, Numbers, Piece};
use crate::dtype::DType;
use crate::numpy::Array;
use crate::rule::{extent, Rule};
use core::alloc::Layout;
use core::ffi::c_void;
use core::ptr::null_mut;
use dlpark::ffi::{
    DLDataTypeCode, DLDevice, DLDeviceType, DLManagedTensor, DLManagedTensorVersioned, DLTensor,
};
use dlpark::metadata::Dynamic;
use dlpark::python::{from_dlpack, ExportAbi, ExportRequest, ImportedDlpack};
use dlpark::{AllocationDeleter, DlpackFlags, Managed, ManagedTensorBase};
use libsplit::ffi::libsplit_op;
use pyo3::exceptions::{
    PyAttributeError, PyBufferError, PyImportError, PyRuntimeError, PyTypeError, PyValueError,
};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyDict, PyString, PyTuple};
use pyo3::{ffi, intern};
use std::sync::Arc;

/// What keeps a tensor's memory alive.
enum Memory {
    /// The producer's; its own deleter gives it back. Off the CPU the producer is asked again when
    /// a consumer names a stream.
    Borrowed { owner: Option<AllocationDeleter>, producer: Option<Py<PyAny>> },
    /// A NumPy array's.
    Array { owner: Option<Py<PyAny>> },
    /// Our own.
    Own { data: *mut u8, layout: Layout },
}

// SAFETY: all of it may be dropped by any thread (DLPack asks that of deleters); nothing here
// reads or writes the data.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    fn own(bytes: usize) -> PyResult<Self> {
        // JAX takes nothing less without making a copy of its own.
        const ALIGNMENT: usize = 64;
        let layout = Layout::from_size_align(bytes.max(1), ALIGNMENT);
        let layout = layout.map_err(|_| call::no_memory())?;
        // SAFETY: not of size 0.
        let data = unsafe { std::alloc::alloc(layout) };
        if data.is_null() {
            Err(call::no_memory())
        } else {
            Ok(Self::Own { data, layout })
        }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        match self {
            // SAFETY: allocated with that layout, and dropped once.
            Self::Own { data, layout } => unsafe { std::alloc::dealloc(*data, *layout) },
            Self::Borrowed { owner, producer } => held(|py| {
                drop(owner.take());
                if let Some(producer) = producer.take() {
                    producer.drop_ref(py);
                }
            }),
            Self::Array { owner } => held(|py| {
                if let Some(owner) = owner.take() {
                    owner.drop_ref(py);
                }
            }),
        }
    }
}

/// Gives memory back to its owner, with the interpreter held, for the owner's deleter may be Python's
/// code. That must not begin under an exception that is on its way, which is put aside and back again.
///
/// The last owner of a tensor may be another library, on any thread. `PyO3` takes a thread that is
/// within a call of ours for one that holds the interpreter, but a library that we call may have let
/// go of it, as JAX does where it frees arrays: hence Python's own functions.
fn held(give_back: impl FnOnce(Python<'_>)) {
    // SAFETY: may be asked at any time.
    if unsafe { ffi::Py_IsInitialized() } == 0 {
        return; // the process ends, and with it all memory
    }
    let (mut kind, mut value, mut trace) = (null_mut(), null_mut(), null_mut());
    // SAFETY: Python is there; what is fetched goes back where it came from.
    let state = unsafe { ffi::PyGILState_Ensure() };
    // SAFETY: as above.
    unsafe { ffi::PyErr_Fetch(&raw mut kind, &raw mut value, &raw mut trace) };
    // SAFETY: the interpreter is held.
    give_back(unsafe { Python::assume_attached() });
    // SAFETY: as above. What the deleter itself raised has nobody to go to.
    unsafe {
        if !ffi::PyErr_Occurred().is_null() {
            ffi::PyErr_WriteUnraisable(null_mut());
        }
        ffi::PyErr_Restore(kind, value, trace);
        ffi::PyGILState_Release(state);
    }
}

/// A tensor that every library with DLPack accepts: ``numpy.from_dlpack(tensor)``,
/// ``torch.from_dlpack(tensor)``. It shares the memory of ``data`` and keeps it alive.
///
/// With ``dtype`` (a name such as ``'int4'``, or a dtype of NumPy or ml_dtypes), the bytes of
/// ``data``, which must be packed, are interpreted as elements of that type. A byte holds two int4,
/// the first in its low bits.
///
/// >>> import libsplit, numpy
/// >>> packed = numpy.array([0x21, 0x43, 0x65], numpy.uint8)
/// >>> tensor = libsplit.Tensor(packed, dtype='int4', shape=(3, 2))
/// >>> tensor
/// libsplit.Tensor(shape=(3, 2), dtype='int4')
/// >>> left, right = libsplit.copy(tensor, 2, axis=1)
/// >>> [hex(byte) for byte in numpy.from_dlpack(left.bytes())]
/// ['0x31', '0x5']
#[pyclass(frozen, module = "libsplit")]
pub struct Tensor {
    memory: Arc<Memory>,
    described: Described,
    dtype: &'static DType,
    device: DLDevice,
    access: Access,
}

// SAFETY: the pointer leads to memory that `memory` keeps; nothing here reads or writes it.
unsafe impl Send for Tensor {}
// SAFETY: as above.
unsafe impl Sync for Tensor {}

#[derive(Clone, Copy, PartialEq)]
enum Access {
    Writable,
    ReadOnly,
    /// A legacy capsule cannot say.
    Untold,
}

const CPU: DLDevice = DLDevice { device_type: DLDeviceType::CPU, device_id: 0 };

impl Tensor {
    /// Takes a tensor from an object that exports DLPack; `None` if it does not.
    ///
    /// By `__dlpack__`, though DLPack's C exchange is quicker: torch 2.15 hands out by that what
    /// its `__dlpack__` refuses, tensors with a gradient and conjugated ones.
    pub fn import(object: &Bound<'_, PyAny>) -> PyResult<Option<Self>> {
        let py = object.py();
        let method = match object.getattr(intern!(py, "__dlpack__")) {
            Ok(method) => method,
            Err(error) if error.is_instance_of::<PyAttributeError>(py) => return Ok(None),
            Err(error) => return Err(error),
        };
        let newest = PyDict::new(py);
        newest.set_item(intern!(py, "max_version"), (1, 3))?;
        let capsule = match method.call((), Some(&newest)) {
            // From before versions.
            Err(error) if error.is_instance_of::<PyTypeError>(py) => method.call0(),
            capsule => capsule,
        }?;
        let name = |capsule: &Bound<'_, PyCapsule>| {
            // SAFETY: only compared, right away.
            capsule.name().ok().flatten().map(|name| unsafe { name.as_cstr() }.to_bytes().to_vec())
        };
        let name = capsule.cast::<PyCapsule>().ok().and_then(name);
        if !name.is_some_and(|name| name.windows(8).any(|part| part == b"dltensor")) {
            let message = format!("__dlpack__ gave {capsule}, which is not a DLPack capsule");
            return Err(PyValueError::new_err(message));
        }
        let imported = from_dlpack(capsule.as_borrowed(), None, None);
        let imported = imported.map_err(|error| {
            if error.is_instance_of::<PyRuntimeError>(py) {
                return PyBufferError::new_err(format!(
                    "the producer's DLPack tensor is refused: {}",
                    error.value(py)
                ));
            }
            error
        });
        Self::adopt(object, imported?).map(Some)
    }

    fn adopt(producer: &Bound<'_, PyAny>, imported: ImportedDlpack) -> PyResult<Self> {
        let (tensor, access) = match &imported {
            // SAFETY: the producer's descriptor, which `imported` keeps.
            ImportedDlpack::Legacy(managed) => (unsafe { *managed.tensor() }, Access::Untold),
            ImportedDlpack::Versioned(managed) => {
                let read_only = managed.flags().contains(DlpackFlags::READ_ONLY);
                if managed.flags().contains(DlpackFlags::IS_SUBBYTE_TYPE_PADDED) {
                    let message = "elements of less than a byte that are padded to whole ones are \
                                   not taken: pack them, or view them as uint8";
                    return Err(PyBufferError::new_err(message));
                }
                let access = if read_only { Access::ReadOnly } else { Access::Writable };
                // SAFETY: as above.
                (unsafe { *managed.tensor() }, access)
            }
        };
        let (described, dtype) = read(&tensor)?;
        let off_cpu = !on_cpu(tensor.device);
        let producer = off_cpu.then(|| producer.clone().unbind());
        let memory = Arc::new(Memory::Borrowed { owner: Some(imported.into_deleter()), producer });
        Ok(Self { memory, described, dtype, device: tensor.device, access })
    }

    /// A NumPy array as a tensor.
    fn from_array(array: &Array<'_>) -> PyResult<Self> {
        let dtype = array.dtype()?.filter(|dtype| usize::from(dtype.bits) == 8 * array.item());
        let Some(dtype) = dtype.filter(|_| !array.in_bytes()) else {
            let kind = array.object().getattr("dtype")?;
            return Err(PyTypeError::new_err(format!("DLPack has no elements of dtype {kind}")));
        };
        let access = if array.writable() { Access::Writable } else { Access::ReadOnly };
        let memory = Arc::new(Memory::Array { owner: Some(array.object().clone().unbind()) });
        Ok(Self { memory, described: array.describe(false), dtype, device: CPU, access })
    }

    /// A new tensor on the CPU, packed, with bytes of any value.
    pub fn empty(dtype: &'static DType, shape: &[i64], bytes: usize) -> PyResult<Self> {
        let memory = Memory::own(bytes)?;
        let data = match memory {
            Memory::Own { data, .. } => data.cast(),
            _ => null_mut(),
        };
        let strides = packed(shape).ok_or_else(call::no_memory)?;
        let shape = Numbers::from_slice(shape);
        let described = Described { data, bit_offset: 0, dtype: dtype.carrier(), shape, strides };
        let memory = Arc::new(memory);
        Ok(Self { memory, described, dtype, device: CPU, access: Access::Writable })
    }

    /// A tensor of this layout whose elements are nowhere, to be described and never read.
    pub fn nowhere(
        dtype: &'static DType,
        shape: &[i64],
        strides: &[i64],
        bit_offset: u32,
    ) -> PyResult<Self> {
        if shape.len() != strides.len() {
            return Err(PyValueError::new_err("there must be as many strides as extents"));
        }
        let described = Described {
            // In the middle of all addresses, so that strides may lead either way.
            data: core::ptr::without_provenance_mut((usize::MAX / 2) & !63),
            bit_offset,
            dtype: dtype.carrier(),
            shape: Numbers::from_slice(shape),
            strides: Numbers::from_slice(strides),
        };
        let memory = Arc::new(Memory::own(0)?);
        Ok(Self { memory, described, dtype, device: CPU, access: Access::ReadOnly })
    }

    /// A tensor over a piece of this one's memory.
    pub fn piece(&self, piece: Piece<'_>) -> Self {
        let described = Described {
            data: piece.data,
            bit_offset: piece.bit_offset,
            dtype: self.described.dtype,
            shape: Numbers::from_slice(piece.shape),
            strides: Numbers::from_slice(piece.strides),
        };
        Self { memory: Arc::clone(&self.memory), described, ..*self }
    }

    pub fn described(&self) -> &Described {
        &self.described
    }

    pub fn dtype(&self) -> &'static DType {
        self.dtype
    }

    pub fn writable(&self) -> bool {
        self.access == Access::Writable
    }

    /// Whether a copy may read it.
    pub fn check_cpu(&self) -> PyResult<()> {
        if on_cpu(self.device) {
            return Ok(());
        }
        let DLDevice { device_type: DLDeviceType(kind), device_id } = self.device;
        Err(PyBufferError::new_err(format!(
            "the tensor is on device ({kind}, {device_id}), but copies are made on the CPU (1, 0): \
             make views with libsplit.split and copy those on the device"
        )))
    }

    fn elements(&self) -> usize {
        let extents = self.described.shape.iter();
        extents.map(|&extent| usize::try_from(extent).unwrap_or(0)).product()
    }

    /// The bytes of a packed tensor.
    ///
    /// # Safety
    /// It is packed and on the CPU, and nobody writes it meanwhile.
    pub unsafe fn memory(&self) -> &[u8] {
        match self.bytes_packed() {
            0 => &[],
            // SAFETY: the caller's promise.
            bytes => unsafe { core::slice::from_raw_parts(self.described.data.cast(), bytes) },
        }
    }

    /// The same, to be written.
    ///
    /// # Safety
    /// It is packed, on the CPU and writable, and nobody reads or writes it meanwhile.
    #[allow(clippy::mut_from_ref)] // the memory is not the tensor's
    pub unsafe fn memory_mut(&self) -> &mut [u8] {
        match self.bytes_packed() {
            0 => &mut [],
            // SAFETY: the caller's promise.
            bytes => unsafe { core::slice::from_raw_parts_mut(self.described.data.cast(), bytes) },
        }
    }

    fn bytes_packed(&self) -> usize {
        (self.elements() * usize::from(self.dtype.bits)).div_ceil(8)
    }

    pub fn is_packed(&self) -> bool {
        let Described { shape, strides, bit_offset, .. } = &self.described;
        let Some(packed) = packed(shape) else { return false };
        let same = |((&extent, stride), packed)| extent <= 1 || stride == packed;
        *bit_offset == 0
            && (self.elements() == 0 || shape.iter().zip(strides).zip(&packed).all(same))
    }

    /// The bytes of this packed tensor, taken for elements of another type.
    fn reinterpreted(&self, dtype: &'static DType, shape: Option<Numbers>) -> PyResult<Self> {
        if !self.is_packed() {
            let message = "the data is not packed: make it contiguous first";
            return Err(PyBufferError::new_err(message));
        }
        let bytes = self.bytes_packed();
        let bits = usize::from(dtype.bits);
        let shape = shape.unwrap_or_else(|| {
            let elements = bytes * 8 / bits;
            Numbers::from_slice(&[extent(elements)])
        });
        let elements = shape.iter().try_fold(1usize, |product, &extent| {
            usize::try_from(extent).ok().and_then(|extent| product.checked_mul(extent))
        });
        let needed = elements.and_then(|elements| elements.checked_mul(bits));
        let needed = needed.map(|bits| bits.div_ceil(8));
        let (true, Some(strides)) = (needed == Some(bytes), packed(&shape)) else {
            let needed = needed.map_or("more".into(), |bytes| bytes.to_string());
            return Err(PyValueError::new_err(format!(
                "data has {bytes} bytes, {} of shape {shape:?} need {needed}: give the shape that \
                 the bytes hold",
                dtype.name
            )));
        };
        let described =
            Described { dtype: dtype.carrier(), shape, strides, ..self.described.clone() };
        Ok(Self { memory: Arc::clone(&self.memory), described, dtype, ..*self })
    }

    /// A packed copy of it.
    pub fn copied(&self, py: Python<'_>) -> PyResult<Self> {
        self.check_cpu()?;
        let bytes = self.bytes_packed();
        let copy = Self::empty(self.dtype, &self.described.shape, bytes)?;
        let (mut from, mut to) = (self.described.clone(), copy.described.clone());
        for described in [&mut from, &mut to] {
            described.shape.insert(0, 1);
            described.strides.insert(0, 0);
        }
        let mut whole = Rule::new(libsplit_op::OPENVINO_SPLIT, 1, 0);
        whole.num_outputs = 1;
        let outputs = [to.tensor()];
        let copying = call::Copy {
            input: from.tensor(),
            rule: &whole,
            outputs: &outputs,
            executor: None,
            bytes,
        };
        // SAFETY: both are on the CPU, and nobody else knows the copy yet.
        unsafe { copying.run(py) }?;
        Ok(copy)
    }

    fn managed<M: ManagedTensorBase>(&self, flags: DlpackFlags) -> PyResult<Managed<M>> {
        let Described { data, bit_offset, shape, strides, .. } = &self.described;
        if *bit_offset != 0 {
            return Err(PyBufferError::new_err(format!(
                "the tensor begins {bit_offset} bits into a byte, which DLPack cannot express: make \
                 a copy with libsplit.copy"
            )));
        }
        let prepared = Dynamic::new(&shape[..], &strides[..]).prepare_as::<M>();
        let prepared = prepared.map_err(|error| PyBufferError::new_err(error.to_string()))?;
        let mut managed = prepared.initialize(Arc::clone(&self.memory));
        // DLPack: NULL where there are no elements.
        let data = if self.elements() == 0 { null_mut() } else { *data };
        managed.set_data(data).set_device(self.device).set_dtype(self.dtype.to_dlpack());
        // SAFETY: the memory is kept by the context; the flags are the tensor's.
        Ok(unsafe {
            managed.set_flags_unchecked(flags);
            managed.finish()
        })
    }

    /// Lets the producer make its work visible to the consumer's stream.
    fn synchronize(&self, stream: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
        let Some(stream) = stream else { return Ok(()) };
        let py = stream.py();
        if let Memory::Borrowed { producer: Some(producer), .. } = &*self.memory {
            let arguments = PyDict::new(py);
            arguments.set_item(intern!(py, "stream"), stream)?;
            producer.bind(py).call_method(intern!(py, "__dlpack__"), (), Some(&arguments))?;
            return Ok(());
        }
        let message = format!("stream is {stream}, but the CPU has no streams: pass None");
        Err(PyValueError::new_err(message))
    }
}

#[pymethods]
impl Tensor {
    #[new]
    #[pyo3(signature = (data, *, dtype=None, shape=None))]
    fn new(
        data: &Bound<'_, PyAny>,
        dtype: Option<&Bound<'_, PyAny>>,
        #[pyo3(from_py_with = extents)] shape: Option<Numbers>,
    ) -> PyResult<Self> {
        let tensor = match Array::of(data)? {
            Some(array) => Self::from_array(&array)?,
            None => Self::import(data)?.ok_or_else(|| no_tensor(data, "data"))?,
        };
        let dtype = dtype.map(named).transpose()?;
        if dtype.is_none() && shape.is_none() {
            return Ok(tensor);
        }
        tensor.reinterpreted(dtype.unwrap_or(tensor.dtype), shape)
    }

    /// The extents.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.described.shape)
    }

    /// The strides, in elements.
    #[getter]
    fn strides<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.described.strides)
    }

    /// The element type's name, as NumPy and ml_dtypes spell it.
    #[getter(dtype)]
    fn dtype_name(&self) -> &'static str {
        self.dtype.name
    }

    /// Whether consumers must not write to it.
    #[getter]
    fn readonly(&self) -> bool {
        self.access == Access::ReadOnly
    }

    /// For packed elements: the bit of the first byte at which the first element begins.
    #[getter]
    fn bit_offset(&self) -> u32 {
        self.described.bit_offset
    }

    /// The bytes of a packed tensor, as a tensor of uint8 over the same memory.
    fn bytes(&self) -> PyResult<Self> {
        match DType::named("uint8") {
            Some(bytes) => self.reinterpreted(bytes, None),
            None => Err(call::no_memory()),
        }
    }

    /// A NumPy array over the same memory; bfloat16 and float8 have the dtypes of ml_dtypes.
    fn numpy<'py>(this: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        let (py, tensor) = (this.py(), this.get());
        tensor.check_cpu()?;
        let name = tensor.dtype.name;
        if tensor.dtype.bits < 8 {
            return Err(PyTypeError::new_err(format!(
                "NumPy has no packed {name}: get the bytes with numpy.from_dlpack(tensor.bytes())"
            )));
        }
        let dtype = py.import("numpy")?.getattr("dtype")?;
        let known = match dtype.call1((name,)) {
            Err(_) => {
                let Ok(others) = py.import("ml_dtypes") else {
                    let message = format!("NumPy has {name} only with ml_dtypes: install it");
                    return Err(PyImportError::new_err(message));
                };
                dtype.call1((others.getattr(name)?,))?
            }
            Ok(known) => known,
        };
        let Described { data, shape, strides, .. } = &tensor.described;
        let size = i64::from(tensor.dtype.bits / 8);
        let strides: Numbers = strides.iter().map(|stride| stride * size).collect();
        let writable = tensor.access != Access::ReadOnly;
        crate::numpy::over(this.as_any(), &known, shape, &strides, *data, writable)
    }

    /// The device in DLPack's numbering; the CPU is (1, 0).
    fn __dlpack_device__(&self) -> (u32, i32) {
        (self.device.device_type.0, self.device.device_id)
    }

    /// The tensor as a DLPack capsule, a legacy one unless ``max_version`` is at least (1, 0).
    #[pyo3(signature = (*, stream=None, max_version=None, dl_device=None, copy=None))]
    fn __dlpack__<'py>(
        &self,
        py: Python<'py>,
        stream: Option<&Bound<'py, PyAny>>,
        max_version: Option<(u32, u32)>,
        dl_device: Option<(u32, i32)>,
        copy: Option<bool>,
    ) -> PyResult<Py<PyAny>> {
        let request =
            ExportRequest::parse(stream, max_version, dl_device, copy.filter(|&copy| !copy))?;
        let flags = match self.access {
            Access::ReadOnly if copy != Some(true) => DlpackFlags::READ_ONLY,
            _ => DlpackFlags::empty(),
        };
        request.validate_zero_copy(self.device, flags)?;
        self.synchronize(stream)?;
        let copied;
        let (tensor, flags) = if copy == Some(true) {
            copied = self.copied(py)?;
            (&copied, DlpackFlags::IS_COPIED)
        } else {
            (self, flags)
        };
        Ok(match request.abi() {
            ExportAbi::Versioned => {
                tensor.managed::<DLManagedTensorVersioned>(flags)?.into_pyobject(py)?.unbind()
            }
            ExportAbi::Legacy => {
                tensor.managed::<DLManagedTensor>(flags)?.into_pyobject(py)?.unbind()
            }
        })
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let name = self.dtype.name;
        Ok(format!("libsplit.Tensor(shape={}, dtype='{name}')", self.shape(py)?))
    }
}

/// The error for an object that is not a tensor.
pub fn no_tensor(object: &Bound<'_, PyAny>, argument: &str) -> PyErr {
    PyTypeError::new_err(format!(
        "{argument} has type {}: pass a NumPy array or a tensor with __dlpack__",
        object.get_type()
    ))
}

/// Pinned and managed memory of CUDA and ROCm is the CPU's too.
fn on_cpu(device: DLDevice) -> bool {
    matches!(
        device.device_type,
        DLDeviceType::CPU | DLDeviceType::CUDAHOST | DLDeviceType::ROCMHOST
    )
}

/// Reads the descriptor of an imported tensor.
fn read(tensor: &DLTensor) -> PyResult<(Described, &'static DType)> {
    // SAFETY: the producer's promise: `ndim` numbers behind each pointer.
    let (shape, strides) = unsafe { (tensor.shape(), tensor.strides()) };
    let wrong = |error: dlpark::tensor::Error| PyBufferError::new_err(error.to_string());
    let (shape, strides) = (Numbers::from_slice(shape.map_err(wrong)?), strides.map_err(wrong)?);
    let Some(dtype) = DType::from_dlpack(tensor.dtype) else {
        let DLDataTypeCode(code) = tensor.dtype.code;
        return Err(PyTypeError::new_err(format!(
            "the tensor's elements have DLPack's type code {code} with {} bits and {} lanes, which \
             libsplit does not support",
            tensor.dtype.bits, tensor.dtype.lanes
        )));
    };
    let strides = match strides {
        Some(strides) => Numbers::from_slice(strides),
        // Before 1.2, and here and there later: packed.
        None => packed(&shape).ok_or_else(call::no_memory)?,
    };
    let offset = usize::try_from(tensor.byte_offset).unwrap_or(usize::MAX);
    let data = if tensor.data.is_null() {
        null_mut::<c_void>()
    } else {
        tensor.data.wrapping_byte_add(offset)
    };
    Ok((Described { data, bit_offset: 0, dtype: dtype.carrier(), shape, strides }, dtype))
}

/// Row-major strides, in elements.
pub fn packed(shape: &[i64]) -> Option<Numbers> {
    let mut strides = Numbers::from_elem(1, shape.len());
    let mut stride = 1i64;
    for (axis, extent) in shape.iter().enumerate().rev() {
        strides[axis] = stride;
        stride = stride.checked_mul((*extent).max(1))?;
    }
    Some(strides)
}

/// The element type that an argument `dtype` names.
pub fn named(dtype: &Bound<'_, PyAny>) -> PyResult<&'static DType> {
    let name = match dtype.cast::<PyString>() {
        Ok(name) => name.clone().into_any(),
        // A dtype of NumPy's, else a type such as numpy.float32 or ml_dtypes.int4.
        Err(_) => dtype.getattr("name").or_else(|_| dtype.getattr("__name__"))?,
    };
    let name = name.extract::<String>()?;
    DType::named(&name).ok_or_else(|| {
        PyTypeError::new_err(format!(
            "dtype is '{name}', which libsplit does not know: use a name such as 'float32', \
             'bfloat16', 'float8_e4m3fn' or 'int4'"
        ))
    })
}
