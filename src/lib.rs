//! The tensor Split of ONNX and OpenVINO: every version, every element type, as zero-copy views or as copies.
//!
//! libsplit is a C library that happens to be written in Rust: `include/libsplit.h` is its
//! manual, and [`ffi`] its boundary. This is the same core for Rust callers. Choose an
//! [`Operator`] version, set its parameters on a [`Split`], and hand it a [`View`] of the input:
//!
//! ```
//! use libsplit::{Operator, Split, View};
//!
//! // A query, key and value projection in one matrix, as models fuse them: 2 tokens, 2 + 2 + 2.
//! let qkv = half::f16::from_f32_const(1.0);
//! let qkv = [qkv; 12];
//! let pieces = Split::new(Operator::onnx_split(18)?)
//!     .axis(-1)
//!     .lengths(&[2, 2, 2])
//!     .views(&View::packed(&qkv, &[2, 6])?)?;
//! assert_eq!(pieces[0].shape(), [2, 2]);
//! assert_eq!(pieces[0].strides(), [6, 1]);
//! # Ok::<(), libsplit::Error>(())
//! ```
//!
//! Whatever a rule refuses is an [`Error`] that names the argument, both numbers and the remedy,
//! and changes nothing. Packed 4-bit and 2-bit elements are not Rust types; split them by their bytes.
//!
//! The feature `rayon` adds an [`Executor`] on its threads, `Rayon`; the feature `ndarray` conversions
//! between a [`View`] and an `ArrayView`.

#![cfg_attr(not(test), no_std)]
// Only where raw pointers are read or passed on, and where bytes move.
#![deny(unsafe_code)]
// Numbers from callers must never panic; see tests for what does.
#![cfg_attr(not(test), deny(clippy::unwrap_used, clippy::expect_used))]
#![cfg_attr(not(test), deny(clippy::panic, clippy::indexing_slicing))]

#[cfg(all(feature = "alloc", not(feature = "capi")))]
extern crate alloc;
#[cfg(all(feature = "std", not(feature = "capi"), not(test)))]
extern crate std;

#[cfg(all(feature = "alloc", not(feature = "capi")))]
mod api;
#[allow(unsafe_code)]
mod call;
#[allow(unsafe_code)]
mod copy;
#[allow(unsafe_code)]
mod descriptor;
mod dtype;
mod error;
#[allow(unsafe_code)]
pub mod ffi;
mod geometry;
#[allow(unsafe_code)]
mod lengths;
mod math;
mod operator;
#[allow(unsafe_code)]
mod outputs;
mod overlap;
#[allow(unsafe_code)]
mod parts;
mod pieces;
#[allow(unsafe_code)]
mod plan;
mod reads;
mod rules;
mod shape;
mod span;
mod tensor;
mod text;
mod types;
mod words;

#[cfg(all(feature = "rayon", not(feature = "capi")))]
pub use api::rayon::Rayon;
#[cfg(all(feature = "alloc", not(feature = "capi")))]
pub use api::{element::Element, plan::Plan, split::Split, view::View, view::ViewMut};
#[cfg(feature = "tune")]
#[doc(hidden)]
pub use copy::tune;
pub use copy::{Executor, Streaming};
pub use dtype::DType;
pub use error::{Error, ErrorKind, Message};
pub use lengths::Lengths;
pub use operator::Operator;
pub use shape::{DIM_UNKNOWN, MAX_RANK};
pub use words::{Argument, Field, Words};

/// The C artifact stands alone, and nothing in it panics: `c-tests/needs_nothing.py` looks for that.
#[cfg(all(feature = "capi", not(test), not(libsplit_test_switch)))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    loop {}
}

/// Test builds check for overflow and have assertions. One that fails says where, and ends the program.
#[cfg(all(feature = "capi", not(test), libsplit_test_switch))]
#[panic_handler]
#[allow(unsafe_code)]
fn panic(info: &core::panic::PanicInfo<'_>) -> ! {
    use core::ffi::{c_int, c_void};
    use core::fmt::Write as _;
    extern "C" {
        fn write(file: c_int, text: *const c_void, bytes: usize) -> isize;
        fn abort() -> !;
    }
    let mut room = [0; 1024];
    let mut text = text::Text::new(&mut room);
    let _ = writeln!(text, "libsplit {info}");
    let bytes = text.end().min(room.len());
    // SAFETY: these are functions of the C library, and the text has that many bytes.
    unsafe {
        let _ = write(2, room.as_ptr().cast(), bytes);
        abort()
    }
}

// What compilers call without being told to, such as memcpy. A shared library has to name where that comes from, or
// loaders may call it before it is ready. (A static library names nothing.)
#[cfg(all(feature = "capi", not(test), unix))]
#[cfg_attr(target_vendor = "apple", link(name = "System"))]
#[cfg_attr(not(target_vendor = "apple"), link(name = "c"))]
extern "C" {}

/// Builds that keep checks, and the core library as it comes for other CPUs, keep the tables that unwinding would take,
/// and these name it. Nothing unwinds.
#[cfg(all(feature = "capi", not(test)))]
#[cfg(any(debug_assertions, not(any(target_arch = "x86_64", target_vendor = "apple"))))]
#[allow(unsafe_code)]
#[unsafe(no_mangle)]
extern "C" fn rust_eh_personality() {}
