//! The one guard of every fallible function: errors and panics become a status.

use super::types::{libsplit_error, libsplit_status};
use crate::error::{Error, ErrorKind};
use core::ffi::{c_char, CStr};
use core::fmt::{self, Write};
use std::panic::{catch_unwind, AssertUnwindSafe};

/// Runs `body` and reports what became of it, in `error` too if that is not NULL.
///
/// # Safety
/// `error` must be NULL or valid for the size that it states.
pub(super) unsafe fn guard(
    error: *mut libsplit_error,
    body: impl FnOnce() -> Result<(), Error>,
) -> libsplit_status {
    // SAFETY: the caller's promise.
    if let Some(refused) = unsafe { refuse(error) } {
        return refused;
    }
    // Nothing that a panic could leave half-done is used after it.
    let result = catch_unwind(AssertUnwindSafe(body)).unwrap_or(Err(Error::Internal));
    let status = match &result {
        Ok(()) => libsplit_status::OK,
        Err(error) => libsplit_status::from(error.kind()),
    };
    if !error.is_null() {
        // SAFETY: not NULL, aligned and large enough, as `refuse` has checked.
        unsafe { report(error, status, result.err()) };
    }
    status
}

/// The status for an `error` that nothing can be written to.
///
/// # Safety
/// As [`guard`].
unsafe fn refuse(error: *mut libsplit_error) -> Option<libsplit_status> {
    if error.is_null() {
        return None;
    }
    if !error.is_aligned() {
        return Some(libsplit_status::ERROR_ALIGNMENT);
    }
    // SAFETY: the caller's promise; the size comes first.
    let size = unsafe { (*error).struct_size };
    (size < size_of::<libsplit_error>()).then_some(libsplit_status::ERROR_STRUCT_SIZE)
}

/// Fills the caller's structure, field by field: its tail may be of a newer version.
///
/// # Safety
/// `error` must be valid for this version's size.
unsafe fn report(error: *mut libsplit_error, status: libsplit_status, found: Option<Error>) {
    let output = found.as_ref().and_then(Error::output_index);
    let (expected, actual) = found.as_ref().and_then(Error::numbers).unwrap_or((0, 0));
    // SAFETY: the caller's promise.
    let error = unsafe { &mut *error };
    error.status = status;
    error.output_index = output.and_then(|output| i32::try_from(output).ok()).unwrap_or(-1);
    error.expected = expected;
    error.actual = actual;
    let mut message = Message { rest: &mut error.message };
    if let Some(found) = found {
        // A message that does not fit is cut; the numbers stand in fields of their own.
        let _ = write!(message, "{found}");
    }
    message.end();
}

/// Writes text into a fixed array, as much as fits before a final NUL.
struct Message<'a> {
    rest: &'a mut [c_char],
}

impl Write for Message<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for letter in text.chars() {
            let mut bytes = [0u8; 4];
            let bytes = letter.encode_utf8(&mut bytes).as_bytes();
            let rest = core::mem::take(&mut self.rest);
            if rest.len() <= bytes.len() {
                self.rest = rest;
                return Err(fmt::Error);
            }
            let (head, tail) = rest.split_at_mut(bytes.len());
            for (slot, byte) in head.iter_mut().zip(bytes) {
                *slot = c_char::from_ne_bytes([*byte]);
            }
            self.rest = tail;
        }
        Ok(())
    }
}

impl Message<'_> {
    fn end(self) {
        if let Some(end) = self.rest.first_mut() {
            *end = 0;
        }
    }
}

impl From<ErrorKind> for libsplit_status {
    fn from(kind: ErrorKind) -> Self {
        Self(kind as i32)
    }
}

impl libsplit_status {
    pub(super) fn name(self) -> &'static CStr {
        macro_rules! names {
            ($($name:ident)*) => {
                $(if self == Self::$name {
                    const NAME: &CStr = match CStr::from_bytes_with_nul(
                        concat!("LIBSPLIT_STATUS_", stringify!($name), "\0").as_bytes(),
                    ) {
                        Ok(name) => name,
                        Err(_) => c"",
                    };
                    return NAME;
                })*
            };
        }
        names! {
            OK ERROR_NULL ERROR_ALIGNMENT ERROR_STRUCT_SIZE ERROR_OPERATOR ERROR_OPSET
            ERROR_FLAGS ERROR_DTYPE ERROR_RANK ERROR_AXIS ERROR_SHAPE ERROR_SPLIT
            ERROR_SPLIT_SIZES ERROR_NUM_OUTPUTS ERROR_CAPACITY ERROR_STRIDES ERROR_BIT_OFFSET
            ERROR_DATA_BYTES ERROR_OVERFLOW ERROR_OVERLAP ERROR_OUTPUT ERROR_UNKNOWN
            ERROR_EXECUTOR ERROR_INTERNAL
        }
        c"LIBSPLIT_STATUS_UNKNOWN"
    }
}
