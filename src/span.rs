//! Ranges of addresses.

/// The bytes from `start` up to `end`, which is one past the highest.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    /// Nothing: the hull of this and any other span is the other one.
    pub(crate) const NOWHERE: Self = Self { start: usize::MAX, end: 0 };

    /// Returns where an array lies; nowhere if the pointer is NULL.
    pub(crate) fn of_array<T>(array: *const T, len: usize) -> Self {
        let start = array as usize;
        if array.is_null() {
            return Self::NOWHERE;
        }
        // An array does not wrap around. A made-up length is refused where the array is read.
        Self { start, end: start.wrapping_add(len.wrapping_mul(size_of::<T>())) }
    }

    /// Returns where a slice lies.
    pub(crate) fn of_slice<T>(slice: &[T]) -> Self {
        Self::of_array(slice.as_ptr(), slice.len())
    }

    /// Returns whether two spans have a byte in common.
    pub(crate) fn intersects(self, other: Self) -> bool {
        !self.is_apart(other) && !self.is_empty() && !other.is_empty()
    }

    /// Returns whether one lies above the other. False for an empty span that lies within the other.
    pub(crate) fn is_apart(self, other: Self) -> bool {
        other.end <= self.start || self.end <= other.start
    }

    /// Returns the span from the lowest to the highest byte of both.
    pub(crate) fn hull(self, other: Self) -> Self {
        Self { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Returns the number of bytes of a span that is not empty.
    pub(crate) fn len(self) -> usize {
        self.end.wrapping_sub(self.start)
    }

    pub(crate) fn is_empty(self) -> bool {
        self.start >= self.end
    }
}
