//! AVX-512 VBMI: the loops of AVX-512; equal short runs, and units a step apart, by byte permutes; runs of a
//! line and more row by row; and the same again with long runs by string instructions.

use super::super::combine::{WriteCombining, LINE};
use super::super::opaque::opaque;
use super::super::pick::{self, picks, Few, Pick, Picks, Register, Rows, Span, Table};
use super::super::row_major::{self, RowRun};
use super::super::vector::{instructions, Vector};
use super::super::{generic, Deinterleave, Gather, Kernels, NextBlock};
use super::permute::{self, first_bytes};
use super::piece_loops::{self, Ways, LEAST_STRING};
use super::transpose_past::{behind, numbers};
use super::{
    apart, avx2, avx512, equal_pieces, equal_runs, few, half_lines, halves, interleave,
    interleave_runs, ordered, part_lines, runs_past, transpose_past, unequal,
};
use core::arch::asm;
use core::arch::x86_64::*;

/// For CPUs with AVX-512 F, BW, VL and VBMI, and only for those.
pub(in super::super) static VBMI: Kernels = TABLE;

/// The same, for CPUs with quick string instructions.
pub(in super::super) static VBMI_STRINGS: Kernels = Kernels {
    copy: copy_string,
    gather_any: gather_strings,
    pair: Some(pair),
    row_major: Some(row_major_strings),
    combine: Some(unequal::combine::<false>),
    ..TABLE
};

/// The same, for CPUs that load and store registers of a line as two halves.
pub(in super::super) static VBMI_HALVES: Kernels = Kernels {
    copy: halves::copy,
    gather_any: halves::gather,
    gather_long: Some(halves::gather),
    row_major: Some(row_major_halves),
    columns: columns_on_lines,
    deinterleave_lines: Some(deinterleave::<true>),
    by_turns: Some(runs_past::by_turns),
    interleave_runs: Some(interleave_runs::copy),
    by_second: true,
    picks_upwards: true,
    pick_lines: Some(lines),
    combine: Some(unequal::combine::<true>),
    ..TABLE
};

const TABLE: Kernels = Kernels {
    columns,
    deinterleave_lines: Some(deinterleave::<false>),
    longest: permute::LONGEST,
    permutes: equal_pieces::fits,
    interleave: interleave::interleave,
    row_major: Some(row_major),
    picks: Some(&PICKS),
    ordered: Some(ordered::copy),
    apart: Some((apart::are_many, apart::copy)),
    carry: Some(transpose_past::bytes),
    ..avx512::TABLE
};

static PICKS: Picks = Picks {
    spans: Some(spans),
    ..picks!(
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
        register: __m512i,
        few: masked
    )
};

#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn spans(pick: &Pick<1>, rows: &Rows, spans: &mut [Span]) {
    // SAFETY: the caller's promise.
    unsafe { pick::spans::<__m512i>(pick, rows, spans) };
}

/// Picks so many bytes of each row past the caches, on CPUs that load and store registers of a line as two halves: on others
/// it has not been measured. By way of a buffer each load would wait for the stores to it, and these for all that went past
/// the caches before.
///
/// # Safety
/// As [`Pick::copy`]; the windows of all steps must be readable, and a fence follow.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn lines(pick: &Pick<1>, rows: &Rows, bytes: usize, lines: &mut WriteCombining) {
    let (from, most, registers, mut row) = pick.course(rows);
    let (scratch, mut target, mut fill, mut foreign) = lines.first();
    let is_downwards = from.cast_signed() < 0;
    let prefetch = |source: *const u8| {
        let soon = source.wrapping_offset(rows.ahead);
        if is_downwards {
            __m512i::prefetch_second(soon);
        } else {
            __m512i::prefetch(soon);
        }
    };
    // SAFETY: the caller's promise.
    unsafe {
        let [[first, orders @ ..]] = pick.orders::<__m512i, 4>();
        let mut line = __m512i::load(scratch);
        // Bytes go so far up, and those beyond the line to the begin of the next one.
        let mut turn = behind(fill, &numbers());
        for _ in 0..rows.count {
            let (mut source, mut left) = (row, bytes);
            while left > 0 {
                let mut all = __m512i::load(source).permuted(first, None);
                prefetch(source);
                for (order, at) in orders.iter().zip(1..) {
                    if at < registers {
                        let window = source.wrapping_add(at * LINE);
                        prefetch(window);
                        all = __m512i::load(window).permuted(*order, Some(all));
                    }
                }
                let turned = _mm512_permutexvar_epi8(turn, all);
                line = _mm512_mask_blend_epi8(u64::MAX << fill, line, turned);
                let bytes = left.min(most);
                let by = _mm512_set1_epi8(bytes.to_le_bytes()[0].cast_signed());
                turn = _mm512_sub_epi8(turn, by);
                (fill, left) = (fill + bytes, left - bytes);
                if fill >= LINE {
                    if foreign > 0 {
                        _mm512_mask_storeu_epi8(target.cast(), u64::MAX << foreign, line);
                        foreign = 0;
                    } else {
                        line.stream(target);
                    }
                    (line, target, fill) = (turned, target.wrapping_add(LINE), fill - LINE);
                }
                source = source.wrapping_add(from);
            }
            row = row.wrapping_offset(rows.from);
        }
        line.store(scratch);
    }
    lines.go_on(target, fill);
}

/// One lane of a line.
impl Register for __m512i {
    const OWN_LANE: usize = LINE;

    instructions! {
        fn load_windows(source: *const u8, _: usize) -> Self = Self::load(source);
        fn table(table: &Table) -> Self = Self::load(table.0.as_ptr());
        fn and(self, other: Self) -> Self = _mm512_and_si512(self, other);
        fn store_lanes(self, target: *mut u8, _: usize) = self.store(target);
    }

    #[inline(always)]
    unsafe fn permuted(self, order: Self, others: Option<Self>) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            let Some(others) = others else { return _mm512_permutexvar_epi8(order, self) };
            _mm512_mask_permutexvar_epi8(others, !_mm512_movepi8_mask(order), order, self)
        }
    }

    #[inline(always)]
    unsafe fn shifted(self, by: i8) -> Self {
        // SAFETY: the caller's promise.
        unsafe {
            match by {
                6 => _mm512_srli_epi16::<6>(self),
                4 => _mm512_srli_epi16::<4>(self),
                2 => _mm512_srli_epi16::<2>(self),
                -2 => _mm512_slli_epi16::<2>(self),
                -4 => _mm512_slli_epi16::<4>(self),
                -6 => _mm512_slli_epi16::<6>(self),
                _ => self,
            }
        }
    }
}

/// Picks few units of each row under masks.
///
/// # Safety
/// That of `pick.rs`.
#[inline(always)]
unsafe fn masked<const F: usize>(pick: &Pick<F>, few: &Few, rows: &Rows) {
    let (mut before, mut end) = (few.before, few.before + few.read);
    let mut begin = pick.begin;
    // SAFETY: no bytes but those of the units, and what lies between them, are touched.
    unsafe {
        let mut orders = pick.orders::<__m512i, 4>();
        // Masks keep loads from faulting, but where there is no memory they take a hundred nanoseconds: the window
        // begins where the units do.
        if pick.has_one_register() {
            let skipped = _mm512_set1_epi8(before.to_le_bytes()[0].cast_signed());
            for [order, ..] in &mut orders {
                *order = _mm512_sub_epi8(*order, skipped);
            }
            (begin, before, end) = (begin.wrapping_add_unsigned(before), 0, few.read);
        }
        let wanted = [0, LINE, 2 * LINE, 3 * LINE].map(|at| {
            first_bytes(end.saturating_sub(at)) & !first_bytes(before.saturating_sub(at))
        });
        let stored = first_bytes(few.bytes);
        rows.each::<F>(|source, target| {
            let mut source = source.wrapping_offset(begin);
            let mut windows = [__m512i::zero(); 4];
            for (window, wanted) in windows.iter_mut().zip(wanted) {
                // As above.
                if wanted != 0 {
                    *window = _mm512_maskz_loadu_epi8(wanted, source.cast());
                }
                source = source.wrapping_add(LINE);
            }
            let all = pick.picked(&orders, &windows);
            _mm512_mask_storeu_epi8(target.cast(), stored, all);
        });
    }
}

/// By permutes, or else by the network; `HALVED` says that registers go as two halves.
///
/// # Safety
/// As all of them.
unsafe fn deinterleave<const HALVED: bool>(
    block: &mut Deinterleave,
    len: usize,
    width: usize,
    past: bool,
    next: &mut NextBlock<'_>,
) {
    // SAFETY: the caller's promise.
    unsafe {
        let is_done = HALVED
            && (few::deinterleave(block, len, width, past, next)
                || half_lines::deinterleave(block, len, width, past, next));
        if !is_done && !equal_pieces::deinterleave(block, len, width, past, next, HALVED) {
            avx2::network::deinterleave(block, len, width, past, next);
        }
    }
}

#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
unsafe fn piece_loops<const N: usize>(
    runs: &mut [RowRun; piece_loops::PIECES],
    step: usize,
    count: usize,
) {
    // SAFETY: the caller's promise.
    unsafe { piece_loops::loops::<N>(runs, step, count) };
}

const WAYS: Ways = Ways {
    loops: &[piece_loops::<1>, piece_loops::<2>, piece_loops::<3>, piece_loops::<4>],
    few: equal_runs::MOST,
    short: unequal::copy::<false>,
    kernels: &VBMI,
    long: avx512::TABLE.copy,
};
static PLAIN: Ways = WAYS;
static STRINGS: Ways = Ways { long: copy_string, ..WAYS };
static HALVES: Ways = Ways {
    few: equal_runs::MOST_OF_HALVES,
    short: unequal::copy::<true>,
    kernels: &VBMI_HALVES,
    long: halves::copy,
    ..WAYS
};

/// # Safety
/// As [`Ways::copy`].
unsafe fn row_major(runs: &mut [RowRun], step: usize, count: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { PLAIN.copy(runs, step, count) }
}

/// # Safety
/// As [`Ways::copy`].
unsafe fn row_major_strings(runs: &mut [RowRun], step: usize, count: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe { STRINGS.copy(runs, step, count) }
}

/// # Safety
/// As [`Ways::copy`].
unsafe fn row_major_halves(runs: &mut [RowRun], step: usize, count: usize) -> bool {
    // SAFETY: the caller's promise.
    unsafe {
        if part_lines::copy(runs, step, count) || halves::equal_runs(runs, step, count) {
            return true;
        }
        if runs.iter().all(|run| run.bytes >= halves::LONG) {
            let together = if halves::go_alone(runs, count) { 1 } else { runs.len().max(1) };
            for some in runs.chunks_mut(together) {
                row_major::long_runs(halves::copy, some, step, count);
            }
            return true;
        }
        let width: usize = runs.iter().map(|run| run.bytes).sum();
        let are_few = runs.len() <= piece_loops::PIECES && width == step && step <= MOST_OF_FEW;
        let are_short = runs.iter().all(|run| run.bytes <= equal_runs::LEAST);
        (are_few || are_short || row_major::are_alike(runs)) && HALVES.copy(runs, step, count)
    }
}

/// Runs of several lengths go piece by piece where they are more than a few, of rows of so many bytes that lie one behind
/// the other. Zen 4, us for row by row: 12 of 8 to 56 bytes 18 for 23, 13 of 8 to 264 2.5 for 3.1, 12 and 48 in rows of
/// 252 .5 for .7; but 8, 168 and 280 4.5 MB 220 for 170.
const MOST_OF_FEW: usize = 2 << 10;

/// Copies contiguous bytes, long ones by `rep movsb`.
///
/// # Safety
/// 1, 2 of `generic.rs`.
unsafe fn copy_string(source: *const u8, target: *mut u8, bytes: usize) {
    // SAFETY: the caller's promise; the direction flag is clear, as calls have it.
    unsafe {
        if bytes < LEAST_STRING {
            return (VBMI.copy)(source, target, bytes);
        }
        asm!(
            "rep movsb",
            inout("rsi") source => _,
            inout("rdi") target => _,
            inout("rcx") bytes => _,
            options(nostack, preserves_flags),
        );
    }
}

/// Gathers units of 9 to 64 bytes to two targets. Zen 5, 48 pieces in the second-level cache, share of the flat
/// copy for permutes: of 12 bytes .61 for .48, 20 .72 for .50, 28 .77 for .55.
///
/// # Safety
/// 1, 3 of `generic.rs`, for both: they must be as many, of as many bytes and as far apart.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,bmi2")]
unsafe fn pair(gathers: [Gather; 2], is_last: bool) {
    let [Gather { unit, count, .. }, _] = gathers;
    let over = count - usize::from(is_last).min(count);
    let by_over = gathers.map(|gather| Gather { count: over, ..gather });
    // SAFETY: the caller's promise.
    unsafe {
        match unit {
            ..=16 => by_turns::<16>(by_over),
            17..=32 => by_turns::<32>(by_over),
            _ => by_turns::<LINE>(by_over),
        }
        for last in gathers.map(|gather| gather.after(over)) {
            if last.count > 0 {
                (VBMI.copy)(last.source, last.target, unit);
            }
        }
    }
}

/// Gathers units of two by turns, `N` bytes for each: they have at most as many, and more than half.
///
/// # Safety
/// 1, 3 of `generic.rs`, and another unit must follow.
#[inline(always)]
unsafe fn by_turns<const N: usize>([first, second]: [Gather; 2]) {
    let Gather { mut source, step, mut target, count, unit } = first;
    let apart = (second.source as usize).wrapping_sub(source as usize);
    let mut other = second.target;
    for _ in 0..count {
        // The compiler is kept from taking several rows at once, for which it has not enough registers.
        source = opaque(source);
        // SAFETY: the caller's promise; what is too much is less than a unit.
        unsafe {
            generic::chunk::<N>(source, target, 0);
            generic::chunk::<N>(source.wrapping_add(apart), other, 0);
        }
        source = source.wrapping_add(step);
        target = target.wrapping_add(unit);
        other = other.wrapping_add(unit);
    }
}

/// Takes rows of two units apart, 64 bytes of each at a time. Zen 5, 2,048 rows of 2 and 2 bytes in the
/// first-level cache 50 ns for 191.
///
/// # Safety
/// That of `generic.rs`.
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,bmi2")]
unsafe fn columns(source: *const u8, targets: &[*mut u8], width: usize, count: usize) -> bool {
    let &[first, second] = targets else { return false };
    let targets = [first, second];
    let Some(unit) = few::unit(width) else { return false };
    let (bytes, [even, odd, _]) = (count * width, few::orders::<2>(unit));
    let orders = [even, odd];
    // SAFETY: the caller's promise.
    unsafe {
        for at in (0..bytes).step_by(LINE) {
            let from = source.wrapping_add(2 * at);
            let left = bytes - at;
            if left < LINE {
                let [low, high] = [2 * left, (2 * left).saturating_sub(LINE)].map(first_bytes);
                let low = _mm512_maskz_loadu_epi8(low, from.cast());
                let high = _mm512_maskz_loadu_epi8(high, from.wrapping_add(LINE).cast());
                for (order, target) in orders.iter().zip(targets) {
                    let line = _mm512_permutex2var_epi8(low, *order, high);
                    let target = target.wrapping_add(at).cast();
                    _mm512_mask_storeu_epi8(target, first_bytes(left), line);
                }
                break;
            }
            let (low, high) = (__m512i::load(from), __m512i::load(from.wrapping_add(LINE)));
            for (order, target) in orders.iter().zip(targets) {
                _mm512_permutex2var_epi8(low, *order, high).store(target.wrapping_add(at));
            }
        }
    }
    true
}

/// The same of up to four, lines of the first target, if there are such.
///
/// # Safety
/// That of `generic.rs`.
unsafe fn columns_on_lines(
    source: *const u8,
    targets: &[*mut u8],
    width: usize,
    count: usize,
) -> bool {
    // SAFETY: the caller's promise.
    unsafe { few::columns(source, targets, width, count) || columns(source, targets, width, count) }
}

/// Gathers units of any size.
///
/// # Safety
/// 1, 3 of `generic.rs`.
unsafe fn gather_strings(gather: Gather) {
    // SAFETY: the caller's promise.
    unsafe { generic::gather_by(copy_string, gather) };
}
