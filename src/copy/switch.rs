//! The switch of test builds, which the delivered library does not have. It lets a test run the kernels of any level
//! that the CPU has, follow any row of the table of machines, and treat small copies as large ones.

use super::kernels::Level;
use super::machine::{Machine, MODEL_NAMES};
use core::ffi::{c_char, CStr};
use core::ptr::null;

/// Pretends to be on another machine from now on. `words` are names of levels and machines, and `low`, separated by
/// spaces. Returns 0 on success, 1 if this CPU lacks a level, 2 if a word is unknown, and 3 if this build lacks a level.
///
/// # Safety
/// `words` must be text that ends with a NUL. No copy may run at the same time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn libsplit_test_force(words: *const c_char) -> i32 {
    // SAFETY: the caller's promise.
    let words = unsafe { CStr::from_ptr(words) };
    match Machine::of_words(words.to_str().unwrap_or("?")) {
        Ok(machine) => {
            machine.put();
            0
        }
        Err(refused) => refused as i32,
    }
}

/// Returns the name of a level of this architecture. Number 0 is the lowest level; above the highest, there is NULL.
#[unsafe(no_mangle)]
pub extern "C" fn libsplit_test_level(number: usize) -> *const c_char {
    Level::ALL.get(number).map_or(null(), |(name, _)| name.as_ptr())
}

/// Returns the names of the rows of the table of machines, separated by spaces.
#[unsafe(no_mangle)]
pub extern "C" fn libsplit_test_machines() -> *const c_char {
    MODEL_NAMES.as_ptr()
}

/// Returns above how many bytes read and written this machine streams outputs.
#[unsafe(no_mangle)]
pub extern "C" fn libsplit_test_cached_bytes() -> usize {
    let machine = Machine::here();
    machine.threshold(machine.cached_bytes)
}
