//! The package's own threads, lent to the C functions for large copies.

use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};
use libsplit::ffi::{libsplit_executor, libsplit_task_fn};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::num::NonZero;
use std::thread::available_parallelism;

/// Made when it is first asked for, and kept: one thread for each CPU that the process may use.
static POOL: AtomicPtr<ThreadPool> = AtomicPtr::new(core::ptr::null_mut());

/// The argument `threads` of a call: how to run it. `None` = on the calling thread.
pub fn executor(threads: Option<i64>) -> PyResult<Option<libsplit_executor>> {
    let threads = match threads {
        None | Some(1) => return Ok(None),
        Some(0) => 0,
        Some(threads) => u32::try_from(threads).map_err(|_| {
            let least = "but must be at least 0: 0 means one per CPU, None the calling thread";
            PyValueError::new_err(format!("threads is {threads}, {least}"))
        })?,
    };
    let pool = pool()?;
    let width = u32::try_from(pool.current_num_threads()).unwrap_or(u32::MAX);
    Ok(Some(libsplit_executor {
        max_tasks: if threads == 0 { width } else { threads.min(width) },
        ..libsplit_executor::init(Some(parallel_for), core::ptr::from_ref(pool).cast_mut().cast())
    }))
}

fn pool() -> PyResult<&'static ThreadPool> {
    let mut pool = POOL.load(Ordering::Acquire);
    if pool.is_null() {
        let made = ThreadPoolBuilder::new()
            .num_threads(available_parallelism().map_or(1, NonZero::get))
            .thread_name(|index| format!("libsplit-{index}"))
            .build()
            .map_err(|error| PyRuntimeError::new_err(format!("cannot start threads: {error}")))?;
        let made = Box::into_raw(Box::new(made));
        let order = Ordering::AcqRel;
        pool = match POOL.compare_exchange(pool, made, order, Ordering::Acquire) {
            Ok(_) => made,
            Err(first) => {
                // SAFETY: from `Box::into_raw` just above, and nobody else has seen it.
                drop(unsafe { Box::from_raw(made) });
                first
            }
        };
    }
    // SAFETY: a pool in POOL is never freed.
    Ok(unsafe { &*pool })
}

/// Called in the child after a fork, which has none of the parent's threads: the next call that
/// asks for threads makes a new pool.
#[pyfunction]
pub fn forget_pool() {
    POOL.store(core::ptr::null_mut(), Ordering::Release);
}

/// libsplit's `parallel_for`, on a [`ThreadPool`].
unsafe extern "C" fn parallel_for(
    pool: *mut c_void,
    task: libsplit_task_fn,
    context: *mut c_void,
    count: usize,
) -> i32 {
    struct Shared(*mut c_void);
    // SAFETY: libsplit lends its context to every thread that runs a task.
    unsafe impl Sync for Shared {}
    impl Shared {
        fn pointer(&self) -> *mut c_void {
            self.0
        }
    }

    let Some(task) = task else { return 1 };
    // SAFETY: `executor` put a pool there that is never freed.
    let pool = unsafe { &*pool.cast::<ThreadPool>() };
    let context = Shared(context);
    // SAFETY: each index below `count` is run once, with libsplit's context.
    let run = |index| unsafe { task(context.pointer(), index) };
    pool.install(|| (0..count).into_par_iter().with_max_len(1).for_each(run));
    0
}
