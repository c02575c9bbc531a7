//! Numbers that stand in more than one place are the same in all of them.

// Calls into C functions are all unsafe, and what they get is made right above them.
#![allow(clippy::undocumented_unsafe_blocks, clippy::borrow_as_ptr)]

use split::ffi::{
    libsplit_dtype, libsplit_dtype_bits, libsplit_dtype_name, libsplit_status,
    libsplit_status_name, libsplit_version, libsplit_version_string, LIBSPLIT_DIM_UNKNOWN,
    LIBSPLIT_MAX_RANK, LIBSPLIT_VERSION_MAJOR, LIBSPLIT_VERSION_MINOR, LIBSPLIT_VERSION_PATCH,
};
use split::{DType, ErrorKind, DIM_UNKNOWN, MAX_RANK};
use std::ffi::{c_char, CStr};

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
    // The Python package takes its version from there.
    let adapter = include_str!("../adapters/onnxruntime/Cargo.toml");
    let version = adapter.lines().find_map(|line| line.strip_prefix("version = ")).unwrap();
    assert_eq!(version, format!("{:?}", env!("CARGO_PKG_VERSION")), "adapters/onnxruntime");
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
    let last = ErrorKind::Internal as i32;
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
    ];
    assert_eq!(i32::try_from(kinds.len()), Ok(last));
    for kind in kinds {
        let name = text(libsplit_status_name(libsplit_status(kind as i32)));
        let name = name.trim_start_matches("LIBSPLIT_STATUS_ERROR_").replace('_', "");
        assert_eq!(format!("{kind:?}").to_uppercase(), name);
    }
}
