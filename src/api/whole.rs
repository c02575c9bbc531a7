//! Copying a whole view, for Rust callers: a split into one piece.

use super::element::Element;
use super::split::Split;
use super::view::{View, ViewMut};
use crate::error::Error;
use crate::operator::Operator;
use alloc::vec::Vec;

impl<T: Element> View<'_, T> {
    /// Returns the elements in row-major order.
    #[must_use]
    pub fn to_vec(&self) -> Vec<T> {
        if self.shape().is_empty() {
            return self.get(&[]).copied().into_iter().collect();
        }
        in_one().to_vecs(self).ok().and_then(|mut copies| copies.pop()).unwrap_or_default()
    }

    /// Copies the elements in row-major order to a slice of the same length.
    ///
    /// ```
    /// let data = [1u8, 2, 3, 4, 5, 6];
    /// let column = libsplit::View::strided(&data, 1, &[2], &[3])?;
    /// let mut two = [0; 2];
    /// column.copy_to(&mut two)?;
    /// assert_eq!(two, [2, 5]);
    /// # Ok::<(), libsplit::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SliceLen`] if the slice has a different length.
    pub fn copy_to(&self, target: &mut [T]) -> Result<(), Error> {
        let whole = ViewMut::packed(&mut *target, self.shape())?;
        if !self.shape().is_empty() {
            return in_one().copy(self, &mut [whole]);
        }
        // No operator accepts a scalar.
        target.iter_mut().zip(self.get(&[])).for_each(|(target, element)| *target = *element);
        Ok(())
    }
}

fn in_one() -> Split<'static> {
    Split::new(Operator::OpenVinoSplit1).num_outputs(1)
}
