//! How large the library may be: lines of code, files, and constants that were found by measuring.
//!
//! Only code counts: comments, blank lines, attributes, `use` declarations and modules of tests are free. A module of
//! tests is `#[cfg(test)] mod tests`, with its code in braces, in `tests.rs` or in `tests/`. What else is compiled only
//! for tests counts, as it does for people who read the file. The test prints the figures whenever it runs. Whoever
//! exceeds a limit says in the commit why it is worth it, and raises the limit here.

use serde::Deserialize;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// The engine's directory, and how the paths of the files begin that hold everything that depends on the machine.
const ENGINE: &str = "src/copy/";
const MACHINE: &str = "src/copy/machine";

const ENGINE_CODE_LINES: usize = 4_400;
const OTHER_CODE_LINES: usize = 4_200;
const ENGINE_FILES: usize = 40;
const FILE_CODE_LINES: usize = 500;
const TUNING_CONSTANTS: usize = 40;

/// The numbered lines of a source file without its tests, and those of them that are code.
struct Source {
    path: String,
    lines: Vec<(usize, String)>,
    code: Vec<(usize, String)>,
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    path: Option<PathBuf>, // if it is a crate of this repository
    kind: Option<String>,  // "dev", "build", or null for a normal one
}

/// Returns the directories of the crates of this repository that the library is built from.
fn crates() -> Vec<PathBuf> {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1"])
        .current_dir(ROOT)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let Metadata { packages } = serde_json::from_slice(&output.stdout).unwrap();
    let mut found = vec![PathBuf::from(ROOT)];
    let mut next = 0;
    while let Some(directory) = found.get(next) {
        let manifest = directory.join("Cargo.toml");
        let package = packages.iter().find(|package| package.manifest_path == manifest);
        let package = package.unwrap_or_else(|| panic!("no package {}", manifest.display()));
        for dependency in &package.dependencies {
            if let (Some(path), None) = (&dependency.path, &dependency.kind) {
                if !found.contains(path) {
                    found.push(path.clone());
                }
            }
        }
        next += 1;
    }
    found
}

fn rust_files(directory: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            rust_files(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns the lines that are not in modules of tests. Relies on rustfmt's indentation.
fn without_tests(text: &str) -> Vec<(usize, String)> {
    let mut kept = Vec::new();
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        let is_for_tests = line.starts_with("#[cfg(test)]") || line.starts_with("#[cfg(all(test,");
        while is_for_tests && lines.next_if(|(_, line)| line.starts_with("#[")).is_some() {}
        if is_for_tests && lines.peek().is_some_and(|(_, item)| item.starts_with("mod tests")) {
            if lines.next().is_some_and(|(_, item)| item.ends_with('{')) {
                lines.by_ref().find(|(_, line)| *line == "}");
            }
        } else {
            kept.push((number + 1, line.to_owned()));
        }
    }
    kept
}

/// Returns the lines that are neither blank nor comments, attributes or `use` declarations. Relies on rustfmt's
/// layout.
fn code(lines: &[(usize, String)]) -> Vec<(usize, String)> {
    let mut code = Vec::new();
    let mut end_of_skipped = None;
    for (number, line) in lines {
        let trimmed = line.trim();
        if let Some(end) = end_of_skipped {
            if trimmed.ends_with(end) {
                end_of_skipped = None;
            }
        } else if trimmed.starts_with("#[") || trimmed.starts_with("#![") {
            let without_comment = trimmed.split(" //").next().unwrap();
            if !without_comment.ends_with(']') {
                end_of_skipped = Some(']');
            }
        } else if is_use(trimmed) {
            if !trimmed.ends_with(';') {
                end_of_skipped = Some(';');
            }
        } else if !trimmed.is_empty() && !trimmed.starts_with("//") {
            code.push((*number, line.clone()));
        }
    }
    code
}

fn is_use(line: &str) -> bool {
    let before = match line.split_once("use ") {
        Some((before, _)) => before.trim_end(),
        None => return false,
    };
    before.is_empty() || before == "pub" || (before.starts_with("pub(") && before.ends_with(')'))
}

/// Returns the name of a function that begins in this line.
fn function_begun(line: &str) -> Option<&str> {
    let (before, after) = line.split_once("fn ")?;
    let is_function = before.split_whitespace().all(|word| {
        word.starts_with("pub")
            || word.ends_with(')')
            || word.starts_with('"')
            || ["const", "unsafe", "extern", "async"].contains(&word)
    });
    let end = after.find(['(', '<'])?;
    (is_function && end > 0).then(|| &after[..end])
}

/// Returns the code lines, the place and the name of each function that has a body. Relies on rustfmt's indentation.
fn functions(source: &Source) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (index, (number, line)) in source.code.iter().enumerate() {
        let Some(name) = function_begun(line) else { continue };
        let is_last = |(_, last): &(usize, String)| {
            indent(last) == indent(line) && (last.ends_with('}') || last.ends_with(';'))
        };
        let Some(length) = source.code[index..].iter().position(is_last) else { continue };
        found.push((length + 1, format!("{}:{number} {name}", source.path)));
    }
    found
}

/// Returns the files of the library's crates, without tests.
fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    for directory in crates() {
        rust_files(&directory.join("src"), &mut files);
    }
    files.sort();
    let mut sources = Vec::new();
    for path in files {
        let name = path.strip_prefix(ROOT).unwrap().to_string_lossy().replace('\\', "/");
        if !name.contains("/tests/") && !name.ends_with("/tests.rs") {
            let lines = without_tests(&fs::read_to_string(&path).unwrap());
            let code = code(&lines);
            sources.push(Source { path: name, lines, code });
        }
    }
    sources
}

/// Returns the name of a number that the line defines: `pub(super) const NAME: usize = 4;`.
fn number_defined(line: &str) -> Option<&str> {
    const NUMBERS: [&str; 14] = [
        "usize", "isize", "u8", "u16", "u32", "u64", "u128", "i8", "i16", "i32", "i64", "i128",
        "f32", "f64",
    ];
    let before = line.trim_start();
    let after = match before.split_once("const ") {
        Some(("", after)) => after,
        Some((visibility, after)) if visibility.starts_with("pub") => after,
        _ => return None,
    };
    let (name, rest) = after.split_once(": ")?;
    let (kind, _) = rest.split_once(" =")?;
    let is_name = name.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_');
    (is_name && NUMBERS.contains(&kind)).then_some(name)
}

/// Returns what in a line names a CPU's model or vendor.
fn model_named(line: &str) -> Option<&'static str> {
    const NAMES: [&str; 37] = [
        "alder",
        "altra",
        "amd",
        "authenticamd",
        "bergamo",
        "broadwell",
        "cascade",
        "cooper",
        "cortex",
        "emerald",
        "epyc",
        "genoa",
        "genuineintel",
        "granite",
        "graviton",
        "haswell",
        "icelake",
        "intel",
        "milan",
        "naples",
        "neoverse",
        "raptor",
        "rocket",
        "rome",
        "ryzen",
        "sapphire",
        "sierra",
        "skylake",
        "tigerlake",
        "turin",
        "xeon",
        "zen",
        "zen2",
        "zen3",
        "zen4",
        "zen5",
        "zen6",
    ];
    let lower = line.to_lowercase();
    let is_family = lower.split_once("family").is_some_and(|(_, after)| {
        let after = after.trim_start_matches([':', '=', ' ']);
        after.starts_with(|c: char| c.is_ascii_digit())
    });
    if is_family {
        return Some("a family's number");
    }
    let mut words = lower.split(|c: char| !c.is_ascii_alphanumeric());
    words.find_map(|word| NAMES.iter().find(|name| **name == word)).copied()
}

/// Figures beside their limits.
#[derive(Default)]
struct Budget {
    text: String,
    is_exceeded: bool,
}

impl Budget {
    fn at_most(&mut self, what: &str, figure: usize, limit: usize) {
        let verdict = if figure > limit { "TOO MANY" } else { "" };
        writeln!(self.text, "{what:40} {figure:6} of {limit:6} {verdict}").unwrap();
        self.is_exceeded |= figure > limit;
    }

    /// Requires that nothing of a kind exists.
    fn none(&mut self, what: &str, found: &[String]) {
        self.at_most(what, found.len(), 0);
        for line in found.iter().take(20) {
            writeln!(self.text, "    {line}").unwrap();
        }
    }
}

#[test]
fn the_library_is_within_its_budget() {
    let sources = sources();
    let (engine, others): (Vec<_>, Vec<_>) =
        sources.iter().partition(|source| source.path.starts_with(ENGINE));
    let (machine, machine_free): (Vec<_>, Vec<_>) =
        sources.iter().partition(|source| source.path.starts_with(MACHINE));
    let lines = |sources: &[&Source]| sources.iter().map(|source| source.code.len()).sum();
    let constants = machine
        .iter()
        .flat_map(|source| &source.code)
        .filter(|(_, line)| number_defined(line).is_some())
        .count();
    let longest: Vec<String> = sources
        .iter()
        .filter(|source| source.code.len() > FILE_CODE_LINES)
        .map(|source| format!("{}: {}", source.path, source.code.len()))
        .collect();
    let models: Vec<String> = machine_free
        .iter()
        .flat_map(|source| source.lines.iter().map(move |(number, line)| (source, number, line)))
        .filter_map(|(source, number, line)| Some((source, number, model_named(line)?, line)))
        .map(|(source, number, name, line)| {
            format!("{}:{number}: {name}: {}", source.path, line.trim())
        })
        .collect();

    let mut largest: Vec<_> = sources.iter().flat_map(functions).collect();
    largest.sort_by(|a, b| b.cmp(a));

    let mut budget = Budget::default();
    budget.at_most("code lines of src/copy", lines(&engine), ENGINE_CODE_LINES);
    budget.at_most("code lines of everything else", lines(&others), OTHER_CODE_LINES);
    budget.at_most("files of src/copy", engine.len(), ENGINE_FILES);
    budget.none("files of more than 500 code lines", &longest);
    budget.at_most("tuning constants of the machine", constants, TUNING_CONSTANTS);
    budget.none("lines elsewhere that name CPU models", &models);
    writeln!(budget.text, "the largest functions, in code lines:").unwrap();
    for (length, function) in largest.iter().take(5) {
        writeln!(budget.text, "    {length:3} {function}").unwrap();
    }
    assert!(!machine.is_empty(), "no {MACHINE}\n{}", budget.text);
    assert!(!budget.is_exceeded, "\n{}", budget.text);
    // Not by print!, whose output is hidden when a test passes.
    write!(io::stderr(), "\n{}", budget.text).unwrap();
}

#[test]
fn modules_of_tests_are_not_counted() {
    let text = "a\n#[cfg(test)]\nuse b;\n#[cfg(all(test, unix))]\n#[allow(x)]\nmod tests {\n    fn d() {\n    }\n}\ne\n#[cfg(test)]\nmod tests;\n#[cfg(test)]\npub fn g() {\n}\nk";
    let kept: Vec<usize> = without_tests(text).iter().map(|(number, _)| *number).collect();
    assert_eq!(kept, [1, 2, 3, 10, 13, 14, 15, 16]);
}

#[test]
fn only_code_is_counted() {
    let text = "//! A comment.\n\n#![allow(\n    x,\n)]\nuse a::b;\npub(super) use c::{\n    d,\n};\n/// A comment.\n#[inline] // why\npub(crate) const unsafe fn e() {\n    // A comment.\n    used();\n\n    f(); // and why\n}\n";
    let lines = without_tests(text);
    let source = Source { path: "g".into(), code: code(&lines), lines };
    let numbers: Vec<_> = source.code.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [12, 14, 16, 17]);
    assert_eq!(functions(&source), [(4, "g:12 e".to_owned())]);
}

#[test]
fn numbers_and_models_are_recognized() {
    for line in [
        "const A_BYTES: usize = 4 << 10;",
        "    pub(super) const B2: u32 = 1;",
        "pub const C: f64 =",
    ] {
        assert!(number_defined(line).is_some(), "{line}");
    }
    for line in [
        "const A: [u8; 2] = [1, 2];",
        "    const N: usize,",
        "impl<const N: usize> A<N> {",
        "const fn a() -> usize {",
    ] {
        assert!(number_defined(line).is_none(), "{line}");
    }
    for line in [
        "// On Zen 4",
        "name: \"zen5\"",
        "AuthenticAMD",
        "Vendor::Amd => 1",
        "if cpu.family == 0x19 {",
        "/// Intel's",
    ] {
        assert!(model_named(line).is_some(), "{line}");
    }
    for line in [
        "dozens",
        "the family of a CPU",
        "intelligent",
        "chrome",
        "let family = 3 * x;".split('=').next().unwrap(),
    ] {
        assert!(model_named(line).is_none(), "{line}");
    }
}
