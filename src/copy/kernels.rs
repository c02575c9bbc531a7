//! The levels of CPU features, and what each of them has: a table of kernels.

use super::ahead::PrefetchRows;
use super::program::Registers;
use super::runs::Runs;
use super::tile::Block;

/// Instructions and registers that kernels are written for; each level includes those before it on its architecture.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[allow(dead_code)] // those of other architectures
pub(super) enum Level {
    /// What every CPU has.
    Portable,
    /// 64-bit Arm: NEON, which all of them have.
    Neon,
    /// x86-64: AVX2 and BMI2.
    Avx2,
    /// x86-64: AVX-512 F, BW, VL, and VBMI, which picks bytes.
    Avx512,
}

#[cfg(any(test, libsplit_test_switch))]
impl Level {
    /// The levels of this architecture, the lowest first, with the words by which tests force them. A build may lack
    /// some of them.
    pub(super) const ALL: &[(&core::ffi::CStr, Self)] = &[
        (c"portable", Self::Portable),
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        (c"neon", Self::Neon),
        #[cfg(target_arch = "x86_64")]
        (c"avx2", Self::Avx2),
        #[cfg(target_arch = "x86_64")]
        (c"avx512", Self::Avx512),
    ];

    /// Returns the word by which tests force this level.
    #[cfg(test)]
    pub(super) fn word(self) -> &'static str {
        let found = Self::ALL.iter().find(|(_, level)| *level == self);
        found.map_or("?", |(name, _)| name.to_str().unwrap())
    }
}

/// A kernel that transposes units of one size, and returns how many rows it has done.
pub(super) type TransposeTiles = unsafe fn(&Block<'_>) -> usize;

/// The kernels that transpose units of one size: one through the caches, and one that streams whole lines.
#[derive(Clone, Copy)]
pub(super) struct Tiles {
    pub transpose: TransposeTiles,
    pub stream_lines: TransposeTiles,
}

/// The kernels of a level. What each one requires of its caller is documented where it is written: in the file and under
/// the name that is given here.
pub(super) struct Kernels {
    pub level: Level,
    pub name: &'static str,
    /// The registers of programs, with the kernels `shuffle.rs`: `shuffle`, `pick_dwords.rs`: `pick_dwords`, and
    /// `program/picks.rs`: `index_window`.
    pub registers: Registers,
    /// `runs.rs`.
    pub copy_run: unsafe fn(*const u8, *mut u8, usize),
    pub copy_runs: unsafe fn(&Runs),
    /// `stream.rs`.
    pub stream_runs: unsafe fn(&Runs, *const u8),
    /// `tile.rs`, by the power of two of a unit's bytes.
    pub tiles: [Tiles; 5],
    /// `ahead.rs`.
    pub prefetch: PrefetchRows,
    pub fence: fn(),
}
