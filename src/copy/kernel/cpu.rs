//! What a CPU says of itself: who made it, which registers it and the operating system have, how
//! large its caches are.
//!
//! All of it is a pure function of the words that CPUID and XGETBV give ([`Cpu::read`]), so that tests
//! can ask about CPUs that are not there. A level counts only if the operating system keeps its
//! registers when it switches threads, which XGETBV tells: a CPU may have AVX-512 and a kernel not
//! know of it.

/// Who made it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(in super::super) enum Vendor {
    Amd,
    Intel,
    Other,
}

/// Instructions and registers that loops are written for, each with all those before it of the same
/// architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(not(all(target_arch = "x86_64", test)), allow(dead_code))]
pub(in super::super) enum Level {
    /// What every CPU of the architecture has.
    Portable,
    /// NEON, of 64-bit Arm, which all of them have.
    Neon,
    /// x86-64: AVX2 and BMI2.
    Avx2,
    /// AVX-512 F, BW and VL.
    Avx512,
    /// Those and AVX-512 VBMI: permutes of bytes.
    Vbmi,
}

/// A CPU, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Cpu {
    pub vendor: Vendor,
    pub family: u32,
    /// The highest level that the CPU and the operating system have.
    pub level: Level,
    /// Bytes of a core's own second-level cache, and of the third-level one; 0: none, or not told.
    pub second: usize,
    pub third: usize,
}

impl Cpu {
    /// A CPU that says nothing of itself.
    #[cfg_attr(target_arch = "x86_64", allow(dead_code))]
    const UNKNOWN: Self =
        Self { vendor: Vendor::Other, family: 0, level: Level::Portable, second: 0, third: 0 };

    /// This CPU. Under a hypervisor the question takes microseconds.
    #[cfg(target_arch = "x86_64")]
    pub(in super::super) fn this() -> Self {
        Self::read(x86_64::cpuid, x86_64::xgetbv)
    }

    /// This CPU.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    pub(in super::super) fn this() -> Self {
        Self { level: Level::Neon, ..Self::UNKNOWN }
    }

    /// This CPU.
    #[cfg(not(any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    )))]
    pub(in super::super) fn this() -> Self {
        Self::UNKNOWN
    }
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    // `__cpuid` is safe in newer compilers.
    #![allow(unused_unsafe)]

    use super::{Cpu, Level, Vendor};
    use core::arch::x86_64::{__cpuid_count, _xgetbv, CpuidResult};

    /// The words EAX, EBX, ECX and EDX of a leaf and its part.
    pub(super) fn cpuid(leaf: u32, part: u32) -> [u32; 4] {
        // SAFETY: every x86-64 CPU has the instruction.
        let CpuidResult { eax, ebx, ecx, edx } = unsafe { __cpuid_count(leaf, part) };
        [eax, ebx, ecx, edx]
    }

    /// Which registers the operating system keeps. Call it only where CPUID says OSXSAVE.
    pub(super) fn xgetbv() -> u64 {
        #[target_feature(enable = "xsave")]
        fn read() -> u64 {
            // SAFETY: register 0 is there wherever the instruction is.
            unsafe { _xgetbv(0) }
        }
        // SAFETY: OSXSAVE tells that there is XSAVE, and that it is switched on.
        unsafe { read() }
    }

    const EXTENDED: u32 = 0x8000_0000;

    impl Cpu {
        /// What the words say. `xgetbv` is called only if there is that instruction.
        pub(in super::super::super) fn read(
            cpuid: impl Fn(u32, u32) -> [u32; 4],
            xgetbv: impl Fn() -> u64,
        ) -> Self {
            let [highest, b, c, d] = cpuid(0, 0);
            // "GenuineIntel", "AuthenticAMD", "HygonGenuine", four letters a word.
            let vendor = match [b, d, c] {
                [0x756E_6547, 0x4965_6E69, 0x6C65_746E] => Vendor::Intel,
                [0x6874_7541, 0x6974_6E65, 0x444D_4163]
                | [0x6F67_7948, 0x6E65_476E, 0x656E_6975] => Vendor::Amd,
                _ => Vendor::Other,
            };
            let [signature, _, one, _] = cpuid(1, 0);
            let family = match signature >> 8 & 15 {
                15 => 15 + (signature >> 20 & 255),
                family => family,
            };
            let [_, seven, seven_c, _] = if highest >= 7 { cpuid(7, 0) } else { [0; 4] };
            let has = |word: u32, bits: &[u32]| bits.iter().all(|bit| word >> bit & 1 == 1);
            let kept = if has(one, &[OSXSAVE]) { xgetbv() } else { 0 };
            let level = if kept & YMM != YMM
                || !has(one, &[AVX, FMA, F16C])
                || !has(seven, &[AVX2, BMI2])
            {
                Level::Portable
            } else if kept & ZMM != ZMM || !has(seven, &[AVX512F, AVX512BW, AVX512VL]) {
                Level::Avx2
            } else if has(seven_c, &[AVX512_VBMI]) {
                Level::Vbmi
            } else {
                Level::Avx512
            };
            let [_, _, second, third] = caches(vendor, &cpuid);
            Self { vendor, family, level, second, third }
        }
    }

    // Bits of leaf 1, ECX.
    const FMA: u32 = 12;
    const OSXSAVE: u32 = 27;
    const AVX: u32 = 28;
    const F16C: u32 = 29;
    // Bits of leaf 7, EBX and ECX.
    const AVX2: u32 = 5;
    const BMI2: u32 = 8;
    const AVX512F: u32 = 16;
    const AVX512BW: u32 = 30;
    const AVX512VL: u32 = 31;
    const AVX512_VBMI: u32 = 1;
    // Bits of XCR0: registers of 16 and 32 bytes; and masks, and all of 64 bytes.
    const YMM: u64 = 0b110;
    const ZMM: u64 = YMM | 0b1110_0000;

    /// Bytes of the data caches by their level.
    fn caches(vendor: Vendor, cpuid: &impl Fn(u32, u32) -> [u32; 4]) -> [usize; 4] {
        // AMD's leaf has the format of Intel's.
        let leaf = if vendor == Vendor::Amd { EXTENDED + 0x1D } else { 4 };
        let [highest, ..] = cpuid(leaf & EXTENDED, 0);
        let mut sizes = [0; 4];
        for part in 0..if leaf <= highest { 8 } else { 0 } {
            let [a, b, c, _] = cpuid(leaf, part);
            let field = |low: u32, bits: u32| (b >> low & ((1 << bits) - 1)) as usize + 1;
            let bytes = field(22, 10) * field(12, 10) * field(0, 12) * (c as usize + 1);
            // No more caches, data, instructions, both.
            let kind = a & 31;
            if let (1 | 3, Some(slot)) = (kind, sizes.get_mut((a >> 5 & 7) as usize)) {
                *slot = bytes;
            }
        }
        sizes
    }
}

/// Words of CPUs as their owners have published them, and this one's.
#[cfg(all(test, target_arch = "x86_64"))]
pub(in super::super) mod recorded {
    use super::Cpu;

    /// What the operating system keeps: all registers, those of AVX, those of SSE.
    pub(in super::super::super) const ALL: u64 = 0xE7;
    pub(in super::super::super) const AVX: u64 = 7;
    pub(in super::super::super) const SSE: u64 = 3;

    /// A leaf, its part, and EAX, EBX, ECX and EDX.
    type Words = &'static [(u32, u32, [u32; 4])];

    /// EPYC 7003.
    pub(in super::super::super) const ZEN3: Words = &[
        (0, 0, [0x10, 0x6874_7541, 0x444D_4163, 0x6974_6E65]),
        (1, 0, [0x00A0_0F11, 0x0040_0800, 0x7EDA_320B, 0x178B_FBFF]),
        (7, 0, [0, 0x219C_97A9, 0x0040_068C, 0x10]),
        (0x8000_0000, 0, [0x8000_0023, 0x6874_7541, 0x444D_4163, 0x6974_6E65]),
        (0x8000_001D, 0, [0x121, 0x01C0_003F, 0x3F, 0]),
        (0x8000_001D, 1, [0x122, 0x01C0_003F, 0x3F, 0]),
        (0x8000_001D, 2, [0x143, 0x01C0_003F, 0x3FF, 2]),
        (0x8000_001D, 3, [0x1C163, 0x03C0_003F, 0x7FFF, 1]),
    ];
    /// EPYC 9004, one with half of its shared cache.
    pub(in super::super::super) const ZEN4: Words = &[
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
    pub(in super::super::super) const ZEN5: Words = &[
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
    pub(in super::super::super) const SAPPHIRE_RAPIDS: Words = &[
        (0, 0, [0x20, 0x756E_6547, 0x6C65_746E, 0x4965_6E69]),
        (1, 0, [0x0008_06F8, 0x0080_0800, 0x7FFE_FBFF, 0xBFEB_FBFF]),
        (4, 0, [0xFC00_4121, 0x02C0_003F, 0x3F, 0]),
        (4, 1, [0xFC00_4122, 0x01C0_003F, 0x3F, 0]),
        (4, 2, [0xFC00_4143, 0x03C0_003F, 0x7FF, 0]),
        (4, 3, [0xFC1F_C163, 0x0380_003F, 0x0001_5FFF, 4]),
        (7, 0, [2, 0xF3BF_BFFB, 0xBB41_7FEE, 0xFFDD_4430]),
        (0x8000_0000, 0, [0x8000_0008, 0, 0, 0]),
    ];
    /// Core i5-12400, whose first firmware let programs use AVX-512.
    pub(in super::super::super) const ALDER_LAKE: Words = &[
        (0, 0, [0x20, 0x756E_6547, 0x6C65_746E, 0x4965_6E69]),
        (1, 0, [0x0009_0672, 0x0020_0800, 0x7FFA_FBBF, 0xBFEB_FBFF]),
        (4, 0, [0x3C00_4121, 0x02C0_003F, 0x3F, 0]),
        (4, 1, [0x3C00_4122, 0x01C0_003F, 0x3F, 0]),
        (4, 2, [0x3C00_4143, 0x0240_003F, 0x7FF, 0]),
        (4, 3, [0x3C07_C163, 0x0200_003F, 0x7FFF, 4]),
        (7, 0, [1, 0xF3BF_A7EB, 0x98C0_5FEE, 0xFC98_4510]),
        (0x8000_0000, 0, [0x8000_0008, 0, 0, 0]),
    ];

    pub(in super::super::super) fn cpu(words: Words, kept: u64) -> Cpu {
        let word = |leaf, part| {
            let found = words.iter().find(|(l, p, _)| (*l, *p) == (leaf, part));
            found.map_or([0; 4], |(_, _, words)| *words)
        };
        Cpu::read(word, || kept)
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::recorded::{cpu, ALDER_LAKE, ALL, AVX, SAPPHIRE_RAPIDS, SSE, ZEN3, ZEN4, ZEN5};
    use super::{Cpu, Level, Vendor};

    const KIB: usize = 1 << 10;
    const MIB: usize = 1 << 20;

    #[test]
    fn recorded_cpus_are_known() {
        let (amd, intel) = (Vendor::Amd, Vendor::Intel);
        let is = |words, vendor, family, level, second, third| {
            assert_eq!(cpu(words, ALL), Cpu { vendor, family, level, second, third });
        };
        is(ZEN3, amd, 0x19, Level::Avx2, 512 * KIB, 32 * MIB);
        is(ZEN4, amd, 0x19, Level::Vbmi, MIB, 16 * MIB);
        is(ZEN5, amd, 0x1A, Level::Vbmi, MIB, 32 * MIB);
        is(SAPPHIRE_RAPIDS, intel, 6, Level::Vbmi, 2 * MIB, 84_480 * KIB);
        is(ALDER_LAKE, intel, 6, Level::Vbmi, 1280 * KIB, 18 * MIB);
    }

    #[test]
    fn a_level_needs_an_operating_system_that_keeps_its_registers() {
        for words in [ZEN4, ZEN5, SAPPHIRE_RAPIDS, ALDER_LAKE] {
            assert_eq!(cpu(words, ALL).level, Level::Vbmi);
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
        let without = |leaf: u32, word: usize, bit: u32| {
            let cpuid = |l: u32, part: u32| {
                let found = ZEN5.iter().find(|(leaf, p, _)| (*leaf, *p) == (l, part));
                let mut words = found.map_or([0; 4], |(_, _, words)| *words);
                if l == leaf {
                    words[word] &= !(1 << bit);
                }
                words
            };
            let has_osxsave = (leaf, word, bit) != (1, 2, 27);
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
        assert_eq!(without(7, 2, 1).level, Level::Avx512);
    }

    #[test]
    fn a_cpu_that_says_nothing_has_no_level() {
        let unknown = Cpu::read(|_, _| [0; 4], || panic!("XGETBV"));
        assert_eq!(unknown, Cpu::UNKNOWN);
    }

    /// The standard library and the kernel read the same words by code of their own.
    #[test]
    fn this_cpu_is_what_others_say_it_is() {
        let this = Cpu::this();
        let avx2 = std::arch::is_x86_feature_detected!("avx2")
            && std::arch::is_x86_feature_detected!("bmi2");
        let avx512 = std::arch::is_x86_feature_detected!("avx512bw")
            && std::arch::is_x86_feature_detected!("avx512vl");
        let vbmi = avx512 && std::arch::is_x86_feature_detected!("avx512vbmi");
        assert_eq!(this.level >= Level::Avx2, avx2);
        assert_eq!(this.level >= Level::Avx512, avx512);
        assert_eq!(this.level >= Level::Vbmi, vbmi);
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
