//! Deinterleaves rows of three units, and nothing between them, by byte shuffles: three vectors of
//! input hold as many whole rows as one vector of each target needs. The network (`network.rs`) would
//! load four. The contract is that of `network.rs`.

use super::combine::LINE;
use super::opaque::opaque;
use super::vector::{load_rows, Vector, LANE};
use super::Deinterleave;

/// Of each target from each of the three: where the bytes of a lane come from, or 0x80 for none.
pub(super) struct Orders([[[u8; LANE]; 3]; 3]);

impl Orders {
    /// For units of 1, 2 or 4 bytes.
    pub(super) fn new(width: usize) -> Self {
        let mut orders = [[[0x80; LANE]; 3]; 3];
        for (target, orders) in orders.iter_mut().enumerate() {
            for to in 0..opaque(LANE) {
                // Units of a target are three apart in the input.
                let (unit, byte) = (to >> width.trailing_zeros(), to & (width - 1));
                let from = (unit * 3 + target) * width + byte;
                let slot = orders.get_mut(from / LANE).and_then(|order| order.get_mut(to));
                if let Some(slot) = slot {
                    *slot = u8::try_from(from % LANE).unwrap_or(0);
                }
            }
        }
        Self(orders)
    }
}

/// Makes some lines of each of three targets, `P` vectors of each at a time.
///
/// # Safety
/// As [`super::network::deinterleave`]; rows have nothing between them.
#[inline(always)]
pub(super) unsafe fn deinterleave<V: Vector, const P: usize, const PAST: bool>(
    rows_of: &Deinterleave,
    orders: &Orders,
    lines: usize,
) {
    let mut source = rows_of.source;
    // SAFETY: the caller's promise.
    unsafe {
        for at in 0..lines {
            if PAST {
                for line in [0, LINE, 2 * LINE] {
                    V::prefetch(source.wrapping_add(rows_of.prefetch).wrapping_add(line));
                }
            }
            for within in (0..LINE).step_by(P * V::BYTES) {
                let mut parts = [[V::zero(); 3]; P];
                for part in &mut parts {
                    *part = load_rows::<V, 3>(source, LANE);
                    source = source.add(3 * V::BYTES);
                }
                for (target, orders) in rows_of.targets.iter().zip(&orders.0) {
                    let mut line = [V::zero(); P];
                    for (slot, part) in line.iter_mut().zip(&parts) {
                        for (bytes, order) in part.iter().zip(orders) {
                            *slot = slot.or(bytes.shuffled(V::splat(order)));
                        }
                    }
                    V::put(line, target.add(at * LINE + within), PAST);
                }
            }
        }
    }
}
