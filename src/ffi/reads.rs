//! The memory of the caller's that a call reads, which nothing that it writes may lie over.

use super::parse::Call;
use super::types::{libsplit_error, libsplit_executor};
use crate::error::Which;
use crate::overlap::few::Few;
use crate::span::Span;
#[cfg(all(feature = "alloc", not(feature = "capi")))]
use core::ptr::null;

/// The structures and arrays of a call, apart from the outputs'.
#[derive(Clone, Copy)]
pub(crate) struct Reads<'a> {
    /// `None`: nothing but what a borrow checker has seen to.
    call: Option<&'a Call<'a>>,
    error: *const libsplit_error,
    executor: *const libsplit_executor,
}

impl<'a> Reads<'a> {
    #[cfg(all(feature = "alloc", not(feature = "capi")))]
    pub(crate) fn nothing() -> Self {
        Self { call: None, error: null(), executor: null() }
    }

    #[inline(always)]
    pub(super) fn new(
        call: &'a Call<'a>,
        error: *const libsplit_error,
        executor: *const libsplit_executor,
    ) -> Self {
        Self { call: Some(call), error, executor }
    }

    /// Whether something holds for each of them: whose it is, and where it lies.
    #[inline(always)]
    fn all(&self, mut holds: impl FnMut(Which, Span) -> bool) -> bool {
        let Some(call) = self.call else { return true };
        let rank = call.input.shape.len();
        // SAFETY: parsed before. Strides that are not looked at are the caller's all the same.
        let strides = unsafe { (*call.at).strides };
        // SAFETY: as above; the size comes first, and the structure is as long as it says.
        let params = Span::of_bytes(call.params, unsafe { (*call.params).struct_size });
        holds(Which::Params, params)
            && holds(Which::Input, Span::of(call.at))
            && holds(Which::Input, Span::of_slice(call.input.shape))
            && (strides.is_null() || holds(Which::Input, Span::of_array(strides, rank)))
            && self.all_of_split(&mut holds)
            && (self.error.is_null() || holds(Which::Error, Span::of(self.error)))
            && (self.executor.is_null() || holds(Which::Executor, Span::of(self.executor)))
    }

    #[inline(always)]
    fn all_of_split(&self, holds: &mut impl FnMut(Which, Span) -> bool) -> bool {
        let Some(call) = self.call.filter(|call| !call.split_at.is_null()) else { return true };
        // SAFETY: parsed before; its fields are numbers here.
        let split = unsafe { &*call.split_at };
        let mut entry_holds = |array: *const i64| holds(Which::Split, Span::of(array));
        (split.rank == 0
            || entry_holds(split.shape) && (split.strides.is_null() || entry_holds(split.strides)))
            && holds(Which::Split, Span::of(call.split_at))
            && holds(Which::Split, call.lengths)
    }

    /// Whether a span lies above or below each of them.
    #[inline(never)] // once in the library
    pub(super) fn are_apart(&self, span: Span) -> bool {
        self.are_plainly_apart(span)
    }

    /// Whether few others lie above or below each of them.
    #[inline(never)] // off the way of most calls
    pub(super) fn are_apart_from_all(&self, few: &Few) -> bool {
        self.all(|_, read| few.are_apart_from(read))
    }

    /// The same on the way of every call.
    #[inline(always)]
    pub(super) fn are_plainly_apart(&self, span: Span) -> bool {
        self.all(|_, read| read.is_apart(span))
    }

    /// Where the elements of the lengths lie.
    pub(super) fn lengths(&self) -> Span {
        self.call.map_or(Span::default(), |call| call.lengths)
    }

    /// One that a span lies over.
    #[inline(never)]
    pub(super) fn under(&self, span: Span) -> Option<Which> {
        let mut found = None;
        self.all(|which, read| {
            found = span.intersects(read).then_some(which);
            found.is_none()
        });
        found
    }
}
