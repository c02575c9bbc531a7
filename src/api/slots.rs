//! A slice to write to, which may be uninitialised.

use core::mem::MaybeUninit;

/// Places for elements. A place that has been initialised always stays so.
#[derive(Debug)]
pub(crate) struct Slots<'a, T>(&'a mut [MaybeUninit<T>]);

impl<T> Slots<'_, T> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// The address that the core writes elements to.
    pub(crate) fn as_mut_ptr(&mut self) -> *mut T {
        self.0.as_mut_ptr().cast()
    }
}

impl<'a, T> From<&'a mut [MaybeUninit<T>]> for Slots<'a, T> {
    fn from(slots: &'a mut [MaybeUninit<T>]) -> Self {
        Self(slots)
    }
}

impl<'a, T> From<&'a mut [T]> for Slots<'a, T> {
    fn from(values: &'a mut [T]) -> Self {
        // SAFETY: a `MaybeUninit<T>` has the layout of a `T`, and only initialised values are written.
        Self(unsafe { &mut *(&raw mut *values as *mut [MaybeUninit<T>]) })
    }
}
