//! How a copy goes about it on this machine: which loops, and whether past the caches.

use super::kernel::{detect, Kernels, Past};
use super::{caches, parallel, Executor, Streaming};

/// How to go about a copy on this machine.
#[derive(Clone, Copy)]
pub(super) struct Tuning {
    pub kernels: &'static Kernels,
    /// The stores for outputs that are to go to memory past the caches.
    pub past: Option<&'static Past>,
}

impl Tuning {
    /// For so many bytes of outputs, and as many of input.
    pub(super) fn new(bytes: usize, executor: Option<&dyn Executor>) -> Self {
        let kernels = detect();
        let is_large = || {
            let both = bytes.saturating_mul(2);
            let held = || caches::hold(parallel::threads(executor, bytes));
            match executor.map_or(Streaming::Auto, Executor::streaming) {
                Streaming::Auto => both > held(),
                Streaming::OutputsReadNext => both > held().saturating_mul(2),
                Streaming::Never => false,
            }
        };
        let is_past = bytes > LEAST_PAST && is_large();
        Self { kernels, past: kernels.past.as_ref().filter(|_| is_past) }
    }

    /// The same, but never past the caches.
    pub(super) fn through_caches(self) -> Self {
        Self { past: None, ..self }
    }
}

/// Outputs of fewer bytes stay in the caches, and nobody has to ask how large those are.
const LEAST_PAST: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::{caches, detect, Executor, Streaming, Tuning};

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
        let has = detect().past.is_some();
        let held = caches::hold(1);
        let past =
            |bytes, streaming| Tuning::new(bytes, Some(&OneThread(streaming))).past.is_some();
        assert!(!past(held / 2, Streaming::Auto));
        assert_eq!(past(held / 2 + (1 << 20), Streaming::Auto), has);
        assert!(!past(held, Streaming::OutputsReadNext));
        assert_eq!(past(held + 1, Streaming::OutputsReadNext), has);
        assert!(!past(usize::MAX, Streaming::Never));
    }
}
