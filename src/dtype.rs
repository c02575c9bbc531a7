//! Element types: the numbers, names and widths of ONNX `TensorProto.DataType`.

use core::fmt::{self, Write};

macro_rules! dtypes {
    ($($variant:ident = $number:literal, $bits:expr, $name:literal, $doc:literal;)*) => {
        /// An element type. The discriminants are those of ONNX `TensorProto.DataType`.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(i32)]
        #[non_exhaustive]
        pub enum DType {
            $(#[doc = $doc] $variant = $number,)*
        }

        impl DType {
            /// Every type, in the order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Returns the bits of one element, 2 to 128.
            #[must_use]
            // The table is as long as there are types; the test keeps the call free of panics.
            #[allow(clippy::indexing_slicing)]
            pub const fn bits(self) -> u32 {
                const BITS: &[u32] = &[0, $($bits),*];
                // The engine packs sub-byte elements of 4 and 2 bits, of which a byte has a whole number.
                $(const { assert!($bits == 2 || $bits == 4 || $bits % 8 == 0) })*
                let at = self as usize;
                if at < BITS.len() { BITS[at] } else { 0 }
            }

            /// Returns the type with this ONNX number, if there is one.
            #[must_use]
            pub const fn from_number(number: i32) -> Option<Self> {
                match number {
                    $($number => Some(Self::$variant),)*
                    _ => None,
                }
            }

            /// Returns the name of the type in ONNX `TensorProto.DataType`, NUL-terminated.
            // Out of line: a table that one place reads holds offsets, which need no relocations.
            #[inline(never)]
            pub(crate) const fn c_name(self) -> &'static core::ffi::CStr {
                match self { $(Self::$variant => $name,)* }
            }
        }
    };
}

dtypes! {
    Float = 1, 32, c"FLOAT", "IEEE 754 binary32.";
    Uint8 = 2, 8, c"UINT8", "Unsigned 8-bit integer.";
    Int8 = 3, 8, c"INT8", "Signed 8-bit integer.";
    Uint16 = 4, 16, c"UINT16", "Unsigned 16-bit integer.";
    Int16 = 5, 16, c"INT16", "Signed 16-bit integer.";
    Int32 = 6, 32, c"INT32", "Signed 32-bit integer.";
    Int64 = 7, 64, c"INT64", "Signed 64-bit integer.";
    String = 8, 2 * usize::BITS, c"STRING", "A string as an address and a size in bytes; splitting moves the pair, never the characters.";
    Bool = 9, 8, c"BOOL", "One byte, copied as it is.";
    Float16 = 10, 16, c"FLOAT16", "IEEE 754 binary16.";
    Double = 11, 64, c"DOUBLE", "IEEE 754 binary64.";
    Uint32 = 12, 32, c"UINT32", "Unsigned 32-bit integer.";
    Uint64 = 13, 64, c"UINT64", "Unsigned 64-bit integer.";
    Complex64 = 14, 64, c"COMPLEX64", "Two binary32 numbers.";
    Complex128 = 15, 128, c"COMPLEX128", "Two binary64 numbers.";
    Bfloat16 = 16, 16, c"BFLOAT16", "The upper half of a binary32.";
    Float8E4M3Fn = 17, 8, c"FLOAT8E4M3FN", "8-bit float, 4 exponent bits, finite.";
    Float8E4M3Fnuz = 18, 8, c"FLOAT8E4M3FNUZ", "8-bit float, 4 exponent bits, finite, no negative zero.";
    Float8E5M2 = 19, 8, c"FLOAT8E5M2", "8-bit float, 5 exponent bits.";
    Float8E5M2Fnuz = 20, 8, c"FLOAT8E5M2FNUZ", "8-bit float, 5 exponent bits, finite, no negative zero.";
    Uint4 = 21, 4, c"UINT4", "Unsigned 4-bit integer, packed low bits first.";
    Int4 = 22, 4, c"INT4", "Signed 4-bit integer, packed low bits first.";
    Float4E2M1 = 23, 4, c"FLOAT4E2M1", "4-bit float, packed low bits first.";
    Float8E8M0 = 24, 8, c"FLOAT8E8M0", "8-bit power of two.";
    Uint2 = 25, 2, c"UINT2", "Unsigned 2-bit integer, packed low bits first.";
    Int2 = 26, 2, c"INT2", "Signed 2-bit integer, packed low bits first.";
}

impl DType {
    /// Returns the name of the type in ONNX `TensorProto.DataType`.
    #[must_use]
    pub fn name(self) -> &'static str {
        self.c_name().to_str().unwrap_or_default()
    }

    /// Returns whether several elements share a byte.
    #[must_use]
    pub const fn is_sub_byte(self) -> bool {
        self.bits() < 8
    }

    /// Returns whether elements are whole numbers, the 4-bit and 2-bit ones included. BOOL is not.
    #[must_use]
    pub const fn is_integer(self) -> bool {
        use DType::{Int16, Int2, Int32, Int4, Int64, Int8};
        use DType::{Uint16, Uint2, Uint32, Uint4, Uint64, Uint8};
        matches!(self, Uint8 | Int8 | Uint16 | Int16 | Int32 | Int64)
            || matches!(self, Uint32 | Uint64 | Uint4 | Int4 | Uint2 | Int2)
    }
}

impl fmt::Display for DType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.c_name().to_bytes().iter().try_for_each(|byte| f.write_char(char::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use super::DType;

    #[test]
    fn numbers_are_onnx_numbers_without_gaps() {
        for (index, dtype) in DType::ALL.iter().enumerate() {
            let number = i32::try_from(index).unwrap() + 1;
            assert_eq!(*dtype as i32, number);
            assert_eq!(DType::from_number(number), Some(*dtype));
        }
        for number in [i32::MIN, -1, 0, 27, i32::MAX] {
            assert_eq!(DType::from_number(number), None);
        }
    }
}
