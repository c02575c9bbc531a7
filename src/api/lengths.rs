//! Lengths from Rust: lists and single numbers of any type that may be an element.

use super::element::Element;
use crate::error::number;
use crate::lengths::Lengths;
use alloc::boxed::Box;
use alloc::vec::Vec;

impl<'a> Lengths<'a> {
    /// Makes a list with one entry for each piece. Integers may be of any type; only Split-1 takes floats, and only if
    /// the input has the same type.
    #[must_use]
    pub fn list<T: Element>(lengths: &'a [T]) -> Self {
        let (data, len) = (lengths.as_ptr().cast(), Some(number(lengths.len())));
        // SAFETY: a slice, which is borrowed for as long.
        let mut list = unsafe { Self::from_raw(data, 0, T::DTYPE.bits().into(), len, T::DTYPE) };
        list.are_rust_integers = T::DTYPE.is_integer();
        list
    }

    /// Makes a scalar: SplitToSequence's length of every piece.
    #[must_use]
    pub fn scalar<T: Element>(length: &'a T) -> Self {
        let mut scalar = Self::list(core::slice::from_ref(length));
        scalar.is_scalar = true;
        scalar
    }
}

macro_rules! from_lists {
    ($($list:ty $(, $generic:ident: $type:ty)?;)*) => {$(
        impl<'a, T: Element, $(const $generic: $type)?> From<&'a $list> for Lengths<'a> {
            fn from(lengths: &'a $list) -> Self {
                Self::list(lengths)
            }
        }
    )*};
}
from_lists! { [T]; [T; N], N: usize; Vec<T>; Box<[T]>; }
