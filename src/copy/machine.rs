//! What is decided by the machine: every number that was found by measuring, and the one table of CPU models.
//!
//! What a CPU can do and how large its caches are decides; a model has a row only where that is not enough. `make tune`
//! measures a row.

use super::cpu::{Cpu, Vendor};
use super::level::{kernels_of, Kernels, Level};
use core::ptr::from_ref;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed};

/// Tasks, and the ranges that they take, are at least this long: less is not worth handing to another thread.
pub(super) const TASK_BYTES: usize = 256 << 10;
/// Tasks, where the caller leaves their number to the library.
pub(super) const DEFAULT_TASKS: usize = 16;
/// A task that has less of each piece spends its time on setting them up.
pub(super) const TASK_PIECE_BYTES: usize = 2 << 10;
/// Walking past a piece takes as long as copying this.
pub(super) const WALK_BYTES: usize = 64;
/// Fewer rows than this are cut anywhere among threads, more of them between rows.
pub(super) const MANY_ROWS: usize = 64;

/// Fewer bytes of few packed rows are copied run by run, without a look at anything else.
pub(super) const SMALL_BYTES: usize = 128 << 10;
/// Outputs of fewer bytes stay in the caches, however small these say they are.
pub(super) const LEAST_PAST_BYTES: usize = 1 << 20;
/// So far ahead of what is sent past the caches its input is asked for.
pub(super) const AHEAD_BYTES: usize = 2 << 10;
/// Runs that take turns on their way past the caches, and how much of each: as many places as CPUs fetch ahead of.
pub(super) const RUNS_IN_TURN: usize = 16;
pub(super) const TURN_BYTES: usize = 256;
/// Shorter runs are put together before they are sent past the caches.
pub(super) const LEAST_STREAMED_BYTES: usize = 256;

/// Rows are taken in blocks of so many bytes of input, so that pieces that share lines find them in the first-level cache.
pub(super) const BLOCK_BYTES: usize = 16 << 10;
/// The same if runs are longer than [`LONG_RUN_BYTES`]: these share few lines.
pub(super) const LONG_BLOCK_BYTES: usize = 256 << 10;
pub(super) const LONG_RUN_BYTES: usize = 1 << 10;
/// Bytes of each column that are transposed in a block: whole lines, and several.
pub(super) const COLUMN_BYTES: usize = 512;
/// Rows so far apart may lie in few sets of the first-level cache.
pub(super) const FAR_ROWS_BYTES: usize = 512;
/// Of a piece that others share lines with, so much is taken at a time.
pub(super) const LEAST_TURN_BYTES: usize = 32 << 10;

/// Fewer units are not worth the tables of a program, which take about as many cycles.
pub(super) const LEAST_PROGRAM_UNITS: usize = 1 << 10;
/// Longer units are runs.
pub(super) const LONGEST_UNIT_BYTES: usize = 128;
/// Less of a piece is copied unit by unit.
pub(super) const LEAST_BYTES: usize = 256;

/// Turns of a program that each of its sets makes before the next set does: so that indices are not loaded for every turn,
/// and lines not read far out of their order.
pub(super) const TURNS_OF_SET: usize = 8;

/// Costs are in sixteenths of a cycle for a line of output.
pub(super) const CYCLE: usize = 16;
/// A load and a store of a run that is shorter than a line.
pub(super) const RUN_COST: usize = 20;
/// A load of a window, which may lie in two lines, and a pick from it.
pub(super) const LOAD_COST: usize = 26;
pub(super) const PICK_COST: usize = 16;
/// A program that costs no more for a line is not compared with others.
pub(super) const CHEAP_LINE: usize = 96;
/// A store of a register.
pub(super) const STORE_COST: usize = 16;
/// The way through a buffer, for a line that is not made whole.
pub(super) const STAGE_COST: usize = 48;

/// What a model differs in.
pub(super) struct Model {
    pub name: &'static str,
    vendor: Vendor,
    family: u32,
    /// The level that tells models of one family apart.
    level: Level,
    /// Bytes of inputs and outputs that are quicker through the caches: eighths of the third-level one, and no more than
    /// eighths of the second-level one.
    third_eighths: usize,
    second_eighths: usize,
}

/// Any other machine comes last.
pub(super) static MODELS: [Model; 5] = [
    Model { name: "zen3", vendor: Vendor::Amd, family: 0x19, level: Level::Avx2, third_eighths: 4, second_eighths: 1024 },
    Model { name: "zen4", vendor: Vendor::Amd, family: 0x19, level: Level::Avx512, third_eighths: 6, second_eighths: 1024 },
    Model { name: "zen5", vendor: Vendor::Amd, family: 0x1A, level: Level::Avx512, third_eighths: 8, second_eighths: 1024 },
    // The shared cache of Xeons is a mesh of many slices, and no quicker to write to than memory.
    Model { name: "xeon", vendor: Vendor::Intel, family: 6, level: Level::Avx512, third_eighths: 4, second_eighths: 32 },
    Model { name: "other", vendor: Vendor::Other, family: 0, level: Level::Portable, third_eighths: 4, second_eighths: 256 },
];

/// Bytes of the third-level cache of a machine that does not say; and the most that is believed, for virtual machines say
/// what their host has.
const UNKNOWN_THIRD_BYTES: usize = 16 << 20;
const MOST_THIRD_BYTES: usize = 64 << 20;

/// A machine: which kernels it runs, and what was measured on it.
#[derive(Clone, Copy)]
pub(super) struct Machine {
    pub kernels: &'static Kernels,
    pub model: &'static Model,
    /// Bytes of inputs and outputs together that are quicker through the caches.
    pub held_bytes: usize,
    pub second_bytes: usize,
    /// How many powers of two less large copies are than they seem: none, unless tests ask for it.
    shrunk: usize,
}

static KERNELS: AtomicPtr<Kernels> = AtomicPtr::new(core::ptr::null_mut());
static MODEL: AtomicUsize = AtomicUsize::new(0);
static HELD: AtomicUsize = AtomicUsize::new(0);
static SECOND: AtomicUsize = AtomicUsize::new(0);

impl Machine {
    fn of(cpu: &Cpu) -> (Self, usize) {
        let is = |model: &Model| model.vendor == cpu.vendor && model.family == cpu.family && model.level == cpu.level;
        let number = MODELS.iter().position(is).unwrap_or(MODELS.len() - 1);
        (Self::with(cpu.level, number, cpu.second, cpu.third), number)
    }

    fn with(level: Level, number: usize, second: usize, third: usize) -> Self {
        let [.., other] = &MODELS;
        let model = MODELS.get(number).unwrap_or(other);
        let third = if third == 0 { UNKNOWN_THIRD_BYTES } else { third.min(MOST_THIRD_BYTES) };
        let second = if second == 0 { LEAST_PAST_BYTES / 2 } else { second };
        let held = (third / 8 * model.third_eighths).min(second / 8 * model.second_eighths);
        Self { kernels: kernels_of(level), model, held_bytes: held, second_bytes: second, shrunk: 0 }
    }

    /// The machine that this runs on.
    #[inline]
    pub(super) fn here() -> Self {
        let kernels = KERNELS.load(Relaxed);
        // SAFETY: NULL, or what was stored below.
        match unsafe { kernels.as_ref() } {
            Some(kernels) => {
                let [.., other] = &MODELS;
                let number = MODEL.load(Relaxed);
                Self {
                    kernels,
                    model: MODELS.get(number & 0xFF).unwrap_or(other),
                    held_bytes: HELD.load(Relaxed),
                    second_bytes: SECOND.load(Relaxed),
                    shrunk: number >> 8,
                }
            }
            None => Self::find(),
        }
    }

    /// The kernels of the machine that this runs on.
    #[inline]
    pub(super) fn kernels() -> &'static Kernels {
        // SAFETY: NULL, or what was stored below.
        unsafe { KERNELS.load(Relaxed).as_ref() }.unwrap_or_else(|| Self::find().kernels)
    }

    #[cold]
    #[inline(never)]
    fn find() -> Self {
        let (machine, number) = Self::of(&Cpu::this());
        machine.put(number);
        machine
    }

    fn put(&self, number: usize) {
        MODEL.store(number | self.shrunk << 8, Relaxed);
        HELD.store(self.held_bytes, Relaxed);
        SECOND.store(self.second_bytes, Relaxed);
        KERNELS.store(from_ref(self.kernels).cast_mut(), Relaxed);
    }

    /// A threshold in bytes, or another number, as tests may have lowered it.
    #[inline]
    pub(super) fn least(&self, number: usize) -> usize {
        number >> self.shrunk
    }

    /// The name of the row of the table.
    pub(super) fn name(&self) -> &'static str {
        self.model.name
    }
}

/// The levels that this CPU and this build have.
#[cfg(test)]
pub(super) fn levels() -> Vec<Level> {
    let all = [Level::Portable, Level::Neon, Level::Avx2, Level::Avx512];
    all.into_iter().filter(|level| *level <= Cpu::this().level && kernels_of(*level).level == *level).collect()
}
