//! The loops that move bytes, and the tables of them by level of CPU features.
//!
//! | file | what it holds |
//! |---|---|
//! | `cpu.rs` | what CPUID and XGETBV say of a CPU: its level among others |
//! | `rules.rs` | what to do on which CPU; `rules/tune.rs`: other rules in their place, for `make tune` |
//! | `gather.rs`, `deinterleave.rs` | what loops are given: runs that become one, rows that come apart |
//! | `generic.rs`, `bits.rs`, `strided.rs` | loops that need no registers of their own: bytes, bits, units a step apart |
//! | `sub_byte.rs` | elements that share bytes: taken out of them, mixed, put side by side |
//! | `vector.rs` | the vector type that the other loops are written over |
//! | `pick.rs` | units a step apart, forwards or backwards, by registers |
//! | `ordered.rs` | the same of rows that a plan knows |
//! | `network.rs`, `three.rs` | equal short runs: rows are deinterleaved |
//! | `interleave.rs` | the way back: units of few streams by turns |
//! | `row_major.rs` | runs of a line and more, row by row |
//! | `opaque.rs` | values of which compilers know nothing |
//! | `stream.rs`, `merge.rs` | whole lines past the caches: of one run, of many |
//! | `combine.rs` | a write-combining buffer, for what makes no lines by itself |
//! | `transpose.rs` | contiguous units of many rows become rows of their own |
//! | `level.rs`, `table.rs` | make the table of a level out of its vectors, and of loops written once |
//! | `x86_64/`, `aarch64.rs` | the levels: their vectors, and their own tricks |
//!
//! `../tuning.rs` goes by the rules.

// Other CPUs have loops for every case, but not for every way of going about it.
#![cfg_attr(
    not(any(target_arch = "x86_64", all(target_arch = "aarch64", target_endian = "little"))),
    allow(dead_code, unused_imports, unused_macros)
)]

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
mod aarch64;
pub(super) mod bits;
pub(super) mod combine;
pub(super) mod cpu;
mod deinterleave;
mod gather;
pub(super) mod generic;
pub(super) mod interleave;
mod level;
mod merge;
mod network;
pub(super) mod opaque;
pub(super) mod ordered;
pub(super) mod pick;
#[cfg_attr(not(all(target_arch = "x86_64", feature = "avx512")), allow(dead_code))]
pub(super) mod row_major;
pub(super) mod rules;
mod stream;
pub(super) mod strided;
pub(super) mod sub_byte;
mod table;
mod three;
pub(super) mod transpose;
mod vector;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use bits::{Packed, Runs};
use cpu::Level;
pub(super) use deinterleave::{Deinterleave, MAX_DEINTERLEAVED, MOST_OF_BLOCKS};
use deinterleave::{DeinterleaveLines, NextBlock};
pub(super) use gather::Gather;
pub(super) use merge::Stream;
use ordered::Ordered;
use pick::{ByLines, Picks};
use row_major::RowRun;
use sub_byte::SideBySide;
use transpose::{Carry, Transpose, WidthLoops};
pub(super) use vector::LANE;

use crate::math::signed;

/// Whether what lies between rows of so many bytes, `step` bytes apart, is in the pages that they are in: then
/// it can be read.
pub(super) fn are_near(step: isize, row: usize) -> bool {
    step.unsigned_abs() < row + PAGE
}

/// The smallest of all systems.
pub(super) const PAGE: usize = 4096;

/// The loops of one level of CPU features.
pub(super) struct Kernels {
    pub copy: CopyBytes,
    /// Takes rows of a few units of so many bytes apart, if there is a loop for these; whether there is.
    pub columns: unsafe fn(*const u8, &[*mut u8], usize, usize) -> bool,
    /// Packs runs of bits.
    pub pack: unsafe fn(&mut Packed, &Runs),
    /// Takes the elements at one place of 2, or 4, times as many bytes: of 4 bits, and of 2.
    pub take: [unsafe fn(*const u8, usize, *mut u8, usize); 2],
    /// Puts each 2, or 4, rows of such elements together in a line.
    pub join: [unsafe fn(&SideBySide, *mut u8); 2],
    /// Gathers as many units of up to a line to two targets, where that is known to win, and stores behind them,
    /// unless they are said to be the last ones.
    pub pair: Option<unsafe fn([Gather; 2], bool)>,
    /// By [`GATHERS`].
    gather: &'static [unsafe fn(Gather); GATHERS.len()],
    gather_any: unsafe fn(Gather),
    /// Gathers units of more than 128 bytes, where that is known to be quicker than copying one by one.
    pub gather_long: Option<unsafe fn(Gather)>,
    pub deinterleave_lines: Option<DeinterleaveLines>,
    /// Elements of so many bytes and fewer are deinterleaved, whatever their width.
    longest: usize,
    /// Of those that are not of 1, 2, 4, 8 or 16 bytes: whether so many, of so many bytes, are.
    permutes: fn(usize, usize) -> bool,
    /// The loop that interleaves so many streams of units of so many bytes, if there is one.
    pub interleave: fn(usize, usize) -> Option<interleave::Loop>,
    /// Puts rows together of runs of few streams, where that is known to win.
    pub interleave_runs: Option<CopyInterleaved>,
    /// Copies runs row by row through the caches, where that is known to win.
    pub row_major: Option<RowMajor>,
    /// The same of short runs past the caches.
    pub combine: Option<Combine>,
    /// Copies long runs past the caches by turns, [`TURNS`] at a time, where that is known to win.
    pub by_turns: Option<unsafe fn(strided::Row)>,
    /// Copies units of 9 to 128 bytes one by one, where there are registers of half a line.
    pub units: Option<CopyUnits>,
    /// Fills each of some rows with one unit.
    pub repeat: strided::CopyRow,
    /// Copies rows of units that lie apart in the output, if these are enough, which is asked first.
    pub apart: Option<Apart>,
    /// Picks units a step apart, where there are registers for it.
    pub picks: Option<&'static Picks>,
    /// The same of rows that a plan knows.
    pub ordered: Option<Ordered>,
    /// Whether these read what goes past the caches upwards, wherever that can be. Zen 4, 24 MiB of floats backwards
    /// into two outputs, share of the flat copy: .60 downwards, .93 upwards; by AVX2, 20 MB of bytes backwards, ms: 2.0,
    /// .95 (of other CPUs with AVX2 assumed).
    pub picks_upwards: bool,
    /// Puts what is picked of rows together to lines that go past the caches, wherever these begin, if that is known to win.
    pick_lines: Option<ByLines>,
    /// By width.
    transpose: &'static [WidthLoops; WIDTHS.len()],
    carry: Option<Carry>,
    /// Whether rows that are transposed are asked for in the second-level cache, for the first has few ways. Zen 4,
    /// share of the flat copy past the caches: f32 2,000² .97 for .87, 2,056 × 2,500 .68 for .36, 2,048² .67 for
    /// .58, u16 2,048 × 4,096 .65 for .49; through them by turns u8 2,048² .52 for .47, f32 1,024² .44 for .41.
    pub by_second: bool,
    /// Stores that go past the caches, where the CPU has them.
    pub non_temporal: Option<NonTemporal>,
}

/// Copies contiguous bytes.
///
/// # Safety
/// 1, 2 of `generic.rs`.
pub(super) type CopyBytes = unsafe fn(*const u8, *mut u8, usize);

/// Copies units from a source and so many bytes on again and again, to a target likewise: how many, of how many bytes.
///
/// # Safety
/// 1, 2 of `generic.rs` for each.
pub(super) type CopyUnits = unsafe fn(*const u8, isize, *mut u8, isize, usize, usize);

/// Whether there are enough, and the copy.
pub(super) type Apart = (fn(&strided::Block) -> bool, strided::CopyRow);

/// Copies the runs of so many rows, so many bytes apart, or leaves them alone; whether it did.
pub(super) type RowMajor = unsafe fn(&mut [RowRun], usize, usize) -> bool;

/// Interleaves runs of any length; so many rows follow.
pub(super) type CopyInterleaved = unsafe fn(&interleave::Interleave, usize);

/// The same of short runs past the caches; input is prefetched so many bytes ahead.
pub(super) type Combine = unsafe fn(&[RowRun], usize, usize, usize) -> bool;

/// Lets streams take turns: in each, every one stores the whole lines that it has due. Prefetches
/// the input from a place on, which goes ahead by so many bytes a turn.
///
/// # Safety
/// What streams have due in all turns must be writable, and its input readable from the first byte
/// to the last, what lies between runs included.
pub(super) type Merge = unsafe fn(&mut [Stream], usize, *const u8, usize);

/// The loops that go past the caches.
pub(super) struct NonTemporal {
    /// Copies contiguous bytes: whole lines to an aligned target.
    pub stream: unsafe fn(*const u8, *mut u8, usize),
    /// Packs whole lines of runs of bits.
    pub pack_lines: bits::PackLines,
    /// Prefetches so many bytes of input, from any address on.
    pub prefetch: fn(*const u8, usize),
    /// What must follow the last store.
    pub fence: fn(),
    pub merge: Merge,
}

/// Runs that take turns at the most, and the bytes that each must have, and less than which. Zen 4, 16 MiB of runs of
/// 256 KiB, share of the flat copy by turns for one by one: .78 for 1.00.
pub(super) const TURNS: usize = 16;
pub(super) const LEAST_TURN: usize = 256;
pub(super) const LONGEST_TURN: usize = 64 << 10;

/// Bytes of the elements that are deinterleaved.
const WIDTHS: [usize; 5] = [1, 2, 4, 8, 16];

/// The longest units of each of the loops that gather.
const GATHERS: [usize; 11] = [1, 2, 4, 8, 16, 32, 40, 48, 64, 96, 128];

impl Kernels {
    /// Whether some elements of `width` bytes may be deinterleaved.
    pub(super) fn may_deinterleave(&self, width: usize) -> bool {
        width <= self.longest || Self::transposes(width)
    }

    /// Whether `len` elements of `width` bytes are.
    pub(super) fn deinterleaves(&self, len: usize, width: usize) -> bool {
        Self::transposes(width) || (width <= self.longest && (self.permutes)(len, width))
    }

    /// Whether many blocks of `len` elements of `width` bytes are deinterleaved at a time.
    pub(super) fn takes_blocks(&self, len: usize, width: usize) -> bool {
        len <= MOST_OF_BLOCKS && width <= self.longest
    }

    /// Whether there are loops that transpose units of `width` bytes.
    pub(super) fn transposes(width: usize) -> bool {
        WIDTHS.contains(&width)
    }

    /// Transposes a matrix, if there are loops for its width.
    ///
    /// # Safety
    /// That of `transpose.rs`.
    #[inline(never)] // once in the library
    pub(super) unsafe fn transpose(&self, matrix: &Transpose<'_>) {
        let width = WIDTHS.iter().position(|width| *width == matrix.width);
        if let Some(turns) = width.and_then(|at| self.transpose.get(at)) {
            // SAFETY: the caller's promise.
            unsafe { transpose::transpose(turns, self.carry, matrix) };
        }
    }

    /// Gathers units of 9 to 128 bytes one by one, where there is a loop for that.
    ///
    /// # Safety
    /// 1, 3 of `generic.rs`.
    pub(super) unsafe fn gather_units(&self, rows: Gather) {
        let Gather { source, step, target, count, unit } = rows;
        // SAFETY: the caller's promise.
        unsafe {
            match self.units {
                Some(units) => units(source, signed(step), target, signed(unit), count, unit),
                None => (self.gather(unit))(rows),
            }
        }
    }

    /// The loop that gathers units of `unit` bytes. Its contract is 1, 3 of `generic.rs`.
    #[inline(never)] // once in the library
    pub(super) fn gather(&self, unit: usize) -> unsafe fn(Gather) {
        let place = GATHERS.iter().position(|longest| unit <= *longest);
        place.and_then(|place| self.gather.get(place).copied()).unwrap_or(self.gather_any)
    }
}

/// The loops of a level: of the next lower one that this architecture has.
pub(super) fn of_level(level: Level) -> &'static Kernels {
    match level {
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        Level::Vbmi => &x86_64::vbmi::VBMI,
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        Level::Avx512 => &x86_64::avx512::AVX512,
        #[cfg(all(target_arch = "x86_64", not(feature = "avx512")))]
        Level::Avx512 | Level::Vbmi => &x86_64::avx2::AVX2,
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => &x86_64::avx2::AVX2,
        #[cfg(all(target_arch = "aarch64", target_endian = "little"))]
        Level::Neon => &aarch64::NEON,
        _ => &table::KERNELS,
    }
}

/// The loops of a level, and long runs by string instructions, where it has such.
pub(super) fn with_strings(level: Level) -> &'static Kernels {
    match level {
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        Level::Vbmi => &x86_64::vbmi::VBMI_STRINGS,
        level => of_level(level),
    }
}

/// The loops of a level for CPUs that load and store registers of a line as two halves.
pub(super) fn in_halves(level: Level) -> &'static Kernels {
    match level {
        #[cfg(all(target_arch = "x86_64", feature = "avx512"))]
        Level::Vbmi => &x86_64::vbmi::VBMI_HALVES,
        level => of_level(level),
    }
}

/// The loops of every level that this CPU has.
#[cfg(test)]
pub(super) fn levels() -> Vec<&'static Kernels> {
    let highest = cpu::Cpu::this().level;
    let mut levels: Vec<&'static Kernels> = Vec::new();
    for level in rules::LEVELS.into_iter().filter(|level| *level <= highest) {
        for kernels in [of_level(level), in_halves(level), with_strings(level)] {
            if !levels.iter().any(|other| std::ptr::eq(*other, kernels)) {
                levels.push(kernels);
            }
        }
    }
    levels
}
