//! Which pieces are copied together.

#![forbid(unsafe_code)]

use super::super::kernel::{Kernels, MAX_DEINTERLEAVED};
use super::combine::fits;
use super::run::Run;
use super::Tuning;

/// The most pieces that are copied together.
pub(super) const MAX_GROUP: usize = 32;

/// Runs of so many bytes on average, or fewer, are put together in buffers rather than in registers.
const SHORT: usize = 8;

/// Consecutive pieces that are copied together.
pub(super) struct Group {
    runs: [Run; MAX_GROUP],
    len: usize,
    /// Bytes of the shortest run.
    pub shortest: usize,
    /// Whether elements of one width go together with others.
    pub is_mixed: bool,
}

impl Group {
    pub(super) const NONE: Self =
        Self { runs: [Run::NONE; MAX_GROUP], len: 0, shortest: 0, is_mixed: false };

    pub(super) fn clear(&mut self) {
        self.len = 0;
    }

    pub(super) fn runs(&self) -> &[Run] {
        self.runs.get(..self.len).unwrap_or_default()
    }

    pub(super) fn runs_mut(&mut self) -> &mut [Run] {
        self.runs.get_mut(..self.len).unwrap_or_default()
    }

    /// Whether its runs are elements of one width, which are deinterleaved.
    pub(super) fn is_deinterleaved(&self, tuning: &Tuning) -> bool {
        let width = self.runs().first().map_or(0, |run| run.bytes);
        self.is_equal(tuning.kernels) && tuning.deinterleaves(self.len, width)
    }

    fn is_equal(&self, kernels: &Kernels) -> bool {
        match self.runs() {
            [first, second, ..] => !self.is_mixed && Self::are_alike(first, second, kernels),
            _ => false,
        }
    }

    /// Whether its runs are too short to be put together in registers, and none is longer than its
    /// share of the scratch.
    pub(super) fn is_short(&self) -> bool {
        let runs = self.runs().iter().map(|run| run.bytes);
        runs.clone().sum::<usize>() <= SHORT * self.len && runs.max().is_some_and(fits)
    }

    fn are_alike(first: &Run, second: &Run, kernels: &Kernels) -> bool {
        kernels.may_deinterleave(first.bytes)
            && first.bytes == second.bytes
            && first.offset + first.bytes == second.offset
    }

    fn is_joined_by(&self, run: &Run, kernels: &Kernels) -> bool {
        let [.., last] = self.runs() else { return true };
        let is_alike = !self.is_mixed && Self::are_alike(last, run, kernels);
        (self.len == 1 || self.is_equal(kernels) == is_alike)
            && self.len < if is_alike { MAX_DEINTERLEAVED } else { MAX_GROUP }
    }

    /// Adds a run if it is copied together with those there are; whether it is.
    pub(super) fn push_if_joined(&mut self, run: Run, kernels: &Kernels) -> bool {
        let is_joined = self.is_joined_by(&run, kernels);
        if let Some(slot) = self.runs.get_mut(self.len).filter(|_| is_joined) {
            *slot = run;
            self.shortest = if self.len == 0 { run.bytes } else { self.shortest.min(run.bytes) };
            self.len += 1;
        }
        is_joined
    }
}
