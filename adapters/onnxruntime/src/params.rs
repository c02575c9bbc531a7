//! A node's attributes and lengths as libsplit's parameters. Nothing of ONNX Runtime is in here, so
//! that the fuzz target `onnxruntime` can do without it.

use core::ptr;
use libsplit::ffi::{libsplit_dtype, libsplit_op, libsplit_params, libsplit_tensor};

/// Whose rules a node follows.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Rules {
    /// ONNX Split of this version, and its element types.
    Onnx(i32),
    /// ONNX Split of any version, as the node's attributes and inputs have it, of any type.
    AnySplit,
    /// `OpenVINO` `VariadicSplit`.
    VariadicSplit,
}

/// What a node says of itself, once and for all its runs.
#[derive(Debug)]
pub struct Attributes {
    pub rules: Rules,
    pub axis: i64,
    /// 0 = absent.
    pub num_outputs: i64,
    /// The attribute `split` of the older versions; empty = absent.
    pub lengths: Vec<i64>,
    /// How many outputs the node has.
    pub outputs: usize,
}

impl Attributes {
    /// The lengths of a run: those that the node is given as an `input`, with their shape, or else
    /// the attribute, whose shape is `count`. An empty list is as good as none, as it is for ONNX
    /// Runtime.
    pub fn lengths(
        &self,
        input: Option<(libsplit_tensor, &[i64])>,
        count: &[i64],
    ) -> Option<libsplit_tensor> {
        let input = input.filter(|(_, shape)| *shape != [0]);
        input.map(|(lengths, _)| lengths).or_else(|| self.lengths_attribute(count))
    }

    fn lengths_attribute(&self, count: &[i64]) -> Option<libsplit_tensor> {
        (!self.lengths.is_empty()).then(|| libsplit_tensor {
            data: self.lengths.as_ptr().cast_mut().cast(),
            shape: count.as_ptr().cast_mut(),
            rank: 1,
            dtype: libsplit_dtype::INT64,
            ..libsplit_tensor::ZERO
        })
    }

    /// The parameters of a run with these lengths.
    pub fn params(&self, lengths: Option<&libsplit_tensor>) -> libsplit_params {
        let (op, opset) = match self.rules {
            Rules::Onnx(version) => (libsplit_op::ONNX_SPLIT, version),
            // Before version 18, equal parts are equal.
            Rules::AnySplit if lengths.is_none() && self.num_outputs == 0 => {
                (libsplit_op::ONNX_SPLIT, 13)
            }
            Rules::AnySplit => (libsplit_op::ONNX_SPLIT, 18),
            Rules::VariadicSplit => (libsplit_op::OPENVINO_VARIADIC_SPLIT, 1),
        };
        libsplit_params {
            axis: self.axis,
            split: lengths.map_or(ptr::null(), ptr::from_ref),
            num_outputs: match lengths {
                // Both are refused by libsplit.
                Some(_) => self.num_outputs,
                // As ONNX Runtime does: what counts is how many outputs the node has.
                None => self.outputs.try_into().unwrap_or(i64::MAX),
            },
            ..libsplit_params::init(op, opset)
        }
    }

    /// The type to copy as: ONNX Split has no 8-bit floats, but splitting does not care.
    pub fn dtype(&self, dtype: libsplit_dtype) -> libsplit_dtype {
        match dtype {
            libsplit_dtype::FLOAT8E4M3FN
            | libsplit_dtype::FLOAT8E4M3FNUZ
            | libsplit_dtype::FLOAT8E5M2
            | libsplit_dtype::FLOAT8E5M2FNUZ
            | libsplit_dtype::FLOAT8E8M0
                if self.rules == Rules::AnySplit =>
            {
                libsplit_dtype::UINT8
            }
            dtype => dtype,
        }
    }
}
