//! Whether tensors share bytes. Exact for packed ones; for strided ones that interleave (columns
//! of one matrix, planes of one image) it shows them apart by the period of their strides.

use crate::error::{Error, Which};
use crate::memory::{Memory, Outputs, Span};

/// Up to this many outputs are compared with each other as they come.
const FEW: usize = 16;
/// How many spans are put in order at a time, on the stack, where there are more.
const BLOCK: usize = 512;

/// Collects the outputs' spans in one pass and tells whether they are apart.
pub(crate) struct Overlaps {
    few: [(usize, Span); FEW],
    seen: usize,
    last: Span,
    ascending: bool,
    descending: bool,
}

impl Overlaps {
    pub(crate) fn new() -> Self {
        Self {
            few: [(0, Span { start: 0, end: 0 }); FEW],
            seen: 0,
            last: Span::default(),
            ascending: true,
            descending: true,
        }
    }

    /// Takes the span of the next output that has elements.
    pub(crate) fn push(&mut self, index: usize, span: Span) {
        if self.seen > 0 {
            self.ascending &= self.last.end <= span.start;
            self.descending &= span.end <= self.last.start;
        }
        if let Some(slot) = self.few.get_mut(self.seen) {
            *slot = (index, span);
        }
        self.last = span;
        self.seen += 1;
    }

    /// That no two of the outputs pushed share a byte.
    pub(crate) fn check(&self, outputs: &impl Outputs) -> Result<(), Error> {
        if self.ascending || self.descending {
            return Ok(());
        }
        if let Some(few) = self.few.get(..self.seen) {
            return all_pairs(outputs, |at| few.get(at).copied());
        }
        if apart_in_order(outputs)? {
            return Ok(());
        }
        all_outputs(outputs)
    }
}

/// Compares every pair of the spans that `nth` gives until it gives no more.
fn all_pairs(
    outputs: &impl Outputs,
    nth: impl Fn(usize) -> Option<(usize, Span)>,
) -> Result<(), Error> {
    let mut at = 0;
    while let Some((output, span)) = nth(at) {
        for (other, other_span) in (0..at).map_while(&nth) {
            if span.intersects(other_span) {
                apart(outputs, output, span, other, other_span)?;
            }
        }
        at += 1;
    }
    Ok(())
}

/// As [`all_pairs`], for any number of outputs: their spans are computed again for each pair.
fn all_outputs(outputs: &impl Outputs) -> Result<(), Error> {
    for output in 0..outputs.len() {
        let Some(span) = span_of(outputs, output)? else { continue };
        for other in 0..output {
            let Some(other_span) = span_of(outputs, other)? else { continue };
            if span.intersects(other_span) {
                apart(outputs, output, span, other, other_span)?;
            }
        }
    }
    Ok(())
}

fn span_of(outputs: &impl Outputs, index: usize) -> Result<Option<Span>, Error> {
    outputs.get(index)?.map_or(Ok(None), |memory| memory.span(Which::Output(index)))
}

/// Whether the spans are apart, seen by visiting them in the order of their addresses. Without
/// a heap that takes a pass for each block of the lowest not visited yet.
fn apart_in_order(outputs: &impl Outputs) -> Result<bool, Error> {
    let mut visited: Option<(usize, usize)> = None;
    let mut reached = 0;
    loop {
        let mut block = [(0usize, 0usize, 0usize); 2 * BLOCK]; // start, index, end
        let mut len = 0;
        let mut ceiling: Option<(usize, usize)> = None;
        for index in 0..outputs.len() {
            let Some(span) = span_of(outputs, index)? else { continue };
            let key = (span.start, index);
            if visited.is_some_and(|visited| key <= visited)
                || ceiling.is_some_and(|ceiling| key > ceiling)
            {
                continue;
            }
            if len == block.len() {
                let (_, middle, _) = block.select_nth_unstable(BLOCK - 1);
                ceiling = Some((middle.0, middle.1));
                len = BLOCK;
                if key > (middle.0, middle.1) {
                    continue;
                }
            }
            if let Some(slot) = block.get_mut(len) {
                *slot = (span.start, index, span.end);
                len += 1;
            }
        }
        let complete = ceiling.is_none();
        let lowest = block.get_mut(..len).unwrap_or_default();
        lowest.sort_unstable();
        let sure = if complete { len } else { BLOCK };
        for &(start, index, end) in lowest.iter().take(sure) {
            if start < reached {
                return Ok(false);
            }
            reached = end;
            visited = Some((start, index));
        }
        if complete {
            return Ok(true);
        }
    }
}

/// That two outputs whose spans meet do not share a byte all the same.
fn apart(
    outputs: &impl Outputs,
    output: usize,
    span: Span,
    other: usize,
    other_span: Span,
) -> Result<(), Error> {
    let error = Error::Overlap { output, other: Which::Output(other) };
    match (outputs.get(output)?, outputs.get(other)?) {
        (Some(a), Some(b)) if interleave(&a, span, &b, other_span) => Ok(()),
        _ => Err(error),
    }
}

/// Whether two tensors whose spans meet lie in each other's gaps.
pub(crate) fn interleave(a: &Memory<'_>, a_span: Span, b: &Memory<'_>, b_span: Span) -> bool {
    let (a_run, a_period) = runs(a, a_span);
    let (b_run, b_period) = runs(b, b_span);
    let period = gcd(a_period, b_period);
    if period == 0 {
        return false;
    }
    // Where b's runs begin within the period of a's.
    let (ahead, distance) = if b_span.start >= a_span.start {
        (true, (b_span.start - a_span.start) % period)
    } else {
        (false, (a_span.start - b_span.start) % period)
    };
    let begin = if ahead || distance == 0 { distance } else { period - distance };
    a_run <= begin && b_run <= period - begin
}

/// The bytes of a tensor as runs that begin at multiples of a period from its lowest address:
/// (length of a run, period). Period 0 = one run over the whole span.
fn runs(memory: &Memory<'_>, span: Span) -> (usize, usize) {
    let whole = (span.end - span.start, 0);
    let Some(strides) = memory.strides else { return whole };
    if memory.dtype.is_sub_byte() {
        return whole;
    }
    let size = u64::from(memory.dtype.bits() / 8);
    let steps = || {
        let dims = memory.shape.iter().zip(strides).enumerate();
        let moving = dims.filter(|(_, (extent, stride))| **extent > 1 && **stride != 0);
        moving.map(|(d, (extent, stride))| {
            (1u64 << d, extent.unsigned_abs(), stride.unsigned_abs().saturating_mul(size))
        })
    };
    let (mut run, mut inside) = (size, 0u64);
    while let Some((axis, extent, _)) =
        steps().find(|(axis, _, step)| inside & axis == 0 && *step == run)
    {
        run = run.saturating_mul(extent);
        inside |= axis;
    }
    let period = steps().filter(|(axis, _, _)| inside & axis == 0).map(|(_, _, step)| step);
    let period = period.fold(0, gcd_u64);
    match (usize::try_from(run), usize::try_from(period)) {
        (Ok(run), Ok(period)) if run <= period => (run, period),
        _ => whole,
    }
}

fn gcd(a: usize, b: usize) -> usize {
    usize::try_from(gcd_u64(a as u64, b as u64)).unwrap_or(0)
}

fn gcd_u64(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}
