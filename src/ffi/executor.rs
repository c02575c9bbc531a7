//! The caller's thread pool, as the engine sees it.

use super::parse::{check_flags, versioned, FIRST_EXECUTOR};
use crate::copy::{Executor, Streaming};
use crate::error::Error;
use crate::span::Span;
use crate::types::{
    libsplit_executor, LIBSPLIT_FLAG_NEVER_STREAM, LIBSPLIT_FLAG_OUTPUTS_READ_NEXT,
};
use crate::words::Argument;
use core::ffi::c_void;

pub(super) struct Pool(libsplit_executor);

// SAFETY: `pool` is only handed back to the caller, on the calling thread.
unsafe impl Sync for Pool {}

impl Pool {
    /// Returns the executor, if there is one, and stores in `span` where its structure lies.
    ///
    /// # Safety
    /// Promise 1 of [`super`], also of its `parallel_for`: that it does what its type says.
    pub(super) unsafe fn parse(
        executor: *const libsplit_executor,
        span: &mut Span,
    ) -> Result<Option<Self>, Error> {
        if executor.is_null() {
            return Ok(None);
        }
        // SAFETY: promise 1.
        let (stated, bytes) = unsafe { versioned(executor, Argument::Executor, FIRST_EXECUTOR) }?;
        let known = LIBSPLIT_FLAG_OUTPUTS_READ_NEXT | LIBSPLIT_FLAG_NEVER_STREAM;
        check_flags(Argument::Executor, stated.flags, known)?;
        *span = Span::of_array(executor.cast::<u8>(), bytes);
        Ok(Some(Self(stated)))
    }
}

impl Executor for Pool {
    fn max_tasks(&self) -> usize {
        let most = usize::try_from(self.0.max_tasks).unwrap_or(usize::MAX);
        self.0.parallel_for.map_or(1, |_| most)
    }

    fn streaming(&self) -> Streaming {
        let has = |flag| self.0.flags & flag != 0;
        if has(LIBSPLIT_FLAG_NEVER_STREAM) {
            Streaming::Never
        } else if has(LIBSPLIT_FLAG_OUTPUTS_READ_NEXT) {
            Streaming::OutputsReadNext
        } else {
            Streaming::Auto
        }
    }

    fn parallel_for(&self, count: usize, task: &(dyn Fn(usize) + Sync)) -> Result<(), i32> {
        let Some(parallel_for) = self.0.parallel_for else {
            (0..count).for_each(task);
            return Ok(());
        };
        // A wide pointer does not fit into void*, but a pointer to one does.
        let context = core::ptr::from_ref(&task).cast_mut().cast();
        // SAFETY: `context` outlives the call, by whose end every task has returned.
        match unsafe { parallel_for(self.0.pool, Some(run_task), context, count) } {
            0 => Ok(()),
            code => Err(code),
        }
    }
}

/// Runs one task, called by the caller's pool.
///
/// # Safety
/// `context` must be the one that [`Pool::parallel_for`] made.
unsafe extern "C" fn run_task(context: *mut c_void, index: usize) {
    // SAFETY: that is a pointer to the task, which outlives the call.
    let task = unsafe { *context.cast::<&(dyn Fn(usize) + Sync)>() };
    task(index);
}

#[cfg(test)]
mod tests {
    use super::{
        libsplit_executor, Executor, Pool, Streaming, LIBSPLIT_FLAG_NEVER_STREAM,
        LIBSPLIT_FLAG_OUTPUTS_READ_NEXT,
    };

    #[test]
    fn flags_of_an_executor_say_what_may_go_past_the_caches() {
        let streaming = |flags| {
            let stated = libsplit_executor {
                struct_size: size_of::<libsplit_executor>(),
                flags,
                max_tasks: 0,
                parallel_for: None,
                pool: core::ptr::null_mut(),
            };
            // SAFETY: a whole structure, without a function to call.
            let pool = unsafe { Pool::parse(&raw const stated, &mut super::Span::default()) };
            pool.unwrap().unwrap().streaming()
        };
        let (read_next, never) = (LIBSPLIT_FLAG_OUTPUTS_READ_NEXT, LIBSPLIT_FLAG_NEVER_STREAM);
        assert_eq!(streaming(read_next), Streaming::OutputsReadNext);
        assert_eq!(streaming(never), Streaming::Never);
        assert_eq!(streaming(read_next | never), Streaming::Never);
    }
}
