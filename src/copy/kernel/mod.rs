//! The loops that move bytes, and the one place that chooses among them.
//!
//! | file | what it holds |
//! |---|---|
//! | `generic.rs` | the loops, written once |
//! | `x86_64.rs` | the same for AVX2, and stores that go past the caches |
//! | `steps.rs` | portable loops for units a step apart on both sides |
//! | `lines.rs` | a stage that turns small pieces into whole lines for such stores |

mod generic;
pub(super) mod lines;
pub(super) mod steps;
#[cfg(target_arch = "x86_64")]
mod x86_64;

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
}

/// The most targets that rows are dealt out to at a time.
pub(super) const MAX_DEAL: usize = 16;

/// The loops of one level of CPU features.
pub(super) struct Kernels {
    /// Copies contiguous bytes.
    pub copy: unsafe fn(*const u8, *mut u8, usize),
    /// Copies contiguous bytes past the caches: whole lines to an aligned target.
    pub stream: unsafe fn(*const u8, *mut u8, usize),
    /// What must follow the last `stream`.
    pub fence: fn(),
    /// By [`GATHERS`].
    gather: [unsafe fn(Gather); GATHERS.len()],
    gather_any: unsafe fn(Gather),
    /// By width, then by [`DEALS`].
    deal: [[unsafe fn(Deal); DEALS.len()]; WIDTHS.len()],
}

/// Bytes of the elements that are dealt out.
const WIDTHS: [usize; 5] = [1, 2, 4, 8, 16];

/// Numbers of targets that rows can be dealt out to, most first.
pub(super) const DEALS: [usize; 5] = [16, 8, 4, 3, 2];

/// The longest units of each of the loops that gather.
const GATHERS: [usize; 11] = [1, 2, 3, 4, 7, 8, 15, 16, 32, 64, 128];

impl Kernels {
    /// Whether elements of `width` bytes can be dealt out.
    pub(super) fn deals(width: usize) -> bool {
        WIDTHS.contains(&width)
    }

    /// The loop that deals elements of `width` bytes out to `len` targets, if there is one.
    pub(super) fn deal(&self, width: usize, len: usize) -> Option<unsafe fn(Deal)> {
        let width = WIDTHS.iter().position(|w| *w == width)?;
        let len = DEALS.iter().position(|l| *l == len)?;
        self.deal.get(width)?.get(len).copied()
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
    if cfg!(not(libsplit_portable)) && std::arch::is_x86_feature_detected!("avx2") {
        return &x86_64::AVX2;
    }
    &generic::KERNELS
}

/// The loops of every level that this CPU has.
#[cfg(test)]
pub(super) fn levels() -> Vec<&'static Kernels> {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        return vec![&generic::KERNELS, &x86_64::AVX2];
    }
    vec![&generic::KERNELS]
}
