//! How a copy of so many bytes goes about it on this machine: which loops, whether past the caches, how
//! far ahead to prefetch. The rules are those of `kernel/rules.rs`.

use super::kernel::rules::{Rules, LONGEST_COMBINED, LOW_THRESHOLDS};
use super::kernel::{of_level, with_strings, Kernels, NonTemporal};
use super::{parallel, Executor, Streaming};

/// How to go about a copy on this machine.
#[derive(Clone, Copy)]
pub(super) struct Tuning {
    pub kernels: &'static Kernels,
    /// The stores for outputs that are to go to memory past the caches.
    pub non_temporal: Option<&'static NonTemporal>,
    /// The same for long runs that lie apart.
    pub apart: Option<&'static NonTemporal>,
    /// Bytes ahead that input is prefetched then.
    pub prefetch: usize,
}

impl Tuning {
    /// For so many bytes of outputs, and as many of input. Runs that lie apart go past the caches
    /// from 2/3 of that on: Zen 5, 12 MiB of runs of 6 KiB .80 of the flat copy for .51, 16 MiB of 4
    /// KiB .88 for .50.
    pub(super) fn new(bytes: usize, executor: Option<&dyn Executor>) -> Self {
        let rules = Rules::here();
        let has_strings = rules.strings > 0 && bytes >= rules.strings;
        let kernels = if has_strings { with_strings(rules.level) } else { of_level(rules.level) };
        let is_large = |both: usize| {
            let held = || rules.held_by(parallel::threads(executor, bytes));
            match executor.map_or(Streaming::Auto, Executor::streaming) {
                Streaming::Auto => both > held(),
                Streaming::OutputsReadNext => both > held().saturating_mul(2),
                Streaming::Never => false,
            }
        };
        let both = bytes.saturating_mul(2);
        let past =
            |both| kernels.non_temporal.as_ref().filter(|_| bytes > LEAST_PAST && is_large(both));
        let (non_temporal, apart) = (past(both), past(both.saturating_add(both / 2)));
        Self { kernels, non_temporal, apart, prefetch: rules.prefetch }
    }

    /// Waits for stores past the caches.
    pub(super) fn finish(&self) {
        if let Some(past) = self.non_temporal.or(self.apart) {
            (past.fence)();
        }
    }

    /// The same, but never past the caches.
    pub(super) fn through_caches(self) -> Self {
        Self { non_temporal: None, apart: None, ..self }
    }

    /// Whether `len` elements of `width` bytes are deinterleaved, in rows `step` bytes apart.
    pub(super) fn deinterleaves(&self, len: usize, width: usize, step: usize) -> bool {
        let is_short = self.non_temporal.is_none() || width <= LONGEST_COMBINED;
        self.kernels.deinterleaves(len, width, step) && (is_short || Kernels::transposes(width))
    }

    /// The loops of every level that this CPU has, through the caches and past them.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        let levels = super::kernel::levels().into_iter();
        let both = |kernels: &'static Kernels| {
            [None, kernels.non_temporal.as_ref()].map(|non_temporal| Self {
                kernels,
                non_temporal,
                apart: non_temporal,
                prefetch: 2048,
            })
        };
        levels.flat_map(both).collect()
    }
}

/// The loop of this CPU that copies contiguous bytes.
pub(crate) fn contiguous() -> unsafe fn(*const u8, *mut u8, usize) {
    of_level(Rules::here().level).copy
}

/// Outputs of fewer bytes stay in the caches, and nobody has to ask how large those are.
const LEAST_PAST: usize = if LOW_THRESHOLDS { 0 } else { 1 << 20 };

#[cfg(test)]
mod tests {
    use super::{of_level, Executor, Rules, Streaming, Tuning, LEAST_PAST};

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
            Tuning::new(bytes, Some(&OneThread(streaming))).non_temporal.is_some()
        };
        assert!(!past(held / 2, Streaming::Auto));
        assert_eq!(past(held / 2 + 1 + LEAST_PAST, Streaming::Auto), has);
        assert!(!past(held, Streaming::OutputsReadNext));
        assert_eq!(past(held + 1, Streaming::OutputsReadNext), has);
        assert!(!past(usize::MAX, Streaming::Never));
    }
}
