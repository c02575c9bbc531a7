//! Signals to stop. A job that copies looks for them now and then, fails, and cleans up as after any error.
//! What does not notice within a moment, wherever it is, is ended from another thread.

use crate::failure::{failure, Kind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU8, Ordering};
use std::thread;
use std::time::Duration;

static STOPPED: AtomicBool = AtomicBool::new(false);

/// The end of a pipe to the thread that ends the program; -1 if there is none.
static PIPE: AtomicI32 = AtomicI32::new(-1);

/// Who ends the program: nobody yet, the main thread, or the one that has been told of a signal.
static ENDED_BY: AtomicU8 = AtomicU8::new(NOBODY);
const NOBODY: u8 = 0;
const MAIN: u8 = 1;
const WATCHER: u8 = 2;

/// The time in which a job may end by itself.
const GRACE: Duration = Duration::from_millis(300);

/// Whether a signal to stop has come.
pub fn is_stopped() -> bool {
    STOPPED.load(Ordering::Relaxed)
}

/// Fails if a signal to stop has come.
pub fn check() -> anyhow::Result<()> {
    if is_stopped() {
        return Err(stopped());
    }
    Ok(())
}

/// The error of a job that a signal has stopped.
pub fn stopped() -> anyhow::Error {
    failure(Kind::Stopped, "stopped by a signal: no files were written")
}

/// The end of the work, which a signal has stopped unless outputs have got their names.
pub fn finish(done: anyhow::Result<()>) -> anyhow::Result<()> {
    let is_settled = ENDED_BY.load(Ordering::SeqCst) == MAIN;
    settle();
    done.and_then(|()| if is_settled { Ok(()) } else { check() })
}

/// From here on, the main thread ends the program: outputs are about to get their names, or an error to be
/// reported. Does not return if the program is already being ended.
pub fn settle() {
    let before = ENDED_BY.compare_exchange(NOBODY, MAIN, Ordering::SeqCst, Ordering::SeqCst);
    while before == Err(WATCHER) {
        thread::park();
    }
}

/// The signals that stop the program.
const STOPPING: [libc::c_int; 3] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP];

/// Lets signals end the program at once: what it has done is complete, and only the report is left.
pub fn let_go() {
    for signal in STOPPING {
        // SAFETY: the default is always allowed, and so is ignoring.
        unsafe {
            if libc::signal(signal, libc::SIG_DFL) == libc::SIG_IGN {
                libc::signal(signal, libc::SIG_IGN);
            }
        }
    }
}

/// Makes signals stop the job. If it goes on for longer than a moment, 'end' is run in another thread, and
/// the program exits.
pub fn handle(end: impl FnOnce() + Send + 'static) {
    extern "C" fn stop(_: libc::c_int) {
        STOPPED.store(true, Ordering::Relaxed);
        // SAFETY: writing to a pipe is allowed in a handler, and to no file it fails.
        unsafe { libc::write(PIPE.load(Ordering::Relaxed), b"!".as_ptr().cast(), 1) };
    }
    watch(end);
    let stop = stop as extern "C" fn(libc::c_int) as libc::sighandler_t;
    // SAFETY: the handler stores to an atomic and writes to a pipe.
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

/// Starts the thread that waits for a signal. Without it, jobs that look for signals still stop.
fn watch(end: impl FnOnce() + Send + 'static) {
    let mut ends = [-1; 2];
    // SAFETY: there is room for two numbers.
    if unsafe { libc::pipe(ends.as_mut_ptr()) } != 0 {
        return;
    }
    let wait = move || {
        let mut byte = 0_u8;
        // SAFETY: there is room for a byte.
        let read = || unsafe { libc::read(ends[0], (&raw mut byte).cast(), 1) };
        if std::iter::repeat_with(read).find(|count| *count >= 0) != Some(1) {
            return;
        }
        thread::sleep(GRACE);
        let claimed =
            ENDED_BY.compare_exchange(NOBODY, WATCHER, Ordering::SeqCst, Ordering::SeqCst);
        if claimed.is_ok() {
            end();
            std::process::exit(Kind::Stopped as i32);
        }
    };
    if thread::Builder::new().spawn(wait).is_ok() {
        PIPE.store(ends[1], Ordering::Relaxed);
    }
}
