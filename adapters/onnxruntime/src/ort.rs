//! ONNX Runtime's function table, and errors on their way to it.

use crate::abi::OrtEpApi;
use core::ffi::{c_char, CStr};
use core::fmt;
use core::ptr::NonNull;
use ort_sys::{OrtApi, OrtApiBase, OrtErrorCode, OrtStatusPtr};
use std::ffi::CString;
use std::panic::{catch_unwind, AssertUnwindSafe};

/// The oldest API that the custom ops work with: that of ONNX Runtime 1.18.
pub const OLDEST: u32 = 18;

/// The function table of the ONNX Runtime that has loaded this library, valid while it runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ort {
    table: NonNull<OrtApi>,
    /// Which functions the table has: those of `ort_sys` up to this API version.
    pub version: u32,
    /// Which ONNX Runtime it is: N of release 1.N, above all of them for 2.
    pub release: u32,
}

// SAFETY: the table is constant, and its functions may be called from any thread.
unsafe impl Send for Ort {}
// SAFETY: as above.
unsafe impl Sync for Ort {}

/// Calls a function of the table, which its API version must have, and gives a `Result`.
macro_rules! ort_call {
    ($ort:expr, $function:ident, $($argument:expr),* $(,)?) => {
        $ort.check(((*$ort.table()).$function)($($argument),*))
    };
}
pub(crate) use ort_call;

impl Ort {
    /// The table of this API version, if this ONNX Runtime has it.
    ///
    /// # Safety
    /// `base` must be what ONNX Runtime passes to a library that it loads.
    unsafe fn of_version(base: *const OrtApiBase, version: u32, release: u32) -> Option<Self> {
        // SAFETY: the caller's promise.
        let table = unsafe { ((*base).GetApi)(version) };
        Some(Self { table: NonNull::new(table.cast_mut())?, version, release })
    }

    /// The table of API `wanted`, or of the newest below it that there is, if that is not below
    /// `least`.
    ///
    /// # Errors
    /// A status that says what is too old, or NULL where not even that can be made.
    ///
    /// # Safety
    /// As [`Ort::of_version`].
    pub unsafe fn new(
        base: *const OrtApiBase,
        wanted: u32,
        least: u32,
    ) -> Result<Self, OrtStatusPtr> {
        // SAFETY: the caller's promise; the string is static.
        let release = unsafe { text(((*base).GetVersionString)()) };
        // Release 1.N has API N. It complains on stderr when asked for a newer one.
        let newest = release.split('.').nth(1).and_then(|minor| minor.parse().ok());
        let newest = newest.unwrap_or(wanted);
        let version = newest.min(wanted);
        let minor = if release.starts_with("1.") { newest } else { u32::MAX };
        // SAFETY: the caller's promise.
        let of = |version| unsafe { Self::of_version(base, version, minor) };
        if let Some(ort) = of(version).filter(|_| version >= least) {
            return Ok(ort);
        }
        let error = Error::Refused(format!("needs ONNX Runtime 1.{least} or newer, not {release}"));
        // Statuses are made alike in every version.
        let old = (1..=version).rev().find_map(of);
        Err(old.map_or(OrtStatusPtr::default(), |old| error.into_status(old)))
    }

    /// What [`ort_call`] reads functions from. There is no reference to it, for the table of an older
    /// ONNX Runtime is shorter than the type says.
    pub fn table(self) -> *const OrtApi {
        self.table.as_ptr()
    }

    /// The functions for execution providers, if there are as many as this adapter knows.
    ///
    /// # Errors
    /// If not.
    pub fn ep_api(self) -> Result<&'static OrtEpApi, Error> {
        // SAFETY: API 24, which providers are made with, has the function.
        let api: *const OrtEpApi = unsafe { ((*self.table()).GetEpApi)() }.cast();
        let functions: *const *const () = api.cast();
        let count = size_of::<OrtEpApi>() / size_of::<usize>();
        // SAFETY: a table of API 24 has this many; a NULL is caught before it becomes a function.
        if api.is_null() || (0..count).any(|i| unsafe { functions.add(i).read() }.is_null()) {
            return Err(Error::Refused(
                "this build of ONNX Runtime has no plugin execution providers".into(),
            ));
        }
        // SAFETY: not NULL, nor is any function in it; it is static.
        Ok(unsafe { &*api })
    }

    /// A returned status as a `Result`.
    pub fn check(self, status: OrtStatusPtr) -> Result<(), Error> {
        match NonNull::new(status.0) {
            None => Ok(()),
            Some(status) => Err(Error::Status(Status { ort: self, status })),
        }
    }
}

/// A status of ONNX Runtime's, released when dropped.
pub struct Status {
    ort: Ort,
    status: NonNull<ort_sys::OrtStatus>,
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: it is ours, and not used any more.
        unsafe { ((*self.ort.table()).ReleaseStatus)(self.status.as_ptr()) };
    }
}

/// Why a call fails.
pub enum Error {
    /// ONNX Runtime has said so.
    Status(Status),
    /// What was asked for is wrong; the text says what.
    Refused(String),
    /// A bug in libsplit.
    Internal(String),
}

impl Error {
    fn into_status(self, ort: Ort) -> OrtStatusPtr {
        let (code, text) = match self {
            Self::Status(status) => {
                let pointer = status.status.as_ptr();
                core::mem::forget(status);
                return OrtStatusPtr(pointer);
            }
            Self::Refused(text) => (OrtErrorCode::ORT_INVALID_ARGUMENT, text),
            Self::Internal(text) => (OrtErrorCode::ORT_FAIL, text),
        };
        let text = CString::new(format!("libsplit: {text}")).unwrap_or_default();
        // SAFETY: the text is copied.
        unsafe { ((*ort.table()).CreateStatus)(code, text.as_ptr()) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(Status { ort, status }) => {
                // SAFETY: a status of ours, which keeps its text.
                f.write_str(&unsafe { text(((*ort.table()).GetErrorMessage)(status.as_ptr())) })
            }
            Self::Refused(text) | Self::Internal(text) => f.write_str(text),
        }
    }
}

/// The boundary to ONNX Runtime: runs `body`, whose error or panic becomes a status.
pub fn guard(ort: Ort, body: impl FnOnce() -> Result<(), Error>) -> OrtStatusPtr {
    // Nothing that a panic could leave half-done is used after it.
    let result = catch_unwind(AssertUnwindSafe(body))
        .unwrap_or_else(|_| Err(Error::Internal("a bug, please report it".into())));
    result.err().map_or(OrtStatusPtr::default(), |error| error.into_status(ort))
}

/// A C string, for reading at once.
///
/// # Safety
/// `text` must be NULL or a NUL-terminated string that lives for as long as the result is used.
pub unsafe fn text<'a>(text: *const c_char) -> std::borrow::Cow<'a, str> {
    if text.is_null() {
        return "".into();
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}
