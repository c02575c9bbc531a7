//! What is asked: an operator with parameters, and the lengths that it must give.

use crate::memory::{bits_of, set_bit};
use libsplit::ffi::{libsplit_op, LIBSPLIT_FLAG_CLAMP_UNEVEN};
use proptest::prelude::*;
use proptest::sample::{select, Index};

#[derive(Debug, Clone)]
pub struct Ask {
    pub op: libsplit_op,
    pub opset: i32,
    pub dtype: i32,
    pub extent: i64,
    pub expected: Vec<i64>,
    pub lengths: Option<Given>,
    pub num_outputs: i64,
    pub keepdims: bool,
    pub flags: u32,
}

/// Lengths as the operator gets them: values, their dtype, rank, and a step between them.
#[derive(Debug, Clone)]
pub struct Given {
    pub values: Vec<i64>,
    pub dtype: i32,
    pub rank: usize,
    pub step: i64,
}

impl Given {
    /// The bytes of the lengths tensor, `step` elements apart, backwards if it is negative.
    pub fn encode(&self) -> Vec<u8> {
        let bits = bits_of(self.dtype);
        let step = usize::try_from(self.step.abs()).unwrap();
        let mut bytes = vec![0xA5u8; (self.values.len() * step * bits).div_ceil(8) + 16];
        for (at, value) in self.values.iter().enumerate() {
            let at = if self.step < 0 { self.values.len() - 1 - at } else { at };
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
            let word = match self.dtype {
                1 => u64::from((*value as f32).to_bits()),
                10 => u64::from(half::f16::from_f64(*value as f64).to_bits()),
                11 => (*value as f64).to_bits(),
                _ => u64::from_ne_bytes(value.to_ne_bytes()),
            };
            for bit in 0..bits {
                set_bit(&mut bytes, at * step * bits + bit, word >> bit & 1 == 1);
            }
        }
        bytes
    }
}

/// A list of lengths that add up, of up to six pieces.
pub fn partition() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(0i64..5, 1..6)
}

fn classic() -> impl Strategy<Value = i32> {
    1i32..=15
}

pub fn list(values: Vec<i64>, dtype: i32) -> Given {
    Given { values, dtype, rank: 1, step: 1 }
}

pub fn base(op: libsplit_op, opset: i32, dtype: i32, expected: Vec<i64>) -> Ask {
    let extent = expected.iter().sum();
    Ask {
        op,
        opset,
        dtype,
        extent,
        expected,
        lengths: None,
        num_outputs: 0,
        keepdims: true,
        flags: 0,
    }
}

/// The newest opset that is tried. Opsets between two versions mean the older one.
const NEWEST_OPSET: i32 = 30;

fn onnx_split_listed() -> impl Strategy<Value = Ask> {
    (1..=NEWEST_OPSET, 1i32..=16, partition(), any::<bool>()).prop_map(
        |(opset, dtype, parts, float)| {
            let dtype = match opset {
                1 => [1, 10, 11][usize::try_from(dtype).unwrap() % 3],
                2..13 => dtype.min(15),
                _ => dtype,
            };
            let lengths = list(parts.clone(), if opset == 1 && float { dtype } else { 7 });
            Ask { lengths: Some(lengths), ..base(libsplit_op::ONNX_SPLIT, opset, dtype, parts) }
        },
    )
}

fn onnx_split_equal() -> impl Strategy<Value = Ask> {
    (2..=NEWEST_OPSET, classic(), 1usize..6, 0i64..5).prop_map(|(opset, dtype, parts, each)| Ask {
        num_outputs: i64::try_from(parts).unwrap(),
        ..base(libsplit_op::ONNX_SPLIT, opset, dtype, vec![each; parts])
    })
}

/// From Split-18 on with `num_outputs`, uneven as well, with the clamp flag where it is needed.
fn onnx_split_uneven() -> impl Strategy<Value = Ask> {
    (18..=NEWEST_OPSET, 1i32..=16, 1i64..7, 0i64..20).prop_map(|(opset, dtype, parts, extent)| {
        let chunk = (extent + parts - 1) / parts;
        let needs_clamp = extent - (parts - 1) * chunk < 0;
        let expected = (0..parts).map(|i| (extent - i * chunk).clamp(0, chunk)).collect();
        Ask {
            num_outputs: parts,
            flags: if needs_clamp { LIBSPLIT_FLAG_CLAMP_UNEVEN } else { 0 },
            ..base(libsplit_op::ONNX_SPLIT, opset, dtype, expected)
        }
    })
}

fn sequence() -> impl Strategy<Value = Ask> {
    let scalar = (1i64..6, 0i64..14).prop_map(|(each, extent)| {
        let expected = (0..extent).step_by(usize::try_from(each).unwrap());
        let expected = expected.map(|begin| each.min(extent - begin)).collect();
        (vec![each], 0, expected)
    });
    let listed = partition().prop_map(|parts| (parts.clone(), 1, parts));
    let absent = (0usize..6).prop_map(|extent| (vec![], 2, vec![1; extent]));
    let way = prop_oneof![scalar, listed, absent];
    (way, 11..=NEWEST_OPSET, classic(), select(vec![6, 7]), any::<bool>()).prop_map(
        |((values, rank, expected), opset, dtype, lengths, keepdims)| Ask {
            lengths: (rank < 2).then_some(Given { values, dtype: lengths, rank, step: 1 }),
            keepdims,
            ..base(libsplit_op::ONNX_SPLIT_TO_SEQUENCE, opset, dtype, expected)
        },
    )
}

fn variadic() -> impl Strategy<Value = Ask> {
    let integer = select(vec![2, 3, 4, 5, 6, 7, 12, 13, 21, 22, 25, 26]);
    (1i32..=26, integer, partition(), any::<Option<Index>>()).prop_map(
        |(dtype, integer, parts, rest)| {
            // Two-bit lengths hold up to 3, or up to 1 with a sign.
            let top = match integer {
                25 => 3,
                26 => 1,
                _ => 7,
            };
            let parts: Vec<i64> = parts.into_iter().map(|part| part.min(top)).collect();
            let mut values = parts.clone();
            let is_signed = matches!(integer, 3 | 5 | 6 | 7 | 22 | 26);
            if let Some(rest) = rest.filter(|_| is_signed) {
                let at = rest.index(values.len());
                values[at] = -1;
            }
            Ask {
                lengths: Some(list(values, integer)),
                ..base(libsplit_op::OPENVINO_VARIADIC_SPLIT, 1, dtype, parts)
            }
        },
    )
}

fn openvino_split() -> impl Strategy<Value = Ask> {
    (1i32..=26, 1usize..6, 0i64..5).prop_map(|(dtype, parts, each)| Ask {
        num_outputs: i64::try_from(parts).unwrap(),
        ..base(libsplit_op::OPENVINO_SPLIT, 0, dtype, vec![each; parts])
    })
}

pub fn ask() -> impl Strategy<Value = Ask> {
    let way = prop_oneof![
        onnx_split_listed(),
        onnx_split_equal(),
        onnx_split_uneven(),
        sequence(),
        variadic(),
        openvino_split(),
    ];
    (way, select(vec![1i64, 1, 3, -1, -2])).prop_map(|(mut ask, step)| {
        if let Some(given) = ask.lengths.as_mut().filter(|given| given.rank == 1) {
            given.step = step;
        }
        ask
    })
}
