//! The one guard of every fallible function: what became of a call, as a status and in detail.

use super::parse::{FIRST_ERROR, MESSAGE};
use super::types::{libsplit_error, libsplit_status};
use crate::error::Error;
use crate::words::Words;
use core::ffi::c_char;
use core::fmt::{self, Write};
use core::{mem, slice};

/// What became of `$call`, a result: as a status, and in `$error` if that is not NULL. A macro, for an `$error` that
/// nothing can be written to is refused before the call. Promise: `$error` must be NULL or valid for the size that it
/// states.
macro_rules! guard {
    ($error:expr, $call:expr) => {{
        if let Some(refused) = $crate::ffi::guard::refuse($error) {
            return refused;
        }
        $crate::ffi::guard::finish($error, &$call)
    }};
}
pub(super) use guard;

/// The status of a call that has ended, and its detail where that is wanted.
///
/// # Safety
/// Promise 4.
#[inline]
pub(super) unsafe fn finish(
    error: *mut libsplit_error,
    result: &Result<(), Error>,
) -> libsplit_status {
    // SAFETY: promise 4.
    unsafe {
        if let Err(reason) = result {
            return failed(error, reason);
        }
        if !error.is_null() {
            write(error, libsplit_status::OK, -1, (0, 0));
        }
    }
    libsplit_status::OK
}

/// The status for an `error` that nothing can be written to.
///
/// # Safety
/// Promise 1.
#[inline]
pub(super) unsafe fn refuse(error: *mut libsplit_error) -> Option<libsplit_status> {
    if error.is_null() {
        return None;
    }
    if !error.is_aligned() {
        return Some(libsplit_status::ERROR_ALIGNMENT);
    }
    // SAFETY: promise 1; the size comes first.
    let size = unsafe { (*error).struct_size };
    (size < FIRST_ERROR).then_some(libsplit_status::ERROR_STRUCT_SIZE)
}

/// The status of a call that was refused; its reason goes to `error`.
///
/// # Safety
/// Promise 4.
#[cold]
#[inline(never)]
unsafe fn failed(error: *mut libsplit_error, reason: &Error) -> libsplit_status {
    let status = libsplit_status(reason.kind() as i32);
    if !error.is_null() {
        let output = reason.output_index().and_then(|output| i32::try_from(output).ok());
        // SAFETY: promise 4.
        unsafe {
            write(error, status, output.unwrap_or(-1), reason.numbers().unwrap_or((0, 0)));
            write_message(&raw mut (*error).message, reason);
        }
    }
    status
}

/// Fills the caller's structure, field by field: its tail may be of a newer version. The message is
/// empty.
///
/// # Safety
/// Promise 4; not NULL.
unsafe fn write(
    error: *mut libsplit_error,
    status: libsplit_status,
    output: i32,
    (expected, actual): (i64, i64),
) {
    // SAFETY: promise 4.
    unsafe {
        (*error).status = status;
        (*error).output_index = output;
        (*error).expected = expected;
        (*error).actual = actual;
        (&raw mut (*error).message).cast::<c_char>().write(0);
    }
}

/// Writes a reason out. One that does not fit is cut; its numbers stand in fields of their own.
///
/// # Safety
/// Promise 4.
unsafe fn write_message(message: *mut [c_char; MESSAGE], reason: &Error) {
    // SAFETY: promise 4; every bit pattern is a byte.
    let bytes = unsafe { &mut *message.cast::<[u8; MESSAGE]>() };
    let mut message = Message(bytes);
    let _ = write!(message, "{}", reason.message(&Words::C));
    if let Some(end) = message.0.first_mut() {
        *end = 0;
    }
}

/// What a text leaves of the caller's array; the last byte is for the NUL.
struct Message<'a>(&'a mut [u8]);

impl Write for Message<'_> {
    #[inline(never)]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        // Any place is good to cut at, as texts are ASCII.
        for byte in text.bytes() {
            let Some((slot, rest)) = mem::take(&mut self.0).split_first_mut() else { break };
            if rest.is_empty() {
                self.0 = slice::from_mut(slot);
                return Err(fmt::Error);
            }
            *slot = byte;
            self.0 = rest;
        }
        Ok(())
    }
}
