//! Calls into the C functions as a C program would make them, from owned arrays.
#![allow(dead_code)] // each test uses a part

use libsplit::ffi::{
    libsplit_copy, libsplit_count, libsplit_dtype, libsplit_error, libsplit_executor,
    libsplit_infer, libsplit_op, libsplit_params, libsplit_status, libsplit_tensor, libsplit_view,
};
use std::ffi::CStr;
use std::ptr::{from_ref, null, null_mut};

/// A descriptor and the arrays that it points to. The data, if any, is somebody else's.
#[derive(Clone)]
pub struct Tensor {
    pub shape: Vec<i64>,
    pub strides: Option<Vec<i64>>,
    pub data: *mut u8,
    pub data_bytes: usize,
    pub dtype: i32,
    pub bit_offset: u32,
}

impl Tensor {
    pub fn new(dtype: i32, shape: &[i64]) -> Self {
        Self {
            shape: shape.to_vec(),
            strides: None,
            data: null_mut(),
            data_bytes: 0,
            dtype,
            bit_offset: 0,
        }
    }

    pub fn at(self, data: *const u8, data_bytes: usize) -> Self {
        Self { data: data.cast_mut(), data_bytes, ..self }
    }

    pub fn descriptor(&self) -> libsplit_tensor {
        libsplit_tensor {
            data: self.data.cast(),
            data_bytes: self.data_bytes,
            shape: self.shape.as_ptr().cast_mut(),
            strides: self.strides.as_ref().map_or(null_mut(), |s| s.as_ptr().cast_mut()),
            rank: self.shape.len().try_into().unwrap(),
            capacity: 0,
            dtype: libsplit_dtype(self.dtype),
            bit_offset: self.bit_offset,
        }
    }
}

pub fn params(op: libsplit_op, opset: i32) -> libsplit_params {
    libsplit_params::init(op, opset)
}

/// A status with its message, for assertions that tell why.
#[derive(Debug, PartialEq)]
pub struct Failure {
    pub status: i32,
    pub message: String,
}

/// Makes a call that takes an error structure and checks what every call promises of it.
pub fn call(body: impl FnOnce(*mut libsplit_error) -> libsplit_status) -> Result<(), Failure> {
    let mut error = libsplit_error {
        status: libsplit_status(77),
        output_index: 77,
        expected: 77,
        actual: 77,
        message: [77; 240],
        ..libsplit_error::INIT
    };
    let status = body(&mut error);
    assert_eq!(status, error.status);
    let message = error.message.map(|c| u8::from_ne_bytes(c.to_ne_bytes()));
    let message = CStr::from_bytes_until_nul(&message).expect("a NUL").to_str().expect("UTF-8");
    assert!(message.len() < 230, "a message is about to be cut: {message}");
    assert_eq!(status == libsplit_status::OK, message.is_empty(), "{message}");
    if status == libsplit_status::OK {
        Ok(())
    } else {
        Err(Failure { status: status.0, message: message.to_owned() })
    }
}

pub fn count(input: &Tensor, params: &libsplit_params) -> Result<usize, Failure> {
    let mut count = usize::MAX;
    call(|error| unsafe { libsplit_count(&input.descriptor(), params, &mut count, error) })?;
    Ok(count)
}

pub fn copy(
    input: &Tensor,
    params: &libsplit_params,
    outputs: &[libsplit_tensor],
    executor: Option<&libsplit_executor>,
) -> Result<(), Failure> {
    call(|error| unsafe {
        let (outputs, count) = (outputs.as_ptr(), outputs.len());
        let executor = executor.map_or(null(), from_ref);
        libsplit_copy(&input.descriptor(), params, outputs, count, executor, error)
    })
}

/// What infer or view writes, in arrays with a canary past their end.
pub struct Described {
    pub shapes: Vec<Vec<i64>>,
    pub strides: Vec<Vec<i64>>,
    pub descriptors: Vec<libsplit_tensor>,
}

const CANARY: i64 = 0x5AFE_5AFE_5AFE;

fn describe(
    function: unsafe extern "C" fn(
        *const libsplit_tensor,
        *const libsplit_params,
        *mut libsplit_tensor,
        usize,
        *mut libsplit_error,
    ) -> libsplit_status,
    input: &Tensor,
    params: &libsplit_params,
    outputs: usize,
    rank: usize,
) -> Result<Described, Failure> {
    let mut shapes = vec![vec![CANARY; rank + 1]; outputs];
    let mut strides = shapes.clone();
    let mut descriptors: Vec<libsplit_tensor> = (shapes.iter_mut().zip(&mut strides))
        .map(|(shape, strides)| {
            let mut empty = Tensor::new(0, &[]).descriptor();
            empty.shape = shape.as_mut_ptr();
            empty.strides = strides.as_mut_ptr();
            empty.capacity = rank.try_into().unwrap();
            empty
        })
        .collect();
    call(|error| unsafe {
        function(&input.descriptor(), params, descriptors.as_mut_ptr(), outputs, error)
    })?;
    for array in shapes.iter_mut().chain(&mut strides) {
        assert_eq!(array.pop(), Some(CANARY), "written past the capacity");
    }
    for descriptor in &descriptors {
        assert_eq!(usize::try_from(descriptor.rank), Ok(rank));
        assert_eq!(descriptor.dtype.0, input.dtype);
    }
    Ok(Described { shapes, strides, descriptors })
}

pub fn infer(
    input: &Tensor,
    params: &libsplit_params,
    outputs: usize,
    rank: usize,
) -> Result<Described, Failure> {
    describe(libsplit_infer, input, params, outputs, rank)
}

pub fn view(
    input: &Tensor,
    params: &libsplit_params,
    outputs: usize,
    rank: usize,
) -> Result<Described, Failure> {
    describe(libsplit_view, input, params, outputs, rank)
}

impl Tensor {
    /// The descriptor of an output that is not wanted: all zero.
    pub fn unwanted() -> libsplit_tensor {
        let mut zero = Self::new(0, &[]).descriptor();
        zero.shape = null_mut();
        zero
    }
}
