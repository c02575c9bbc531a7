//! The loops that move bytes, and the one place that chooses among them.
//!
//! | file | what it holds |
//! |---|---|
//! | `generic.rs` | the loops, written once |
//! | `bits.rs` | the loops for runs of bits, written once |
//! | `x86_64/` | the same for AVX2, stores that go past the caches, and what registers do better |
//! | `steps.rs` | portable loops for units a step apart on both sides |
//! | `transpose.rs` | contiguous units of many rows become rows of their own |
//! | `lines.rs` | a stage that turns small pieces into whole lines for such stores |

// Other CPUs have loops for every case, but not for every way of going about it.
#![cfg_attr(not(target_arch = "x86_64"), allow(dead_code, unused_imports))]

pub(super) mod bits;
mod generic;
pub(super) mod lines;
pub(super) mod steps;
pub(super) mod transpose;
#[cfg(target_arch = "x86_64")]
mod x86_64;

use super::signed;
use bits::{Packed, Runs};
use transpose::Transpose;

/// `count` units of `unit` bytes, each `step` from the one before, to be put one behind the other.
#[derive(Clone, Copy)]
pub(super) struct Gather {
    pub source: *const u8,
    pub step: usize,
    pub target: *mut u8,
    pub count: usize,
    pub unit: usize,
}

/// `count` rows, `step` bytes apart, that begin with an element for each target.
#[derive(Clone, Copy)]
pub(super) struct Deal {
    pub source: *const u8,
    pub step: usize,
    pub targets: [*mut u8; MAX_DEAL],
    pub count: usize,
    /// As many more rows follow, which can be read.
    pub after: usize,
}

/// The most targets that rows are dealt out to at a time.
pub(super) const MAX_DEAL: usize = 16;

/// The loops of one level of CPU features.
pub(super) struct Kernels {
    /// Copies contiguous bytes.
    pub copy: unsafe fn(*const u8, *mut u8, usize),
    /// Packs runs of bits.
    pub pack: unsafe fn(&mut Packed, Runs),
    /// By [`GATHERS`].
    gather: [unsafe fn(Gather); GATHERS.len()],
    gather_any: unsafe fn(Gather),
    /// By width, then by [`DEALS`].
    deal: [[unsafe fn(Deal); DEALS.len()]; WIDTHS.len()],
    pub deal_lines: Option<DealLines>,
    /// By width.
    transpose: [unsafe fn(&Transpose<'_>); WIDTHS.len()],
    /// Stores that go past the caches, where the CPU has them.
    pub past: Option<Past>,
}

/// Deals elements out to so many targets, of so many bytes, past the caches or not, a line of each
/// at a time; as many rows as it can, which it returns. To go past the caches, targets must all lie
/// as many whole elements from a line.
pub(super) type DealLines = unsafe fn(Deal, usize, usize, bool) -> usize;

/// A piece on its way past the caches.
#[derive(Clone, Copy)]
pub(super) struct Stream {
    /// The next byte, and how many its run has left, more than none.
    pub source: *const u8,
    pub left: usize,
    /// Bytes of a run, and those between two.
    pub unit: usize,
    pub gap: usize,
    /// The next line, aligned to one.
    pub target: *mut u8,
    /// Bytes of runs in a turn, and those that are due after the turns so far.
    pub turn: isize,
    pub due: isize,
}

/// Lets streams take turns: in each, every one stores the whole lines that it has due. Asks for the
/// input from a place on, which goes ahead by so many bytes a turn.
///
/// # Safety
/// What streams have due in all turns must be writable, and its input readable from the first byte
/// to the last, what lies between runs included.
pub(super) type Merge = unsafe fn(&mut [Stream], usize, *const u8, usize);

/// The loops that go past the caches.
pub(super) struct Past {
    /// Copies contiguous bytes: whole lines to an aligned target.
    pub stream: unsafe fn(*const u8, *mut u8, usize),
    /// Asks for so many bytes of input, from any address on, that are needed soon.
    pub ask: fn(*const u8, usize),
    /// What must follow the last store.
    pub fence: fn(),
    pub merge: Merge,
}

/// So many bytes ahead of those in use the input is asked for, where outputs go past the caches.
pub(super) const AHEAD: usize = 2048;

/// Bytes of the elements that are dealt out.
const WIDTHS: [usize; 5] = [1, 2, 4, 8, 16];

/// Numbers of targets that rows can be dealt out to, most first.
pub(super) const DEALS: [usize; 6] = [16, 8, 4, 3, 2, 1];

/// The longest units of each of the loops that gather.
const GATHERS: [usize; 20] =
    [1, 2, 4, 8, 16, 20, 32, 40, 48, 56, 64, 72, 80, 88, 96, 104, 112, 120, 128, 1024];

impl Gather {
    /// What is left after so many units.
    fn after(self, units: usize) -> Self {
        Self {
            source: self.source.wrapping_add(units * self.step),
            target: self.target.wrapping_add(units * self.unit),
            count: self.count - units,
            ..self
        }
    }
}

impl Deal {
    /// Leaves the first rows out.
    pub(super) fn skip(&mut self, rows: usize, width: usize) {
        self.source = self.source.wrapping_add(rows * self.step);
        self.targets = self.targets.map(|target| target.wrapping_add(rows * width));
        self.count -= rows;
    }
}

impl Kernels {
    /// Whether elements of `width` bytes can be dealt out.
    pub(super) fn deals(width: usize) -> bool {
        WIDTHS.contains(&width)
    }

    /// Deals elements of `width` bytes out to `len` targets: a width and a number that there is
    /// a loop for.
    ///
    /// # Safety
    /// Every element must be readable, and room for it writable at its target.
    pub(super) unsafe fn deal(&self, deal: Deal, width: usize, len: usize) {
        let width = WIDTHS.iter().position(|w| *w == width);
        let len = DEALS.iter().position(|l| *l == len);
        let kernel = width.and_then(|width| self.deal.get(width)?.get(len?));
        if let Some(kernel) = kernel {
            // SAFETY: the caller's promise.
            unsafe { kernel(deal) };
        }
    }

    /// The loop that transposes units of `width` bytes, if there is one.
    pub(super) fn transpose(&self, width: usize) -> Option<unsafe fn(&Transpose<'_>)> {
        let width = WIDTHS.iter().position(|w| *w == width)?;
        self.transpose.get(width).copied()
    }

    /// The loop that gathers units of `unit` bytes.
    pub(super) fn gather(&self, unit: usize) -> unsafe fn(Gather) {
        let place = GATHERS.iter().position(|longest| unit <= *longest);
        place.and_then(|place| self.gather.get(place).copied()).unwrap_or(self.gather_any)
    }
}

/// The loops for this CPU; in a test build with `--cfg libsplit_portable`, those for any.
pub(super) fn detect() -> &'static Kernels {
    #[cfg(target_arch = "x86_64")]
    if cfg!(not(libsplit_portable)) && x86_64::is_detected() {
        return &x86_64::AVX2;
    }
    &generic::KERNELS
}

/// The loops of every level that this CPU has.
#[cfg(test)]
pub(super) fn levels() -> Vec<&'static Kernels> {
    #[cfg(target_arch = "x86_64")]
    if x86_64::is_detected() {
        return vec![&generic::KERNELS, &x86_64::AVX2];
    }
    vec![&generic::KERNELS]
}
