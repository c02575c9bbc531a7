//! The methods that are chosen for splits that stand for one each, at every level of this CPU, on a made-up machine. The
//! table of them shows what else changes if a constant or a rule of a choice does.

use super::super::describe::describe_on;
use super::super::kernels::Level;
use super::super::machine::Machine;
use super::levels;
use super::{parts, transfer};
use crate::dtype::DType::{self, Bfloat16, Double, Float, Float16, Uint16, Uint32, Uint4, Uint8};
use crate::parts::{OutputStrides, Transfer};
use crate::pieces::Pieces;
use crate::text::Text;
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// A split along an axis, with the strides of the input, and of all outputs, if they are not packed.
struct Split {
    name: &'static str,
    dtype: DType,
    shape: &'static [i64],
    axis: usize,
    lengths: &'static [i64],
    strides: Option<&'static [i64]>,
    output_strides: Option<&'static [i64]>,
}

const fn packed(
    name: &'static str,
    dtype: DType,
    shape: &'static [i64],
    axis: usize,
    lengths: &'static [i64],
) -> Split {
    Split { name, dtype, shape, axis, lengths, strides: None, output_strides: None }
}

const SPLITS: &[Split] = &[
    packed("small", Float, &[4, 768], 1, &[256, 256, 256]),
    packed("one row", Float, &[1 << 22], 0, &[1 << 20, 3 << 20]),
    packed("long runs", Float, &[512, 2304], 1, &[768, 768, 768]),
    packed("long runs, streamed", Float, &[16384, 3072], 1, &[1024, 1024, 1024]),
    packed("channels of bytes", Uint8, &[1080 * 1920, 3], 1, &[1, 1, 1]),
    packed("channels of bytes, streamed", Uint8, &[4096 * 4096, 3], 1, &[1, 1, 1]),
    packed("channels of four", Uint16, &[1 << 20, 4], 1, &[1, 1, 1, 1]),
    packed("channels of floats", Float, &[1 << 20, 2], 1, &[1, 1]),
    packed("three floats a run", Float, &[1 << 18, 6], 1, &[3, 3]),
    packed("unequal runs", Uint8, &[400_000, 13], 1, &[3, 4, 3, 3]),
    packed("boxes, class and scores", Float, &[100_000, 85], 1, &[4, 1, 80]),
    packed("runs of 48 bytes", Double, &[100_000, 18], 1, &[6, 6, 6]),
    packed("columns", Float16, &[4096, 64], 1, &[1; 64]),
    packed("many columns", Float, &[4096, 256], 1, &[1; 256]),
    packed("heads", Bfloat16, &[2048, 96, 64], 1, &[32, 32, 32]),
    packed("sub-byte runs of whole bytes", Uint4, &[4096, 256], 1, &[128, 128]),
    packed("sub-byte runs of bits", Uint4, &[4096, 97], 1, &[33, 64]),
    Split {
        strides: Some(&[1, 2304]),
        ..packed("transposed", Float, &[2304, 2048], 0, &[768, 768, 768])
    },
    Split {
        strides: Some(&[1, 3000]),
        ..packed("bytes transposed", Uint8, &[3000, 3000], 0, &[1500, 1500])
    },
    Split {
        strides: Some(&[8192, 2]),
        ..packed("every other column", Uint32, &[1024, 4096], 1, &[2048, 2048])
    },
    Split {
        strides: Some(&[-2048, -1]),
        ..packed("reversed", Uint8, &[2048, 2048], 1, &[1024, 1024])
    },
    Split {
        output_strides: Some(&[4, 1]),
        ..packed("into columns of four", Float, &[1 << 18, 4], 1, &[1, 3])
    },
    Split {
        strides: Some(&[1, 1 << 20]),
        ..packed("interleaved", Uint8, &[1 << 20, 3], 0, &[1 << 19, 1 << 19])
    },
];

/// Returns the description of a split on a machine. Addresses do not matter.
fn description(split: &Split, machine: Machine) -> String {
    let &Split { dtype, shape, axis, lengths, .. } = split;
    let targets = vec![0x1000 as *mut u8; lengths.len()];
    let pieces = Pieces::Int64(lengths);
    let rank = shape.len();
    let strides: Vec<i64> = split.output_strides.unwrap_or_default().repeat(lengths.len());
    let plain = transfer(dtype, shape, axis, std::ptr::null());
    let copy = Transfer {
        strides: split.strides,
        parts: parts(&pieces, &targets),
        output_strides: match split.output_strides {
            None => OutputStrides::Packed,
            Some(_) => OutputStrides::Planned { strides: &strides, rank },
        },
        bytes: usize::try_from(plain.geometry.elements * i64::from(dtype.bits()) / 8).unwrap(),
        ..plain
    };
    let mut room = vec![0; 4096];
    let mut text = Text::new(&mut room);
    describe_on(machine, &copy, &mut text);
    let len = text.end();
    String::from_utf8(room[..len].to_vec()).unwrap()
}

/// Returns the descriptions at a level, each below the split's name.
fn at_level(name: &str, level: Level) -> String {
    let mut machine = Machine::of_words(&format!("{name} other")).unwrap();
    assert_eq!(machine.kernels.level, level);
    (machine.cached_bytes, machine.second_bytes) = (16 << 20, 1 << 20);
    let mut text = format!("{name}\n");
    for split in SPLITS {
        writeln!(text, "\n{}: {} {:?} axis {}", split.name, split.dtype, split.shape, split.axis)
            .unwrap();
        for line in description(split, machine).lines().filter(|line| !line.is_empty()) {
            writeln!(text, "    {line}").unwrap();
        }
    }
    text.push_str("\n\n");
    text
}

/// `tests/methods.txt` holds a section for each level, of which this CPU may have some.
/// `LIBSPLIT_UPDATE_METHODS=1 cargo test --lib methods` writes those.
#[test]
fn methods_are_those_that_were_read() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/methods.txt");
    let read = std::fs::read_to_string(path).unwrap().replace("\r\n", "\n");
    let mut sections: BTreeMap<&str, String> = read
        .split_inclusive("\n\n\n")
        .map(|section| (section.lines().next().unwrap(), section.into()))
        .collect();
    for (name, level) in Level::ALL.iter().filter(|(_, level)| levels().contains(level)) {
        let name = name.to_str().unwrap();
        sections.insert(name, at_level(name, *level));
    }
    let now: String = sections.into_values().collect();
    if std::env::var_os("LIBSPLIT_UPDATE_METHODS").is_some() {
        std::fs::write(path, &now).unwrap();
    } else if let Some((now, then)) = now.lines().zip(read.lines()).find(|(now, then)| now != then)
    {
        panic!(
            "{path} has\n{then}\nwhich is now\n{now}\nRerun with LIBSPLIT_UPDATE_METHODS=1, read it, and commit it"
        );
    }
}

/// A plan does not know addresses, so it describes pieces as if their outputs did not continue each other.
#[test]
fn pieces_of_one_step_are_described_one_by_one() {
    let split = Split {
        output_strides: Some(&[4, 1]),
        ..packed("columns of four", Float, &[1 << 18, 4], 1, &[1, 1, 1, 1])
    };
    let text = description(&split, Machine::of_words("portable other").unwrap());
    assert!(text.contains("axes 262144 (16 to 16):"), "{text}");
}
