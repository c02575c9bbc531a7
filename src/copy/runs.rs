//! Kernels that copy runs of bytes: a single one, or many at equal distances.
//!
//! # Safety
//! For everything unsafe here: the runs must be readable and writable, and the CPU must have the features of the level.

use super::nest::Axis;
use super::opaque::opaque;
use super::vector::{Vector, LANE_BYTES, LINE_BYTES};

/// Runs of at least this length are first aligned in the target, and copied four registers at a time.
const ALIGNED_RUN_BYTES: usize = 512;

/// `count` runs of `run` bytes, which begin `from` bytes apart in the source and `to` bytes apart in the target; and as
/// many for each further step of an outer axis.
#[derive(Clone, Copy)]
pub(super) struct Runs {
    pub source: *const u8,
    pub target: *mut u8,
    pub run: usize,
    pub count: usize,
    pub from: isize,
    pub to: isize,
    pub outer: Axis,
    /// The end of what may be read. Before it, short runs are copied by whole registers.
    pub readable_end: *const u8,
}

impl Runs {
    /// Returns a single run.
    pub(super) fn one(source: *const u8, target: *mut u8, run: usize) -> Self {
        let (outer, readable_end) = (Axis::ONE, source);
        Self { source, target, run, count: 1, from: 0, to: 0, outer, readable_end }
    }

    /// Returns some steps of the outer axis.
    pub(super) fn steps(&self, begin: usize, extent: usize) -> Self {
        let Axis { from, to, .. } = self.outer;
        Self {
            source: self.source.wrapping_offset(from.wrapping_mul(begin.cast_signed())),
            target: self.target.wrapping_offset(to.wrapping_mul(begin.cast_signed())),
            outer: Axis { extent, from, to },
            ..*self
        }
    }

    /// Returns the runs without the first ones.
    pub(super) fn skip(&self, done: usize) -> Self {
        let steps = done.cast_signed();
        Self {
            source: self.source.wrapping_offset(self.from.wrapping_mul(steps)),
            target: self.target.wrapping_offset(self.to.wrapping_mul(steps)),
            count: self.count - done,
            ..*self
        }
    }

    /// Returns how many of the first runs may be copied by moves of `bytes` bytes, more than a run has: what a move
    /// reads beyond its run must be readable, and what it writes there is written again by the next.
    fn fitting(&self, bytes: usize) -> usize {
        let last =
            |count: usize| self.source.wrapping_offset(self.from.wrapping_mul(count.cast_signed()));
        let is_readable = |at: *const u8| at.wrapping_add(bytes) <= self.readable_end;
        let mut count = self.count.saturating_sub(bytes.div_ceil(self.run.max(1)));
        if count > 0 && is_readable(self.source) && is_readable(last(count - 1)) {
            return count;
        }
        let is_fitting = |count: usize| is_readable(last(count));
        if self.from > 0 {
            let room =
                (self.readable_end as usize).saturating_sub(self.source as usize + bytes - 1);
            count = count.min(room.div_ceil(self.from.unsigned_abs()));
        } else if !is_fitting(0) {
            count = 0;
        }
        count
    }
}

/// Copies `N` bytes.
#[inline(always)]
unsafe fn moved<V: Vector, const N: usize>(source: *const u8, target: *mut u8) {
    // SAFETY: the caller's promise. Through a value, because a loop of copies would become a call to memcpy.
    unsafe {
        if N >= V::BYTES {
            let mut at = 0;
            while at < N {
                V::load(source.wrapping_add(at)).store(target.wrapping_add(at));
                at += V::BYTES;
            }
        } else if N.is_multiple_of(LANE_BYTES) {
            let mut at = 0;
            while at < N {
                V::Lane::load(source.wrapping_add(at)).store(target.wrapping_add(at));
                at += LANE_BYTES;
            }
        } else {
            target.cast::<[u8; N]>().write_unaligned(source.cast::<[u8; N]>().read_unaligned());
        }
    }
}

/// Copies less than two lines, by two moves that may overlap.
///
/// # Safety
/// `bytes` bytes must be readable and writable.
#[inline(always)]
#[allow(clippy::cast_ptr_alignment)] // they are read and written unaligned
pub(super) unsafe fn copy_short<V: Vector>(source: *const u8, target: *mut u8, bytes: usize) {
    // By words and registers, because compilers keep arrays of bytes in memory.
    macro_rules! both {
        ($word:ty) => {{
            let last = bytes - size_of::<$word>();
            let (a, b) = (source.cast::<$word>(), source.wrapping_add(last).cast::<$word>());
            let (a, b) = (a.read_unaligned(), b.read_unaligned());
            target.cast::<$word>().write_unaligned(a);
            target.wrapping_add(last).cast::<$word>().write_unaligned(b);
        }};
    }
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            64.. => {
                moved::<V, 64>(source, target);
                moved::<V, 64>(source.wrapping_add(bytes - 64), target.wrapping_add(bytes - 64));
            }
            32.. => {
                moved::<V, 32>(source, target);
                moved::<V, 32>(source.wrapping_add(bytes - 32), target.wrapping_add(bytes - 32));
            }
            16.. => {
                let (a, b) =
                    (V::Lane::load(source), V::Lane::load(source.wrapping_add(bytes - 16)));
                a.store(target);
                b.store(target.wrapping_add(bytes - 16));
            }
            8.. => both!(u64),
            4.. => both!(u32),
            2.. => both!(u16),
            1 => target.write(source.read()),
            0 => {}
        }
    }
}

/// Copies a run of any length.
///
/// # Safety
/// `bytes` bytes must be readable and writable.
#[inline(always)]
pub(super) unsafe fn copy<V: Vector>(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        if bytes < 2 * LINE_BYTES {
            return copy_short::<V>(source, target, bytes);
        }
        let last = bytes - V::BYTES;
        let end = V::load(source.wrapping_add(last));
        let mut at = 0;
        if bytes >= ALIGNED_RUN_BYTES {
            V::load(source).store(target);
            at = (target as usize).wrapping_neg() % V::BYTES;
            while at + 4 * V::BYTES <= last {
                let (source, target) = (source.wrapping_add(at), target.wrapping_add(at));
                let load = |n| V::load(source.wrapping_add(n * V::BYTES));
                let (a, b, c, d) = (load(0), load(1), load(2), load(3));
                a.store(target);
                b.store(target.wrapping_add(V::BYTES));
                c.store(target.wrapping_add(2 * V::BYTES));
                d.store(target.wrapping_add(3 * V::BYTES));
                at += opaque(4 * V::BYTES);
            }
        }
        while at < last {
            V::load(source.wrapping_add(at)).store(target.wrapping_add(at));
            at += opaque(V::BYTES);
        }
        end.store(target.wrapping_add(last));
    }
}

/// Copies runs of any length at equal distances.
///
/// # Safety
/// The runs must be readable and writable, and the source readable from the first of them to `readable_end`, if that
/// lies behind it.
#[inline(always)]
pub(super) unsafe fn copy_runs<V: Vector>(runs: &Runs) {
    let mut step = *runs;
    for _ in 0..runs.outer.extent {
        // SAFETY: the caller's promise.
        unsafe { copy_step::<V>(&step) };
        step = step.steps(1, 1);
    }
}

/// Copies the runs of a step of the outer axis.
#[inline(always)]
unsafe fn copy_step<V: Vector>(runs: &Runs) {
    // SAFETY: the caller's promise.
    unsafe {
        let done = match runs.run {
            run if runs.to != run.cast_signed() || runs.count <= 4 => 0,
            3 => overlapped::<V, 4>(runs),
            5..=7 => overlapped::<V, 8>(runs),
            9..=15 => overlapped::<V, 16>(runs),
            17..=31 if runs.run != 24 => overlapped::<V, 32>(runs),
            33..=63 if runs.run != 48 => overlapped::<V, 64>(runs),
            _ => 0,
        };
        exact::<V>(&runs.skip(done));
    }
}

/// Copies the first runs by moves of `N` bytes, more than a run has: what a move writes beyond its run is written again
/// by the next. Returns how many runs it has copied.
#[inline(always)]
unsafe fn overlapped<V: Vector, const N: usize>(runs: &Runs) -> usize {
    let &Runs { mut source, mut target, run, from, .. } = runs;
    let count = runs.fitting(N);
    let mut left = count;
    // SAFETY: the moves stay within what may be read and written.
    unsafe {
        while left >= 4 {
            moved::<V, N>(source, target);
            moved::<V, N>(source.wrapping_offset(from), target.wrapping_add(run));
            moved::<V, N>(source.wrapping_offset(2 * from), target.wrapping_add(2 * run));
            moved::<V, N>(source.wrapping_offset(3 * from), target.wrapping_add(3 * run));
            (source, target) = (source.wrapping_offset(4 * from), target.wrapping_add(4 * run));
            left -= opaque(4);
        }
        while left > 0 {
            moved::<V, N>(source, target);
            (source, target) = (source.wrapping_offset(from), target.wrapping_add(run));
            left -= opaque(1);
        }
    }
    count
}

/// Copies runs by moves of exactly their bytes.
#[inline(always)]
unsafe fn exact<V: Vector>(runs: &Runs) {
    let run = runs.run;
    // A macro, because closures do not have the features of the level.
    macro_rules! each {
        ($source:ident, $target:ident: $copy:expr) => {{
            let (mut $source, mut $target) = (runs.source, runs.target);
            for _ in 0..runs.count {
                $copy;
                ($source, $target) =
                    (opaque($source.wrapping_offset(runs.from)), $target.wrapping_offset(runs.to));
            }
        }};
    }
    // SAFETY: the caller's promise.
    unsafe {
        match run {
            1 => each!(source, target: moved::<V, 1>(source, target)),
            2 => each!(source, target: moved::<V, 2>(source, target)),
            4 => each!(source, target: moved::<V, 4>(source, target)),
            8 => each!(source, target: moved::<V, 8>(source, target)),
            12 => each!(source, target: in_two::<V, 8, 4>(source, target)),
            16 => each!(source, target: moved::<V, 16>(source, target)),
            24 => each!(source, target: in_two::<V, 16, 8>(source, target)),
            32 => each!(source, target: moved::<V, 32>(source, target)),
            48 => each!(source, target: in_two::<V, 32, 16>(source, target)),
            64 => each!(source, target: moved::<V, 64>(source, target)),
            ..=127 => each!(source, target: copy_short::<V>(source, target, run)),
            128..ALIGNED_RUN_BYTES => each!(source, target: by_halves::<V>(source, target, run)),
            _ => each!(source, target: copy::<V>(source, target, run)),
        }
    }
}

/// Copies half a line at a time; the last half ends with the run.
#[inline(always)]
unsafe fn by_halves<V: Vector>(source: *const u8, target: *mut u8, run: usize) {
    let mut at = 0;
    // SAFETY: the caller's promise.
    unsafe {
        while at + 32 < run {
            moved::<V, 32>(source.wrapping_add(at), target.wrapping_add(at));
            at += opaque(32);
        }
        moved::<V, 32>(source.wrapping_add(run - 32), target.wrapping_add(run - 32));
    }
}

/// Copies exactly `A` and `B` bytes, without the overlap that would make more moves lie across two lines.
#[inline(always)]
unsafe fn in_two<V: Vector, const A: usize, const B: usize>(source: *const u8, target: *mut u8) {
    // SAFETY: the caller's promise.
    unsafe {
        moved::<V, A>(source, target);
        moved::<V, B>(source.wrapping_add(A), target.wrapping_add(A));
    }
}
