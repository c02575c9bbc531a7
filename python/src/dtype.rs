//! Element types: their names, and their numbers in ONNX and in DLPack.

use dlpark::ffi::{DLDataType, DLDataTypeCode as Code};
use libsplit::ffi::libsplit_dtype;

/// An element type that libsplit knows by name.
#[derive(Debug)]
pub struct DType {
    /// As NumPy and `ml_dtypes` spell it.
    pub name: &'static str,
    /// Its number in ONNX `TensorProto.DataType`, where it has one.
    pub onnx: Option<i32>,
    /// Its type code in DLPack.
    pub code: Code,
    /// Bits of one element.
    pub bits: u8,
}

const fn dtype(name: &'static str, onnx: i32, code: Code, bits: u8) -> DType {
    DType { name, onnx: if onnx == 0 { None } else { Some(onnx) }, code, bits }
}

/// All of them but STRING, whose elements no two libraries lay out alike.
static ALL: [DType; 28] = [
    dtype("float32", 1, Code::FLOAT, 32),
    dtype("uint8", 2, Code::UINT, 8),
    dtype("int8", 3, Code::INT, 8),
    dtype("uint16", 4, Code::UINT, 16),
    dtype("int16", 5, Code::INT, 16),
    dtype("int32", 6, Code::INT, 32),
    dtype("int64", 7, Code::INT, 64),
    dtype("bool", 9, Code::BOOL, 8),
    dtype("float16", 10, Code::FLOAT, 16),
    dtype("float64", 11, Code::FLOAT, 64),
    dtype("uint32", 12, Code::UINT, 32),
    dtype("uint64", 13, Code::UINT, 64),
    dtype("complex64", 14, Code::COMPLEX, 64),
    dtype("complex128", 15, Code::COMPLEX, 128),
    dtype("bfloat16", 16, Code::BFLOAT, 16),
    dtype("float8_e4m3fn", 17, Code::FLOAT8_E4M3FN, 8),
    dtype("float8_e4m3fnuz", 18, Code::FLOAT8_E4M3FNUZ, 8),
    dtype("float8_e5m2", 19, Code::FLOAT8_E5M2, 8),
    dtype("float8_e5m2fnuz", 20, Code::FLOAT8_E5M2FNUZ, 8),
    dtype("uint4", 21, Code::UINT, 4),
    dtype("int4", 22, Code::INT, 4),
    dtype("float4_e2m1fn", 23, Code::FLOAT4_E2M1FN, 4),
    dtype("float8_e8m0fnu", 24, Code::FLOAT8_E8M0FNU, 8),
    dtype("uint2", 25, Code::UINT, 2),
    dtype("int2", 26, Code::INT, 2),
    dtype("float8_e3m4", 0, Code::FLOAT8_E3M4, 8),
    dtype("float8_e4m3", 0, Code::FLOAT8_E4M3, 8),
    dtype("float8_e4m3b11fnuz", 0, Code::FLOAT8_E4M3B11FNUZ, 8),
];

impl DType {
    /// The element type of this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        ALL.iter().find(|dtype| dtype.name == name)
    }

    /// The element type that DLPack describes so.
    pub fn from_dlpack(dtype: DLDataType) -> Option<&'static Self> {
        let same = |known: &&DType| known.code == dtype.code && known.bits == dtype.bits;
        ALL.iter().find(same).filter(|_| dtype.lanes == 1)
    }

    /// How DLPack describes it.
    pub fn to_dlpack(&self) -> DLDataType {
        DLDataType::scalar(self.code, self.bits)
    }

    /// The type that libsplit moves its bytes as, where no operator asks what they mean.
    pub fn carrier(&self) -> libsplit_dtype {
        match self.bits {
            2 => libsplit_dtype::UINT2,
            4 => libsplit_dtype::UINT4,
            bits => carrier(usize::from(bits) / 8).unwrap_or(libsplit_dtype::UINT8),
        }
    }
}

/// The type that moves elements of so many bytes, if there is one.
pub fn carrier(bytes: usize) -> Option<libsplit_dtype> {
    match bytes {
        1 => Some(libsplit_dtype::UINT8),
        2 => Some(libsplit_dtype::UINT16),
        4 => Some(libsplit_dtype::UINT32),
        8 => Some(libsplit_dtype::UINT64),
        16 => Some(libsplit_dtype::COMPLEX128),
        _ => None,
    }
}
