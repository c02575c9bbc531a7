//! How the work of one call is shared among the caller's threads.
//!
//! The idea: each task has a share, and helps others when it is done. It takes the first half of what is
//! left of its own, then of that, and so on, and then the same of the others' in turn. So a thread that wakes
//! up late, or has its core taken from it, costs what it does not do; where all are on time, each stays with
//! what is near, as in other operators, in its own caches; and ranges are long, but for the last ones, for
//! which others wait.

#![forbid(unsafe_code)]

use super::kernel::combine::LINE;
use super::kernel::rules::LOW_THRESHOLDS;
use super::old::{Fault, Report};
use crate::error::{number, Error};
use crate::math::{div, div_ceil, next_multiple};
use core::ops::Range;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Runs the tasks of one call, on whatever threads it has.
pub trait Executor: Sync {
    /// The most tasks that are of use at a time; 0 = the library chooses.
    fn max_tasks(&self) -> usize {
        0
    }

    /// Whether outputs may be stored past the caches.
    fn streaming(&self) -> Streaming {
        Streaming::Auto
    }

    /// Runs `task(i)` once for each `i` below `count`, in any order and on any threads, and
    /// returns after the last has finished.
    ///
    /// # Errors
    /// A number other than 0 of the executor's own, if it could not run them all.
    fn parallel_for(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<(), i32>;
}

/// Whether outputs are stored past the caches, which is faster where the caches do not hold them,
/// but leaves them in memory only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Streaming {
    /// Where that is faster.
    #[default]
    Auto,
    /// The outputs are read soon after the copy: only from twice that size on.
    OutputsReadNext,
    /// Not at all.
    Never,
}

/// Tasks, and the ranges that they take, are at least this long: less is not worth handing to another thread.
/// Zen 5, two threads that look for work in a loop, from 1 MiB on: 1.7 to 2.0 times as fast as one. With ranges
/// of 64 KiB 1.75 for 1.95 at 1 MiB, for each begins anew what CPUs are ahead of.
const MIN_TASK: usize = if LOW_THRESHOLDS { 256 } else { 256 << 10 };
/// Tasks where the caller leaves their number to the library.
const DEFAULT_TASKS: usize = 16;
/// The most tasks of one call: one bit each of a word.
const MAX_TASKS: usize = 64;
/// As many bytes are copied in the time that it takes to walk past a piece.
pub(super) const WALK: usize = 64;
/// Bytes of each column of a matrix that are worth its lines' ends.
pub(super) const OF_EACH: usize = if LOW_THRESHOLDS { LINE } else { 8 * LINE };
/// As many take as long as to set a piece up, or a column that is transposed: at the least, so that tasks win.
/// Zen 5, times as fast as one thread with 1 KiB and 2: 256 columns of 4 KiB 1.1, 1.3, of 8 KiB 1.2, 1.5, of
/// 16 KiB 1.4, 1.8; 1024 of 4 KiB 1.0, 1.5. Shorter ones are cut between columns: 1024 of 1 KiB 1.0 -> 1.65,
/// 4096 of 1 KiB 1.0 -> 1.55, as rows of theirs .6; 4096 of 32 runs of 32 bytes .85 -> 2.0.
pub(super) const SET_UP: usize = if LOW_THRESHOLDS { LINE } else { 32 * LINE };

/// The same where rows are repeated, which goes by doubling what each piece has of them, and of the least of all. Zen 4,
/// us before and after, one thread: 2.5 MB of 200 pieces of 1 to 6 bytes 105, 29, 43, of 40 of 1 to 137 35, 21, 35;
/// 1.1 MB of 200 44, 18, 31, of 64 21, 13, 20; 560 KB of 3 of 43 to 201 floats 6.5, 5.6, 5.6.
pub(super) const SET_UP_AGAIN: usize = 16 * SET_UP;
pub(super) const TASK_AGAIN: usize = 2 * MIN_TASK;

/// How much work there is, and how it may be cut.
pub(super) struct Work {
    pub bytes: usize,
    /// What the ranges of tasks count, from 0 on.
    pub units: usize,
    /// Tasks end at multiples of this many units.
    pub granule: usize,
    /// Bytes that are worth what each range costs.
    pub least: usize,
}

/// Whether more than one task may be worth it.
pub(super) fn is_of_use(executor: Option<&dyn Executor>, bytes: usize) -> bool {
    executor.is_some_and(|executor| executor.max_tasks() != 1) && bytes >= 2 * MIN_TASK
}

/// How many threads may work on so many bytes, if the executor says how many it has; else 2.
#[inline(never)] // twice in the library
pub(super) fn threads(executor: Option<&dyn Executor>, bytes: usize) -> usize {
    match executor.filter(|_| is_of_use(executor, bytes)).map(Executor::max_tasks) {
        None => 1,
        Some(0) => 2,
        Some(width) => width.min(bytes / MIN_TASK),
    }
}

/// Runs `body` over all units, in ranges that the executor's tasks take one after the other, or at once
/// where that is as quick.
#[inline(never)] // once in the library
pub(super) fn run(
    executor: Option<&dyn Executor>,
    work: &Work,
    body: &(dyn Fn(Range<usize>) + Sync),
    report: &mut Report,
) -> Result<(), Fault> {
    let &Work { bytes, units, least, .. } = work;
    if let Some(executor) = executor.filter(|_| is_of_use(executor, bytes)) {
        let wished = match executor.max_tasks() {
            0 => DEFAULT_TASKS,
            width => width.min(MAX_TASKS),
        };
        let most = div(bytes, least.max(MIN_TASK));
        let tasks = wished.min(most);
        if tasks >= 2 {
            return run_tasks(executor, work, (tasks, most), body, report);
        }
    }
    body(0..units);
    Ok(())
}

/// The same in so many tasks, and so many ranges at the most.
#[inline(never)] // for its stack
fn run_tasks(
    executor: &dyn Executor,
    work: &Work,
    (tasks, most): (usize, usize),
    body: &(dyn Fn(Range<usize>) + Sync),
    report: &mut Report,
) -> Result<(), Fault> {
    let shares = Shares::new(work, tasks, most);
    let begun = AtomicU64::new(0);
    let finished = AtomicUsize::new(0);
    let result = executor.parallel_for(tasks, &|task| {
        if task < tasks && begun.fetch_or(1 << task, Ordering::Relaxed) & 1 << task == 0 {
            for share in (task..tasks).chain(0..task) {
                while let Some(range) = shares.take(share) {
                    body(range);
                }
            }
            finished.fetch_add(1, Ordering::Release);
        }
    });
    if let Err(actual) = result {
        return report.refuse(Error::ExecutorFailed { expected: 0, actual: actual.into() });
    }
    match finished.load(Ordering::Acquire) {
        actual if actual == tasks => Ok(()),
        actual => {
            let (expected, actual) = (number(tasks), number(actual));
            report.refuse(Error::ExecutorSkipped { expected, actual })
        }
    }
}

/// The parts that tasks begin in, of which threads take the first half of what is left: much at first, for
/// each new range costs some tenths of a microsecond, little in the end, for others wait for it.
struct Shares {
    /// How many units of each have been taken.
    taken: [AtomicUsize; MAX_TASKS],
    /// Units of a share, and of the shortest range.
    share: usize,
    least: usize,
    granule: usize,
    units: usize,
}

impl Shares {
    /// As many as tasks, taken in ranges of which there are `most`.
    fn new(work: &Work, tasks: usize, most: usize) -> Self {
        let &Work { units, granule, .. } = work;
        let of = |count| next_multiple(div_ceil(units, count), granule);
        let taken = [const { AtomicUsize::new(0) }; MAX_TASKS];
        Self { taken, share: of(tasks), least: of(most), granule, units }
    }

    /// The next units of a share that nobody else has, if any are left.
    fn take(&self, share: usize) -> Option<Range<usize>> {
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
    use super::{run, AtomicU64, Executor, Ordering, Report, Work};

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
        let body = |range: std::ops::Range<usize>| {
            done.fetch_add(range.len() as u64, Ordering::Relaxed);
        };
        run(
            Some(&Wide),
            &Work { bytes: 1 << 30, units, granule: 1, least: 1 },
            &body,
            &mut Report::default(),
        )
        .unwrap();
        assert_eq!(done.into_inner(), units as u64);
    }

    /// A pool whose other threads wake up when the first has nothing left to do.
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
            let body = |range: std::ops::Range<usize>| {
                assert!(range.start.is_multiple_of(granule));
                done.fetch_add(range.len() as u64, Ordering::Relaxed);
            };
            let executor = Late(&done, units as u64);
            let work = Work { bytes, units, granule, least };
            run(Some(&executor), &work, &body, &mut Report::default()).unwrap();
            assert_eq!(done.load(Ordering::Relaxed), units as u64);
        }
    }
}
