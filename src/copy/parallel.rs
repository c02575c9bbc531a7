//! How the work of one call is shared among the caller's threads.
//!
//! The idea: each task has a share, and helps others when its own is done. It takes the first half of what is left of
//! its share, then half of the rest, and so on, and then does the same with the others' shares in turn. So a thread
//! that wakes up late, or loses its core for a while, costs only what it does not do; if all are on time, each stays
//! with what is near, in its own caches; and ranges are long, except for the last ones, for which others wait.

#![forbid(unsafe_code)]

use super::machine::Machine;
use super::machine_constants::{DEFAULT_TASKS, TASK_BYTES};
use crate::error::{number, Error};
use crate::math::{div, div_ceil, next_multiple};
use core::iter;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Runs the tasks of a call on threads of its own choice.
pub trait Executor: Sync {
    /// Returns how many tasks are useful at a time; 0 lets the library choose.
    fn max_tasks(&self) -> usize {
        0
    }

    /// Returns whether outputs may be stored past the caches.
    fn streaming(&self) -> Streaming {
        Streaming::Auto
    }

    /// Runs `task(i)` once for each `i` below `count`, in any order and on any threads, and
    /// returns after the last has finished.
    ///
    /// # Errors
    /// Any number but 0, with a meaning of the executor's own, if it could not run them all.
    fn parallel_for(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<(), i32>;
}

/// Whether outputs are stored past the caches: faster if these cannot hold them, but it leaves them in memory only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Streaming {
    /// If that is faster.
    #[default]
    Auto,
    /// The outputs are read soon after the copy: only from twice the usual size on.
    OutputsReadNext,
    /// Never.
    Never,
}

/// The most tasks of one call: one bit of a word for each.
pub(super) const MAX_TASKS: usize = 64;

/// What tasks take ranges of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shared {
    /// The rows that pieces share.
    Rows,
    /// Pieces, each with all rows.
    Pieces,
    /// The bytes of all pieces.
    Bytes,
}

/// How much work there is, and how it may be divided.
pub(super) struct Work {
    pub of: Shared,
    pub bytes: usize,
    /// The number of units, of which tasks take ranges.
    pub units: usize,
    /// Ranges end at multiples of this many units.
    pub granule: usize,
    /// Ranges of fewer bytes are not worth what a range costs.
    pub least: usize,
}

impl Work {
    /// Returns how many ranges are worth it.
    fn ranges(&self, machine: &Machine) -> usize {
        let most = div_ceil(self.units, self.granule);
        div(self.bytes, self.least.max(machine.threshold(TASK_BYTES))).min(most)
    }

    /// Returns how many of so many tasks are of use, at least 1.
    pub(super) fn tasks(&self, machine: &Machine, wished: usize) -> usize {
        if are_of_use(machine, self.bytes) {
            wished.min(MAX_TASKS).min(self.ranges(machine)).max(1)
        } else {
            1
        }
    }
}

/// Returns whether more than one task may be worth it for so many bytes.
pub(super) fn are_of_use(machine: &Machine, bytes: usize) -> bool {
    bytes >= 2 * machine.threshold(TASK_BYTES)
}

/// The ranges that a task takes, one after the other.
pub(super) type Ranges<'a> = &'a mut dyn Iterator<Item = Range<usize>>;

/// Has all units done: in ranges that are shared out among tasks, or all at once if that is as quick. `body` is called
/// once in each task.
#[inline(never)] // its code exists once, not once for each body
pub(super) fn share_out(
    executor: Option<&dyn Executor>,
    machine: &Machine,
    work: &Work,
    body: &(dyn Fn(Ranges<'_>) + Sync),
) -> Result<(), Error> {
    if let Some(executor) = executor {
        let wished = match executor.max_tasks() {
            0 => DEFAULT_TASKS,
            width => width,
        };
        let tasks = work.tasks(machine, wished);
        if tasks >= 2 {
            return run_tasks(executor, work, tasks, work.ranges(machine), body);
        }
    }
    body(&mut iter::once(0..work.units));
    Ok(())
}

/// Runs `body` in so many tasks, with about as many ranges at most.
#[inline(never)] // rare: most calls have no threads
fn run_tasks(
    executor: &dyn Executor,
    work: &Work,
    tasks: usize,
    ranges: usize,
    body: &(dyn Fn(Ranges<'_>) + Sync),
) -> Result<(), Error> {
    let shares = &Shares::new(work, tasks, ranges);
    let begun = AtomicU64::new(0);
    let finished = AtomicUsize::new(0);
    let result = executor.parallel_for(tasks, &|task| {
        if task < tasks && begun.fetch_or(1 << task, Ordering::Relaxed) & 1 << task == 0 {
            let own_first = (task..tasks).chain(0..task);
            body(&mut own_first.flat_map(|share| iter::from_fn(move || shares.claim(share))));
            finished.fetch_add(1, Ordering::Release);
        }
    });
    if let Err(actual) = result {
        return Err(Error::ExecutorFailed { expected: 0, actual: actual.into() });
    }
    match finished.load(Ordering::Acquire) {
        actual if actual == tasks => Ok(()),
        actual => {
            let (expected, actual) = (number(tasks), number(actual));
            Err(Error::ExecutorSkipped { expected, actual })
        }
    }
}

/// The shares of all tasks. Threads take the first half of what is left of one: much at first, because each new range
/// costs some tenths of a microsecond, and little in the end, because others wait for it.
struct Shares {
    /// How many units of each share have been taken.
    taken: [AtomicUsize; MAX_TASKS],
    /// Units of a share, and of the shortest range.
    share: usize,
    least: usize,
    granule: usize,
    units: usize,
}

impl Shares {
    /// Returns a share for each task; ranges are so long that there are about `ranges` at most.
    fn new(work: &Work, tasks: usize, ranges: usize) -> Self {
        let &Work { units, granule, .. } = work;
        let of = |count| next_multiple(div_ceil(units, count), granule);
        let taken = [const { AtomicUsize::new(0) }; MAX_TASKS];
        Self { taken, share: of(tasks), least: of(ranges), granule, units }
    }

    /// Claims the next units of a share, if any are left.
    fn claim(&self, share: usize) -> Option<Range<usize>> {
        let begin = self.share.saturating_mul(share);
        let end = self.units.min(begin.saturating_add(self.share));
        let after = |taken: usize| {
            let left = end.checked_sub(begin.saturating_add(taken)).filter(|left| *left > 0)?;
            let half = next_multiple(left / 2, self.granule);
            Some(taken + half.max(self.least).min(left))
        };
        let taken = self.taken.get(share)?;
        let from = taken.fetch_update(Ordering::Relaxed, Ordering::Relaxed, after).ok()?;
        Some(begin + from..begin + after(from)?)
    }
}

#[cfg(test)]
mod tests {
    use super::{share_out, AtomicU64, Executor, Machine, Ordering, Ranges, Shared, Shares, Work};

    struct Wide;

    impl Executor for Wide {
        fn max_tasks(&self) -> usize {
            1000
        }
        fn parallel_for(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<(), i32> {
            (0..count).for_each(task);
            Ok(())
        }
    }

    #[test]
    fn more_tasks_than_there_can_be_are_asked_for() {
        let (units, done) = (12_345, AtomicU64::new(0));
        let body = |ranges: Ranges<'_>| {
            for range in ranges {
                done.fetch_add(range.len() as u64, Ordering::Relaxed);
            }
        };
        let work = Work { of: Shared::Rows, bytes: 1 << 30, units, granule: 1, least: 1 };
        share_out(Some(&Wide), &Machine::here(), &work, &body).unwrap();
        assert_eq!(done.into_inner(), units as u64);
    }

    /// Threads that claim at the same time never get the same units. One that is behind catches up with the other, for it
    /// finds nothing left.
    #[cfg(target_arch = "x86_64")] // emulated threads of other CPUs sometimes hang
    #[test]
    fn every_unit_is_claimed_once() {
        const CALLS: usize = 10_000;
        const UNITS: usize = 1 << 16;
        let work = Work { of: Shared::Rows, bytes: 1 << 30, units: UNITS, granule: 1, least: 1 };
        let calls: Vec<_> = (0..CALLS).map(|_| Shares::new(&work, 8, UNITS)).collect();
        let claim_all = || {
            let claim_in = |shares: &Shares| -> usize {
                let claim = |share| std::iter::from_fn(move || shares.claim(share));
                (0..8).flat_map(claim).map(|range| range.len()).sum()
            };
            calls.iter().map(claim_in).sum::<usize>()
        };
        let claimed = std::thread::scope(|scope| {
            let other = scope.spawn(claim_all);
            claim_all() + other.join().unwrap()
        });
        assert_eq!(claimed, CALLS * UNITS);
    }

    /// A pool whose other threads wake up when the first one has nothing left to do.
    struct Late<'a>(&'a AtomicU64, u64);

    impl Executor for Late<'_> {
        fn parallel_for(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<(), i32> {
            assert!(count >= 2);
            task(0);
            assert_eq!(self.0.load(Ordering::Relaxed), self.1, "left for those that are late");
            (1..count).for_each(task);
            Ok(())
        }
    }

    #[test]
    fn nothing_waits_for_threads_that_are_late() {
        for (bytes, units, granule, least) in
            [(1 << 20, 1 << 20, 64, 1), (4 << 20, 512, 1, 1), (16 << 20, 4096, 16, 2 << 20)]
        {
            let done = AtomicU64::new(0);
            let body = |ranges: Ranges<'_>| {
                for range in ranges {
                    assert!(range.start.is_multiple_of(granule));
                    done.fetch_add(range.len() as u64, Ordering::Relaxed);
                }
            };
            let executor = Late(&done, units as u64);
            let work = Work { of: Shared::Rows, bytes, units, granule, least };
            share_out(Some(&executor), &Machine::here(), &work, &body).unwrap();
            assert_eq!(done.load(Ordering::Relaxed), units as u64);
        }
    }
}
