//! How a copy goes about it on this machine: which loops, whether past the caches, how far ahead to
//! prefetch. Every rule is here, by CPU, with what was measured for it; a CPU that nobody has measured
//! gets the safe choice. `make tune` measures them all on the machine it runs on.
//!
//! Rules are a pure function of what the CPU says of itself ([`Rules::of`]), found out once: under a
//! hypervisor to ask takes microseconds.

use super::kernel::cpu::{Cpu, Level, Vendor};
use super::kernel::{of_level, Kernels, NonTemporal};
use super::{parallel, Executor, Streaming};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What to do on a CPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    /// The level of the loops: the highest that has been seen to win, not the highest there is.
    pub level: Level,
    /// Bytes of input and outputs together that one thread copies faster through the caches than past
    /// them: whole pages.
    pub budget: usize,
    /// As many threads bring as much each, below 64.
    pub threads: usize,
    /// Bytes ahead that input is prefetched, where outputs go past the caches: whole lines.
    pub prefetch: usize,
}

const MIB: usize = 1 << 20;

impl Rules {
    /// The rules for a CPU.
    fn of(cpu: &Cpu) -> Self {
        let level = match (cpu.vendor, cpu.level) {
            // Zen 4 and 5.
            (Vendor::Amd, level) => level,
            // Sapphire Rapids was tuned with AVX2, and reaches the flat copy with it. Whether wider
            // registers win there, or on any other Intel, has not been measured; on older ones they
            // lower the clock.
            (_, level) => level.min(Level::Avx2),
        };
        let (budget, threads) = Self::budget(cpu);
        Self { level, budget, threads, prefetch: Self::prefetch(cpu) }
    }

    fn budget(cpu: &Cpu) -> (usize, usize) {
        let &Cpu { vendor, second, third, .. } = cpu;
        if vendor == Vendor::Intel && second >= MIB && third > 36 * MIB {
            // Sapphire Rapids: the cores' own caches are large, and the shared one is a mesh of many
            // slices, no quicker to write to than memory. Past them from 1.5 × L2 of a thread on.
            return ((second + second / 2) & !(PAGE - 1), 63);
        }
        // Virtual machines report the size of their host's.
        let third = if third == 0 { 32 * MIB } else { third.clamp(4 * MIB, 64 * MIB) };
        // Zen 3: the two are equal at L3 / 2 with one thread, at 1.3 × L3 with two; in the caches the
        // stores past them cost 20–55 %.
        ((third / 2) & !(PAGE - 1), 2)
    }

    fn prefetch(cpu: &Cpu) -> usize {
        match (cpu.vendor, cpu.family) {
            // Zen 5: 4096 for 2048, share of the flat copy: f32×3 .93 → 1.00, W6 .96 → 1.00,
            // W14 .95 → .98, f32×2 .91 → .93, 64 MiB of u8×3 .95 → .97; i64×2 the same.
            (Vendor::Amd, 0x1A) => 4096,
            // Zen 3 and Sapphire Rapids: 10–25 % for short runs, nothing for long ones.
            _ => 2048,
        }
    }

    /// Bytes of input and outputs together that `threads` threads copy faster through the caches.
    fn held_by(&self, threads: usize) -> usize {
        if LOW_THRESHOLDS {
            return 1 << 10;
        }
        self.budget.saturating_mul(threads.min(self.threads).max(1))
    }

    /// The rules for this CPU; in a build with `--cfg libsplit_level="avx2"`, or another one, with loops
    /// of that level at the most.
    pub(super) fn here() -> Self {
        static HERE: AtomicU64 = AtomicU64::new(0);
        let known = HERE.load(Relaxed);
        if known != 0 {
            return Self::unpacked(known);
        }
        let mut rules = Self::of(&Cpu::this());
        rules.level = rules.level.min(FORCED);
        HERE.store(rules.packed(), Relaxed);
        rules
    }

    /// All of it in one word, which is not 0.
    fn packed(self) -> u64 {
        let Self { level, budget, threads, prefetch } = self;
        let place = LEVELS.iter().position(|other| *other == level).unwrap_or(0) as u64;
        let (budget, prefetch) = ((budget / PAGE) as u64, (prefetch / PREFETCH_UNIT) as u64);
        budget << 32 | prefetch << 16 | (threads as u64) << 8 | place
    }

    #[allow(clippy::cast_possible_truncation)] // as packed
    fn unpacked(word: u64) -> Self {
        let field = |shift: u32, bits: u32| (word >> shift & ((1 << bits) - 1)) as usize;
        Self {
            level: LEVELS.get(field(0, 8)).copied().unwrap_or(Level::Portable),
            budget: field(32, 32).saturating_mul(PAGE),
            threads: field(8, 8),
            prefetch: field(16, 16) * PREFETCH_UNIT,
        }
    }
}

const PAGE: usize = 4096;
const PREFETCH_UNIT: usize = 64;
const LEVELS: [Level; 5] = [Level::Portable, Level::Neon, Level::Avx2, Level::Avx512, Level::Vbmi];

/// The highest level of this build.
const FORCED: Level = if cfg!(libsplit_level = "portable") {
    Level::Portable
} else if cfg!(libsplit_level = "avx2") {
    Level::Avx2
} else if cfg!(libsplit_level = "avx512") {
    Level::Avx512
} else {
    Level::Vbmi
};

/// Whether thresholds are so low that small cases cross them all: for tests.
pub(super) const LOW_THRESHOLDS: bool = cfg!(libsplit_low_thresholds);

/// How to go about a copy on this machine.
#[derive(Clone, Copy)]
pub(super) struct Tuning {
    pub kernels: &'static Kernels,
    /// The stores for outputs that are to go to memory past the caches.
    pub non_temporal: Option<&'static NonTemporal>,
    /// Bytes ahead that input is prefetched then.
    pub prefetch: usize,
}

impl Tuning {
    /// For so many bytes of outputs, and as many of input.
    pub(super) fn new(bytes: usize, executor: Option<&dyn Executor>) -> Self {
        let rules = Rules::here();
        let kernels = of_level(rules.level);
        let is_large = || {
            let both = bytes.saturating_mul(2);
            let held = || rules.held_by(parallel::threads(executor, bytes));
            match executor.map_or(Streaming::Auto, Executor::streaming) {
                Streaming::Auto => both > held(),
                Streaming::OutputsReadNext => both > held().saturating_mul(2),
                Streaming::Never => false,
            }
        };
        let is_past = bytes > LEAST_PAST && is_large();
        let non_temporal = kernels.non_temporal.as_ref().filter(|_| is_past);
        Self { kernels, non_temporal, prefetch: rules.prefetch }
    }

    /// The same, but never past the caches.
    pub(super) fn through_caches(self) -> Self {
        Self { non_temporal: None, ..self }
    }

    /// The loops of every level that this CPU has, through the caches and past them.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        let levels = super::kernel::levels().into_iter();
        let both = |kernels: &'static Kernels| {
            [None, kernels.non_temporal.as_ref()].map(|non_temporal| Self {
                kernels,
                non_temporal,
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
const LEAST_PAST: usize = if LOW_THRESHOLDS { 0 } else { MIB };

#[cfg(test)]
mod tests {
    use super::{
        of_level, Cpu, Executor, Level, Rules, Streaming, Tuning, Vendor, LEAST_PAST, LEVELS, MIB,
    };

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

    #[test]
    fn half_of_the_shared_cache_or_the_core_s_own_on_a_mesh() {
        let budget = |vendor, second, third| {
            let cpu = Cpu { vendor, family: 0, level: Level::Portable, second, third };
            Rules::of(&cpu).budget
        };
        assert_eq!(budget(Vendor::Amd, MIB / 2, 32 * MIB), 16 * MIB); // Zen 3
        assert_eq!(budget(Vendor::Amd, MIB / 2, 256 * MIB), 32 * MIB); // in a virtual machine
        assert_eq!(budget(Vendor::Intel, 2 * MIB, 105 * MIB), 3 * MIB); // Sapphire Rapids
        assert_eq!(budget(Vendor::Intel, 2 * MIB, 36 * MIB), 18 * MIB); // a client CPU
        assert_eq!(budget(Vendor::Other, 0, 0), 16 * MIB);
    }

    /// What was measured on them, or, for the client, the safe choice.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn recorded_cpus_have_their_rules() {
        use super::super::kernel::cpu::recorded::{
            cpu, ALDER_LAKE, ALL, AVX, SAPPHIRE_RAPIDS, SSE, ZEN3, ZEN4, ZEN5,
        };
        let is = |words, level, budget, threads, prefetch| {
            assert_eq!(Rules::of(&cpu(words, ALL)), Rules { level, budget, threads, prefetch });
            // And registers that the operating system does not keep are never used.
            assert!(Rules::of(&cpu(words, AVX)).level <= Level::Avx2);
            assert_eq!(Rules::of(&cpu(words, SSE)).level, Level::Portable);
        };
        is(ZEN3, Level::Avx2, 16 * MIB, 2, 2048);
        is(ZEN4, Level::Vbmi, 8 * MIB, 2, 2048);
        is(ZEN5, Level::Vbmi, 16 * MIB, 2, 4096);
        is(SAPPHIRE_RAPIDS, Level::Avx2, 3 * MIB, 63, 2048);
        is(ALDER_LAKE, Level::Avx2, 9 * MIB, 2, 2048);
    }

    #[test]
    fn what_nobody_has_measured_gets_the_safe_choice() {
        let vendor = Vendor::Other;
        let unknown = Cpu { vendor, family: 99, level: Level::Vbmi, second: 0, third: 0 };
        let safe = Rules { level: Level::Avx2, budget: 16 * MIB, threads: 2, prefetch: 2048 };
        assert_eq!(Rules::of(&unknown), safe);
    }

    #[test]
    fn rules_fit_into_a_word() {
        for level in LEVELS {
            for prefetch in [64, 2048, 8192] {
                for (budget, threads) in [(4096, 1), (3 * MIB, 63), (64 * MIB, 2)] {
                    let rules = Rules { level, budget, threads, prefetch };
                    assert_eq!(Rules::unpacked(rules.packed()), rules);
                    assert_ne!(rules.packed(), 0);
                }
            }
        }
    }
}
