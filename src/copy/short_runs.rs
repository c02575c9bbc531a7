//! Equal short runs of few packed rows, of plans: one target after the other, by a loop that is for nothing else.

use super::kernel::combine::LINE;
use super::kernel::generic::{chunk, ends};
use super::kernel::opaque::opaque;
use super::kernel::Gather;
use super::small_packed::{MANY_ROWS, SMALL};
use super::tuning;
use crate::parts::Pointers;
use crate::plan::Geometry;
use crate::shape::usize_of;

/// The longest such runs, the most rows, and the most bytes of a piece whose runs are longer than a lane. Zen 4, ns a
/// plan's call before and after: two pieces of a row of 8 bytes 14, 12, of 8 rows 32, 14; eight of 4 rows of 16 bytes
/// 91, 22; 64 of a row of 4 200, 65, of 4 rows 600, 105; 8 of 16 rows of 20 132, 93, but of 63 rows 317, 396, and three
/// of 63 rows of 4 75, 87.
const LONGEST: usize = 128;
const ROWS: usize = 48;
const MOST: usize = 512;
/// The least bytes of one of more rows, where pieces are copied one by one. Zen 4, µs: 32 pieces of 91 rows of 32 bytes
/// 5.2, 1.8, 8 of 141 1.06, .64; 8 of 384 of 16 1.86, 1.31; two of 96 of 64 .19, .21.
const MANY: usize = 128;

/// Runs of so many bytes are units of their pieces.
const LEAST_LONG: usize = 65;
/// Pieces of so many bytes in all are in the first-level cache; and what is read of them stays there where each has no
/// more than this.
const NEAR: usize = 24 << 10;
const NEAR_EACH: usize = 9 << 10;

/// Whether runs are copied as units, without a thought of what is next to them. Zen 4, µs a plan's call before and
/// after: 12 pieces of 5 rows of 96 bytes .13, .09, 32 of 4 of 124 .39, .28, 8 of 96 of 80 1.4, 1.1; five of 89 of 32
/// .34, .17, 16 of 160 of 44 2.9, 2.5, 3 of 586 of 64 2.6, 2.2; but 8 of 440 of 32 2.0, 3.0, 3 of 853 of 44 2.5, 3.4.
fn are_units(run: usize, rows: usize, pieces: usize) -> bool {
    let bytes = run * rows;
    match run {
        32 => bytes > MOST && bytes * pieces <= NEAR,
        33..LEAST_LONG if bytes > MOST => {
            let is_odd = run == LINE && !pieces.is_multiple_of(2);
            rows < MANY_ROWS || bytes <= NEAR_EACH || is_odd
        }
        LEAST_LONG..=LONGEST => true,
        _ => false,
    }
}

/// Bytes of the runs of so many packed pieces, of so many steps each, if this is the quickest way for them; else 0.
#[inline(never)] // seldom of use
pub(crate) fn run(geometry: &Geometry<'_>, bytes: usize, pieces: usize, len: i64) -> u8 {
    let rows = usize_of(geometry.outer);
    let step = usize_of(geometry.inner) * (geometry.dtype.bits() / 8) as usize;
    let run = step * usize_of(len);
    let is_short = match run {
        _ if bytes > SMALL => false,
        _ if rows >= MANY_ROWS => {
            let are_quick = matches!(run, 16 | 32 | 64) && pieces * run >= MANY;
            (are_quick || are_units(run, rows, pieces)) && tuning::goes_by_piece()
        }
        ..=16 => rows <= ROWS,
        LEAST_LONG.. => rows > 1 && run <= LONGEST,
        _ => rows * run <= MOST || are_units(run, rows, pieces),
    };
    if is_short {
        u8::try_from(run).unwrap_or(0)
    } else {
        0
    }
}

/// Copies runs of as many bytes, side by side in so many rows, to all targets.
///
/// # Safety
/// As [`super::run`].
#[inline(never)]
pub(crate) unsafe fn copy(source: *const u8, run: u8, rows: i64, targets: Pointers<'_, u8>) {
    let (unit, count) = (usize::from(run), usize_of(rows));
    if are_units(unit, count, targets.len()) {
        // SAFETY: the caller's promise.
        return unsafe { copy_long(source, unit, count, targets) };
    }
    let scatter = match run {
        1 if rows == 1 => scatter_row::<1>,
        2 if rows == 1 => scatter_row::<2>,
        4 if rows == 1 => scatter_row::<4>,
        8 if rows == 1 => scatter_row::<8>,
        16 if rows == 1 => scatter_row::<16>,
        33.. => scatter::<64, 32>,
        17.. => scatter::<32, 16>,
        9.. => scatter::<16, 8>,
        5.. => scatter::<8, 4>,
        3.. => scatter::<4, 2>,
        _ => scatter::<2, 1>,
    };
    // SAFETY: the caller's promise.
    unsafe { scatter(source, unit, count, targets) };
}

/// # Safety
/// As [`copy`].
#[inline(never)] // off the way of shorter ones
unsafe fn copy_long(mut source: *const u8, unit: usize, count: usize, targets: Pointers<'_, u8>) {
    let step = unit * targets.len();
    let kernels = tuning::kernels(step * count);
    for target in targets.iter() {
        // SAFETY: the caller's promise.
        unsafe { kernels.gather_units(Gather { source, step, target, count, unit }) };
        source = source.wrapping_add(unit);
    }
}

/// Copies the runs of a row, of `N` bytes each. Zen 4, ns for the loop below: 60 pieces 50 to 60 for 74 to 82, 600 430 to
/// 590 for 670 to 750.
///
/// # Safety
/// As [`copy`].
#[inline(never)] // each is there once
unsafe fn scatter_row<const N: usize>(
    source: *const u8,
    _: usize,
    _: usize,
    targets: Pointers<'_, u8>,
) {
    let mut from = source;
    for target in targets.iter() {
        // SAFETY: the caller's promise.
        unsafe { chunk::<N>(from, target, 0) };
        from = opaque(from.wrapping_add(N));
    }
}

/// Copies runs of up to `N` bytes, and of `HALF` as many at the least, to one target after the other. A target's runs
/// lie behind those of the one before; what is too much is overwritten by the next one. Two targets at a time, a single
/// one as both.
///
/// # Safety
/// As [`copy`].
#[inline(never)] // each is there once
unsafe fn scatter<const N: usize, const HALF: usize>(
    mut source: *const u8,
    mut run: usize,
    rows: usize,
    targets: Pointers<'_, u8>,
) {
    let step = run * targets.len();
    let mut targets = targets.iter();
    while let Some(mut first) = targets.next() {
        let (mut second, apart) = targets.next().map_or((first, 0), |second| (second, run));
        let (mut from, mut left) = (source, opaque(rows.saturating_sub(1)));
        run = opaque(run);
        // SAFETY: the caller's promise.
        unsafe {
            while left > 0 {
                chunk::<N>(from, first, 0);
                chunk::<N>(from.wrapping_add(apart), second, 0);
                from = from.wrapping_add(step);
                first = first.wrapping_add(run);
                second = second.wrapping_add(run);
                left = opaque(left - 1);
            }
            if run == N {
                chunk::<N>(from, first, 0);
                chunk::<N>(from.wrapping_add(apart), second, 0);
            } else {
                ends::<HALF>(from, first, run);
                ends::<HALF>(from.wrapping_add(apart), second, run);
            }
        }
        source = source.wrapping_add(2 * run);
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::super::guarded::Guarded;
    use super::copy;
    use crate::parts::Pointers;

    /// Input and outputs end, or begin, where nothing may be touched.
    #[test]
    fn runs_of_any_length() {
        let [input, memory @ ..] = [(); 7].map(|()| Guarded::filled(64 << 10));
        for unit in 1..=128u8 {
            for (rows, pieces) in [(1, 1), (1, 6), (2, 3), (5, 2), (16, 5), (48, 3), (90, 2)] {
                let (run, row) = (usize::from(unit), usize::from(unit) * pieces);
                let outputs = memory.get(..pieces).unwrap();
                for at_end in [false, true] {
                    let source = input.place(rows * row, at_end);
                    let place = |output: &Guarded| output.place(rows * run, at_end);
                    let targets: Vec<*mut u8> = outputs.iter().map(place).collect();
                    // SAFETY: memory is as large.
                    unsafe {
                        let all = Pointers::new(targets.as_ptr(), size_of::<*mut u8>(), pieces);
                        for target in &targets {
                            target.write_bytes(0xEE, rows * run);
                        }
                        copy(source, unit, i64::try_from(rows).unwrap(), all);
                        let input = std::slice::from_raw_parts(source, rows * row);
                        for (piece, target) in targets.iter().enumerate() {
                            let copied = std::slice::from_raw_parts(*target, rows * run);
                            let rows = input.chunks(row);
                            let expected: Vec<u8> =
                                rows.flat_map(|row| &row[piece * run..][..run]).copied().collect();
                            assert!(copied == expected, "piece {piece} of {pieces} of {unit}");
                        }
                    }
                }
            }
        }
    }
}
