//! The kernels of each level of CPU features. Each kernel is written only once, over the level's registers.

// The bodies of unsafe functions need no further blocks: a wrapper requires what its kernel does, and its level's
// features.
#![allow(unsafe_op_in_unsafe_fn)]

use super::ahead;
use super::groups::Groups;
use super::kernels::{Kernels, Level, Tiles};
use super::pick_dwords;
use super::program::{self, Register, Registers};
use super::runs::{self, Runs};
use super::shuffle;
use super::stream;
use super::tile::{self, Block};
use super::vector::{Vector, LINE_BYTES};

/// Wraps each kernel in a function that has the features of a level, and returns the table of them. `vector` is the
/// register of most kernels, `runs` that of runs, and `dwords` that of programs that pick dwords.
macro_rules! kernels {
    (
        level: $level:ident,
        name: $name:literal,
        vector: $vector:ty,
        runs: $runs:ty,
        dwords: $dwords:ty,
        features: [$(#[$feature:meta])?] $(,)?
    ) => {{
        type V = $vector;
        $(#[$feature])?
        unsafe fn copy_run(source: *const u8, target: *mut u8, bytes: usize) {
            runs::copy_run::<$runs>(source, target, bytes)
        }
        $(#[$feature])?
        unsafe fn copy_runs(runs: &Runs) {
            runs::copy_runs::<$runs>(runs)
        }
        $(#[$feature])?
        unsafe fn shuffle(groups: &Groups<'_>, streams: bool) {
            shuffle::shuffle::<V>(groups, streams)
        }
        $(#[$feature])?
        unsafe fn pick_dwords(groups: &Groups<'_>, streams: bool) {
            debug_assert!(!streams, "dwords are not streamed");
            pick_dwords::pick_dwords::<$dwords>(groups)
        }
        $(#[$feature])?
        unsafe fn index_window(
            origins: &[i32; LINE_BYTES],
            begin: i32,
            slots: &mut [u8],
            taken: &mut [u8; LINE_BYTES],
        ) {
            program::index_window(origins, begin, slots, taken);
        }
        $(#[$feature])?
        unsafe fn stream_runs(runs: &Runs, next: *const u8) {
            stream::stream_runs::<V>(runs, next)
        }
        $(#[$feature])?
        unsafe fn transpose<const U: usize, const K: usize>(block: &Block<'_>) -> usize {
            tile::transpose::<V, U, K>(block)
        }
        $(#[$feature])?
        unsafe fn stream_lines<const U: usize, const K: usize>(block: &Block<'_>) -> usize {
            tile::stream_lines::<V, U, K>(block)
        }
        Kernels {
            level: Level::$level,
            name: $name,
            registers: Registers {
                bytes: Register::new::<V>(shuffle, index_window),
                dwords: Register::new::<$dwords>(pick_dwords, index_window),
            },
            copy_run,
            copy_runs,
            stream_runs,
            tiles: [
                Tiles { transpose: transpose::<1, 16>, stream_lines: stream_lines::<1, 16> },
                Tiles { transpose: transpose::<2, 8>, stream_lines: stream_lines::<2, 8> },
                Tiles { transpose: transpose::<4, 4>, stream_lines: stream_lines::<4, 4> },
                Tiles { transpose: transpose::<8, 2>, stream_lines: stream_lines::<8, 2> },
                Tiles { transpose: transpose::<16, 1>, stream_lines: stream_lines::<16, 1> },
            ],
            prefetch: ahead::prefetch_rows::<V>,
            fence: <V as Vector>::fence,
        }
    }};
}

static PORTABLE: Kernels = kernels!(
    level: Portable,
    name: "portable",
    vector: u128,
    runs: u128,
    dwords: u128,
    features: [],
);
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
static NEON: Kernels = kernels!(
    level: Neon,
    name: "NEON",
    vector: core::arch::aarch64::uint8x16_t,
    runs: core::arch::aarch64::uint8x16_t,
    dwords: u128,
    features: [#[target_feature(enable = "neon")]],
);
#[cfg(target_arch = "x86_64")]
static AVX2: Kernels = kernels!(
    level: Avx2,
    name: "AVX2",
    vector: core::arch::x86_64::__m256i,
    runs: core::arch::x86_64::__m256i,
    dwords: u128, // which have no windows, so there are no programs of dwords
    features: [#[target_feature(enable = "avx2,bmi2")]],
);
// Runs gain nothing from wider registers, which more often lie across two lines.
#[cfg(all(target_arch = "x86_64", feature = "avx512"))]
static AVX512: Kernels = kernels!(
    level: Avx512,
    name: "AVX-512",
    vector: core::arch::x86_64::__m512i,
    runs: core::arch::x86_64::__m256i,
    dwords: super::avx512::Dwords,
    features: [#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]],
);

/// Returns the kernels of a level, or of the highest level below it that this build has.
pub(super) fn kernels_of(level: Level) -> &'static Kernels {
    match level {
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        Level::Neon => &NEON,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => &AVX2,
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        Level::Avx512 => &AVX512,
        #[cfg(all(target_arch = "x86_64", not(feature = "avx512")))]
        Level::Avx512 => &AVX2,
        _ => &PORTABLE,
    }
}
