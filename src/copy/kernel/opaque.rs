//! Values of which compilers know nothing. Or else they write out several steps of a loop, have one for each value of a
//! number, or keep every multiple of it: where that wins nothing, or takes registers that there are not.

use core::arch::asm;

/// What a register holds.
pub(crate) trait Held: Copy {
    /// The same value.
    fn held(self) -> Self;
}

macro_rules! held {
    ($($type:ty),*) => {
        $(impl Held for $type {
            #[inline(always)]
            #[allow(clippy::pointers_in_nomem_asm_block)] // which does nothing
            fn held(mut self) -> Self {
                // SAFETY: no instruction at all.
                unsafe {
                    asm!("/* {0} */", inout(reg) self, options(nomem, nostack, preserves_flags));
                }
                self
            }
        })*
    };
}
held!(usize, *const u8, *mut u8);

/// The same value, of which the compiler knows nothing.
#[inline(always)]
pub(crate) fn opaque<T: Held>(value: T) -> T {
    value.held()
}
