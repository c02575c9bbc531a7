//! Values of ONNX Runtime as tensors of libsplit.

use crate::ort::{ort_call, Error, Ort};
use core::ffi::c_void;
use core::ptr;
use libsplit::ffi::{libsplit_dtype, libsplit_dtype_bits, libsplit_tensor};
use ort_sys::{ONNXTensorElementDataType as OrtDtype, OrtKernelContext, OrtTypeInfo, OrtValue};
use smallvec::SmallVec;

/// Extents; on the stack as long as there are not more than models usually have.
pub type Shape = SmallVec<[i64; 8]>;

/// Where `axis` is in `shape`, counted from the end if it is negative; `None` out of bounds.
pub fn axis_index(axis: i64, shape: &[i64]) -> Option<usize> {
    let rank = i64::try_from(shape.len()).ok()?;
    let index = if axis < 0 { axis.checked_add(rank)? } else { axis };
    index.try_into().ok().filter(|index| *index < shape.len())
}

/// A tensor that a node is given.
pub struct Input {
    pub value: *const OrtValue,
    pub dtype: libsplit_dtype,
    pub shape: Shape,
    /// NULL for strings, whose characters only ONNX Runtime can get at.
    pub data: *mut c_void,
}

impl Input {
    /// Input `index` of the node that is being run; `None` where an optional one is absent.
    ///
    /// # Safety
    /// `context` must be that of the running node, and `index` below its number of inputs.
    pub unsafe fn get(
        ort: Ort,
        context: *mut OrtKernelContext,
        index: usize,
    ) -> Result<Option<Self>, Error> {
        let mut value = ptr::null();
        // SAFETY: the caller's promise.
        unsafe { ort_call!(ort, KernelContext_GetInput, context, index, &raw mut value) }?;
        if value.is_null() {
            return Ok(None);
        }
        // SAFETY: ONNX Runtime lets only tensors through to where this adapter asks for them.
        unsafe { Self::of(ort, value) }.map(Some)
    }

    /// # Safety
    /// `value` must be a tensor.
    pub unsafe fn of(ort: Ort, value: *const OrtValue) -> Result<Self, Error> {
        // SAFETY: the caller's promise.
        let (dtype, shape) = unsafe { dtype_and_shape(ort, value) }?;
        let dtype = from_ort(dtype)?;
        let mut data = ptr::null_mut();
        if dtype != libsplit_dtype::STRING {
            // SAFETY: a tensor; inputs are only read.
            unsafe { ort_call!(ort, GetTensorMutableData, value.cast_mut(), &raw mut data) }?;
        }
        Ok(Self { value, dtype, shape, data })
    }

    /// One of which nothing but the shape is known.
    pub fn without_data(dtype: i32, shape: Shape) -> Result<Self, Error> {
        Ok(Self { value: ptr::null(), dtype: from_ort(dtype)?, shape, data: ptr::null_mut() })
    }

    /// The elements; none of strings.
    pub fn bytes(&self) -> &[u8] {
        let extents = self.shape.iter().map(|&extent| usize::try_from(extent).unwrap_or(0));
        let count = extents.product::<usize>() * libsplit_dtype_bits(self.dtype) as usize / 8;
        if self.data.is_null() || count == 0 {
            return &[];
        }
        // SAFETY: the tensor's own elements, which live as long as the run, and so this.
        unsafe { core::slice::from_raw_parts(self.data.cast(), count) }
    }

    /// How libsplit sees it. Borrows the shape.
    pub fn descriptor(&self) -> libsplit_tensor {
        libsplit_tensor {
            data: self.data,
            shape: self.shape.as_ptr().cast_mut(),
            // Too many axes for an i32 are too many for libsplit, too.
            rank: i32::try_from(self.shape.len()).unwrap_or(i32::MAX),
            dtype: self.dtype,
            ..libsplit_tensor::ZERO
        }
    }
}

/// The element type of a value, and the extents that the model declares: -1 for an unknown extent, and no
/// axis for an unknown shape, as for a scalar.
///
/// # Safety
/// `info` must be that of a value, and have lived until now.
pub unsafe fn declared(ort: Ort, info: *const OrtTypeInfo) -> Result<(i32, Shape), Error> {
    let (mut tensor, mut dtype, mut rank, mut shape) = (ptr::null(), 0i32, 0, Shape::new());
    // SAFETY: the caller's promise; what is got lives as long.
    unsafe {
        ort_call!(ort, CastTypeInfoToTensorInfo, info, &raw mut tensor)?;
        if !tensor.is_null() {
            let out = (&raw mut dtype).cast::<OrtDtype>();
            ort_call!(ort, GetTensorElementType, tensor, out)?;
            ort_call!(ort, GetDimensionsCount, tensor, &raw mut rank)?;
            shape.resize(rank, 0);
            ort_call!(ort, GetDimensions, tensor, shape.as_mut_ptr(), rank)?;
        }
    }
    Ok((dtype, shape))
}

/// # Safety
/// `value` must be a tensor.
unsafe fn dtype_and_shape(ort: Ort, value: *const OrtValue) -> Result<(i32, Shape), Error> {
    // An i32 in the place of the enum: a newer ONNX Runtime may have more of them.
    let mut dtype = 0i32;
    let out = (&raw mut dtype).cast::<OrtDtype>();
    if ort.version >= 24 {
        let (mut extents, mut rank) = (ptr::null(), 0);
        // SAFETY: the caller's promise; API 24 has the function.
        unsafe {
            ort_call!(
                ort,
                GetTensorElementTypeAndShapeDataReference,
                value,
                out,
                &raw mut extents,
                &raw mut rank
            )
        }?;
        if rank == 0 {
            return Ok((dtype, Shape::new()));
        }
        // SAFETY: the value's own extents.
        return Ok((dtype, unsafe { core::slice::from_raw_parts(extents, rank) }.into()));
    }
    let mut info = ptr::null_mut();
    // SAFETY: the caller's promise.
    unsafe { ort_call!(ort, GetTensorTypeAndShape, value, &raw mut info) }?;
    let mut rank = 0;
    let mut shape = Shape::new();
    // SAFETY: the tensor's own information.
    let result = unsafe {
        ort_call!(ort, GetTensorElementType, info, out)
            .and_then(|()| ort_call!(ort, GetDimensionsCount, info, &raw mut rank))
            .and_then(|()| {
                shape.resize(rank, 0);
                ort_call!(ort, GetDimensions, info, shape.as_mut_ptr(), rank)
            })
    };
    // SAFETY: it is ours, and not used any more.
    unsafe { ((*ort.table()).ReleaseTensorTypeAndShapeInfo)(info) };
    result.map(|()| (dtype, shape))
}

/// Element types by ONNX Runtime's numbers, which are ONNX's only up to 23.
fn from_ort(dtype: i32) -> Result<libsplit_dtype, Error> {
    match dtype {
        1..=23 => Ok(libsplit_dtype(dtype)),
        24 => Ok(libsplit_dtype::UINT2),
        25 => Ok(libsplit_dtype::INT2),
        26 => Ok(libsplit_dtype::FLOAT8E8M0),
        _ => Err(Error::Refused(format!("element type {dtype} is not known to this version"))),
    }
}

/// Allocates output `index`; NULL if nothing uses it.
///
/// # Safety
/// `context` must be that of the running node, and `index` below its number of outputs.
pub unsafe fn output(
    ort: Ort,
    context: *mut OrtKernelContext,
    index: usize,
    shape: &[i64],
) -> Result<*mut OrtValue, Error> {
    let (mut value, rank) = (ptr::null_mut(), shape.len());
    // SAFETY: the caller's promise.
    unsafe {
        ort_call!(
            ort,
            KernelContext_GetOutput,
            context,
            index,
            shape.as_ptr(),
            rank,
            &raw mut value
        )
    }?;
    Ok(value)
}

/// Where the elements of an output lie.
///
/// # Safety
/// `value` must be a tensor, not one of strings.
pub unsafe fn data(ort: Ort, value: *mut OrtValue) -> Result<*mut c_void, Error> {
    let mut data = ptr::null_mut();
    // SAFETY: the caller's promise.
    unsafe { ort_call!(ort, GetTensorMutableData, value, &raw mut data) }?;
    Ok(data)
}
