//! What a CPU says about itself: its vendor, the registers that it and the operating system have, and its caches.
//!
//! All of this is a pure function of the words that CPUID and XGETBV return ([`Cpu::read`]), so tests can ask about
//! other CPUs. A level counts only if the operating system saves its registers when it switches threads, which XGETBV
//! tells: a CPU may have AVX-512 without the kernel knowing about it.

use super::kernels::Level;

/// A CPU, as far as it matters here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Cpu {
    /// The name of its maker, as CPUID spells it; zeros if there is none.
    pub vendor: [u8; 12],
    pub family: u32,
    /// The highest level that the CPU and the operating system have.
    pub level: Level,
    /// Bytes of a core's own second-level cache, and of the third-level cache; 0 if there is none, or it is unknown.
    pub second: usize,
    pub third: usize,
}

impl Cpu {
    /// A CPU that says nothing about itself.
    pub(super) const UNKNOWN: Self =
        Self { vendor: [0; 12], family: u32::MIN, level: Level::Portable, second: 0, third: 0 };

    /// Returns this CPU. Under a hypervisor, that takes microseconds.
    #[cfg(target_arch = "x86_64")]
    pub(super) fn this() -> Self {
        Self::read(x86_64::cpuid, x86_64::xgetbv)
    }

    /// Returns this CPU.
    #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
    pub(super) fn this() -> Self {
        Self { level: Level::Neon, ..Self::UNKNOWN }
    }

    /// Returns this CPU.
    #[cfg(not(any(
        target_arch = "x86_64",
        all(target_arch = "aarch64", target_endian = "little")
    )))]
    pub(super) fn this() -> Self {
        Self::UNKNOWN
    }
}

#[cfg(target_arch = "x86_64")]
mod x86_64 {
    // `__cpuid` is safe in newer compilers.
    #![allow(unused_unsafe)]

    use super::{Cpu, Level};
    use core::arch::x86_64::{__cpuid_count, _xgetbv, CpuidResult};

    /// Returns the words EAX, EBX, ECX and EDX of a leaf and its part.
    pub(super) fn cpuid(leaf: u32, part: u32) -> [u32; 4] {
        // SAFETY: every x86-64 CPU has the instruction.
        let CpuidResult { eax, ebx, ecx, edx } = unsafe { __cpuid_count(leaf, part) };
        [eax, ebx, ecx, edx]
    }

    /// Returns which registers the operating system saves. Call it only if CPUID says OSXSAVE.
    pub(super) fn xgetbv() -> u64 {
        #[target_feature(enable = "xsave")]
        fn read() -> u64 {
            // SAFETY: register 0 exists wherever the instruction does.
            unsafe { _xgetbv(0) }
        }
        // SAFETY: OSXSAVE says that there is XSAVE, and that it is switched on.
        unsafe { read() }
    }

    const EXTENDED: u32 = 0x8000_0000;

    impl Cpu {
        /// Returns what the words say. `xgetbv` is called only if the CPU has that instruction.
        pub(in super::super) fn read(
            cpuid: impl Fn(u32, u32) -> [u32; 4],
            xgetbv: impl Fn() -> u64,
        ) -> Self {
            let [highest, b, c, d] = cpuid(0, 0);
            let mut vendor = [0; 12];
            for (slot, word) in vendor.as_chunks_mut::<4>().0.iter_mut().zip([b, d, c]) {
                *slot = word.to_le_bytes();
            }
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
            } else if kept & ZMM != ZMM
                || !has(seven, &[AVX512F, AVX512BW, AVX512VL])
                || !has(seven_c, &[AVX512_VBMI])
            {
                Level::Avx2
            } else {
                Level::Avx512
            };
            let [_, _, second, third] = caches(&cpuid);
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
    // Bits of XCR0: registers of 16 and of 32 bytes; then masks, and everything of 64 bytes.
    const YMM: u64 = 0b110;
    const ZMM: u64 = YMM | 0b1110_0000;

    /// Returns the bytes of the data caches by their level.
    fn caches(cpuid: &impl Fn(u32, u32) -> [u32; 4]) -> [usize; 4] {
        // If one leaf is empty, the other one, of the same format, may not be.
        let [first, ..] = cpuid(4, 0);
        let leaf = if first.trailing_zeros() >= 5 { EXTENDED + 0x1D } else { 4 };
        let [highest, ..] = cpuid(leaf & EXTENDED, 0);
        let mut sizes = [0; 4];
        for part in 0..if leaf <= highest { 8 } else { 0 } {
            let [a, b, c, _] = cpuid(leaf, part);
            let field = |low: u32, bits: u32| (b >> low & ((1 << bits) - 1)) as usize + 1;
            let bytes = field(22, 10) * field(12, 10) * field(0, 12) * (c as usize + 1);
            // No more caches, data, instructions, or both.
            let kind = a & 31;
            if let (1 | 3, Some(slot)) = (kind, sizes.get_mut((a >> 5 & 7) as usize)) {
                *slot = bytes;
            }
        }
        sizes
    }
}
