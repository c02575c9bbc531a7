//! The kernels of each level of CPU features. Each kernel is written only once, over the level's registers.

use super::bit_columns::{self, Columns};
use super::bit_rows::{Row, Writer};
use super::groups::Groups;
use super::pick_words;
use super::picks;
use super::program::Register;
use super::runs::{self, Runs};
use super::shuffle;
use super::stream;
use super::tile::Block;
use super::vector::{Vector, LINE_BYTES};
use core::ops::Range;

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
}

pub(super) type Transpose = unsafe fn(&Block<'_>) -> usize;

/// The kernels of a level. What each one requires of its caller is documented where it is written.
pub(super) struct Kernels {
    pub level: Level,
    pub name: &'static str,
    /// The registers of programs that pick bytes, and of programs that pick words.
    pub register: Register,
    pub words: Register,
    pub copy: unsafe fn(*const u8, *mut u8, usize),
    pub copy_runs: unsafe fn(&Runs),
    pub stream_runs: unsafe fn(&Runs, *const u8),
    /// By the power of two of a unit's bytes: through the caches, and past them by whole lines.
    /// They return how many rows they have done.
    tiles: [[Transpose; 2]; 5],
    /// For elements that share bytes: runs; then single elements and columns, of 4 bits and of 2.
    pub pack_runs: unsafe fn(&Row, &mut Writer, Range<i64>),
    pub pack_single: [unsafe fn(&Row, *mut u8, i64, usize); 2],
    pub transpose_bits: [unsafe fn(&Columns, &mut Writer); 2],
    /// Prefetches rows for later: where they begin, how many, bytes from one to the next, and bytes of each.
    pub prefetch: fn(*const u8, usize, isize, usize),
    pub fence: fn(),
}

impl Kernels {
    /// Transposes a block: past the caches, if that is wanted and all targets begin lines, and have two of them. What is
    /// too little for tiles is copied unit by unit.
    ///
    /// # Safety
    /// As `tile.rs` says.
    pub(super) unsafe fn transpose(&self, block: &Block<'_>, past: bool) {
        let mut rest = *block;
        // SAFETY: the caller's promise.
        unsafe {
            if let Some([through, by_lines]) = self.tiles.get(block.unit.trailing_zeros() as usize)
            {
                if past && block.rows * block.unit >= 2 * LINE_BYTES && block.begins_lines() {
                    rest = rest.skip(by_lines(&rest));
                }
                rest = rest.skip(through(&rest));
            }
            let Block { unit, from, rows: count, .. } = rest;
            for (column, target) in rest.targets.iter().enumerate().filter(|_| count > 0) {
                let source = rest.source.wrapping_add(column * unit);
                let one = Runs::one(source, target.wrapping_add(rest.at), unit);
                (self.copy_runs)(&Runs { count, from, to: unit.cast_signed(), ..one });
            }
        }
    }
}

/// Wraps each kernel in a function that has the features of a level. `$words` is the register of programs that pick
/// words, `$moves` that of runs, and `$vector` that of everything else.
macro_rules! kernels {
    ($level:ident, $name:literal, $vector:ty, $words:ty, $moves:ty, [$(#[$feature:meta])?], $transposes:ident, $bits:ident) => {{
        type V = $vector;
        $(#[$feature])?
        unsafe fn copy(source: *const u8, target: *mut u8, bytes: usize) {
            // SAFETY: as the kernel requires, and the CPU has the features.
            unsafe { runs::copy::<$moves>(source, target, bytes) }
        }
        $(#[$feature])?
        unsafe fn copy_runs(runs: &Runs) {
            // SAFETY: as above.
            unsafe { runs::copy_runs::<$moves>(runs) }
        }
        $(#[$feature])?
        unsafe fn shuffle(groups: &Groups<'_>, past: bool) {
            // SAFETY: as above.
            unsafe { shuffle::run::<V>(groups, past) }
        }
        $(#[$feature])?
        unsafe fn take(origins: &[i32; LINE_BYTES], begin: i32, slots: &mut [u8], taken: &mut [u8; LINE_BYTES]) {
            picks::take(origins, begin, slots, taken);
        }
        $(#[$feature])?
        unsafe fn pick_words(groups: &Groups<'_>, _past: bool) {
            // SAFETY: as above.
            unsafe { pick_words::run::<$words>(groups) }
        }
        kernels!(@ $transposes [$(#[$feature])?]);
        Kernels {
            level: Level::$level,
            name: $name,
            register: Register::of::<V>(shuffle, take),
            words: Register::of::<$words>(pick_words, take),
            copy,
            copy_runs,
            stream_runs,
            tiles: [
                [transpose::<1, 16>, by_lines::<1, 16>],
                [transpose::<2, 8>, by_lines::<2, 8>],
                [transpose::<4, 4>, by_lines::<4, 4>],
                [transpose::<8, 2>, by_lines::<8, 2>],
                [transpose::<16, 1>, by_lines::<16, 1>],
            ],
            pack_runs: $bits::pack_runs,
            pack_single: [$bits::pack_single::<2>, $bits::pack_single::<4>],
            transpose_bits: [$bits::transpose::<16, 4>, $bits::transpose::<32, 2>],
            prefetch: stream::prefetch_rows::<V>,
            fence: <V as Vector>::fence,
        }
    }};
    (@ by_tiles [$(#[$feature:meta])?]) => {
        $(#[$feature])?
        unsafe fn stream_runs(runs: &Runs, next: *const u8) {
            // SAFETY: as above.
            unsafe { stream::stream_runs::<V>(runs, next) }
        }
        $(#[$feature])?
        unsafe fn transpose<const U: usize, const K: usize>(block: &Block<'_>) -> usize {
            // SAFETY: as above.
            unsafe { super::tile::transpose::<V, U, K>(block) }
        }
        $(#[$feature])?
        unsafe fn by_lines<const U: usize, const K: usize>(block: &Block<'_>) -> usize {
            // SAFETY: as above.
            unsafe { super::tile::by_lines::<V, U, K>(block) }
        }
    };
    (@ by_nothing [$(#[$feature:meta])?]) => {
        unsafe fn stream_runs(runs: &Runs, _next: *const u8) {
            // SAFETY: as above.
            unsafe { copy_runs(runs) }
        }
        unsafe fn transpose<const U: usize, const K: usize>(_: &Block<'_>) -> usize {
            0
        }
        use transpose as by_lines;
    };
}

/// Bits are shifted in words. Compilers use a level's registers well for this, and gain nothing from wider ones.
macro_rules! bits {
    ($name:ident, $known:expr, [$(#[$feature:meta])?]) => {
        mod $name {
            use super::*;
            $(#[$feature])?
            pub(super) unsafe fn pack_runs(row: &Row, out: &mut Writer, bits: Range<i64>) {
                // SAFETY: as the kernel requires, and the CPU has the features.
                unsafe { row.pack_runs(out, bits) }
            }
            $(#[$feature])?
            pub(super) unsafe fn pack_single<const E: usize>(row: &Row, target: *mut u8, start: i64, bytes: usize) {
                // SAFETY: as above.
                unsafe { row.pack_single::<E, { $known }>(target, start, bytes) }
            }
            $(#[$feature])?
            pub(super) unsafe fn transpose<const K: usize, const W: usize>(columns: &Columns, out: &mut Writer) {
                // SAFETY: as above.
                unsafe { bit_columns::transpose::<K, W>(columns, out) }
            }
        }
    };
}
// x86-64 CPUs without AVX2 are too rare for loops of their own for known steps.
bits!(portable_bits, cfg!(not(target_arch = "x86_64")), []);
#[cfg(target_arch = "x86_64")]
bits!(avx2_bits, true, [#[target_feature(enable = "avx2,bmi2")]]);

static PORTABLE: Kernels =
    kernels!(Portable, "portable", u128, u128, u128, [], by_nothing, portable_bits);
#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
static NEON: Kernels = kernels!(
    Neon,
    "NEON",
    core::arch::aarch64::uint8x16_t,
    u128,
    core::arch::aarch64::uint8x16_t,
    [#[target_feature(enable = "neon")]],
    by_tiles,
    portable_bits
);
#[cfg(target_arch = "x86_64")]
static AVX2: Kernels = kernels!(
    Avx2,
    "AVX2",
    core::arch::x86_64::__m256i,
    u128,
    core::arch::x86_64::__m256i,
    [#[target_feature(enable = "avx2,bmi2")]],
    by_tiles,
    avx2_bits
);
// Runs gain nothing from wider registers, which more often lie across two lines.
#[cfg(all(target_arch = "x86_64", feature = "avx512"))]
static AVX512: Kernels = kernels!(
    Avx512,
    "AVX-512",
    core::arch::x86_64::__m512i,
    super::avx512::Words,
    core::arch::x86_64::__m256i,
    [#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]],
    by_tiles,
    avx2_bits
);

/// Returns the kernels of a level, or of the highest level below it that this build has.
pub(super) fn kernels_of(level: Level) -> &'static Kernels {
    match level {
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        Level::Neon => &NEON,
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        Level::Avx512 => &AVX512,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => &AVX2,
        #[cfg(all(target_arch = "x86_64", not(feature = "avx512")))]
        Level::Avx512 => &AVX2,
        _ => &PORTABLE,
    }
}
