//! A node's attributes, as ONNX Runtime provides them.

use crate::ort::{ort_call, Error, Ort};
use core::ffi::CStr;
use core::ptr;
use ort_sys::OrtKernelInfo;

/// An attribute that no node has: what is said of it is said of every absent one.
const ABSENT: &CStr = c"libsplit_has_no_such_attribute";

/// An integer attribute, if the node has it.
///
/// # Safety
/// `info` must be that of the node whose kernel is being made.
pub unsafe fn integer(
    ort: Ort,
    info: *const OrtKernelInfo,
    name: &CStr,
) -> Result<Option<i64>, Error> {
    let ask = |name: &CStr| {
        let mut value = 0;
        // SAFETY: the caller's promise.
        unsafe { ort_call!(ort, KernelInfoGetAttribute_int64, info, name.as_ptr(), &raw mut value) }
            .map(|()| value)
    };
    if_present(name, "an integer", ask)
}

/// An attribute of many integers, if the node has it. One of another type has no integers.
///
/// # Safety
/// As [`integer`].
pub unsafe fn integers(
    ort: Ort,
    info: *const OrtKernelInfo,
    name: &CStr,
) -> Result<Option<Vec<i64>>, Error> {
    let get = |name: &CStr, values, count| {
        // SAFETY: the caller's promise.
        unsafe {
            ort_call!(ort, KernelInfoGetAttributeArray_int64, info, name.as_ptr(), values, count)
        }
    };
    let ask = |name: &CStr| {
        let (mut values, mut count) = (Vec::new(), 0);
        // The first call asks how many there are.
        get(name, ptr::null_mut(), &raw mut count)?;
        if count > 0 {
            values.resize(count, 0);
            get(name, values.as_mut_ptr(), &raw mut count)?;
        }
        Ok(values)
    };
    if_present(name, "a list of integers", ask)
}

/// What `ask` gives for the attribute, or `None` if the node has none. ONNX Runtime's errors do not
/// tell an absent one from one of another type but in their text.
fn if_present<T>(
    name: &CStr,
    kind: &str,
    ask: impl Fn(&CStr) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let found = match ask(name) {
        Ok(value) => return Ok(Some(value)),
        Err(error) => error.to_string(),
    };
    let name = name.to_string_lossy();
    let absent = ask(ABSENT).err().map(|error| error.to_string());
    let absent = absent.map(|text| text.replace(&*ABSENT.to_string_lossy(), &name));
    if absent.as_ref() == Some(&found) {
        return Ok(None);
    }
    Err(Error::Refused(format!("attribute {name} is not {kind}: {found}")))
}
