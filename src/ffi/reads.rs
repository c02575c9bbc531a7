//! The memory of the caller's that a call reads, which nothing that it writes may lie over.

use super::parse::Call;
use super::types::{libsplit_error, libsplit_executor};
use crate::error::Which;
use crate::span::Span;

/// The structures and arrays of a call, apart from the outputs'.
#[derive(Clone, Copy)]
pub(crate) struct Reads {
    spans: [Span; NAMES.len()],
}

/// Whose they are.
const NAMES: [Which; 10] = [
    Which::Params,
    Which::Input,
    Which::Input,
    Which::Input,
    Which::Split,
    Which::Split,
    Which::Split,
    Which::Split,
    Which::Error,
    Which::Executor,
];

impl Reads {
    /// Nothing: the borrow checker has seen to it.
    #[cfg(all(feature = "alloc", not(feature = "capi")))]
    pub(crate) fn nothing() -> Self {
        Self { spans: [Span::NOWHERE; NAMES.len()] }
    }

    #[inline]
    pub(super) fn new(
        call: &Call<'_>,
        error: *const libsplit_error,
        executor: *const libsplit_executor,
    ) -> Self {
        let nowhere = Span::NOWHERE;
        let mut split = [nowhere; 3];
        if !call.split_at.is_null() {
            // SAFETY: parsed before; its fields are numbers here.
            let tensor = unsafe { &*call.split_at };
            let rank = usize::from(tensor.rank == 1);
            let arrays = [tensor.shape, tensor.strides].map(|array| Span::of_array(array, rank));
            let [shape, strides] = arrays.map(|span| if rank == 0 { nowhere } else { span });
            split = [Span::of(call.split_at), shape, strides];
        }
        let [split_at, split_shape, split_strides] = split;
        // SAFETY: parsed before. Where they are not looked at, they are the caller's all the same.
        let strides = unsafe { (*call.at).strides };
        let spans = [
            call.params,
            Span::of(call.at),
            Span::of_slice(call.input.shape),
            Span::of_array(strides, call.input.shape.len()),
            split_at,
            split_shape,
            split_strides,
            call.lengths,
            Span::of(error),
            Span::of(executor),
        ];
        Self { spans }
    }

    /// Whether a span, which is not empty, lies above or below each of them.
    #[inline]
    pub(super) fn are_apart(&self, span: Span) -> bool {
        self.spans.iter().fold(true, |apart, read| apart & read.is_apart(span))
    }

    /// From the lowest to the highest of them.
    #[inline]
    pub(super) fn hull(&self) -> Span {
        self.spans.iter().fold(
            Span::NOWHERE,
            |hull, span| {
                if span.is_empty() {
                    hull
                } else {
                    hull.hull(*span)
                }
            },
        )
    }

    /// Where the elements of the lengths lie.
    pub(super) fn lengths(&self) -> Span {
        let [.., lengths, _, _] = self.spans;
        lengths
    }

    /// One that a span lies over.
    pub(super) fn under(&self, span: Span) -> Option<Which> {
        let mut all = self.spans.iter().zip(NAMES);
        all.find(|(read, _)| span.intersects(**read)).map(|(_, which)| which)
    }
}
