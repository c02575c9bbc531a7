//! What the engine that is about to be replaced takes from the rest of the library as it was.

use crate::error::{number, Error};
use crate::parts::{Iter, OutputStrides, Part, Transfer};
use core::mem::MaybeUninit;

pub(super) const MOST_AXES: usize = 12;
pub(super) const FEW_PARTS: usize = 16;
pub(super) const ROOM: [MaybeUninit<Part>; FEW_PARTS] =
    [const { MaybeUninit::uninit() }; FEW_PARTS];

/// That a call is refused; the reason is in the [`Report`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Fault(());

/// Why a call is refused.
#[derive(Debug, Default)]
pub(super) struct Report(Option<Error>);

impl Report {
    pub(super) fn refuse<T>(&mut self, error: Error) -> Result<T, Fault> {
        self.0 = Some(error);
        Err(Fault(()))
    }

    pub(super) fn error(self, _: Fault) -> Error {
        self.0.unwrap_or(Error::Internal)
    }
}

impl Iter<'_> {
    #[inline(never)]
    pub(super) fn longest(self, extent: i64) -> i64 {
        let (count, mut longest) = (number(self.most()), 0);
        for part in self {
            longest = part.len.max(longest);
            if longest.saturating_mul(count) == extent {
                break;
            }
        }
        longest
    }

    #[inline(never)]
    pub(super) fn list<'l>(&mut self, room: &'l mut [MaybeUninit<Part>]) -> &'l [Part] {
        let (mut len, most) = (0, self.most());
        for (slot, part) in room.iter_mut().take(most).zip(self) {
            slot.write(part);
            len += 1;
        }
        // SAFETY: so many have been written.
        unsafe { core::slice::from_raw_parts(room.as_ptr().cast(), len) }
    }

    pub(super) fn most(&self) -> usize {
        match self {
            Self::Listed(parts) => parts.len(),
            Self::Ruled { pieces, .. } => pieces.most(),
            Self::Planned { records, .. } => records.len(),
        }
    }
}

impl OutputStrides<'_> {
    pub(super) fn are_alike(&self, one: usize, other: usize) -> bool {
        match (self.get(one), self.get(other)) {
            (None, None) => true,
            (Some(one), Some(other)) => one.iter().zip(other).all(|(one, other)| one == other),
            _ => false,
        }
    }
}

impl Transfer<'_> {
    pub(super) fn apart(&self) -> usize {
        let strides = self.geometry.shape.iter().zip(self.strides.unwrap_or_default());
        let steps = strides.filter(|(extent, stride)| **extent > 1 && **stride != 0);
        let least = steps.map(|(_, stride)| stride.unsigned_abs()).min();
        least.map_or(1, |least| usize::try_from(least).unwrap_or(usize::MAX))
    }

    pub(super) fn part(&self, at: usize) -> Option<Part> {
        self.parts.some(at..at + 1).next()
    }

    pub(super) fn is_packed(&self) -> bool {
        self.strides.is_none()
    }
}
