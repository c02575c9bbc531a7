//! What the user is told.

use anyhow::{Context, Result};
use std::io::{self, Write};

/// Writes to standard output. A reader that has seen enough is no error.
pub fn print(text: &str) -> Result<()> {
    let mut out = anstream::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => done.context("everything is done, but not told on standard output"),
    }
}

/// Writes JSON to standard output.
pub fn print_json(value: &serde_json::Value) -> Result<()> {
    print(&format!("{value:#}\n"))
}

/// Tells what may be a mistake.
pub fn warn(message: &str) {
    let style = clap::builder::styling::AnsiColor::Yellow.on_default().bold();
    let _ = writeln!(anstream::stderr(), "{style}warning:{style:#} {message}");
}

/// Tells an error.
pub fn error(error: &anyhow::Error) {
    let style = clap::builder::styling::AnsiColor::Red.on_default().bold();
    let _ = writeln!(anstream::stderr(), "{style}error:{style:#} {error:#}");
}

/// So many of them.
pub fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// A number of bytes, for people.
pub fn bytes_text(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}
