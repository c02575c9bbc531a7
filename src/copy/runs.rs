//! Kernels that copy runs of bytes: a single one, or many at equal distances.
//!
//! ```text
//!             |<------ from ------>|                     |<-- to -->|
//! source      run 0 . . . . . . . .run 1 . . . .   target run 0 . . .run 1 . . . run 2
//!             |bytes|              |bytes|               |bytes|
//! ```
//!
//! If runs follow each other in the target (`to` is a run's bytes), a move may be longer than its run: what it writes
//! beyond the run is written again by the next move. Runs of 5 bytes, in moves of 8:
//!
//! ```text
//! target      A A A A A a a a . . . . . . .      first move
//!             A A A A A B B B B B b b b . .      second move
//!             A A A A A B B B B B C C C C C      the last runs, by moves of exactly 5 bytes
//! ```

// The bodies of unsafe functions need no further blocks: what they require is in their `# Safety`.
#![allow(unsafe_op_in_unsafe_fn)]

use super::nest::Axis;
use super::opaque::opaque;
use super::vector::{copy_bytes, copy_short, Vector, LINE_BYTES};

/// Runs of at least this length are first aligned in the target, and copied four registers at a time.
const ALIGNED_RUN_BYTES: usize = 512;

/// `count` runs of `bytes` bytes, which begin `from` bytes apart in the source and `to` bytes apart in the target; and
/// as many for each further step of an outer axis.
#[derive(Clone, Copy)]
pub(super) struct Runs {
    pub source: *const u8,
    pub target: *mut u8,
    pub bytes: usize,
    pub count: usize,
    pub from: isize,
    pub to: isize,
    pub outer: Axis,
    /// The end of what may be read. Before it, short runs are copied by whole registers.
    pub readable_end: *const u8,
}

impl Runs {
    /// Returns a single run.
    pub(super) fn one(source: *const u8, target: *mut u8, bytes: usize) -> Self {
        Self {
            source,
            target,
            bytes,
            count: 1,
            from: 0,
            to: 0,
            outer: Axis::ONE,
            readable_end: source,
        }
    }

    /// Returns some steps of the outer axis.
    pub(super) fn steps(&self, begin: usize, extent: usize) -> Self {
        Self {
            source: self.source.wrapping_offset(self.outer.input_at(begin)),
            target: self.target.wrapping_offset(self.outer.output_at(begin)),
            outer: Axis { extent, ..self.outer },
            ..*self
        }
    }

    /// Returns the runs without the first ones.
    pub(super) fn skip(&self, done: usize) -> Self {
        debug_assert!(done <= self.count, "{done} of {} runs are skipped", self.count);
        let steps = done.cast_signed();
        Self {
            source: self.source.wrapping_offset(self.from.wrapping_mul(steps)),
            target: self.target.wrapping_offset(self.to.wrapping_mul(steps)),
            count: self.count - done,
            ..*self
        }
    }

    /// Returns how many of the first runs may be copied by moves of `bytes` bytes, at least as many as a run has: what a
    /// move reads beyond its run must be readable, and what it writes there is written again by the next.
    fn fitting(&self, bytes: usize) -> usize {
        debug_assert!(bytes >= self.bytes, "moves of {bytes} bytes for runs of {}", self.bytes);
        let source_of =
            |run: usize| self.source.wrapping_offset(self.from.wrapping_mul(run.cast_signed()));
        let is_readable = |at: *const u8| at.wrapping_add(bytes) <= self.readable_end;
        let mut count = self.count.saturating_sub(bytes.div_ceil(self.bytes.max(1)));
        if count > 0 && is_readable(self.source) && is_readable(source_of(count - 1)) {
            return count;
        }
        if self.from > 0 {
            let room =
                (self.readable_end as usize).saturating_sub(self.source as usize + bytes - 1);
            count = count.min(room.div_ceil(self.from.unsigned_abs()));
        } else if !is_readable(self.source) {
            count = 0;
        }
        debug_assert!(
            count == 0 || (is_readable(self.source) && is_readable(source_of(count - 1))),
            "{count} moves of {bytes} bytes read beyond what may be read"
        );
        count
    }
}

/// Copies a single run of any length.
///
/// # Safety
/// `bytes` bytes must be readable and writable, and the CPU must have the features of the level. Nothing else is
/// touched.
#[inline(always)]
pub(super) unsafe fn copy_run<V: Vector>(source: *const u8, target: *mut u8, bytes: usize) {
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

/// Copies runs of any length at equal distances.
///
/// # Safety
/// All runs of all steps must be readable and writable, and the CPU must have the features of the level. If
/// `readable_end` lies beyond the first run of a step, everything from the lowest byte of the step's runs to there must
/// be readable, too. Nothing is written but the runs.
#[inline(always)]
pub(super) unsafe fn copy_runs<V: Vector>(runs: &Runs) {
    let mut step = *runs;
    for _ in 0..runs.outer.extent {
        copy_step::<V>(&step);
        step = step.steps(1, 1);
    }
}

/// Copies the runs of a step of the outer axis.
#[inline(always)]
unsafe fn copy_step<V: Vector>(runs: &Runs) {
    let done = match runs.bytes {
        1 => by_moves::<V, 1>(runs),
        2 => by_moves::<V, 2>(runs),
        3 | 4 => by_moves::<V, 4>(runs),
        5..=8 => by_moves::<V, 8>(runs),
        // Two moves without an overlap are as quick.
        24 | 48 => 0,
        9..=16 => by_moves::<V, 16>(runs),
        17..=32 => by_moves::<V, 32>(runs),
        33..=64 => by_moves::<V, 64>(runs),
        _ => 0,
    };
    if done < runs.count {
        one_by_one::<V>(&runs.skip(done));
    }
}

/// Copies the first runs by moves of `N` bytes, at least as many as a run has: what a move writes beyond its run is
/// written again by the next. Returns how many runs it has copied.
#[inline(always)]
unsafe fn by_moves<V: Vector, const N: usize>(runs: &Runs) -> usize {
    let &Runs { mut source, mut target, bytes, from, to, .. } = runs;
    let count = match bytes {
        bytes if bytes == N => runs.count,
        bytes if to == bytes.cast_signed() && runs.count > 4 => runs.fitting(N),
        _ => 0,
    };
    let mut left = count;
    while left >= 4 {
        copy_bytes::<V, N>(source, target);
        copy_bytes::<V, N>(source.wrapping_offset(from), target.wrapping_offset(to));
        copy_bytes::<V, N>(source.wrapping_offset(2 * from), target.wrapping_offset(2 * to));
        copy_bytes::<V, N>(source.wrapping_offset(3 * from), target.wrapping_offset(3 * to));
        (source, target) = (source.wrapping_offset(4 * from), target.wrapping_offset(4 * to));
        left -= opaque(4);
    }
    while left > 0 {
        copy_bytes::<V, N>(source, target);
        (source, target) = (source.wrapping_offset(from), target.wrapping_offset(to));
        left -= opaque(1);
    }
    count
}

/// Copies runs one after the other, without touching anything else.
#[inline(always)]
unsafe fn one_by_one<V: Vector>(runs: &Runs) {
    let bytes = runs.bytes;
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
    match bytes {
        12 => each!(source, target: in_two::<V, 8, 4>(source, target)),
        24 => each!(source, target: in_two::<V, 16, 8>(source, target)),
        48 => each!(source, target: in_two::<V, 32, 16>(source, target)),
        ..=127 => each!(source, target: copy_short::<V>(source, target, bytes)),
        _ => each!(source, target: copy_run::<V>(source, target, bytes)),
    }
}

/// Copies exactly `A` and `B` bytes, without the overlap that would make more moves lie across two lines.
#[inline(always)]
unsafe fn in_two<V: Vector, const A: usize, const B: usize>(source: *const u8, target: *mut u8) {
    copy_bytes::<V, A>(source, target);
    copy_bytes::<V, B>(source.wrapping_add(A), target.wrapping_add(A));
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::level::kernels_of;
    use super::super::tests::levels;
    use super::super::tests::Guarded;
    use super::{Axis, Runs};

    const MEMORY_BYTES: usize = 128 << 10;

    /// Copies runs at the end of the memory, or at its start, of a level, and compares every byte of the target.
    fn check(source: &Guarded, target: &Guarded, runs: Runs, at_end: bool) {
        let &Runs { bytes, count, from, to, outer, .. } = &runs;
        let places = |step: isize, outward: isize| {
            let index = move |n: usize| n.cast_signed();
            (0..outer.extent)
                .flat_map(move |o| (0..count).map(move |n| index(o) * outward + index(n) * step))
        };
        // Where the first run begins in memory that holds all runs.
        let place = |memory: &Guarded, step, outward| {
            let low = places(step, outward).min().unwrap_or(0);
            let high = places(step, outward).max().unwrap_or(0) + bytes.cast_signed();
            memory.place((high - low).cast_unsigned(), at_end).wrapping_offset(-low)
        };
        let first = place(source, from, outer.from);
        let to_first = place(target, to, outer.to);
        let end = source.place(0, true);
        for level in levels() {
            for readable_end in [first, end] {
                target.fill(0xA5);
                let runs = Runs { source: first, target: to_first, readable_end, ..runs };
                let mut expected = vec![0xA5u8; MEMORY_BYTES];
                let begin = to_first as isize - target.place(MEMORY_BYTES, true) as isize;
                for (a, b) in places(from, outer.from).zip(places(to, outer.to)) {
                    for byte in 0..bytes.cast_signed() {
                        // SAFETY: a byte of a run.
                        let value = unsafe { *first.wrapping_offset(a + byte) };
                        expected[(begin + b + byte).cast_unsigned()] = value;
                    }
                }
                // SAFETY: all runs lie within the memory, of which everything is readable.
                unsafe { (kernels_of(level).copy_runs)(&runs) };
                let case = (level, bytes, count, from, to, outer.extent, at_end);
                assert!(target.bytes() == expected, "{case:?}");
            }
        }
    }

    #[test]
    fn runs_of_every_length() {
        let (source, target) = (Guarded::filled(MEMORY_BYTES), Guarded::filled(MEMORY_BYTES));
        for bytes in (0usize..=160).chain([255, 256, 257, 511, 512, 513, 700]) {
            let packed = bytes.cast_signed();
            for count in [1, 4, 5, 23] {
                for (from, to) in [
                    (packed + 3, packed),
                    (packed + 3, packed + 2),
                    (-packed - 70, packed),
                    (packed, -packed - 1),
                    (0, packed),
                ] {
                    let one = Runs::one(std::ptr::null(), std::ptr::null_mut(), bytes);
                    let at_end = count % 2 == 1;
                    check(&source, &target, Runs { count, from, to, ..one }, at_end);
                }
            }
        }
    }

    #[test]
    fn steps_of_an_outer_axis() {
        let (source, target) = (Guarded::filled(MEMORY_BYTES), Guarded::filled(MEMORY_BYTES));
        for bytes in [1usize, 2, 3, 5, 8, 13, 24, 40, 70, 130, 600] {
            let one = Runs::one(std::ptr::null(), std::ptr::null_mut(), bytes);
            let packed = bytes.cast_signed();
            let (count, step) = (7, packed * 7);
            for outer in [
                Axis { extent: 3, from: 8 * (packed + 1), to: step },
                Axis { extent: 4, from: -9 * (packed + 1), to: step + 5 },
            ] {
                let runs = Runs { count, from: packed + 1, to: packed, outer, ..one };
                check(&source, &target, runs, true);
                check(&source, &target, runs, false);
            }
        }
    }

    #[test]
    fn runs_that_are_skipped_and_steps_that_are_left() {
        let memory = [0u8; 1];
        let runs = Runs {
            count: 9,
            from: 3 << 30,
            to: -(5 << 30),
            outer: Axis { extent: 6, from: 7 << 40, to: 1 << 33 },
            ..Runs::one(memory.as_ptr(), std::ptr::null_mut(), 1)
        };
        let of = |runs: &Runs| {
            let source = (runs.source as usize).wrapping_sub(memory.as_ptr() as usize);
            (source.cast_signed(), runs.target as isize, runs.count, runs.outer.extent)
        };
        assert_eq!(of(&runs.skip(0)), (0, 0, 9, 6));
        assert_eq!(of(&runs.skip(4)), (12 << 30, -(20 << 30), 5, 6));
        assert_eq!(of(&runs.skip(9)), (27 << 30, -(45 << 30), 0, 6));
        assert_eq!(of(&runs.steps(2, 3)), (14 << 40, 2 << 33, 9, 3));
    }
}
