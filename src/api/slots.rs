//! A slice to be written to, whether there are values in it yet or not.

use core::mem::MaybeUninit;

/// Places for elements. No place that holds a value ever loses it to none.
#[derive(Debug)]
pub(crate) struct Slots<'a, T>(&'a mut [MaybeUninit<T>]);

impl<T> Slots<'_, T> {
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// For the core to write elements to.
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
        // SAFETY: a `MaybeUninit` is laid out as what it may hold, and only values are written.
        Self(unsafe { &mut *(&raw mut *values as *mut [MaybeUninit<T>]) })
    }
}
