//! Outputs that are boxes in one system of coordinates: slices, columns, tiles and channels of one tensor.
//!
//! The distance of an output from the lowest one, divided by the strides that all have in common, the longest
//! first, gives the coordinates of its first element. If none reaches beyond the next longer stride, every byte
//! has coordinates of its own, and two outputs meet exactly where their intervals do on all axes.

#![forbid(unsafe_code)]

use super::{first_meeting, hull, Axes, Numbered, Tensors};
use crate::math::{div, gcd, rem};
use crate::shape::MAX_RANK;
use crate::span::Span;

/// Outputs, and the axes that they have in common, the longest stride first; the bytes of an element are the last.
pub(crate) struct Boxes<'a> {
    tensors: &'a dyn Tensors,
    axes: [Axis; MAX_RANK + 1],
    rank: usize,
    /// Where the lowest output begins, and how many bytes the longest reaches over.
    origin: usize,
    longest: usize,
}

#[derive(Clone, Copy, Default)]
struct Axis {
    /// Bytes from one step to the next.
    stride: usize,
    /// Steps of the longest output.
    extent: usize,
    is_split: bool,
}

/// What is found out about boxes.
pub(crate) enum Verdict {
    Apart,
    Meet(usize, usize),
    Unknown,
}

impl<'a> Boxes<'a> {
    /// The outputs, if they are boxes.
    #[inline(never)] // for its stack
    pub(crate) fn of(tensors: &'a dyn Tensors) -> Option<Self> {
        let spans = Numbered(tensors.len(), &|at| tensors.span(at));
        let longest = (0..tensors.len()).max_by_key(|at| tensors.span(*at).len())?;
        let (model, split) = (tensors.axes(longest), tensors.split_axis());
        let bytes = usize::try_from(tensors.element_bytes()).ok()?;
        let mut boxes = Self {
            tensors,
            axes: [Axis::default(); MAX_RANK + 1],
            rank: 0,
            origin: hull(&spans).start,
            longest: tensors.span(longest).len(),
        };
        boxes.insert(Axis { stride: 1, extent: bytes, is_split: false });
        for (axis, (extent, stride)) in
            model.iter().enumerate().filter(|(_, (extent, _))| *extent > 1)
        {
            let stride = usize::try_from(stride.unsigned_abs()).ok()?.checked_mul(bytes)?;
            let (extent, is_split) = (usize::try_from(extent).ok()?, Some(axis) == split);
            boxes.insert(Axis { stride, extent, is_split });
        }
        let mut wanted = (0..tensors.len()).filter(|at| !tensors.span(*at).is_empty());
        wanted
            .all(|at| is_alike(&tensors.axes(at), &model, split) && boxes.has(at))
            .then_some(boxes)
    }

    fn insert(&mut self, axis: Axis) {
        let at = self.axes().iter().take_while(|other| other.stride > axis.stride).count();
        let mut held = axis;
        for slot in self.axes.iter_mut().take(self.rank + 1).skip(at) {
            core::mem::swap(slot, &mut held);
        }
        self.rank += 1;
    }

    fn axes(&self) -> &[Axis] {
        self.axes.get(..self.rank).unwrap_or_default()
    }

    /// How many steps of an axis an output with this span takes.
    fn extent(&self, axis: &Axis, span: Span) -> usize {
        let missing = if axis.is_split { div(self.longest - span.len(), axis.stride) } else { 0 };
        axis.extent - missing
    }

    /// Whether an output reaches nowhere beyond the next longer stride.
    fn has(&self, at: usize) -> bool {
        let span = self.tensors.span(at);
        let (mut rest, mut reach) = (span.start - self.origin, span.len() - 1);
        self.axes().iter().all(|axis| {
            rest = rem(rest, axis.stride);
            reach = reach.saturating_sub((self.extent(axis, span) - 1).saturating_mul(axis.stride));
            rest.saturating_add(reach) < axis.stride
        })
    }

    /// The steps of an axis that an output takes, from the lowest output's first one on.
    fn interval(&self, at: usize, axis: usize) -> Span {
        let span = self.tensors.span(at);
        let (longer, shorter) = self.axes().split_at_checked(axis).unwrap_or_default();
        let Some(axis) = shorter.first().filter(|_| !span.is_empty()) else {
            return Span::default();
        };
        let rest =
            longer.iter().fold(span.start - self.origin, |rest, axis| rem(rest, axis.stride));
        let start = div(rest, axis.stride);
        Span { start, end: start + self.extent(axis, span) }
    }

    /// Whether outputs meet.
    pub(crate) fn verdict(&self) -> Verdict {
        let count = self.tensors.len();
        if (0..self.rank).all(|axis| self.has_cells(axis)) {
            let corner = |at| {
                let Span { start, end } = self.tensors.span(at);
                Span { start, end: end.min(start.saturating_add(1)) }
            };
            let meeting = first_meeting(&Numbered(count, &corner));
            return meeting.map_or(Verdict::Apart, |(one, other)| Verdict::Meet(one, other));
        }
        for axis in 0..self.rank {
            let Some((one, other)) = first_meeting(&Numbered(count, &|at| self.interval(at, axis)))
            else {
                return Verdict::Apart;
            };
            let meet = |axis| self.interval(one, axis).intersects(self.interval(other, axis));
            if (0..self.rank).all(meet) {
                return Verdict::Meet(one, other);
            }
        }
        Verdict::Unknown
    }

    /// Whether outputs begin whole cells of an axis apart, none of which is shorter than one of them.
    fn has_cells(&self, axis: usize) -> bool {
        let starts = (0..self.tensors.len()).map(|at| self.interval(at, axis).start);
        let cell = starts.fold(0, gcd);
        cell == 0 || self.axes().get(axis).is_some_and(|axis| axis.extent <= cell)
    }
}

/// Whether an output has the extents and strides of the longest one, apart from its steps of the split axis.
fn is_alike(axes: &Axes, longest: &Axes, split: Option<usize>) -> bool {
    let mut pairs = axes.iter().zip(longest.iter()).enumerate();
    axes.rank == longest.rank
        && pairs.all(|(axis, ((extent, stride), (own_extent, own_stride)))| {
            let has_stride = extent == 1 || stride.unsigned_abs() == own_stride.unsigned_abs();
            has_stride && (extent == own_extent || Some(axis) == split)
        })
}
