//! For tests: memory that ends, and begins, where nothing may be touched.

use core::ffi::{c_int, c_void};

extern "C" {
    fn mmap(
        at: *mut c_void,
        len: usize,
        prot: c_int,
        flags: c_int,
        fd: c_int,
        offset: i64,
    ) -> *mut c_void;
    fn mprotect(at: *mut c_void, len: usize, prot: c_int) -> c_int;
    fn munmap(at: *mut c_void, len: usize) -> c_int;
}

const READ_AND_WRITE: c_int = 3;
#[cfg(target_os = "linux")]
const PRIVATE_AND_ANONYMOUS: c_int = 0x22;
#[cfg(not(target_os = "linux"))]
const PRIVATE_AND_ANONYMOUS: c_int = 0x1002;
/// No system has larger pages than this by default.
const GUARD: usize = 64 << 10;

/// Bytes between two ranges of which a touch ends the test.
pub(crate) struct Guarded {
    begin: *mut u8,
    bytes: usize,
}

impl Guarded {
    /// A multiple of 64 KiB, filled with bytes that differ from their neighbours.
    pub(crate) fn filled(bytes: usize) -> Self {
        assert_eq!(bytes % GUARD, 0);
        let all = bytes + 2 * GUARD;
        // SAFETY: a new mapping, of which the middle is made accessible and then filled.
        unsafe {
            let at = mmap(std::ptr::null_mut(), all, 0, PRIVATE_AND_ANONYMOUS, -1, 0);
            assert_ne!(at as isize, -1, "mmap");
            let begin = at.cast::<u8>().add(GUARD);
            assert_eq!(mprotect(begin.cast(), bytes, READ_AND_WRITE), 0, "mprotect");
            for i in 0..bytes {
                begin.add(i).write((i * 31 % 251 + i / 251 % 7).to_le_bytes()[0]);
            }
            Self { begin, bytes }
        }
    }

    /// Where `bytes` begin that lie at the end, or at the begin.
    pub(crate) fn place(&self, bytes: usize, at_end: bool) -> *mut u8 {
        let before = self.bytes.checked_sub(bytes).expect("a place that large");
        self.begin.wrapping_add(if at_end { before } else { 0 })
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: as it was mapped.
        unsafe { munmap(self.begin.wrapping_sub(GUARD).cast(), self.bytes + 2 * GUARD) };
    }
}
