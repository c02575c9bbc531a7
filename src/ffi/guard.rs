//! The one guard of every fallible function: what became of a call, as a status and in detail.

use super::parse::{FIRST_ERROR, MESSAGE};
use super::types::{libsplit_error, libsplit_status};
use crate::error::{Error, Fault, Report};
use core::ffi::c_char;
use core::fmt::{self, Write};
use core::{mem, slice};

/// What became of `$body`, a result that reports to `$report`: as a status, and in `$error` if that is
/// not NULL. A macro, for a closure would be a function of its own. Promise: `$error` must be NULL or
/// valid for the size that it states.
macro_rules! guard {
    ($error:expr, |$report:ident| $body:expr) => {{
        if let Some(refused) = $crate::ffi::guard::refuse($error) {
            return refused;
        }
        let mut report = $crate::error::Report::default();
        let $report = &mut report;
        let result = $body;
        $crate::ffi::guard::finish($error, result, report)
    }};
}
pub(super) use guard;

/// The status of a call that has ended, and its detail where that is wanted.
///
/// # Safety
/// Promise 4.
#[inline(always)] // on the way of every call
pub(super) unsafe fn finish(
    error: *mut libsplit_error,
    result: Result<(), Fault>,
    report: Report,
) -> libsplit_status {
    if result.is_err() {
        // SAFETY: promise 4.
        return unsafe { failed(error, report) };
    }
    if !error.is_null() {
        // SAFETY: promise 4.
        unsafe { write(error, libsplit_status::OK, -1, (0, 0)) };
    }
    libsplit_status::OK
}

/// The status for an `error` that nothing can be written to.
///
/// # Safety
/// Promise 1.
#[inline(always)] // on the way of every call
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
unsafe fn failed(error: *mut libsplit_error, report: Report) -> libsplit_status {
    // Every refusal has a reason.
    let Some(reason) = report.reason() else { return libsplit_status::ERROR_INTERNAL };
    let status = libsplit_status(reason.kind() as i32);
    if !error.is_null() {
        let output = reason.output_index().and_then(|output| i32::try_from(output).ok());
        // SAFETY: promise 4.
        unsafe {
            write(error, status, output.unwrap_or(-1), reason.numbers().unwrap_or((0, 0)));
            write_message(&raw mut (*error).message, &reason);
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
    let _ = write!(message, "{reason}");
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
