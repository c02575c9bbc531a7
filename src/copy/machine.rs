//! What depends on the machine: its kernels, from what size on copies are streamed, and the one table of CPU models.
//!
//! A CPU's features and caches decide; a model has a row only where that is not enough. `make tune` measures one.

use super::cpu::Cpu;
use super::kernels::{Kernels, Level};
use super::level::kernels_of;
use super::machine_constants::{LEAST_STREAMED_CALL_BYTES, SMALL_BYTES};
use core::ptr::from_ref;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicUsize};

/// What distinguishes a model.
pub(super) struct Model {
    pub name: &'static str,
    /// The maker's name, as CPUID spells it, and the family.
    vendor: [u8; 12],
    family: u32,
    /// The level, which tells apart models of one family.
    level: Level,
    /// Bytes of inputs and outputs up to which the caches are quicker: in eighths of the third-level cache, but no more
    /// than this in eighths of the second-level one.
    third_eighths: usize,
    second_eighths: usize,
}

impl Model {
    const fn new(
        name: &'static str,
        vendor: [u8; 12],
        family: u32,
        level: Level,
        third_eighths: usize,
        second_eighths: usize,
    ) -> Self {
        Self { name, vendor, family, level, third_eighths, second_eighths }
    }
}

const AMD: [u8; 12] = *b"AuthenticAMD";
const INTEL: [u8; 12] = *b"GenuineIntel";

/// The last row is for any other machine.
pub(super) static MODELS: [Model; 5] = [
    Model::new("zen3", AMD, 0x19, Level::Avx2, 4, 1024),
    Model::new("zen4", AMD, 0x19, Level::Avx512, 6, 1024),
    Model::new("zen5", AMD, 0x1A, Level::Avx512, 8, 1024),
    // The shared cache of Xeons is a mesh of many slices, and no quicker to write to than memory.
    Model::new("xeon", INTEL, 6, Level::Avx512, 4, 32),
    Model::new("other", Cpu::UNKNOWN.vendor, 0, Level::Portable, 4, 256),
];

/// Bytes of the third-level cache of a machine that does not say; and the most that is believed, because virtual
/// machines report what their host has.
const UNKNOWN_THIRD_BYTES: usize = 16 << 20;
const MOST_THIRD_BYTES: usize = 64 << 20;

/// Returns the bytes of the second-level and the third-level cache that are assumed, given what the machine says.
fn believed(second: usize, third: usize) -> [usize; 2] {
    let third = if third == 0 { UNKNOWN_THIRD_BYTES } else { third.min(MOST_THIRD_BYTES) };
    [if second == 0 { LEAST_STREAMED_CALL_BYTES / 2 } else { second }, third]
}

/// A machine: the kernels that it runs, and what was measured on it.
#[derive(Clone, Copy)]
pub(super) struct Machine {
    pub kernels: &'static Kernels,
    pub model: &'static Model,
    /// Bytes of inputs and outputs together up to which the caches are quicker.
    pub cached_bytes: usize,
    pub second_bytes: usize,
    /// How many powers of two thresholds are lowered by: none, unless tests ask for it.
    pub shrunk: usize,
}

// What has been found about this machine. The kernels are stored last and loaded first, so whoever finds kernels finds
// everything that belongs to them.
static KERNELS: AtomicPtr<Kernels> = AtomicPtr::new(core::ptr::null_mut());
static MODEL: AtomicPtr<Model> = AtomicPtr::new(core::ptr::null_mut());
static CACHED: AtomicUsize = AtomicUsize::new(0);
static SECOND: AtomicUsize = AtomicUsize::new(0);
static SHRUNK: AtomicUsize = AtomicUsize::new(0);

/// Returns how many powers of two thresholds are lowered by: none in the delivered library.
fn shrunk() -> usize {
    if cfg!(any(test, libsplit_test_switch)) {
        SHRUNK.load(Relaxed)
    } else {
        0
    }
}

impl Machine {
    /// Returns the machine that has this CPU.
    pub(super) fn of(cpu: &Cpu) -> Self {
        let [rows @ .., other] = &MODELS;
        let is = |model: &&Model| {
            model.vendor == cpu.vendor && model.family == cpu.family && model.level == cpu.level
        };
        Self::with(cpu, rows.iter().find(is).unwrap_or(other))
    }

    /// Returns the machine that has this CPU and a model's row.
    pub(super) fn with(cpu: &Cpu, model: &'static Model) -> Self {
        let [second_bytes, third_bytes] = believed(cpu.second, cpu.third);
        let cached_bytes =
            (third_bytes / 8 * model.third_eighths).min(second_bytes / 8 * model.second_eighths);
        Self { kernels: kernels_of(cpu.level), model, cached_bytes, second_bytes, shrunk: 0 }
    }

    /// Returns the machine that this runs on.
    #[inline]
    pub(super) fn here() -> Self {
        // SAFETY: NULL, or what `put` has stored; and so is the model, which was stored before.
        match unsafe { (KERNELS.load(Acquire).as_ref(), MODEL.load(Relaxed).as_ref()) } {
            (Some(kernels), Some(model)) => Self {
                kernels,
                model,
                cached_bytes: CACHED.load(Relaxed),
                second_bytes: SECOND.load(Relaxed),
                shrunk: shrunk(),
            },
            _ => Self::find(),
        }
    }

    /// Returns the kernels of the machine that this runs on.
    #[inline]
    pub(super) fn kernels() -> &'static Kernels {
        // SAFETY: NULL, or what `put` has stored.
        unsafe { KERNELS.load(Acquire).as_ref() }.unwrap_or_else(|| Self::find().kernels)
    }

    #[cold]
    #[inline(never)]
    fn find() -> Self {
        let machine = Self::of(&Cpu::this());
        machine.put();
        machine
    }

    /// Returns whether a copy of `bytes` bytes is small.
    #[inline]
    pub(super) fn is_small(bytes: usize) -> bool {
        bytes <= SMALL_BYTES >> shrunk()
    }

    /// Makes this the machine of all copies from now on.
    pub(super) fn put(&self) {
        let &Kernels { level, name, .. } = self.kernels;
        debug_assert!(level <= Cpu::this().level, "this CPU has no {name}");
        MODEL.store(from_ref(self.model).cast_mut(), Relaxed);
        SHRUNK.store(self.shrunk, Relaxed);
        CACHED.store(self.cached_bytes, Relaxed);
        SECOND.store(self.second_bytes, Relaxed);
        KERNELS.store(from_ref(self.kernels).cast_mut(), Release);
    }

    /// Returns a threshold, in bytes or anything else, which tests may have lowered.
    #[inline]
    pub(super) fn threshold(&self, number: usize) -> usize {
        number >> self.shrunk
    }
}

/// What `make tune` needs from the engine.
#[cfg(feature = "tune")]
pub mod tune {
    use super::{believed, Cpu, Machine, Relaxed, CACHED};
    use core::fmt::Debug;

    /// Makes this process copy past the caches as soon as outputs are large enough, or never, or as the table says.
    pub fn force_past(past: Option<bool>) {
        let cached = match past {
            Some(true) => 0,
            Some(false) => usize::MAX,
            None => Machine::of(&Cpu::this()).cached_bytes,
        };
        let _ = Machine::here();
        CACHED.store(cached, Relaxed);
    }

    /// Returns the vendor's name, the family and the level of this CPU, and the bytes of its second-level and third-level
    /// caches that the table assumes.
    #[must_use]
    pub fn describe_cpu() -> ([u8; 12], u32, impl Debug, [usize; 2]) {
        let Cpu { vendor, family, level, second, third } = Cpu::this();
        (vendor, family, level, believed(second, third))
    }
}

/// CPUs whose owners have published their CPUID words, and the CPU that the tests run on.
#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::super::tests::{Refused, MODEL_NAMES};
    use super::{kernels_of, Cpu, Level, Machine, MODELS};

    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;

    /// The registers that the operating system saves: all of them, those of AVX, and those of SSE.
    const ALL: u64 = 0xE7;
    const AVX: u64 = 7;
    const SSE: u64 = 3;

    /// A leaf of CPUID, its part, and EAX, EBX, ECX and EDX.
    type Words = &'static [(u32, u32, [u32; 4])];

    /// EPYC 7003.
    const ZEN3: Words = &[
        (0, 0, [0x10, 0x6874_7541, 0x444D_4163, 0x6974_6E65]),
        (1, 0, [0x00A0_0F11, 0x0040_0800, 0x7EDA_320B, 0x178B_FBFF]),
        (7, 0, [0, 0x219C_97A9, 0x0040_068C, 0x10]),
        (0x8000_0000, 0, [0x8000_0023, 0x6874_7541, 0x444D_4163, 0x6974_6E65]),
        (0x8000_001D, 0, [0x121, 0x01C0_003F, 0x3F, 0]),
        (0x8000_001D, 1, [0x122, 0x01C0_003F, 0x3F, 0]),
        (0x8000_001D, 2, [0x143, 0x01C0_003F, 0x3FF, 2]),
        (0x8000_001D, 3, [0x1C163, 0x03C0_003F, 0x7FFF, 1]),
    ];
    /// EPYC 9004, a model with half of the shared cache.
    const ZEN4: Words = &[
        (0, 0, [0x10, 0x6874_7541, 0x444D_4163, 0x6974_6E65]),
        (1, 0, [0x00A1_0F11, 0x0020_0800, 0x7EFA_320B, 0x178B_FBFF]),
        (7, 0, [1, 0xF1BF_97A9, 0x0041_5FCE, 0x1000_0010]),
        (0x8000_0000, 0, [0x8000_0028, 0x6874_7541, 0x444D_4163, 0x6974_6E65]),
        (0x8000_001D, 0, [0x4121, 0x01C0_003F, 0x3F, 0]),
        (0x8000_001D, 1, [0x4122, 0x01C0_003F, 0x3F, 0]),
        (0x8000_001D, 2, [0x4143, 0x01C0_003F, 0x7FF, 2]),
        (0x8000_001D, 3, [0x1C163, 0x03C0_003F, 0x3FFF, 1]),
    ];
    /// EPYC 9005.
    const ZEN5: Words = &[
        (0, 0, [0x10, 0x6874_7541, 0x444D_4163, 0x6974_6E65]),
        (1, 0, [0x00B0_0F21, 0x0040_0800, 0x7EFA_320B, 0x178B_FBFF]),
        (7, 0, [1, 0xF1BF_97AB, 0x1941_5FCE, 0x1000_0110]),
        (0x8000_0000, 0, [0x8000_0028, 0x6874_7541, 0x444D_4163, 0x6974_6E65]),
        (0x8000_001D, 0, [0x121, 0x02C0_003F, 0x3F, 0]),
        (0x8000_001D, 1, [0x122, 0x01C0_003F, 0x3F, 0]),
        (0x8000_001D, 2, [0x143, 0x03C0_003F, 0x3FF, 0]),
        (0x8000_001D, 3, [0x1C163, 0x03C0_003F, 0x7FFF, 1]),
    ];
    /// Xeon of the fourth generation.
    const SAPPHIRE_RAPIDS: Words = &[
        (0, 0, [0x20, 0x756E_6547, 0x6C65_746E, 0x4965_6E69]),
        (1, 0, [0x0008_06F8, 0x0080_0800, 0x7FFE_FBFF, 0xBFEB_FBFF]),
        (4, 0, [0xFC00_4121, 0x02C0_003F, 0x3F, 0]),
        (4, 1, [0xFC00_4122, 0x01C0_003F, 0x3F, 0]),
        (4, 2, [0xFC00_4143, 0x03C0_003F, 0x7FF, 0]),
        (4, 3, [0xFC1F_C163, 0x0380_003F, 0x0001_5FFF, 4]),
        (7, 0, [2, 0xF3BF_BFFB, 0xBB41_7FEE, 0xFFDD_4430]),
        (0x8000_0000, 0, [0x8000_0008, 0, 0, 0]),
    ];
    /// Core i5-12400, with its first firmware, which lets programs use AVX-512.
    const ALDER_LAKE: Words = &[
        (0, 0, [0x20, 0x756E_6547, 0x6C65_746E, 0x4965_6E69]),
        (1, 0, [0x0009_0672, 0x0020_0800, 0x7FFA_FBBF, 0xBFEB_FBFF]),
        (4, 0, [0x3C00_4121, 0x02C0_003F, 0x3F, 0]),
        (4, 1, [0x3C00_4122, 0x01C0_003F, 0x3F, 0]),
        (4, 2, [0x3C00_4143, 0x0240_003F, 0x7FF, 0]),
        (4, 3, [0x3C07_C163, 0x0200_003F, 0x7FFF, 4]),
        (7, 0, [1, 0xF3BF_A7EB, 0x98C0_5FEE, 0xFC98_4510]),
        (0x8000_0000, 0, [0x8000_0008, 0, 0, 0]),
    ];

    fn word(words: Words, leaf: u32, part: u32) -> [u32; 4] {
        let found = words.iter().find(|(l, p, _)| (*l, *p) == (leaf, part));
        found.map_or([0; 4], |(_, _, words)| *words)
    }

    fn cpu(words: Words, kept: u64) -> Cpu {
        Cpu::read(|leaf, part| word(words, leaf, part), || kept)
    }

    #[test]
    fn names_are_those_of_the_table() {
        let names: Vec<_> = MODELS.iter().map(|model| model.name).collect();
        assert_eq!(MODEL_NAMES.to_str().unwrap(), names.join(" "));
        assert!(names.iter().all(|name| Machine::of_words(name).is_ok()));
        assert_eq!(Machine::of_words("zen").err(), Some(Refused::UnknownWord));
    }

    #[test]
    fn recorded_cpus_are_known() {
        let (amd, intel) = (*b"AuthenticAMD", *b"GenuineIntel");
        let is = |words, vendor, family, level, second, third| {
            assert_eq!(cpu(words, ALL), Cpu { vendor, family, level, second, third });
        };
        is(ZEN3, amd, 0x19, Level::Avx2, 512 * KIB, 32 * MIB);
        is(ZEN4, amd, 0x19, Level::Avx512, MIB, 16 * MIB);
        is(ZEN5, amd, 0x1A, Level::Avx512, MIB, 32 * MIB);
        is(SAPPHIRE_RAPIDS, intel, 6, Level::Avx512, 2 * MIB, 84_480 * KIB);
        is(ALDER_LAKE, intel, 6, Level::Avx512, 1280 * KIB, 18 * MIB);
    }

    /// Tests run with all features, so a level that is missing has been lost.
    #[test]
    fn this_build_has_every_level() {
        for &(name, level) in Level::ALL {
            assert_eq!(kernels_of(level).level, level, "{name:?}");
        }
    }

    /// A row and a level follow from what the CPU says, not from the CPU that the test runs on.
    #[test]
    fn recorded_cpus_get_their_rows_and_levels() {
        let gets = |cpu: Cpu, name, level: Level, second| {
            let machine = Machine::of(&cpu);
            assert_eq!(machine.model.name, name);
            assert_eq!(machine.kernels.level, kernels_of(level).level, "{name}");
            assert_eq!(machine.second_bytes, second, "{name}");
            assert!(machine.cached_bytes > 0, "{name}");
        };
        gets(cpu(ZEN3, ALL), "zen3", Level::Avx2, 512 * KIB);
        gets(cpu(ZEN4, ALL), "zen4", Level::Avx512, MIB);
        gets(cpu(ZEN5, ALL), "zen5", Level::Avx512, MIB);
        gets(cpu(SAPPHIRE_RAPIDS, ALL), "xeon", Level::Avx512, 2 * MIB);
        gets(cpu(ALDER_LAKE, ALL), "xeon", Level::Avx512, 1280 * KIB);
        // The operating system does not save the registers of AVX-512, or of AVX.
        gets(cpu(SAPPHIRE_RAPIDS, AVX), "other", Level::Avx2, 2 * MIB);
        gets(cpu(ZEN5, SSE), "other", Level::Portable, MIB);
        // A family, and a vendor, that nobody has measured.
        gets(Cpu { family: 0x1B, ..cpu(ZEN5, ALL) }, "other", Level::Avx512, MIB);
        gets(Cpu { vendor: [0; 12], ..cpu(ZEN3, ALL) }, "other", Level::Avx2, 512 * KIB);
    }

    /// Virtual machines report the cache of their whole host.
    #[test]
    fn no_more_than_64_mib_of_a_cache_is_believed() {
        let cached = |third| Machine::of(&Cpu { third, ..cpu(ZEN5, ALL) }).cached_bytes;
        assert_eq!(cached(64 * MIB), 64 * MIB);
        assert_eq!(cached(512 * MIB), 64 * MIB);
    }

    /// Asked for a leaf that they do not have, some CPUs say what another leaf has.
    #[test]
    fn a_leaf_that_the_cpu_does_not_have_counts_for_nothing() {
        let with_highest = |highest| {
            let cpuid = |leaf: u32, part: u32| match (leaf, word(ZEN5, leaf, part)) {
                (0, [_, b, c, d]) => [highest, b, c, d],
                (_, words) => words,
            };
            Cpu::read(cpuid, || ALL).level
        };
        assert_eq!(with_highest(7), Level::Avx512);
        assert_eq!(with_highest(6), Level::Portable);
    }

    #[test]
    fn a_level_needs_an_operating_system_that_keeps_its_registers() {
        for words in [ZEN4, ZEN5, SAPPHIRE_RAPIDS, ALDER_LAKE] {
            assert_eq!(cpu(words, ALL).level, Level::Avx512);
            for without_some_of_zmm in [AVX, ALL & !0x20, ALL & !0x40, ALL & !0x80] {
                assert_eq!(cpu(words, without_some_of_zmm).level, Level::Avx2);
            }
            for without_ymm in [0, SSE, ALL & !4] {
                assert_eq!(cpu(words, without_ymm).level, Level::Portable);
            }
        }
    }

    #[test]
    fn a_level_needs_every_one_of_its_features() {
        let without = |leaf: u32, register: usize, bit: u32| {
            let cpuid = |l: u32, part: u32| {
                let mut words = word(ZEN5, l, part);
                if l == leaf {
                    words[register] &= !(1 << bit);
                }
                words
            };
            let has_osxsave = (leaf, register, bit) != (1, 2, 27);
            Cpu::read(cpuid, || {
                assert!(has_osxsave, "XGETBV on a CPU that may not have it");
                ALL
            })
        };
        for bit in [12, 27, 28, 29] {
            assert_eq!(without(1, 2, bit).level, Level::Portable, "leaf 1, ECX {bit}");
        }
        for bit in [5, 8] {
            assert_eq!(without(7, 1, bit).level, Level::Portable, "leaf 7, EBX {bit}");
        }
        for bit in [16, 30, 31] {
            assert_eq!(without(7, 1, bit).level, Level::Avx2, "leaf 7, EBX {bit}");
        }
        assert_eq!(without(7, 2, 1).level, Level::Avx2, "AVX-512 without VBMI");
    }

    #[test]
    fn a_cpu_that_says_nothing_gets_the_last_row() {
        let unknown = Cpu::read(|_, _| [0; 4], || panic!("XGETBV"));
        assert_eq!(
            unknown,
            Cpu { vendor: [0; 12], family: 0, level: Level::Portable, second: 0, third: 0 }
        );
        let machine = Machine::of(&unknown);
        assert_eq!(machine.model.name, "other");
        assert!(machine.cached_bytes > 0 && machine.second_bytes > 0);
    }

    /// The standard library and the kernel read the same words with code of their own.
    #[test]
    fn this_cpu_is_what_others_say_it_is() {
        let this = Cpu::this();
        let avx2 = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi2");
        let avx512 = std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512vl")
            && std::arch::is_x86_feature_detected!("avx512vbmi");
        assert_eq!(this.level >= Level::Avx2, avx2);
        assert_eq!(this.level >= Level::Avx512, avx512);
        let read = |index: u32, name: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
            std::fs::read_to_string(path).map(|text| text.trim().to_owned())
        };
        for index in 0..8 {
            let (Ok(level), Ok(size)) = (read(index, "level"), read(index, "size")) else { break };
            let size = size.trim_end_matches('K').parse::<usize>().unwrap() << 10;
            match level.as_str() {
                "2" => assert_eq!(this.second, size),
                "3" => assert_eq!(this.third, size),
                _ => {}
            }
        }
    }
}
