//! A progress bar on the terminal, for work that takes longer than a moment.

use indicatif::{ProgressBar, ProgressStyle};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The progress of a job. indicatif draws nothing if standard error is not a terminal.
pub struct Progress {
    bar: ProgressBar,
    since: Instant,
    done: AtomicU64,
}

impl Progress {
    pub fn new(bytes: u64, quiet: bool) -> Self {
        let template = "{wide_bar} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} to go";
        let bar = if quiet { ProgressBar::hidden() } else { ProgressBar::new(bytes) };
        let style = ProgressStyle::with_template(template);
        let bar = bar.with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Self { bar, since: Instant::now(), done: AtomicU64::new(0) }
    }

    pub fn add(&self, bytes: u64) {
        let done = bytes + self.done.fetch_add(bytes, Ordering::Relaxed);
        if self.since.elapsed() > Duration::from_millis(500) {
            self.bar.set_position(done);
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}
