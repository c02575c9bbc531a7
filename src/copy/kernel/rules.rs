//! What to do on which CPU: what goes by vendor, family and sizes of caches, each rule with what was measured for
//! it. A CPU that nobody has measured gets the safe choice. `make tune` measures most of it on the machine that it
//! runs on (`CONTRIBUTING.md`, Another CPU).
//!
//! Elsewhere stands what goes by the loops that a rule has chosen: thresholds of a single loop beside that loop, with
//! the CPU that they were measured on, and what a table of loops does otherwise in that table (`picks_upwards`).
//!
//! Rules are a pure function of what the CPU says of itself ([`Rules::of`]), found out once: under a
//! hypervisor to ask takes microseconds.

#![forbid(unsafe_code)]

#[cfg(feature = "tune")]
pub mod tune;

use super::cpu::{Cpu, Level, Vendor};
use super::{in_halves, of_level, with_strings, Kernels, PAGE};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What to do on a CPU.
#[allow(clippy::struct_excessive_bools)] // rules that have nothing to do with each other
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct Rules {
    /// The level of the loops: the highest that has been seen to win, not the highest there is.
    pub level: Level,
    /// Bytes of input and outputs together that one thread copies faster through the caches than past
    /// them: whole pages.
    pub budget: usize,
    /// The most that several threads copy so together, of which each brings as much: below 256 MiB, whole ones.
    pub all: usize,
    /// Eighths of that, five to all, that hold outputs of runs that are short, or lie apart.
    pub apart: usize,
    /// Eighths of what one thread brings, five to all but one, that hold outputs that are transposed, whatever the
    /// threads; 8: as [`Rules::apart`].
    pub transposed: usize,
    /// Eighths of one thread's, five to all, that hold outputs of runs that are short, or off their lines.
    pub short: usize,
    /// Whether packed rows of few pieces of one length, however short, go past the caches no sooner than long ones, unequal
    /// ones as [`Rules::apart`], and many pieces as [`Rules::transposed`]; of several threads five and more sooner. There
    /// [`Rules::prefetch`] is that of short runs alone.
    pub keeps_equal: bool,
    /// Whether few long rows go past the caches one by one too.
    pub is_row_major_past: bool,
    /// Whether several threads keep runs that lie apart in the caches while these hold them.
    pub keeps_apart: bool,
    /// Whether all short elements go past the caches by way of write-combining buffers, or only those of
    /// [`LONGEST_COMBINED`] bytes.
    pub combines: bool,
    /// Bytes ahead that input is prefetched, where outputs go past the caches: whole lines.
    pub prefetch: usize,
    /// Outputs of so many bytes in all have their long runs copied by string instructions: whole
    /// pages, 0 for none.
    pub strings: usize,
    /// Whether they copy what is read again and again too, which is then cheaper to store.
    pub repeats_by_strings: bool,
    /// Whether registers of 64 bytes are loaded and stored as two halves: some loops are then others.
    pub is_halved: bool,
    /// Whether short runs of many pieces are copied one piece after the other, and through the caches, however many
    /// bytes these are.
    pub goes_by_piece: bool,
}

const MIB: usize = 1 << 20;

/// The largest [`Rules::all`].
const MOST: usize = 255 * MIB;

/// So many eighths of bytes that are held, whole pages.
pub(in super::super) fn eighths_of(held: usize, eighths: usize) -> usize {
    (held / 8).saturating_mul(eighths)
}

/// Runs of so many bytes are long, for [`Rules::of_short`].
pub(in super::super) const LONG_RUN: usize = if LOW_THRESHOLDS { 1 << 10 } else { 32 << 10 };

/// The least [`Rules::strings`] of any CPU, but for 0.
pub(in super::super) const LEAST_STRINGS: usize = if LOW_THRESHOLDS { PAGE } else { 24 << 10 };

/// Runs of fewer bytes on average are short, for [`Rules::prefetch`].
pub(in super::super) const SHORT_AHEAD: usize = 1 << 10;

/// The rules for this CPU, once they have been asked for: packed.
static HERE: AtomicU64 = AtomicU64::new(0);

impl Rules {
    /// The rules for a CPU.
    pub(in super::super) fn of(cpu: &Cpu) -> Self {
        let level = match (cpu.vendor, cpu.level) {
            // Zen 3, which has AVX2 at the most, 4 and 5. Share of the flat copy by VBMI for by AVX2: Zen 4, 5×7 bytes
            // .77 for .41, 3×12 .84 for .59, 2×9 .86 for .48; Zen 5, in the second-level cache, 2×1 .85 for .59, 3×1 .95
            // for .46, 3×4 .93 for .47, 2×8 .86 for .62.
            (Vendor::Amd, level) if matches!(cpu.family, 0x19 | 0x1A) => level,
            // Tested under qemu (`make cross`), measured nowhere: every one of its loops does in a few
            // instructions what the portable ones do element by element.
            (_, Level::Neon) => Level::Neon,
            // Sapphire Rapids was tuned with AVX2, and reaches the flat copy with it. Whether wider
            // registers win there, on any other Intel, on Hygon's CPUs or on AMD's next ones, has not
            // been measured; on older ones of Intel's they lower the clock.
            (_, level) => level.min(Level::Avx2),
        };
        let (budget, all) = Self::budget(cpu);
        Self {
            level,
            budget,
            all: all & !(MIB - 1),
            apart: Self::apart(cpu),
            transposed: Self::transposed(cpu),
            short: Self::short(cpu),
            keeps_equal: Self::keeps_equal(cpu),
            is_row_major_past: Self::is_row_major_past(cpu),
            keeps_apart: Self::keeps_apart(cpu),
            combines: Self::combines(cpu),
            prefetch: Self::prefetch(cpu),
            strings: Self::strings(cpu),
            repeats_by_strings: Self::repeats_by_strings(cpu),
            // Zen 4, 1 MiB, share of the flat copy by registers of half a line for those of a line: two runs of 48 bytes
            // .81 for .79, three of 64 .94 for .88, five of 96 .91 for .89, twelve of 128 .94 for .92.
            is_halved: Self::is_zen4(cpu),
            goes_by_piece: Self::goes_by_piece(cpu),
        }
    }

    /// Zen 4 has the family of Zen 3, which has no AVX-512.
    fn is_zen4(cpu: &Cpu) -> bool {
        (cpu.vendor, cpu.family) == (Vendor::Amd, 0x19) && cpu.level >= Level::Avx512
    }

    fn budget(cpu: &Cpu) -> (usize, usize) {
        let &Cpu { vendor, second, third, .. } = cpu;
        if vendor == Vendor::Intel && second >= MIB && third > 36 * MIB {
            // Sapphire Rapids: the cores' own caches are large, and the shared one is a mesh of many
            // slices, no quicker to write to than memory. Past them from 1.5 × L2 of a thread on. GB/s of a flat
            // copy through them and past them, MB: 1.05 15.5, 14.6, 1.6 9.3, 13.6, 3.3 10.2, 11.8, 4.7 9.3, 11.0,
            // 6.2 5.3, 10.8, 16 5.1, 7.4.
            let one = (second + second / 2) & !(PAGE - 1);
            return (one, one.saturating_mul(63).min(MOST));
        }
        // Virtual machines report the size of their host's.
        let third = if third == 0 { 32 * MIB } else { third.clamp(4 * MIB, 64 * MIB) };
        if vendor == Vendor::Amd && cpu.family == 0x1A {
            // Zen 5, read row by row: 1.0 to 1.25 × L3 with one thread, 1.5 × with two. At half of L3,
            // i64×2 of 10 to 13 MiB copied at 31 GB/s instead of 37 to 39.
            return (third & !(PAGE - 1), third);
        }
        if Self::is_zen4(cpu) {
            // 3/4 of it, where neighbours of the virtual machine leave the shared cache alone: GB/s of memcpy through the
            // caches and past them, MiB of outputs 6 44, 29; 8.5 41, 29; 10 38, 29; 12 33, 29; 14 29, 29; in long runs, or
            // equal ones of any length, on lines and off. Where they use it, past it wins sooner: two of 4 MB 1.3 times as
            // quick. But what else copies tensors goes through the caches there. Two threads, us through them for past
            // them: 16 MiB 310 for 590, 18 360 for 670, 20 450 for 740, 22 600 for 810, 24 720 for 910, in long runs, in
            // ones of 2 to 4 KiB, and of two columns. Where neighbours use it, us through them for past them, parts of tensors
            // of 16 MiB 1.3 to 1.65 times as long, every other row of 24 1.6, 3×128 bytes of 24 1.35, 3×4 1.2; two columns
            // put together 15 .87: so no more than a quarter beyond it.
            return ((third / 4 * 3) & !(PAGE - 1), third / 4 * 5);
        }
        // Zen 3: the two are equal at L3 / 2 with one thread, at 1.3 × L3 with two; in the caches the
        // stores past them cost 20–55 %.
        ((third / 2) & !(PAGE - 1), third)
    }

    fn apart(cpu: &Cpu) -> usize {
        match (cpu.vendor, cpu.family) {
            // Zen 5, share of the flat copy past the caches for through them, MiB of outputs.
            // Interleaved: i64×2 9 .67 for .78, 10 .68 for .70, 11 .73 for .64, 13 .84 for .63, 15 1.01
            // for .66; f32×3 8 .71 for .77, 10 .72 for .65; u8×3 10 .74 for .73, 11 .75 for .58; f32×6
            // 10 .72 for .54. Transposed: f32 [2048,2048] .70 for .30, for lines of targets that are a
            // power of two apart are stored through the caches at half the speed. Deinterleaved: i64×2
            // of 15 .87 for .71, 9×4 bytes of 10 .65 for .45. Long runs that lie apart: 12 of 6 KiB each .80
            // for .51, 16 of 4 KiB .88 for .50.
            (Vendor::Amd, 0x1A) => 5,
            // Zen 4, the same, first on lines, then 16 bytes off. Deinterleaved: i64×2 8 .86 for .99, .96 for .97, 9
            // .94 for .98, 1.01 for .94; f32×3 7 .71 for .95, 8 .87 for .87, 1.01 for .78; u8×4 7.9 .89 for .83, .92
            // for 1.04. Interleaved: i64×2 7 .66 for .86, 1.01 for .81, 8 .72 for .78, 1.11 for .68; u8×4 7.9 .85
            // for .67, .92 for .66. Rows with a pitch 7 .78 for .85, .88 for .66, 8 .77 for .80, .88 for .42. Two
            // threads: i64×2 14 .61 for .76, 16 .74 for .83, .99 for .85; interleaved 14 .71 for .83, 16 .81 for .81;
            // rows with a pitch 12 .56 for .52, .69 for .52, 16 .64 for .69, .95 for .76. Where neighbours of the
            // virtual machine use the shared cache, past it wins sooner: u8×4 interleaved 6 .92 for .70, f32×2 6
            // .93 for .80, u8 backwards 7.9 .84 for .57. Where they do not, time through them for past them, means of
            // 20 random splits a kind: parts of pictures 7 .78, 8 .85, 9 .90, heads .82, .78, .80, interleaved .71,
            // .76, .83, unequal runs of 30 to 3,000 bytes 8 .82, 9 1.06, 10 .86, 11 1.13, some of them 2.
            _ if Self::is_zen4(cpu) => 6,
            _ => 8,
        }
    }

    fn transposed(cpu: &Cpu) -> usize {
        if Self::is_zen4(cpu) {
            // Share of the flat copy past the caches for through them, MiB of outputs on lines: f32 [1024,1792] 7
            // .59 for .36, 1,344² 6.9 .73 for .65, u16 [1792,2048] 7 .62 for .37, u8 2,688² 6.9 .64 for .50, f32
            // [1024,1536] 6 .48 for .44. Two threads, of f32 2,048² 16 .58 for .34, of others .39 to 1.9 times as
            // quick from one minute to the next through them, slower than one thread then, .75 to 1.8 past them. Later, where
            // neighbours left the shared cache, time through them for past them, random ones of 1 to 16 bytes: 7 .91, 8
            // .97, 9 .90, 10 1.02, 12 1.3; but 100 to 400 columns 8 1.2 to 2.5, 11 1.4 to 3.
            return 5;
        }
        8
    }

    fn short(cpu: &Cpu) -> usize {
        match (cpu.vendor, cpu.family) {
            // Zen 5, share of the flat copy past the caches for through them, MiB of outputs: three runs of
            // 2 KiB 11 .70 for .79, 12 .72 for .72, 14 .75 for .66; 16 bytes off, of 256 bytes 11 .93 for
            // .90, 12 1.00 for .85, of 64 KiB 12 .98 for .95, 14 .97 for .81, of 1 MiB 15 .96 for .81; 32 of
            // 512 bytes 12 .72 for .47. But on lines, of 64 KiB 14 .78 for .85, 16 .87 for .87, of 1 MiB 15
            // .77 for .88; and two threads, 2 KiB, 12 .42 or .84, as the memory is, for .80.
            (Vendor::Amd, 0x1A) if cfg!(feature = "avx512") => 6,
            _ => 8,
        }
    }

    fn keeps_equal(cpu: &Cpu) -> bool {
        // Zen 4, GB/s past the caches for through them, MiB of outputs, where neighbours leave the shared cache: 2×4
        // bytes 7 28 for 35 to 38, 8 25 to 27 for 30 to 36; 3×1 7 28 for 38 to 40; 4×1 8 28 for 34 to 39; 10 28 for 26 to
        // 31. Where they use it, 7.2 and 7.9 MiB on lines and off, of eighty: .59 to 1.6 times as quick through them, 1.04
        // on the whole; a picture's part 4×1 .97 of the flat copy for .68, .95 for .79. Time through them for past them
        // of 30 random equal ones of 1 to 600 bytes each: 8 .63, 9 .75, 10 .73, 11 .90, 13 .83.
        Self::is_zen4(cpu)
    }

    fn is_row_major_past(cpu: &Cpu) -> bool {
        // Zen 5: 8 rows of 4 MB .86 of the flat copy to 1.04.
        matches!((cpu.vendor, cpu.family), (Vendor::Amd, 0x1A))
    }

    fn keeps_apart(cpu: &Cpu) -> bool {
        // Two threads fill memory with runs that lie apart, not the caches. Zen 5, 10 to 16 MiB, share of the
        // flat copy past the caches for through them, where memory gives two threads no more than one: i64×2
        // .46 for .62, f32×9 .36 for .55, blocks of 128 KiB .47 for .94, every second row of 12 KiB .39 for .55,
        // i64×2 interleaved .45 for .71, runs of 4 KiB in rows of 12 .46 for .42; where it gives more: .81 for
        // .98, .71 for .62, .77 for 1.14, .71 for .76, .45 for .71, .94 for .95. Transposes .88 for .31.
        matches!((cpu.vendor, cpu.family), (Vendor::Amd, 0x1A)) && cfg!(feature = "avx512")
    }

    fn goes_by_piece(cpu: &Cpu) -> bool {
        // Zen 4, ms before and after, 20 to 24 MiB past the caches: 750 pieces of 1 to 7 bytes 18.3, 5.7, 600 of 2 to 10
        // 24.4, 6.7, 128 of 1 to 17 5.8, 4.0, 256 of 6 10.8, 7.0, 200 of 12 9.3, 5.5, but 64 of 2 to 10 5.0, 5.7; us, 1
        // MiB: 200 of 12 239, 61, 48 of 31 64, 42, 64 of 1 to 5 242, 100; 250 KiB: 48 of 1 to 60 16.6, 10.2.
        Self::is_zen4(cpu)
    }

    fn combines(cpu: &Cpu) -> bool {
        // Zen 5, 96 MiB, share of the flat copy: 3×12 bytes .88 by buffers for .42 by merging lines,
        // 8×12 .74 for .51, 2×24 .91 for .56, 3×24 .88 for .64, 8×24 .71 for .64, but 16×24 .62 for .65.
        // Zen 4, GB/s in 40 MiB: 2×12 17.7 for 11.0, 3×12 18.4 for 12.1, 5×9 15.4 for 9.3, 8×12 14.0 for 11.7, 3×24
        // 16.2 for 16.1, 16×24 13.2 for 12.5, but 5×24 14.0 for 16.3.
        matches!((cpu.vendor, cpu.family), (Vendor::Amd, 0x1A))
            || cfg!(feature = "avx512") && Self::is_zen4(cpu)
    }

    fn prefetch(cpu: &Cpu) -> usize {
        match (cpu.vendor, cpu.family) {
            // Zen 5: 8192 for 4096, share of the flat copy: runs of 4 KiB .90 → .96, of 22 KiB .91 → .98,
            // W14 .95 → 1.00, W6 .97 → 1.04, 31 mixed .95 → 1.02, 3×12 bytes .94 → .99, 8×48 .92 → 1.00,
            // 16×48 .71 → .86. 6144 is between them, 12288 the same but for 16 pieces (.81 for .74),
            // without it 31 mixed .46.
            (Vendor::Amd, 0x1A) => 8192,
            // Zen 4, share of the flat copy for 2048: 3×128 bytes .98 for .84, 16, 4 and 320 1.02 for .95, 31 mixed .89 for
            // .79; 4096 between them, 8192 as 6144: 3×12 .85 for .79, 13 of 1 to 13 .43 for .36.
            _ if cfg!(feature = "avx512") && Self::is_zen4(cpu) => 6144,
            // Zen 3 and Sapphire Rapids: 10–25 % for short runs, nothing for long ones.
            _ => 2048,
        }
    }

    fn strings(cpu: &Cpu) -> usize {
        match (cpu.vendor, cpu.family) {
            // Zen 5, `rep movsb`, an AVX2 loop and an AVX-512 loop on targets aligned to a line, GB/s:
            // 16 KiB 159, 180, 255; 32 KiB 161, 92, 80; 128 KiB 129, 96, 88; 512 KiB 99, 77, 77;
            // 4 MiB 65–68, 55–62, 57–62; 16 MiB 53, 42, 44. Half of the first-level cache: up to there it
            // holds both.
            (Vendor::Amd, 0x1A) => LEAST_STRINGS,
            // Zen 4, GB/s for an AVX2 loop: 4 KiB 100 for 115, 64 KiB 57.4 for 57.5, 1 MiB 49.0 for 48.7, but where
            // target - source is 8 within a page 3.5 for 58, 16 at 8 KiB 49 for 98, at 8 MiB 13 for 33. Zen
            // 3: 15 to 25 times slower where target - source is 1 to 63 within a page. Sapphire Rapids: no gain
            // (figures were not kept).
            _ => 0,
        }
    }

    fn repeats_by_strings(cpu: &Cpu) -> bool {
        // Zen 5: see [`AGAIN_BY_STRINGS`]. Not measured elsewhere, where long runs go by loops.
        matches!((cpu.vendor, cpu.family), (Vendor::Amd, 0x1A))
    }

    /// The same for other than packed rows of runs shorter than [`SHORT_AHEAD`]. Zen 4, share of the flat copy for 6144:
    /// 3×4096 bytes 1.08 for 1.02, 16 off a line 1.04 for .88, 2×11008 1.05 for .99, floats backwards .93 for .87.
    pub(in super::super) fn ahead_of_long(&self) -> usize {
        if self.keeps_equal {
            self.prefetch.min(2048)
        } else {
            self.prefetch
        }
    }

    /// The loops for so many bytes of outputs.
    #[inline]
    pub(in super::super) fn kernels_for(&self, bytes: usize) -> &'static Kernels {
        if self.strings > 0 && bytes >= self.strings {
            with_strings(self.level)
        } else if self.is_halved {
            in_halves(self.level)
        } else {
            of_level(self.level)
        }
    }

    /// Bytes of input and outputs together that `threads` threads copy faster through the caches.
    pub(in super::super) fn held_by(&self, threads: usize) -> usize {
        if LOW_THRESHOLDS {
            return 1 << 10;
        }
        self.budget.saturating_mul(threads).min(self.all).max(self.budget)
    }

    /// Of so many bytes that are held, those of outputs of runs that are short, or off their lines.
    pub(in super::super) fn of_short(&self, held: usize, threads: usize) -> usize {
        if threads == 1 && !LOW_THRESHOLDS {
            eighths_of(held, self.short)
        } else {
            held
        }
    }

    /// Whether there are such loops.
    pub(in super::super) fn has_strings(&self) -> bool {
        cfg!(feature = "avx512") && self.strings > 0
    }

    /// Of so many bytes that are held, those of outputs of runs that lie apart.
    pub(in super::super) fn of_apart(&self, held: usize) -> usize {
        eighths_of(held, self.apart)
    }

    /// Bytes that outputs of repeated rows go on with, or up to twice as many.
    pub(in super::super) fn again(&self) -> usize {
        if self.repeats_by_strings {
            AGAIN_BY_STRINGS
        } else {
            AGAIN
        }
    }

    /// The rules for this CPU; in a build with `--cfg libsplit_level="avx2"`, or another one, with loops
    /// of that level at the most.
    #[inline]
    pub(in super::super) fn here() -> Self {
        match HERE.load(Relaxed) {
            0 => Self::find(),
            known => Self::unpacked(known),
        }
    }

    #[cold]
    #[inline(never)]
    fn find() -> Self {
        let mut rules = Self::of(&cpu());
        if FORCED < rules.level {
            rules = Self { level: FORCED, ..rules.without_strings() };
        }
        HERE.store(rules.packed(), Relaxed);
        rules
    }

    /// The same for lower levels, for which these rules were not measured.
    fn without_strings(self) -> Self {
        Self {
            strings: 0,
            repeats_by_strings: false,
            is_row_major_past: false,
            keeps_equal: false,
            keeps_apart: false,
            is_halved: false,
            goes_by_piece: false,
            short: 8,
            transposed: 8,
            prefetch: 2048,
            ..self
        }
    }

    /// All of it in one word, which is not 0.
    fn packed(self) -> u64 {
        let place = LEVELS.iter().position(|level| *level == self.level).unwrap_or(0) as u64;
        let eighths = |of: usize| 8u64.saturating_sub(of as u64);
        u64::from(self.keeps_apart) << 63
            | u64::from(self.is_halved) << 62
            | u64::from(self.goes_by_piece) << 10
            | u64::from(self.keeps_equal) << 11
            | ((self.all / MIB) as u64) << 48
            | ((self.budget / PAGE) as u64) << 32
            | ((self.prefetch / PREFETCH_UNIT) as u64) << 24
            | ((self.strings / PAGE) as u64) << 16
            | eighths(self.apart) << 14
            | eighths(self.transposed) << 8
            | u64::from(self.combines) << 7
            | eighths(self.short) << 5
            | u64::from(self.repeats_by_strings) << 4
            | u64::from(self.is_row_major_past) << 3
            | place
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // as packed
    fn unpacked(word: u64) -> Self {
        let field = |shift: u32, bits: u32| (word >> shift & ((1 << bits) - 1)) as usize;
        Self {
            level: LEVELS.get(field(0, 3)).copied().unwrap_or(Level::Portable),
            budget: field(32, 16).saturating_mul(PAGE),
            all: field(48, 8).saturating_mul(MIB),
            apart: 8 - field(14, 2),
            transposed: 8 - field(8, 2),
            short: 8 - field(5, 2),
            is_row_major_past: field(3, 1) > 0,
            keeps_apart: field(63, 1) > 0,
            combines: field(7, 1) > 0,
            prefetch: field(24, 8) * PREFETCH_UNIT,
            strings: field(16, 8) * PAGE,
            repeats_by_strings: field(4, 1) > 0,
            is_halved: field(62, 1) > 0,
            goes_by_piece: field(10, 1) > 0,
            keeps_equal: field(11, 1) > 0,
        }
    }
}

/// Zen 5, 1 to 12 MiB into two outputs, GB/s, row by row and for [`Rules::again`]: by string instructions, rows
/// of 12 KiB 47, 121, 3 KiB 84, 123, 1 KiB 27, 122; by AVX2 with 32 KiB 106, 66; 74, 67; 34, 70, with 4 KiB
/// 106, 108; 73, 108; 34, 103.
pub(in super::super) const AGAIN_BY_STRINGS: usize = 32 << 10;
pub(in super::super) const AGAIN: usize = 4 << 10;

const PREFETCH_UNIT: usize = 64;
pub(super) const LEVELS: [Level; 5] =
    [Level::Portable, Level::Neon, Level::Avx2, Level::Avx512, Level::Vbmi];

/// The CPU by whose rules this build goes: this one, or to compare builds for a CPU that is not here, that one, as
/// `cpu.rs` has it recorded, but with no higher level than there is here.
fn cpu() -> Cpu {
    let here = Cpu::this();
    let (vendor, family, level, second, third) = if cfg!(libsplit_cpu = "zen3") {
        (Vendor::Amd, 0x19, Level::Avx2, MIB / 2, 32 * MIB)
    } else if cfg!(libsplit_cpu = "zen4") {
        (Vendor::Amd, 0x19, Level::Vbmi, MIB, 16 * MIB)
    } else if cfg!(libsplit_cpu = "zen5") {
        (Vendor::Amd, 0x1A, Level::Vbmi, MIB, 32 * MIB)
    } else if cfg!(libsplit_cpu = "sapphire-rapids") {
        (Vendor::Intel, 6, Level::Avx2, 2 * MIB, 84_480 << 10)
    } else {
        return here;
    };
    Cpu { vendor, family, level: level.min(here.level), second, third }
}

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

/// Whether thresholds that choose another way by bytes are so low that small cases cross them: for tests.
pub(in super::super) const LOW_THRESHOLDS: bool = cfg!(libsplit_low_thresholds);

/// The longest elements, but for those of 16 bytes, that every CPU deinterleaves past the caches, by way
/// of write-combining buffers; longer ones are merged.
pub(in super::super) const LONGEST_COMBINED: usize = 8;

#[cfg(test)]
mod tests {
    use super::{Cpu, Level, Rules, Vendor, LEVELS, MIB};

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
        use super::super::cpu::recorded::{
            cpu, ALDER_LAKE, ALL, AVX, SAPPHIRE_RAPIDS, SSE, ZEN3, ZEN4, ZEN5,
        };
        use super::{LOW_THRESHOLDS, PAGE};
        let is = |words, level, budget, all, prefetch, strings| {
            let is_zen5 = words == ZEN5;
            let rules = Rules {
                level,
                budget,
                all,
                apart: if is_zen5 {
                    5
                } else if words == ZEN4 {
                    6
                } else {
                    8
                },
                transposed: if words == ZEN4 { 5 } else { 8 },
                short: if is_zen5 && cfg!(feature = "avx512") { 6 } else { 8 },
                is_row_major_past: is_zen5,
                keeps_apart: is_zen5 && cfg!(feature = "avx512"),
                combines: is_zen5 || (words == ZEN4 && cfg!(feature = "avx512")),
                prefetch,
                strings,
                repeats_by_strings: is_zen5,
                is_halved: words == ZEN4,
                goes_by_piece: words == ZEN4,
                keeps_equal: words == ZEN4,
            };
            assert_eq!(Rules::of(&cpu(words, ALL)), rules);
            // And registers that the operating system does not keep are never used.
            assert!(Rules::of(&cpu(words, AVX)).level <= Level::Avx2);
            assert_eq!(Rules::of(&cpu(words, SSE)).level, Level::Portable);
        };
        is(ZEN3, Level::Avx2, 16 * MIB, 32 * MIB, 2048, 0);
        let zen4 = if cfg!(feature = "avx512") { 6144 } else { 2048 };
        is(ZEN4, Level::Vbmi, 12 * MIB, 20 * MIB, zen4, 0);
        let zen5 = if LOW_THRESHOLDS { PAGE } else { 24 << 10 };
        is(ZEN5, Level::Vbmi, 32 * MIB, 32 * MIB, 8192, zen5);
        is(SAPPHIRE_RAPIDS, Level::Avx2, 3 * MIB, 189 * MIB, 2048, 0);
        is(ALDER_LAKE, Level::Avx2, 9 * MIB, 18 * MIB, 2048, 0);
    }

    /// What follows from the rules for outputs of a kind, on CPUs where thresholds are as measured.
    #[cfg(all(target_arch = "x86_64", feature = "avx512", not(libsplit_low_thresholds)))]
    #[test]
    fn budgets_are_those_that_were_measured() {
        use super::super::cpu::recorded::{
            cpu, ALDER_LAKE, ALL, SAPPHIRE_RAPIDS, ZEN3, ZEN4, ZEN5,
        };
        // With one thread and two, and of the first those of short runs and of those that lie apart.
        let is = |words, budgets: [usize; 4], is_row_major| {
            let rules = Rules::of(&cpu(words, ALL));
            let [one, two] = [1, 2].map(|threads| rules.held_by(threads));
            let found = [one, two, rules.of_short(one, 1), rules.of_apart(one)];
            assert_eq!(found, budgets.map(|eighths| eighths * (MIB / 8)));
            assert_eq!(rules.of_short(two, 2), two);
            assert_eq!(rules.is_row_major_past, is_row_major);
        };
        is(ZEN3, [128, 256, 128, 128], false);
        is(ZEN4, [96, 160, 96, 72], false);
        is(ZEN5, [256, 256, 192, 160], true);
        is(SAPPHIRE_RAPIDS, [24, 48, 24, 24], false);
        is(ALDER_LAKE, [72, 144, 72, 72], false);
    }

    #[test]
    fn what_nobody_has_measured_gets_the_safe_choice() {
        // The second is one of Hygon's, the third comes after Zen 5.
        let unknown = [(Vendor::Other, 99), (Vendor::Amd, 0x18), (Vendor::Amd, 0x1B)];
        let safe = Rules {
            level: Level::Avx2,
            budget: 16 * MIB,
            all: 32 * MIB,
            apart: 8,
            transposed: 8,
            short: 8,
            is_row_major_past: false,
            keeps_apart: false,
            combines: false,
            prefetch: 2048,
            strings: 0,
            repeats_by_strings: false,
            is_halved: false,
            goes_by_piece: false,
            keeps_equal: false,
        };
        for (vendor, family) in unknown {
            let cpu = Cpu { vendor, family, level: Level::Vbmi, second: 0, third: 0 };
            assert_eq!(Rules::of(&cpu), safe);
        }
    }

    #[test]
    fn rules_fit_into_a_word() {
        for level in LEVELS {
            for prefetch in [64, 2048, 8192] {
                for (budget, all) in [(4096, 0), (3 * MIB, 189 * MIB), (64 * MIB, 64 * MIB)] {
                    for strings in [0, 24 << 10] {
                        let rules = Rules {
                            level,
                            budget,
                            all,
                            apart: if all == 0 { 5 } else { 8 },
                            transposed: if all == 0 { 6 } else { 7 },
                            short: if all == budget { 6 } else { 8 },
                            is_row_major_past: prefetch == 64,
                            keeps_apart: all == budget,
                            combines: strings == 0,
                            prefetch,
                            strings,
                            repeats_by_strings: prefetch == 2048,
                            is_halved: strings == 0,
                            goes_by_piece: all > budget,
                            keeps_equal: all == 0,
                        };
                        assert_eq!(Rules::unpacked(rules.packed()), rules);
                        assert_ne!(rules.packed(), 0);
                    }
                }
            }
        }
    }
}
