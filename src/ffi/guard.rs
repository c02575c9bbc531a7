//! The guard around every fallible function, which reports how a call ended: as a status, and in detail. For everything
//! unsafe here: promises 1 and 4 of [`super`].

use super::parse::{FIRST_ERROR, MESSAGE};
use super::types::{libsplit_error, libsplit_status};
use crate::error::Error;
use crate::text::Text;
use crate::words::Words;
use core::ffi::c_char;
use core::fmt::Write;

/// Makes a call, unless `error` cannot be written to. Returns its status, and writes the details to `error`.
#[inline]
pub(super) unsafe fn guard(
    error: *mut libsplit_error,
    call: impl FnOnce() -> Result<(), Error>,
) -> libsplit_status {
    if !error.is_null() {
        if !error.is_aligned() {
            return libsplit_status::ERROR_ALIGNMENT;
        }
        // SAFETY: promise 1; the size comes first.
        if unsafe { (*error).struct_size } < FIRST_ERROR {
            return libsplit_status::ERROR_STRUCT_SIZE;
        }
    }
    let result = call();
    // SAFETY: promise 4.
    unsafe {
        match result {
            Ok(()) => write(error, libsplit_status::OK, -1, (0, 0)),
            Err(reason) => write_reason(error, &reason),
        }
    }
}

/// Writes why a call was refused.
#[cold]
#[inline(never)]
unsafe fn write_reason(error: *mut libsplit_error, reason: &Error) -> libsplit_status {
    let output = reason.output_index().and_then(|output| i32::try_from(output).ok()).unwrap_or(-1);
    let status = libsplit_status(reason.kind() as i32);
    // SAFETY: promise 4; every bit pattern is a byte.
    unsafe {
        write(error, status, output, reason.numbers().unwrap_or((0, 0)));
        if !error.is_null() {
            // A message that does not fit is cut off; its numbers have fields of their own.
            let mut text = Text::new(&mut *(&raw mut (*error).message).cast::<[u8; MESSAGE]>());
            let _ = write!(text, "{}", reason.message(&Words::C));
            text.end();
        }
    }
    status
}

/// Fills in the caller's structure, if there is one, field by field, because its tail may belong to a newer version.
/// The message is left empty. Returns the status.
#[inline]
unsafe fn write(
    error: *mut libsplit_error,
    status: libsplit_status,
    output: i32,
    (expected, actual): (i64, i64),
) -> libsplit_status {
    if !error.is_null() {
        // SAFETY: promise 4.
        unsafe {
            (*error).status = status;
            (*error).output_index = output;
            (*error).expected = expected;
            (*error).actual = actual;
            (&raw mut (*error).message).cast::<c_char>().write(0);
        }
    }
    status
}
