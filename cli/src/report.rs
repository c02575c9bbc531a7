//! Messages and reports to the user.

use crate::failure;
use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::json;
use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};
use std::path::Path;

/// Writes to standard output. It is not an error if the reader has closed the pipe.
pub fn print(text: &str) -> Result<()> {
    print_by(|out| out.write_all(visible(text).as_bytes()))
}

/// Writes JSON to standard output.
pub fn print_json(value: &impl Serialize) -> Result<()> {
    print_by(|mut out| {
        serde_json::to_writer_pretty(&mut out, value)?;
        writeln!(out)
    })
}

/// Lets a function write to standard output.
pub fn print_by(write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
    let mut out = BufWriter::new(anstream::stdout().lock());
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        done => {
            done.context("the work is done, but the report could not be written to standard output")
        }
    }
}

/// Warns the user of a possible mistake.
pub fn warn(message: &str) {
    let style = clap::builder::styling::AnsiColor::Yellow.on_default().bold();
    let _ = writeln!(anstream::stderr(), "{style}warning:{style:#} {}", visible(message));
}

/// Reports an error, as JSON on request.
pub fn error(error: &anyhow::Error, is_json: bool) {
    // The context of the interrupted work has nothing to do with a signal.
    let is_stopped = failure::exit_code(error) == failure::Kind::Stopped as u8;
    let message = if is_stopped { error.root_cause().to_string() } else { format!("{error:#}") };
    if is_json {
        return json_error(&message, failure::exit_code(error));
    }
    let style = clap::builder::styling::AnsiColor::Red.on_default().bold();
    let _ = writeln!(anstream::stderr(), "{style}error:{style:#} {}", visible(&message));
}

/// Reports an error as one line of JSON.
pub fn json_error(message: &str, exit_code: u8) {
    let error = json!({ "error": { "message": message, "exit_code": exit_code } });
    let _ = writeln!(anstream::stderr(), "{error}");
}

/// A text in which characters that are not seen are spelt out, and those that change how others are seen:
/// names of tensors come from anywhere, and must not control a terminal. Lines stay lines.
fn visible(text: &str) -> Cow<'_, str> {
    spelt_out(text, |letter| letter != '\n' && is_invisible(letter))
}

/// A name from anywhere, which takes one line.
pub fn shown(name: &str) -> Cow<'_, str> {
    spelt_out(name, is_invisible)
}

/// A path for JSON and for messages: what is not UTF-8 in it becomes U+FFFD.
pub fn path_text(path: &Path) -> String {
    path.display().to_string()
}

fn spelt_out(text: &str, is_meant: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.contains(&is_meant) {
        return text.into();
    }
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_meant(letter) {
            shown.extend(letter.escape_debug());
        } else {
            shown.push(letter);
        }
    }
    shown.into()
}

/// Controls, direction marks and the like. Accents that combine with the letter before them are seen.
fn is_invisible(letter: char) -> bool {
    if letter.is_ascii() {
        return letter.is_ascii_control();
    }
    let mut after_another = String::from("a");
    after_another.push(letter);
    after_another.escape_debug().nth(2).is_some()
}

/// A number of things.
pub fn many(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// Names in a line of text: names that differ only in a number are listed once.
pub fn kinds(names: &[&str], what: &str) -> String {
    const MOST: usize = 8;
    let mut order = Vec::new();
    let mut counts: HashMap<String, usize> = HashMap::new();
    for name in names {
        let kind = kind(name);
        *counts.entry(kind.clone()).or_insert_with(|| {
            order.push(kind);
            0
        }) += 1;
    }
    let mut text = format!("{}: ", many(names.len(), what));
    for (index, kind) in order.iter().take(MOST).enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        let _ = match counts[kind] {
            1 => write!(text, "{comma}{}", shown(kind)),
            count => write!(text, "{comma}{} ({count})", shown(kind)),
        };
    }
    if order.len() > MOST {
        let _ = write!(text, " and {} more kinds", order.len() - MOST);
    }
    text
}

/// A name with `N` in place of each component that is a number.
pub fn kind(name: &str) -> String {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let parts = name.split('.').map(|part| if is_number(part) { "N" } else { part });
    parts.collect::<Vec<_>>().join(".")
}

/// A number of bytes, for people.
pub fn bytes_text(bytes: u64) -> String {
    indicatif::HumanBytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::{kinds, shown, visible};

    #[test]
    fn control_characters_are_spelt_out() {
        assert_eq!(visible("a\n\u{1b}[31mé"), "a\n\\u{1b}[31mé");
        assert_eq!(shown("a\nb\u{202e}'e\u{301}\u{ad}"), "a\\nb\\u{202e}'e\u{301}\\u{ad}");
    }

    #[test]
    fn names_in_a_line() {
        assert_eq!(kinds(&["a.0.b", "c", "a.11.b"], "tensor"), "3 tensors: a.N.b (2), c");
        let names: Vec<String> =
            (b'a'..b'm').map(|letter| char::from(letter).to_string()).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        assert!(kinds(&names, "tensor").ends_with("h and 4 more kinds"));
    }
}
