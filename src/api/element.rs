//! The Rust types that may be elements of a tensor.

use crate::dtype::DType;
use half::{bf16, f16};
use num_complex::Complex;

/// A Rust type that may be the element of a tensor.
///
/// # Safety
/// Values must be plain bytes that may be copied as such, without padding, and have exactly
/// `DTYPE.bits()` bits, at least 8. Implement it for a type of your own to split, for example, 8-bit floats:
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq)]
/// #[repr(transparent)]
/// struct F8E5M2(u8);
///
/// // SAFETY: one byte, like FLOAT8E5M2.
/// unsafe impl libsplit::Element for F8E5M2 {
///     const DTYPE: libsplit::DType = libsplit::DType::Float8E5M2;
/// }
///
/// let data = [0x3C, 0x40, 0x44, 0x48].map(F8E5M2);
/// let halves = libsplit::Split::new(libsplit::Operator::OpenVinoSplit1)
///     .num_outputs(2)
///     .to_vecs(&libsplit::View::packed(&data, &[4])?)?;
/// assert_eq!(halves[1], [F8E5M2(0x44), F8E5M2(0x48)]);
/// # Ok::<(), libsplit::Error>(())
/// ```
pub unsafe trait Element: Copy {
    /// The element type.
    const DTYPE: DType;
}

macro_rules! elements {
    ($($t:ty => $dtype:ident),* $(,)?) => {$(
        const _: () = assert!(8 * size_of::<$t>() == DType::$dtype.bits() as usize);
        // SAFETY: plain bytes of the size that was just asserted; a copy of a `&str` borrows the same characters.
        unsafe impl Element for $t { const DTYPE: DType = DType::$dtype; }
    )*};
}

elements! {
    f32 => Float, f64 => Double, f16 => Float16, bf16 => Bfloat16,
    u8 => Uint8, u16 => Uint16, u32 => Uint32, u64 => Uint64,
    i8 => Int8, i16 => Int16, i32 => Int32, i64 => Int64,
    bool => Bool, Complex<f32> => Complex64, Complex<f64> => Complex128, &str => String,
}

#[cfg(target_pointer_width = "64")]
elements! { usize => Uint64, isize => Int64 }
#[cfg(target_pointer_width = "32")]
elements! { usize => Uint32, isize => Int32 }
