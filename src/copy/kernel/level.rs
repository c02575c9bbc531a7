//! Makes the table of loops of a level out of its vectors. Each function here has the contract of its
//! loop, and the CPU the features of the level.

/// The loops, inlined into functions with the level's features.
///
/// `deinterleave` takes equal runs apart, `interleave` finds the loops that put units together.
macro_rules! level {
    (
        #[$feature:meta] vector: $vector:ty,
        deinterleave: $deinterleave:expr, interleave: $interleave:expr
    ) => {{
        use $crate::copy::kernel::{
            bits::{self, Runs},
            combine::LINE,
            generic, merge, stream, table,
            transpose::{self, Band, Bands, Block, WidthLoops},
            vector::Vector,
            NonTemporal, Stream,
        };
        type V = $vector;
        /// Vectors of a line.
        const LINE_PARTS: usize = LINE / <V as Vector>::BYTES;

        $crate::copy::kernel::table::inlined! { [#[$feature]]
            fn stream(source: *const u8, target: *mut u8, bytes: usize) =
                stream::stream::<V, LINE_PARTS>(source, target, bytes, None);
            fn pack_lines(runs: &mut Runs, from: i64, target: *mut u8) =
                bits::pack_lines::<V, LINE_PARTS>(runs, from, target);
            fn merge(streams: &mut [Stream], turns: usize, soon: *const u8, turn: usize) =
                merge::merge::<V, LINE_PARTS>(streams, turns, soon, turn);
            fn in_order<const W: usize, const N: usize>(
                source: *const u8, soon: *const u8, targets: *const *mut u8, at: usize, step: usize, past: bool,
                by_second: bool
            ) = transpose::in_order::<V, LINE_PARTS, W, N>(
                source, soon, targets, at, step, past, by_second
            );
            fn by_turns<const W: usize, const N: usize>(band: &Band, scratch: *mut u8) =
                transpose::by_turns::<V, LINE_PARTS, W, N>(band, scratch);
            fn few<const W: usize, const N: usize>(block: &Block<'_>) =
                transpose::by_vectors::<V, W, N>(block);
        }
        const fn width_loops<const W: usize, const N: usize>() -> WidthLoops {
            let bands = Bands { in_order: in_order::<W, N>, by_turns: by_turns::<W, N> };
            WidthLoops { bands: Some(bands), few: few::<W, N> }
        }
        #[$feature]
        #[inline(never)]
        unsafe fn copy(source: *const u8, target: *mut u8, bytes: usize) {
            // SAFETY: that of the loop.
            unsafe { generic::copy::<false>(source, target, bytes) };
        }
        table::table!(
            #[$feature]
            copy: copy,
            transpose: &[
                width_loops::<1, 16>(),
                width_loops::<2, 8>(),
                width_loops::<4, 4>(),
                width_loops::<8, 2>(),
                width_loops::<16, 1>(),
            ],
            is_small: false,
            deinterleave_lines: Some($deinterleave),
            interleave: $interleave,
            non_temporal: Some(NonTemporal {
                stream,
                pack_lines,
                prefetch: stream::prefetch::<V>,
                fence: <V as Vector>::fence,
                merge,
            })
        )
    }};
}
pub(super) use level;

/// The network of a level: the content of a module, of which a function called `deinterleave` is meant for others.
macro_rules! network {
    (#[$feature:meta] vector: $vector:ty) => {
        use $crate::copy::kernel::{
            combine::LINE, network, three, vector::Vector, Deinterleave, NextBlock,
        };
        type V = $vector;
        const LINE_PARTS: usize = LINE / <V as Vector>::BYTES;

        $crate::copy::kernel::table::inlined! { [#[$feature]]
            fn strip<const E: usize, const N: usize>(
                rows_of: &Deinterleave, tile: &network::Tile, size: &network::Size
            ) = network::strip::<V, E, N>(rows_of, tile, size);
            fn three<const PAST: bool>(rows_of: &Deinterleave, orders: &three::Orders, lines: usize) =
                three::deinterleave::<V, LINE_PARTS, PAST>(rows_of, orders, lines);
        }
        const fn of<const E: usize, const N: usize>() -> network::Strip {
            network::Strip { most: N, run: strip::<E, N> }
        }
        static STRIPS: network::Strips = network::Strips {
            one: [of::<1, 1>(), of::<1, 2>(), of::<1, 4>()],
            two: [of::<2, 1>(), of::<2, 2>(), of::<2, 4>()],
            four: [of::<4, 1>(), of::<4, 2>(), of::<4, 4>()],
            eight: [of::<8, 2>(), of::<8, 4>(), of::<8, 6>(), of::<8, 8>()],
            sixteen: [of::<16, 4>(), of::<16, 8>(), of::<16, 16>()],
            three: [three::<false>, three::<true>],
        };
        /// # Safety
        /// That of `network.rs`.
        pub(in $crate::copy::kernel) unsafe fn deinterleave(
            block: &mut Deinterleave,
            len: usize,
            width: usize,
            past: bool,
            next: &mut NextBlock<'_>,
        ) {
            // SAFETY: that of the loop.
            unsafe { network::deinterleave(&STRIPS, block, len, width, past, next) }
        }
    };
}
pub(super) use network;
