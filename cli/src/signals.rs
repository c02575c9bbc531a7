//! Signals to stop: the job fails, and cleans up as after any error.

use crate::failure::{failure, Kind};
use std::sync::atomic::{AtomicBool, Ordering};

static STOPPED: AtomicBool = AtomicBool::new(false);

/// Whether a signal to stop has come.
pub fn is_stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// Fails if a signal to stop has come.
pub fn check() -> anyhow::Result<()> {
    if is_stopped() {
        return Err(failure(Kind::Stopped, "stopped by a signal: no files were written"));
    }
    Ok(())
}

/// The signals that stop the program.
const STOPPING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Runs something that may be ended at once, as nothing is to be cleaned up.
pub fn by_default<T>(run: impl FnOnce() -> T) -> T {
    // SAFETY: the default is always allowed.
    let before = STOPPING.map(|signal| unsafe { libc::signal(signal, libc::SIG_DFL) });
    let ignored = STOPPING.into_iter().zip(before).filter(|(_, before)| *before == libc::SIG_IGN);
    for (signal, _) in ignored {
        // SAFETY: so is ignoring.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
    let done = run();
    handle();
    done
}

/// Makes signals stop the job.
pub fn handle() {
    extern "C" fn stop(_: libc::c_int) {
        STOPPED.store(true, Ordering::Relaxed);
    }
    let stop = stop as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: storing to an atomic is allowed in a handler.
    unsafe {
        for signal in STOPPING {
            if libc::signal(signal, stop) == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_IGN); // as nohup wants it
            }
        }
        // A limit on file sizes is an error of the call that meets it.
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
    }
}
