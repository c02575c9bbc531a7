//! How much of a copy's input and outputs the caches hold; beyond that, outputs go past them.

/// Bytes of input and outputs together that are copied faster through the caches than past them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Hold {
    /// By one thread: a multiple of 64.
    bytes: usize,
    /// As many threads bring caches of their own, below 64.
    threads: usize,
}

impl Hold {
    /// `second` is the size of one core's cache, `third` of the one that cores share; 0 = none.
    fn of_sizes(second: usize, third: usize, is_intel: bool) -> Self {
        if is_intel && second >= 1 << 20 && third > 36 << 20 {
            // The cores' own caches are large, and the shared one is a mesh of many slices, no
            // quicker to write to than memory.
            return Self { bytes: (second + second / 2) & !63, threads: 63 };
        }
        // Virtual machines report the size of their host's.
        let third = if third == 0 { 32 << 20 } else { third.clamp(4 << 20, 64 << 20) };
        Self { bytes: (third / 2) & !63, threads: 2 }
    }
}

/// Bytes of input and outputs together that `threads` threads copy faster through the caches of
/// this CPU than past them.
pub(super) fn hold(threads: usize) -> usize {
    let hold = this_cpu::hold();
    hold.bytes.saturating_mul(threads.clamp(1, hold.threads))
}

#[cfg(not(target_arch = "x86_64"))]
mod this_cpu {
    pub(super) fn hold() -> super::Hold {
        super::Hold::of_sizes(0, 0, false)
    }
}

#[cfg(target_arch = "x86_64")]
mod this_cpu {
    #![allow(unused_unsafe)] // `__cpuid` is safe in newer compilers

    use super::Hold;
    use core::arch::x86_64::{__cpuid, __cpuid_count, CpuidResult};
    use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// What the CPU says is asked for once: under a hypervisor that takes microseconds.
    pub(super) fn hold() -> Hold {
        static HOLD: AtomicUsize = AtomicUsize::new(0);
        let known = HOLD.load(Relaxed);
        if known != 0 {
            return Hold { bytes: known & !63, threads: known & 63 };
        }
        let (second, third) = sizes();
        let hold = Hold::of_sizes(second, third, vendor() == *b"GenuineIntel");
        HOLD.store(hold.bytes | hold.threads, Relaxed);
        hold
    }

    fn cpuid(leaf: u32) -> CpuidResult {
        // SAFETY: every x86-64 CPU has the instruction.
        unsafe { __cpuid(leaf) }
    }

    fn vendor() -> [u8; 12] {
        let CpuidResult { ebx, ecx, edx, .. } = cpuid(0);
        let mut vendor = [0; 12];
        for (slot, part) in vendor.chunks_exact_mut(4).zip([ebx, edx, ecx]) {
            slot.copy_from_slice(&part.to_le_bytes());
        }
        vendor
    }

    /// The second- and the third-level cache, in bytes; 0 = none, or not told.
    pub(super) fn sizes() -> (usize, usize) {
        const EXTENDED: u32 = 0x8000_0000;
        // AMD's leaf has the format of Intel's.
        let leaf = match &vendor() {
            b"AuthenticAMD" | b"HygonGenuine" => EXTENDED + 0x1D,
            _ => 4,
        };
        let highest = cpuid(leaf & EXTENDED).eax;
        let mut sizes = [0; 4];
        for part in 0..if leaf <= highest { 8 } else { 0 } {
            // SAFETY: as above.
            let CpuidResult { eax, ebx, ecx, .. } = unsafe { __cpuid_count(leaf, part) };
            let field = |low: u32, bits: u32| (ebx >> low & ((1 << bits) - 1)) as usize + 1;
            let bytes = field(22, 10) * field(12, 10) * field(0, 12) * (ecx as usize + 1);
            // No more caches, data, instructions, both.
            let kind = eax & 31;
            if let (1 | 3, Some(slot)) = (kind, sizes.get_mut((eax >> 5 & 7) as usize)) {
                *slot = bytes;
            }
        }
        (sizes[2], sizes[3])
    }
}

#[cfg(test)]
mod tests {
    use super::Hold;

    const MIB: usize = 1 << 20;

    #[test]
    fn half_of_the_shared_cache_or_the_core_s_own_on_a_mesh() {
        let hold = |second, third, is_intel| Hold::of_sizes(second, third, is_intel).bytes;
        assert_eq!(hold(MIB / 2, 32 * MIB, false), 16 * MIB); // Zen 3
        assert_eq!(hold(MIB / 2, 256 * MIB, false), 32 * MIB); // as seen from a virtual machine
        assert_eq!(hold(2 * MIB, 105 * MIB, true), 3 * MIB); // Sapphire Rapids
        assert_eq!(hold(2 * MIB, 36 * MIB, true), 18 * MIB); // a client CPU
        assert_eq!(hold(0, 0, false), 16 * MIB);
    }

    /// The kernel reads the same registers by code of its own.
    #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
    #[test]
    fn sizes_are_those_that_the_system_reports() {
        let read = |index: u32, name: &str| {
            let path = format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}");
            std::fs::read_to_string(path).map(|text| text.trim().to_owned())
        };
        let (second, third) = super::this_cpu::sizes();
        for index in 0..8 {
            let (Ok(level), Ok(size)) = (read(index, "level"), read(index, "size")) else { break };
            let size = size.trim_end_matches('K').parse::<usize>().unwrap() << 10;
            match level.as_str() {
                "2" => assert_eq!(second, size),
                "3" => assert_eq!(third, size),
                _ => {}
            }
        }
    }
}
