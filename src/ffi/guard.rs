//! The guard around every fallible function, which reports how a call ended: as a status, and in detail.
//!
//! # Safety
//! For everything unsafe here: promises 1 and 4 of [`super`].

use super::parse::{FIRST_ERROR, MAX_STRUCT_SIZE};
use crate::error::Error;
use crate::text::Text;
use crate::types::{libsplit_error, libsplit_status};
use crate::words::Words;
use core::ffi::c_char;
use core::fmt::Write;
use core::mem::offset_of;

/// Makes a call, unless `error` cannot be written to. Returns its status, and writes the details to `error`.
pub(super) unsafe fn guard(
    error: *mut libsplit_error,
    call: impl FnOnce() -> Result<(), Error>,
) -> libsplit_status {
    if !error.is_null() {
        if !error.is_aligned() {
            return libsplit_status::ERROR_ALIGNMENT;
        }
        // SAFETY: promise 1; the size comes first.
        let stated = unsafe { (*error).struct_size };
        if !(FIRST_ERROR..=MAX_STRUCT_SIZE).contains(&stated) {
            return libsplit_status::ERROR_STRUCT_SIZE;
        }
    }
    let result = call();
    let (status, output, (expected, actual)) = match &result {
        Ok(()) => (libsplit_status::OK, -1, (0, 0)),
        Err(reason) => facts(reason),
    };
    if !error.is_null() {
        // SAFETY: promise 4. The tail may belong to a newer version, so fields are written one by one.
        unsafe {
            (*error).status = status;
            (*error).output_index = output;
            (*error).expected = expected;
            (*error).actual = actual;
            (&raw mut (*error).message).cast::<c_char>().write(0);
            if let Err(reason) = &result {
                write_message(error, reason);
            }
        }
    }
    status
}

/// Returns the status of a call that was refused, the output at fault, and the numbers that disagree.
#[cold]
fn facts(reason: &Error) -> (libsplit_status, i32, (i64, i64)) {
    let output = reason.output_index().and_then(|output| i32::try_from(output).ok()).unwrap_or(-1);
    (libsplit_status(reason.kind() as i32), output, reason.numbers().unwrap_or((0, 0)))
}

/// Writes why a call was refused.
#[cold]
unsafe fn write_message(error: *mut libsplit_error, reason: &Error) {
    const SIZE: usize = FIRST_ERROR - offset_of!(libsplit_error, message);
    // SAFETY: promise 4; every bit pattern is a byte.
    let (room, words) =
        unsafe { (&mut *(&raw mut (*error).message).cast::<[u8; SIZE]>(), (*error).words) };
    // A message that does not fit is cut off; its numbers have fields of their own.
    let mut text = Text::new(room);
    let _ = write!(text, "{}", reason.message(&Words::of(if words < 4 { words } else { 0 })));
    text.end();
}
