//! How large the library may be: lines, files, and numbers that were found by measuring.
//!
//! Whoever exceeds a limit says in the commit why it is worth it, and raises the limit here.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
/// The file of `src/copy` that holds everything that depends on the machine.
const MACHINE: &str = "src/copy/machine.rs";

/// A source file without its tests.
struct Source {
    path: String,
    lines: Vec<(usize, String)>,
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

/// Returns the name in `mod name;`.
fn module_file(line: &str) -> Option<&str> {
    let (_, name) = line.split_once("mod ")?;
    name.strip_suffix(';').map(str::trim)
}

/// Returns the files that a module declared in this file may have.
fn module_paths(file: &Path, name: &str) -> [PathBuf; 2] {
    let stem = file.file_stem().unwrap();
    let directory = file.parent().unwrap();
    let inside =
        if stem == "mod" || stem == "lib" { directory.into() } else { directory.join(stem) };
    [inside.join(format!("{name}.rs")), inside.join(name).join("mod.rs")]
}

fn is_for_tests(attribute: &str) -> bool {
    attribute.trim() == "#[cfg(test)]" || attribute.trim().starts_with("#[cfg(all(test,")
}

/// Returns the lines that are not only for tests, and the modules that are. Relies on rustfmt's indentation.
fn without_tests(text: &str) -> (Vec<(usize, String)>, Vec<&str>) {
    let (mut kept, mut modules) = (Vec::new(), Vec::new());
    let mut lines = text.lines().enumerate().peekable();
    while let Some((number, line)) = lines.next() {
        if !is_for_tests(line) {
            kept.push((number + 1, line.to_owned()));
            continue;
        }
        // An item is one line that ends it, or ends with a brace that is indented like its first line.
        let mut item = lines.next().map_or("", |(_, line)| line);
        while item.trim_start().starts_with("#[") || item.trim_start().starts_with("///") {
            item = lines.next().map_or("", |(_, line)| line);
        }
        modules.extend(module_file(item));
        if item.ends_with(';') || item.ends_with(',') || item.ends_with('}') {
            continue;
        }
        for (_, line) in lines.by_ref() {
            if indent(line) == indent(item) && line.trim_start().starts_with(['}', ')', ']']) {
                break;
            }
        }
    }
    (kept, modules)
}

/// Returns all of `src`, except for tests and files that are only tests.
fn sources() -> Vec<Source> {
    let mut files = Vec::new();
    rust_files(&Path::new(ROOT).join("src"), &mut files);
    files.sort();
    let texts: Vec<_> = files.iter().map(|path| fs::read_to_string(path).unwrap()).collect();
    let mut only_tests = BTreeSet::new();
    let mut sources = Vec::new();
    for (path, text) in files.iter().zip(&texts) {
        let (lines, modules) = without_tests(text);
        only_tests.extend(modules.iter().flat_map(|name| module_paths(path, name)));
        sources.push((path, lines));
    }
    let mut kept = Vec::new();
    for (path, lines) in sources {
        if !only_tests.contains(path) && !only_tests.iter().any(|tests| is_below(path, tests)) {
            let path = path.strip_prefix(ROOT).unwrap().to_string_lossy().replace('\\', "/");
            kept.push(Source { path, lines });
        }
    }
    kept
}

/// Returns whether a file belongs to a module of these files.
fn is_below(path: &Path, module: &Path) -> bool {
    module.ends_with("mod.rs") && path.starts_with(module.parent().unwrap())
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
        writeln!(self.text, "{what:60} {figure:6} of {limit:6} {verdict}").unwrap();
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
        sources.iter().partition(|source| source.path.starts_with("src/copy/"));
    let lines = |sources: &[&Source]| sources.iter().map(|source| source.lines.len()).sum();
    let numbers = |source: &Source| {
        source.lines.iter().filter(|(_, line)| number_defined(line).is_some()).count()
    };
    let tuned =
        engine.iter().filter(|source| source.path == MACHINE).map(|source| numbers(source)).sum();
    let longest: Vec<String> = engine
        .iter()
        .filter(|source| source.lines.len() > 500)
        .map(|source| format!("{}: {}", source.path, source.lines.len()))
        .collect();
    let models: Vec<String> = sources
        .iter()
        .filter(|source| source.path != MACHINE)
        .flat_map(|source| source.lines.iter().map(move |(number, line)| (source, number, line)))
        .filter_map(|(source, number, line)| Some((source, number, model_named(line)?, line)))
        .map(|(source, number, name, line)| {
            format!("{}:{number}: {name}: {}", source.path, line.trim())
        })
        .collect();

    let mut budget = Budget::default();
    budget.at_most("lines of src/copy without tests", lines(&engine), 6_000);
    budget.at_most("files of src/copy", engine.len(), 35);
    budget.none("files of src/copy of more than 500 lines", &longest);
    budget.at_most("numbers in src/copy/machine.rs, which were measured", tuned, 40);
    budget.at_most(
        "numbers that have names in all of src/copy",
        engine.iter().map(|source| numbers(source)).sum(),
        90,
    );
    budget.none("lines outside of src/copy/machine.rs that name CPU models", &models);
    // The goal is 6,000, which is enough; until then it must not grow.
    budget.at_most("lines of src outside of src/copy without tests", lines(&others), 6_377);
    assert!(fs::exists(Path::new(ROOT).join(MACHINE)).unwrap(), "no {MACHINE}\n{}", budget.text);
    assert!(!budget.is_exceeded, "\n{}", budget.text);
    println!("{}", budget.text);
}

#[test]
fn tests_are_not_counted() {
    let text = "a\n#[cfg(test)]\nuse b;\nc\n#[cfg(all(test, unix))]\n#[allow(x)]\nmod tests {\n    fn d() {\n    }\n}\ne\n#[cfg(test)]\nmod f;\n    #[cfg(test)]\n    pub fn g(\n        h: i,\n    ) -> j {\n    }\nk";
    let (kept, modules) = without_tests(text);
    assert_eq!(
        kept,
        [
            (1, "a".into()),
            (4, "c".into()),
            (11, "e".into()),
            (18, "    }".into()),
            (19, "k".into())
        ]
    );
    assert_eq!(modules, ["f"]);
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
