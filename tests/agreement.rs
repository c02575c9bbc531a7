//! Numbers and names that appear in more than one place are the same in all of them.

use libsplit::ffi::{
    libsplit_version, libsplit_version_string, LIBSPLIT_DIM_UNKNOWN, LIBSPLIT_MAX_RANK,
    LIBSPLIT_VERSION_MAJOR, LIBSPLIT_VERSION_MINOR, LIBSPLIT_VERSION_PATCH,
};
use libsplit::{Operator, DIM_UNKNOWN, MAX_RANK};
use std::ffi::CStr;
use std::path::Path;

#[test]
fn the_version_is_that_of_the_package() {
    let (major, minor, patch) =
        (LIBSPLIT_VERSION_MAJOR, LIBSPLIT_VERSION_MINOR, LIBSPLIT_VERSION_PATCH);
    assert_eq!(format!("{major}.{minor}.{patch}"), env!("CARGO_PKG_VERSION"));
    // SAFETY: the string is never freed.
    let version = unsafe { CStr::from_ptr(libsplit_version_string()) };
    assert_eq!(version.to_str(), Ok(env!("CARGO_PKG_VERSION")));
    assert_eq!(libsplit_version(), major << 24 | minor << 16 | patch);
    let changelog = include_str!("../CHANGELOG.md");
    let newest = changelog.lines().find_map(|line| line.strip_prefix("## ")).unwrap();
    assert!(newest.starts_with(env!("CARGO_PKG_VERSION")), "CHANGELOG.md begins with {newest}");
    // The Python packages take their versions from there.
    for (name, package) in [
        ("adapters/onnxruntime", include_str!("../adapters/onnxruntime/Cargo.toml")),
        ("python", include_str!("../python/Cargo.toml")),
        ("cli", include_str!("../cli/Cargo.toml")),
    ] {
        let version = package.lines().find_map(|line| line.strip_prefix("version = ")).unwrap();
        assert_eq!(version, format!("{:?}", env!("CARGO_PKG_VERSION")), "{name}");
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn read(file: &str) -> String {
    std::fs::read_to_string(root().join(file)).unwrap_or_else(|error| panic!("{file}: {error}"))
}

/// Returns the words of a file, with a space between any two.
fn words(file: &str) -> String {
    read(file).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns what is in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

/// The number in the shared library's name, which changes only with the ABI.
fn soversion() -> String {
    let cmake = read("CMakeLists.txt");
    let rest = cmake.split("set(soversion ").nth(1).expect("CMakeLists.txt sets soversion");
    rest.chars().take_while(char::is_ascii_digit).collect()
}

#[test]
fn every_build_gives_the_shared_library_the_same_name() {
    // cargo-c takes the number from the library's own version, or else from the package's.
    let manifest = read("Cargo.toml");
    let library = manifest.split("[package.metadata.capi.library]").nth(1).unwrap();
    let library = library.split("\n[").next().unwrap();
    let version = library.lines().find_map(|line| line.strip_prefix("version = \""));
    let version = version.unwrap_or(env!("CARGO_PKG_VERSION"));
    assert_eq!(version.split('.').next(), Some(&*soversion()));
    assert!(library.contains("version_suffix_components = 1\n"));
}

#[test]
fn every_file_means_the_same_version() {
    let (major, minor) = (LIBSPLIT_VERSION_MAJOR, LIBSPLIT_VERSION_MINOR);
    let soversion = soversion();
    for file in ["README.md", "CHANGELOG.md", "Cargo.toml", "include/libsplit.h"] {
        let text = read(file);
        let digits = |after: &str| after.chars().take_while(char::is_ascii_digit).collect();
        let mut names: Vec<String> = text.split("libsplit.so.").skip(1).map(digits).collect();
        names.retain(|digits| !digits.is_empty()); // "libsplit.so." may end a sentence
        assert!(!names.is_empty(), "{file}");
        assert!(names.iter().all(|digits| *digits == soversion), "{file}: {names:?}");
    }
    let find_package = format!("find_package(libsplit {major}.{minor} REQUIRED)");
    assert!(read("docs/start.md").contains(&find_package), "docs/start.md: {find_package}");
}

#[test]
fn every_file_means_the_same_tools() {
    let rust = env!("CARGO_PKG_RUST_VERSION");
    let adapter = read("adapters/onnxruntime/Cargo.toml");
    let adapter = adapter.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let adapter = adapter.unwrap().trim_matches('"');
    let tool = read("cli/Cargo.toml");
    let tool = tool.lines().find_map(|line| line.strip_prefix("rust-version = "));
    let tool = tool.unwrap().split('"').nth(1).unwrap();
    assert_eq!(tool, rust);
    for (file, text) in [
        ("cli/README.md", format!("Building needs Rust {tool}")),
        ("README.md", format!("needs Rust {adapter} and Python 3.11")),
        ("adapters/onnxruntime/README.md", format!("Building needs Rust {adapter}")),
        ("tools/onnxruntime.sh", "sys.version_info < (3, 11)".into()),
        ("README.md", format!("Rust ({rust} or newer)")),
        ("docs/platforms.md", format!("minimum Rust version, {rust},")),
        ("README.md", "Python 3.10 or newer".into()),
        ("docs/start.md", format!("Rust ({rust} or newer)")),
        ("Makefile", "Python 3.10 or newer".into()),
        ("tools/requirements-dev.txt", "Python 3.10 is the oldest".into()),
        ("tools/venv.sh", "sys.version_info < (3, 10)".into()),
        ("CMakeLists.txt", "cmake_minimum_required(VERSION 3.20)".into()),
        ("Makefile", "cmake_minimum_required(VERSION 3.22)".into()),
        ("tools/requirements-dev.txt", "CMake 3.22 or newer".into()),
    ] {
        assert!(words(file).contains(&text), "{file} has no '{text}'");
    }
}

/// An operator's newest version, and all of them: "13", "1, 2, 11, 13" and "1, 2, 11 and 13".
fn versions(operator: &str) -> [String; 3] {
    let names = Operator::ALL.iter().map(ToString::to_string);
    let number = |name: String| Some(name.strip_prefix(operator)?.strip_prefix('-')?.to_owned());
    let all: Vec<_> = names.filter_map(number).collect();
    let (newest, older) = all.split_last().unwrap();
    [newest.clone(), all.join(", "), format!("{} and {newest}", older.join(", "))]
}

/// A new operator version is not forgotten where no compiler looks: in documents, defaults and tests.
#[test]
fn every_file_knows_the_newest_operator_versions() {
    let [split, splits, splits_in_words] = versions("ONNX Split");
    let [sequence, sequences, sequences_in_words] = versions("ONNX SplitToSequence");
    let [variadic, variadics, _] = versions("OpenVINO VariadicSplit");
    let [parts, all_parts, _] = versions("OpenVINO Split");
    let clamp = "clamp_uneven: bool = False, ";
    let places = [
        ("README.md", format!("| {split} |")),
        ("README.md", format!("| {sequence} |")),
        ("README.md", format!("| OpenVINO VariadicSplit | {variadic} |")),
        ("README.md", format!("| OpenVINO Split | {parts} |")),
        ("adapters/onnxruntime/README.md", format!("**Versions**: {splits_in_words}.")),
        ("adapters/onnxruntime/tests/test_provider.py", format!("{split}: [{split}, ")),
        (
            "adapters/openvino/README.md",
            format!("VariadicSplit-{variadic} and Split-{parts} of an IR"),
        ),
        ("adapters/openvino/src/extension.cpp", format!("m_type(name, \"opset{variadic}\")")),
        ("adapters/openvino/src/extension.cpp", format!("LIBSPLIT_OP_ONNX_SPLIT, {split},")),
        ("c-tests/copy.c", format!("{{SPLIT, {split}, \"x")),
        ("c-tests/copy.c", format!("{{SEQUENCE, {sequence}, \"x")),
        ("c-tests/copy.c", format!("{{VARIADIC, {variadic}, \"x")),
        ("c-tests/copy.c", format!("{{OV_SPLIT, {parts}, \"x")),
        ("docs/generate/seven.py", format!("\"Split\", [{splits}]")),
        ("docs/generate/seven.py", format!("\"SplitToSequence\", [{sequences}]")),
        ("docs/generate/seven.py", format!("\"openvino.VariadicSplit\", [{variadics}]")),
        ("docs/generate/seven.py", format!("\"openvino.Split\", [{all_parts}]")),
        ("include/libsplit.hpp", format!("to_sequence(std::int32_t opset = {sequence})")),
        ("python/source/libsplit/_libsplit.pyi", format!("opset: int = {split}, {clamp}) -> list")),
        ("python/source/libsplit/_libsplit.pyi", format!("opset: int = {split}, {clamp}) -> Oper")),
        ("python/source/libsplit/_libsplit.pyi", format!("opset: int = {sequence}, ) -> list")),
        ("python/source/libsplit/_libsplit.pyi", format!("opset: int = {sequence}, ) -> Oper")),
        ("python/src/arguments.rs", format!("num_outputs=None, opset={split}, ")),
        ("python/src/arguments.rs", format!("keepdims=true, opset={sequence})")),
        ("python/src/lib.rs", format!("num_outputs=None, opset={split}, ")),
        ("python/src/lib.rs", format!("keepdims=true, opset={sequence})")),
        ("src/api/split.rs", format!("Self::new(Operator::SplitToSequence{sequence})")),
        ("src/types.rs", format!("ONNX Split, versions {splits_in_words}.")),
        ("src/types.rs", format!("ONNX SplitToSequence, versions {sequences_in_words}.")),
        ("src/types.rs", format!("OpenVINO VariadicSplit-{variadic}.")),
        ("src/types.rs", format!("OpenVINO Split-{parts}:")),
        ("src/types.rs", format!("For OpenVINO operators: {variadic}, or 0, which means 1.")),
    ];
    let is_missing = |(file, text): &&(&str, String)| !words(file).contains(text);
    let missing: Vec<_> = places.iter().filter(is_missing).collect();
    assert!(missing.is_empty(), "{} texts are missing: {missing:#?}", missing.len());
}

#[test]
fn the_tests_that_promises_rest_on_are_there() {
    let policy = read("SECURITY.md");
    let (_, table) = policy.split_once("| promise | enforced by |").unwrap();
    let files: Vec<_> = quoted(table).filter(|name| name.contains('/')).collect();
    assert!(files.len() > 10);
    for file in files {
        assert!(root().join(file).is_file(), "SECURITY.md names {file}");
    }
}

#[test]
fn limits_are_the_same_in_c_and_rust() {
    assert_eq!(LIBSPLIT_MAX_RANK as usize, MAX_RANK);
    assert_eq!(LIBSPLIT_DIM_UNKNOWN, DIM_UNKNOWN);
}
