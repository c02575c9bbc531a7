//! The table of a level's loops: those written once (`generic.rs`, `bits.rs`) under its features, and its
//! own. Here is also the one for every CPU.

use super::generic::copy_rare;
use super::transpose::{by_units, WidthLoops};
use super::Kernels;

/// Functions with a level's features, if it has any, that loops written once are inlined into.
macro_rules! inlined {
    ($features:tt $(
        fn $name:ident $(<$(const $number:ident: $type:ty),*>)? ($($argument:tt)*) = $loop:expr;
    )*) => {
        $($crate::copy::kernel::table::inlined! {
            @ $features $name [$($(const $number: $type),*)?] ($($argument)*) $loop
        })*
    };
    (@ [$(#[$feature:meta])?] $name:ident [$($numbers:tt)*] ($($argument:tt)*) $loop:expr) => {
        $(#[$feature])?
        unsafe fn $name<$($numbers)*>($($argument)*) {
            // SAFETY: that of the loop, and 1.
            unsafe { $loop };
        }
    };
}
pub(super) use inlined;

/// Makes a table of the loops written once for a level of CPU features.
macro_rules! table {
    ($(#[$feature:meta])? copy: $copy:expr, transpose: $transpose:expr,
     is_small: $is_small:expr,
     deinterleave_lines: $lines:expr, interleave: $interleave:expr,
     non_temporal: $non_temporal:expr) => {{
        use $crate::copy::kernel::{
            bits::{self, Packed, Runs}, generic as loops, strided, sub_byte::{self, SideBySide}, Gather,
            Kernels,
        };
        unsafe fn gather_any(gather: Gather) {
            // SAFETY: that of the loop, and 1.
            unsafe { loops::gather_by($copy, gather) };
        }
        $crate::copy::kernel::table::inlined! { [$(#[$feature])?]
            fn gather_over<const N: usize>(gather: Gather) = gather_any(loops::gather_over::<N>(gather));
            fn gather_halves<const HALVES: usize>(gather: Gather) = loops::gather_halves(HALVES * 32, gather);
            fn pack(packed: &mut Packed, runs: &Runs) =
                bits::pack::<{ $is_small }>($copy, packed, runs);
            fn take<const F: usize>(source: *const u8, place: usize, target: *mut u8, bytes: usize) =
                sub_byte::take::<F>(source, place, target, bytes);
            fn join<const F: usize, const W: usize>(rows: &SideBySide, target: *mut u8) =
                sub_byte::join::<F, W>(rows, target);
        }
        Kernels {
            copy: $copy,
            // Most levels have other loops for many rows.
            columns: loops::columns,
            pack,
            join: [join::<2, 4>, join::<4, 2>],
            take: [take::<2>, take::<4>],
            gather: &[
                gather_over::<1>,
                gather_over::<2>,
                gather_over::<4>,
                gather_over::<8>,
                gather_over::<16>,
                if $is_small { gather_any } else { gather_over::<32> },
                if $is_small { gather_any } else { gather_over::<40> },
                if $is_small { gather_any } else { gather_over::<48> },
                if $is_small { gather_any } else { gather_halves::<1> },
                if $is_small { gather_any } else { gather_halves::<2> },
                if $is_small { gather_any } else { gather_halves::<3> },
            ],
            pair: None,
            gather_any,
            gather_long: None,
            units: None,
            apart: None,
            repeat: strided::repeat,
            picks: None,
            ordered: None,
            picks_upwards: false,
            pick_lines: None,
            transpose: $transpose,
            carry: None,
            by_second: false,
            longest: 0,
            permutes: |_, _| false,
            interleave_runs: None,
            row_major: None,
            combine: None,
            by_turns: None,
            deinterleave_lines: $lines,
            interleave: $interleave,
            non_temporal: $non_temporal,
        }
    }};
}
pub(super) use table;

const fn by_unit<const W: usize>() -> WidthLoops {
    WidthLoops { bands: None, few: by_units::<W> }
}

/// For every CPU: no feature beyond the target's own, no stores past the caches.
pub(super) static KERNELS: Kernels = table!(
    copy: copy_rare,
    transpose: &[by_unit::<1>(), by_unit::<2>(), by_unit::<4>(), by_unit::<8>(), by_unit::<16>()],
    // Whoever has no AVX2 copies units of more than a lane, and elements that share bytes, one by one.
    is_small: true,
    deinterleave_lines: None,
    interleave: |_, _| None,
    non_temporal: None
);
