//! How a copy of so many bytes goes about it on this machine: which loops, whether past the caches, how
//! far ahead to prefetch. The rules are those of `kernel/rules.rs`.

use super::kernel::rules::{Rules, LONGEST_COMBINED, LOW_THRESHOLDS};
use super::kernel::{Kernels, NonTemporal};
use super::{parallel, Executor, Streaming};

/// How to go about a copy on this machine.
#[derive(Clone, Copy)]
pub(super) struct Tuning {
    pub kernels: &'static Kernels,
    /// The stores for outputs that are to go to memory past the caches.
    pub non_temporal: Option<&'static NonTemporal>,
    /// The same for those of runs that are short, or lie apart: deinterleaved, transposed, interleaved.
    pub scattered: Option<&'static NonTemporal>,
    /// Bytes ahead that input is prefetched then.
    pub prefetch: usize,
    /// The longest elements that are deinterleaved then.
    longest: usize,
}

impl Tuning {
    /// For so many bytes of outputs, and of input.
    pub(super) fn new(bytes: usize, read: usize, executor: Option<&dyn Executor>) -> Self {
        let rules = Rules::here();
        let kernels = rules.kernels_for(bytes);
        let held = || {
            let held = rules.held_by(parallel::threads(executor, bytes));
            match executor.map_or(Streaming::Auto, Executor::streaming) {
                Streaming::Auto => Some(held),
                Streaming::OutputsReadNext => Some(held.saturating_mul(2)),
                Streaming::Never => None,
            }
        };
        let held = if bytes > LEAST_PAST { held() } else { None };
        let stores = kernels.non_temporal.as_ref().zip(held);
        let past = |held: usize| bytes.saturating_add(read) > held;
        let non_temporal = stores.filter(|(_, held)| past(*held)).map(|(stores, _)| stores);
        let scattered = stores.filter(|(_, held)| past(rules.of_scattered(*held)));
        let scattered = scattered.map(|(stores, _)| stores);
        let longest = if rules.combines { usize::MAX } else { LONGEST_COMBINED };
        Self { kernels, non_temporal, scattered, prefetch: rules.prefetch, longest }
    }

    /// The same, but never past the caches.
    pub(super) fn through_caches(self) -> Self {
        Self { non_temporal: None, scattered: None, ..self }
    }

    /// What must follow the last store past the caches, if there are any.
    pub(super) fn finish(&self) {
        if let Some(stores) = self.non_temporal.or(self.scattered) {
            (stores.fence)();
        }
    }

    /// The same, with no other rule for short runs than for long ones.
    pub(super) fn for_long_runs(self) -> Self {
        Self { scattered: self.non_temporal, ..self }
    }

    /// The same for pieces that have few bytes of each row.
    pub(super) fn for_short_runs(self) -> Self {
        Self { non_temporal: self.scattered, ..self }
    }

    /// Whether `len` elements of `width` bytes are deinterleaved, in rows `step` bytes apart.
    pub(super) fn deinterleaves(&self, len: usize, width: usize, step: usize) -> bool {
        let is_short = self.non_temporal.is_none() || width <= self.longest;
        self.kernels.deinterleaves(len, width, step) && (is_short || Kernels::transposes(width))
    }

    /// The loops of every level that this CPU has, through the caches and past them.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        let levels = super::kernel::levels().into_iter();
        let ways = |kernels: &'static Kernels| {
            let past = kernels.non_temporal.as_ref();
            [(None, 0), (past, LONGEST_COMBINED), (past, usize::MAX)].map(|(stores, longest)| {
                Self { kernels, non_temporal: stores, scattered: stores, prefetch: 2048, longest }
            })
        };
        levels.flat_map(ways).collect()
    }
}

/// The loop of this CPU that copies contiguous bytes, so many in all.
#[inline]
pub(crate) fn contiguous(bytes: usize) -> unsafe fn(*const u8, *mut u8, usize) {
    Rules::here().kernels_for(bytes).copy
}

/// Outputs of fewer bytes stay in the caches, and nobody has to ask how large those are.
const LEAST_PAST: usize = if LOW_THRESHOLDS { 0 } else { 1 << 20 };

#[cfg(test)]
mod tests {
    use super::super::kernel::of_level;
    use super::{Executor, Rules, Streaming, Tuning, LEAST_PAST};

    /// One thread, and whether outputs may go past the caches.
    struct OneThread(Streaming);

    impl Executor for OneThread {
        fn max_tasks(&self) -> usize {
            1
        }
        fn streaming(&self) -> Streaming {
            self.0
        }
        fn parallel_for(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<(), i32> {
            (0..count).for_each(task);
            Ok(())
        }
    }

    #[test]
    fn outputs_go_past_the_caches_where_these_do_not_hold_them_and_the_executor_agrees() {
        let rules = Rules::here();
        let has = of_level(rules.level).non_temporal.is_some();
        let held = rules.held_by(1);
        let past = |bytes, streaming| {
            Tuning::new(bytes, bytes, Some(&OneThread(streaming))).non_temporal.is_some()
        };
        assert!(!past(held / 2, Streaming::Auto));
        assert_eq!(past(held / 2 + 1 + LEAST_PAST, Streaming::Auto), has);
        assert!(!past(held, Streaming::OutputsReadNext));
        assert_eq!(past(held + 1, Streaming::OutputsReadNext), has);
        assert!(!past(usize::MAX, Streaming::Never));
    }
}
