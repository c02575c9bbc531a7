//! What a call asks for: an operator with its parameters.

use core::ptr::null;
use libsplit::ffi::{
    libsplit_dtype, libsplit_op, libsplit_params, libsplit_tensor, LIBSPLIT_FLAG_CLAMP_UNEVEN,
};
use smallvec::SmallVec;

/// The lengths of the pieces, as an operator takes them.
#[derive(Debug, Clone, Default)]
pub enum Lengths {
    #[default]
    Absent,
    /// The length of every piece.
    Scalar(i64),
    /// One for each piece.
    List(SmallVec<[i64; 8]>),
    /// An array's bytes, packed; operators look at the rank and the dtype.
    Array { bytes: Vec<u8>, shape: Vec<i64>, dtype: libsplit_dtype },
}

/// An operator and its parameters: what `libsplit_params` says, with memory of its own.
#[derive(Debug, Clone)]
pub struct Rule {
    pub op: libsplit_op,
    pub opset: i32,
    pub axis: i64,
    pub lengths: Lengths,
    pub num_outputs: i64,
    pub keepdims: bool,
    pub clamp_uneven: bool,
    /// Whether the operator's rules on element types apply.
    pub typed: bool,
    /// What the caller's argument for the lengths is called.
    pub argument: &'static str,
}

impl Rule {
    pub fn new(op: libsplit_op, opset: i32, axis: i64) -> Self {
        Self {
            op,
            opset,
            axis,
            lengths: Lengths::Absent,
            num_outputs: 0,
            keepdims: true,
            clamp_uneven: false,
            typed: true,
            argument: "split",
        }
    }

    /// How many pieces there are if the rule suits the tensor, where it says so itself.
    pub fn count(&self) -> Option<usize> {
        /// More are counted first, which may refuse them before there is memory for so many.
        const MANY: usize = 1 << 12;
        let count = match (&self.lengths, self.op) {
            (Lengths::List(lengths), _) => lengths.len(),
            (Lengths::Absent, libsplit_op::ONNX_SPLIT | libsplit_op::OPENVINO_SPLIT) => {
                usize::try_from(self.num_outputs).unwrap_or(0)
            }
            _ => 0,
        };
        (1..=MANY).contains(&count).then_some(count)
    }

    /// Calls `body` with the parameters as C takes them.
    pub fn with_params<T>(&self, body: impl FnOnce(&libsplit_params) -> T) -> T {
        let mut shape = [0];
        let mut split = libsplit_tensor {
            data: core::ptr::null_mut(),
            data_bytes: 0,
            shape: shape.as_mut_ptr(),
            strides: core::ptr::null_mut(),
            rank: 1,
            capacity: 0,
            dtype: libsplit_dtype::INT64,
            bit_offset: 0,
        };
        match &self.lengths {
            Lengths::Absent => {}
            Lengths::Scalar(length) => {
                split.data = core::ptr::from_ref(length).cast_mut().cast();
                split.rank = 0;
            }
            Lengths::List(lengths) => {
                split.data = lengths.as_ptr().cast_mut().cast();
                shape = [extent(lengths.len())];
                split.shape = shape.as_mut_ptr();
            }
            Lengths::Array { bytes, shape, dtype } => {
                split.data = bytes.as_ptr().cast_mut().cast();
                split.data_bytes = bytes.len();
                split.shape = shape.as_ptr().cast_mut();
                split.rank = i32::try_from(shape.len()).unwrap_or(i32::MAX);
                split.dtype = *dtype;
            }
        }
        let absent = matches!(self.lengths, Lengths::Absent);
        body(&libsplit_params {
            axis: self.axis,
            split: if absent { null() } else { &raw const split },
            num_outputs: self.num_outputs,
            keepdims: self.keepdims.into(),
            flags: if self.clamp_uneven { LIBSPLIT_FLAG_CLAMP_UNEVEN } else { 0 },
            ..libsplit_params::init(self.op, self.opset)
        })
    }
}

/// A number of elements, pieces or axes that is in memory, and so fits.
#[allow(clippy::cast_possible_wrap)]
pub fn extent(count: usize) -> i64 {
    count as i64
}
