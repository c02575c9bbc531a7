//! How a copy of so many bytes goes about it on this machine: which loops, whether past the caches, how
//! far ahead to prefetch. The rules are those of `kernel/rules.rs`.

use super::kernel::rules::{
    eighths_of, Rules, LEAST_STRINGS, LONGEST_COMBINED, LONG_RUN, LOW_THRESHOLDS, SHORT_AHEAD,
};
#[cfg(test)]
use super::kernel::rules::{AGAIN, AGAIN_BY_STRINGS};
use super::kernel::strided::Row;
use super::kernel::{CopyBytes, Kernels, NonTemporal, LEAST_TURN, LONGEST_TURN, MAX_DEINTERLEAVED};
use super::parallel::{self, Executor, Streaming};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// How to go about a copy on this machine.
#[derive(Clone, Copy)]
pub(super) struct Tuning {
    pub kernels: &'static Kernels,
    /// The stores for outputs that are to go to memory past the caches.
    pub non_temporal: Option<&'static NonTemporal>,
    /// The same for those of runs that are short, or lie apart: deinterleaved, interleaved.
    pub apart: Option<&'static NonTemporal>,
    /// The same for those that are transposed.
    pub transposed: Option<&'static NonTemporal>,
    /// The same where their rows begin elsewhere in their lines, and for packed rows of many pieces: no gain until all
    /// are past the caches.
    off_lines: Option<&'static NonTemporal>,
    /// The same for several threads and packed rows of [`MANY_STREAMS`] or more pieces.
    crowded: Option<&'static NonTemporal>,
    /// Bytes ahead that input is prefetched then.
    pub prefetch: usize,
    /// The longest elements that are deinterleaved then.
    longest: usize,
    /// Bytes that outputs of repeated rows go on with, or up to twice as many.
    pub again: usize,
    /// Whether few long rows go past the caches one by one too.
    pub is_row_major_past: bool,
    /// Whether short runs of many pieces never go past the caches.
    pub goes_by_piece: bool,
    /// Whether packed rows of few pieces of one length go past the caches no sooner than long ones, and others do.
    keeps_equal: bool,
}

impl Tuning {
    /// For so many bytes of outputs, and so many of input, fewer where some are repeated; `are_long` says
    /// whether runs are long, and each is on its lines.
    #[inline(never)] // for its stack
    pub(super) fn new(
        bytes: usize,
        read: usize,
        executor: Option<&dyn Executor>,
        are_long: &dyn Fn() -> bool,
    ) -> Self {
        let rules = Rules::here();
        let kernels = rules.kernels_for(bytes);
        let threads = parallel::threads(executor, bytes);
        let held = |threads| {
            let held = rules.held_by(threads);
            match executor.map_or(Streaming::Auto, Executor::streaming) {
                Streaming::Auto => Some(held),
                Streaming::OutputsReadNext => Some(held.saturating_mul(2)),
                Streaming::Never => None,
            }
        };
        let stores = kernels.non_temporal.as_ref().filter(|_| bytes > LEAST_PAST);
        let [one, all] = [1, threads].map(held);
        let keeps_repeated = rules.keeps_equal && read <= REPEATED && read < bytes;
        let moved = if keeps_repeated { bytes / 4 * 3 } else { bytes.saturating_add(read) };
        let past = |held: usize| moved > held;
        let non_temporal = stores.filter(|_| {
            all.is_some_and(|held| {
                // What is repeated is read from the first-level cache.
                let short = if read < bytes { held } else { rules.of_short(held, threads) };
                past(held) || (short < held && past(short) && !are_long())
            })
        });
        let is_apart =
            |held| past(held) || read.saturating_add(read.min(bytes)) > rules.of_apart(held);
        let scattered = stores.filter(|_| all.is_some_and(is_apart));
        let apart = if threads > 1 && rules.keeps_apart { non_temporal } else { scattered };
        let of_one = |eighths| {
            let is_past = |held| past(eighths_of(held, eighths));
            stores.filter(|_| one.is_some_and(is_past))
        };
        let (transposed, off_lines) = match rules.transposed {
            8 => (scattered, non_temporal),
            // Zen 4, two threads, time through the caches for past them, 24 to 200 packed pieces of 100 bytes to 2 KiB, MiB 8
            // .38 to .55, 9 .41 to .65, 11 .5 to .7, some 1.2, 13 .8 to 1.5; of 20 bytes 8 .8, 9 1.0, 11 1.2.
            eighths => (of_one(eighths), of_one(if threads > 1 { 8 } else { eighths })),
        };
        let crowded = if threads > 1 && rules.keeps_equal { of_one(CROWDED) } else { None };
        let longest = if rules.combines { usize::MAX } else { LONGEST_COMBINED };
        let Rules { is_row_major_past, goes_by_piece, keeps_equal, .. } = rules;
        let (prefetch, again) = (rules.ahead_of_long(), rules.again());
        Self {
            kernels,
            non_temporal,
            apart,
            transposed,
            off_lines,
            crowded,
            prefetch,
            longest,
            again,
            is_row_major_past,
            goes_by_piece,
            keeps_equal,
        }
    }

    /// Whether what is picked is read upwards, wherever that can be.
    pub(super) fn reads_upwards(&self) -> bool {
        self.kernels.picks_upwards
    }

    /// The same, but never past the caches.
    pub(super) fn through_caches(self) -> Self {
        Self {
            non_temporal: None,
            apart: None,
            transposed: None,
            off_lines: None,
            crowded: None,
            ..self
        }
    }

    /// The same for outputs whose rows begin elsewhere in their lines.
    pub(super) fn for_others(self) -> Self {
        Self { transposed: self.off_lines, ..self }
    }

    /// The same for so many packed pieces, which have so many bytes of a row on average.
    pub(super) fn for_rows(self, pieces: usize, run: usize, are_equal: &dyn Fn() -> bool) -> Self {
        let are_few = pieces <= MAX_DEINTERLEAVED;
        let non_temporal = match self.keeps_equal {
            true if !are_few && run < LONG_RUN => self.off_lines,
            true if !are_few => self.transposed,
            true if run < LONG_RUN && pieces >= MANY_STREAMS && self.crowded.is_some() => {
                self.crowded
            }
            true if run < LONG_RUN && (pieces > MOST_EQUAL || !are_equal()) => self.apart,
            false if are_few && run <= SHORT_RUN => self.apart,
            _ => self.non_temporal,
        };
        let prefetch = if run < SHORT_AHEAD { Rules::here().prefetch } else { self.prefetch };
        Self { non_temporal, prefetch, ..self }
    }

    /// The same for runs of strided pieces, which are not transposed.
    pub(super) fn for_runs(self) -> Self {
        let transposed = if self.kernels.by_turns.is_some() { self.apart } else { self.transposed };
        Self { transposed, ..self }
    }

    /// The stores for runs of bits.
    pub(super) fn of_bits(&self) -> Option<&'static NonTemporal> {
        if self.keeps_equal {
            self.apart
        } else {
            self.non_temporal
        }
    }

    /// The loop for runs of so many bytes that lie apart and go past the caches by turns.
    pub(super) fn by_turns(&self, least: usize) -> Option<unsafe fn(Row)> {
        self.apart
            .and(self.kernels.by_turns)
            .filter(|_| (LEAST_TURN..LONGEST_TURN).contains(&least))
    }

    /// What must follow the last store past the caches, if there are any.
    pub(super) fn finish(&self) {
        if let Some(stores) = self.non_temporal.or(self.apart).or(self.transposed) {
            (stores.fence)();
        }
    }

    /// Whether `len` elements of `width` bytes are deinterleaved.
    pub(super) fn deinterleaves(&self, len: usize, width: usize) -> bool {
        let is_short = self.non_temporal.is_none() || width <= self.longest;
        self.kernels.deinterleaves(len, width) && (is_short || Kernels::transposes(width))
    }

    /// The loops of every level that this CPU has, through the caches and past them.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        let levels = super::kernel::levels().into_iter();
        let ways = |kernels: &'static Kernels| {
            let past = kernels.non_temporal.as_ref();
            let ways = [
                (None, 0, AGAIN),
                (None, 0, AGAIN_BY_STRINGS),
                (None, LONGEST_COMBINED, AGAIN),
                (past, LONGEST_COMBINED, AGAIN),
                (past, usize::MAX, AGAIN),
            ];
            ways.map(|(stores, longest, again)| Self {
                kernels,
                non_temporal: stores,
                apart: stores,
                transposed: stores,
                off_lines: stores,
                crowded: stores,
                prefetch: 2048,
                longest,
                again,
                is_row_major_past: longest == usize::MAX,
                goes_by_piece: longest == LONGEST_COMBINED,
                keeps_equal: longest == LONGEST_COMBINED,
            })
        };
        levels.flat_map(ways).collect()
    }
}

/// So many bytes that are repeated are read from the first-level cache. Zen 4, outputs of 24 to 28 MiB through the other
/// ones and past them, GB/s: rows of a KiB 36, 28, of 12 KiB 35, 28, but of 80 KB 17, 28; of 32 MiB 32, 28, of 40 24, 28.
const REPEATED: usize = if LOW_THRESHOLDS { 256 } else { 16 << 10 };

/// Equal pieces, so many at the most, stay in the caches as long as long ones. Zen 4, 10 MiB through them, 8 of a byte
/// .53 of the time past them, 6 of three .59, but 9 of a byte 1.5, 16 of three 1.5.
const MOST_EQUAL: usize = 8;

/// Several threads send so many packed pieces of short runs, or more, past the caches from nine eighths of what one keeps
/// in them: more streams of stores miss them at once than a CPU foresees. Zen 4, two threads, us before and after, where
/// neighbours use the shared cache: 14.5 MiB of ten of 56 to 688 bytes 871, 558, 15.5 of six of 136 to 568 1,509, 588, 16 of six of 1.5 to 2.4
/// KB 848, 610, 17 of eight of 5 to 13 KB 1,109, 710, 16.5 of eight of 2 bytes 1,126, 664, 17.8 of 15 of 486 1,531, 735;
/// but 12.5 of eight of 192 to 680 224, 247, 15.5 of three of 4 618, 612, 17.5 of four of 480 550, 665.
const MANY_STREAMS: usize = 5;
const CROWDED: usize = 9;

/// Runs of so many bytes on average, or fewer, are short.
pub(super) const SHORT_RUN: usize = 32;

/// The loop of this CPU that copies contiguous bytes, so many in all.
#[inline]
pub(super) fn contiguous(bytes: usize) -> CopyBytes {
    if bytes < LEAST_STRINGS {
        // SAFETY: NULL, or what was stored below.
        let known =
            unsafe { core::mem::transmute::<*mut (), Option<CopyBytes>>(SHORT.load(Relaxed)) };
        if let Some(copy) = known {
            return copy;
        }
    }
    find_kernels(bytes).copy
}

/// All loops, as quickly found. Zen 4, ns for asking the rules each time,
/// three rows of two of 192 bytes: 52 for 53, of three of 256 65 for 70.
#[inline]
pub(super) fn kernels_of_few(bytes: usize) -> &'static Kernels {
    if bytes < LEAST_STRINGS {
        // SAFETY: NULL, or what was stored below.
        if let Some(known) = unsafe { FEW.load(Relaxed).as_ref() } {
            return known;
        }
    }
    find_kernels(bytes)
}

/// Those for fewer bytes than string instructions are for on any CPU, once they have been asked for.
static SHORT: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
static FEW: AtomicPtr<Kernels> = AtomicPtr::new(core::ptr::null_mut());

#[cold]
#[inline(never)]
fn find_kernels(bytes: usize) -> &'static Kernels {
    let kernels = kernels(bytes);
    if bytes < LEAST_STRINGS {
        SHORT.store(kernels.copy as *mut (), Relaxed);
        FEW.store(core::ptr::from_ref(kernels).cast_mut(), Relaxed);
    }
    kernels
}

/// The loops of this CPU for so many bytes in all.
#[inline(never)] // once in the library
pub(super) fn kernels(bytes: usize) -> &'static Kernels {
    Rules::here().kernels_for(bytes)
}

/// Whether long runs are copied by string instructions.
#[inline]
pub(super) fn has_strings() -> bool {
    Rules::here().has_strings()
}

/// Whether equal short runs are copied one piece after the other.
pub(super) fn goes_by_piece() -> bool {
    Rules::here().goes_by_piece
}

/// Outputs of fewer bytes stay in the caches, and nobody has to ask how large those are.
pub(super) const LEAST_PAST: usize = if LOW_THRESHOLDS { 0 } else { 1 << 20 };

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
            Tuning::new(bytes, bytes, Some(&OneThread(streaming)), &|| true).non_temporal.is_some()
        };
        assert!(!past(held / 2, Streaming::Auto));
        assert_eq!(past(held / 2 + 1 + LEAST_PAST, Streaming::Auto), has);
        assert!(!past(held, Streaming::OutputsReadNext));
        assert_eq!(past(held + 1, Streaming::OutputsReadNext), has);
        assert!(!past(usize::MAX, Streaming::Never));
    }
}
