//! Numbers that stand in more than one place are the same in all of them.

// Calls into C functions are all unsafe, and what they get is made right above them.
#![allow(clippy::undocumented_unsafe_blocks, clippy::borrow_as_ptr)]

use libsplit::ffi::{
    libsplit_dtype, libsplit_dtype_bits, libsplit_dtype_name, libsplit_status,
    libsplit_status_name, libsplit_version, libsplit_version_string, LIBSPLIT_DIM_UNKNOWN,
    LIBSPLIT_MAX_RANK, LIBSPLIT_VERSION_MAJOR, LIBSPLIT_VERSION_MINOR, LIBSPLIT_VERSION_PATCH,
};
use libsplit::{DType, ErrorKind, DIM_UNKNOWN, MAX_RANK};
use std::ffi::{c_char, CStr};
use std::path::Path;

fn text(name: *const c_char) -> &'static str {
    unsafe { CStr::from_ptr(name) }.to_str().unwrap()
}

#[test]
fn the_version_is_that_of_the_package() {
    let (major, minor, patch) =
        (LIBSPLIT_VERSION_MAJOR, LIBSPLIT_VERSION_MINOR, LIBSPLIT_VERSION_PATCH);
    assert_eq!(format!("{major}.{minor}.{patch}"), env!("CARGO_PKG_VERSION"));
    assert_eq!(text(libsplit_version_string()), env!("CARGO_PKG_VERSION"));
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

/// What stands in backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn every_file_means_the_same_version() {
    let (major, minor) = (LIBSPLIT_VERSION_MAJOR, LIBSPLIT_VERSION_MINOR);
    for file in ["README.md", "CHANGELOG.md", "Cargo.toml", "include/libsplit.h"] {
        let text = read(file);
        let digits = |after: &str| after.chars().take_while(char::is_ascii_digit).collect();
        let mut names: Vec<String> = text.split("libsplit.so.").skip(1).map(digits).collect();
        names.retain(|digits| !digits.is_empty()); // "libsplit.so." may end a sentence
        assert!(!names.is_empty(), "{file}");
        assert!(names.iter().all(|digits| *digits == major.to_string()), "{file}: {names:?}");
    }
    let find_package = format!("find_package(libsplit {major}.{minor} REQUIRED)");
    assert!(read("README.md").contains(&find_package), "README.md: {find_package}");
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
        ("README.md", format!("minimum Rust version, {rust},")),
        ("README.md", "Python 3.10 or newer".into()),
        ("Makefile", "Python 3.10 or newer".into()),
        ("requirements-dev.txt", "Python 3.10 is the oldest".into()),
        ("tools/venv.sh", "sys.version_info < (3, 10)".into()),
        ("CMakeLists.txt", "cmake_minimum_required(VERSION 3.20)".into()),
        ("Makefile", "cmake_minimum_required(VERSION 3.20)".into()),
        ("tools/venv.sh", "cmake_minimum_required(VERSION 3.20)".into()),
        ("requirements-dev.txt", "CMake 3.20 or newer".into()),
    ] {
        let words = read(file).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(&text), "{file} has no '{text}'");
    }
}

#[test]
fn headers_of_releases_are_kept_and_their_constants_too() {
    let header = read("include/libsplit.h");
    let is_constant = |line: &&str| {
        line.starts_with("#define LIBSPLIT_") && !line.starts_with("#define LIBSPLIT_VERSION_")
    };
    let mut releases = 0;
    for entry in std::fs::read_dir(root().join("abi")).unwrap() {
        let release = entry.unwrap().file_name().into_string().unwrap();
        let Some([major, minor, patch]) = numbers(&release) else { continue };
        let old = read(&format!("abi/{release}/libsplit.h"));
        for (name, number) in [("MAJOR", major), ("MINOR", minor), ("PATCH", patch)] {
            assert!(old.contains(&format!("#define LIBSPLIT_VERSION_{name} {number}\n")));
        }
        let constants: Vec<_> = old.lines().filter(is_constant).collect();
        assert!(constants.len() > 50, "{release}: {}", constants.len());
        for constant in constants {
            assert!(header.lines().any(|line| line == constant), "{release} has {constant}");
        }
        releases += 1;
    }
    assert!(releases > 0);
}

/// "0.1.0" in numbers.
fn numbers(version: &str) -> Option<[u32; 3]> {
    let numbers: Option<Vec<_>> = version.split('.').map(|number| number.parse().ok()).collect();
    numbers?.try_into().ok()
}

#[test]
fn the_tests_that_promises_rest_on_are_there() {
    let policy = read("SECURITY.md");
    let (_, table) = policy.split_once("| promise | held by |").unwrap();
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

#[test]
fn every_dtype_has_a_constant_of_its_number_in_the_header() {
    let header = include_str!("../include/libsplit.h");
    for dtype in DType::ALL {
        let number = *dtype as i32;
        assert!(header.contains(&format!("#define LIBSPLIT_DTYPE_{dtype} {number}\n")), "{dtype}");
        assert_eq!(text(libsplit_dtype_name(libsplit_dtype(number))), dtype.name());
        assert_eq!(libsplit_dtype_bits(libsplit_dtype(number)), dtype.bits());
    }
    assert_eq!(header.matches("#define LIBSPLIT_DTYPE_").count(), DType::ALL.len());
}

#[test]
fn every_status_has_a_name_and_a_kind() {
    let header = include_str!("../include/libsplit.h");
    let last = ErrorKind::Plan as i32;
    for number in 0..=last {
        let name = text(libsplit_status_name(libsplit_status(number)));
        assert!(header.contains(&format!("#define {name} {number}\n")), "{name}");
    }
    let statuses = header.matches("#define LIBSPLIT_STATUS_").count();
    assert_eq!(i32::try_from(statuses), Ok(last + 1));
    for number in [-1, last + 1, i32::MAX] {
        let name = text(libsplit_status_name(libsplit_status(number)));
        assert_eq!(name, "LIBSPLIT_STATUS_UNKNOWN");
    }
    // A kind and its status go by the same name: ERROR_SPLIT_SIZES and SplitSizes.
    let kinds = [
        ErrorKind::Null,
        ErrorKind::Alignment,
        ErrorKind::StructSize,
        ErrorKind::Operator,
        ErrorKind::Opset,
        ErrorKind::Flags,
        ErrorKind::DType,
        ErrorKind::Rank,
        ErrorKind::Axis,
        ErrorKind::Shape,
        ErrorKind::Split,
        ErrorKind::SplitSizes,
        ErrorKind::NumOutputs,
        ErrorKind::Capacity,
        ErrorKind::Strides,
        ErrorKind::BitOffset,
        ErrorKind::DataBytes,
        ErrorKind::Overflow,
        ErrorKind::Overlap,
        ErrorKind::Output,
        ErrorKind::Unknown,
        ErrorKind::Executor,
        ErrorKind::Internal,
        ErrorKind::Plan,
    ];
    assert_eq!(i32::try_from(kinds.len()), Ok(last));
    for kind in kinds {
        let name = text(libsplit_status_name(libsplit_status(kind as i32)));
        let name = name.trim_start_matches("LIBSPLIT_STATUS_ERROR_").replace('_', "");
        assert_eq!(format!("{kind:?}").to_uppercase(), name);
    }
}
