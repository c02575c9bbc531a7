//! Split nodes as the adapter for ONNX Runtime gives them to libsplit: attributes and lengths with
//! any numbers, compared with a model of what ONNX Runtime's own kernel accepts and the adapter's
//! README adds.
#![no_main]

use libfuzzer_sys::fuzz_target;
use libsplit::ffi::{
    libsplit_copy, libsplit_count, libsplit_dtype, libsplit_infer, libsplit_params,
    libsplit_status, libsplit_tensor,
};
use libsplit_fuzz::call::{noise, ZERO};
use libsplit_fuzz::rules::{version, ONNX_SPLIT};
use libsplit_fuzz::script::{wild, Script};
use libsplit_fuzz::tensor::{bits_of, check_size, Refused};
use params::{Attributes, Rules};
use std::ptr::{null, null_mut};

#[path = "../../adapters/onnxruntime/src/params.rs"]
mod params;

fuzz_target!(|bytes: &[u8]| {
    let node = Node::new(&Script::read(bytes));
    check(&node, node.pieces().as_deref().ok());
});

/// The types that ONNX Runtime has and an adapter's operator may get: those of Split-2, then
/// BFLOAT16 and four 8-bit floats.
const DTYPES: [i64; 18] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 18, 19, 20];
const DOUBLE: i64 = 11;
const STRING: i64 = 8;
const INT64: i64 = 7;
/// Larger tensors are not copied.
const MOST_BYTES: usize = 1 << 14;

/// A node in a run. It lacks the attributes and inputs that its operator does not have.
#[derive(Debug)]
struct Node {
    attributes: Attributes,
    dtype: i64,
    shape: Vec<i64>,
    input: Option<Lengths>,
    unused: Vec<bool>,
    seed: i64,
}

/// The second input.
#[derive(Debug)]
struct Lengths {
    shape: Vec<i64>,
    values: Vec<i64>,
    /// Those of Split-1 have the type of its input.
    are_doubles: bool,
}

#[allow(clippy::cast_precision_loss)]
impl Lengths {
    fn encoded(&self, value: i64) -> [u8; 8] {
        if self.are_doubles {
            (value as f64).to_ne_bytes()
        } else {
            value.to_ne_bytes()
        }
    }

    /// What is read instead.
    fn as_read(&self, value: i64) -> i128 {
        if self.are_doubles {
            value as f64 as i128
        } else {
            value.into()
        }
    }
}

fn rules(script: &Script) -> Rules {
    match (script.op.rem_euclid(4), script.opset) {
        (2, _) => Rules::AnySplit,
        (3, _) => Rules::VariadicSplit,
        (_, opset) => {
            Rules::Onnx(version(ONNX_SPLIT, opset).map_or(1, |(version, _)| version as i32))
        }
    }
}

/// The attribute and the second input, as far as the operator has them.
fn lengths(script: &Script, rules: Rules, dtype: i64) -> (Vec<i64>, Option<Lengths>) {
    let values = script.values[..script.list_len.rem_euclid(9) as usize].to_vec();
    let way = script.lengths.rem_euclid(8);
    let attribute = match rules {
        Rules::Onnx(2 | 11) if way != 0 => return (values, None),
        Rules::Onnx(2 | 11) => return (vec![], None),
        Rules::Onnx(1) | Rules::AnySplit if way & 4 != 0 => values.clone(),
        _ => vec![],
    };
    let len = values.len() as i64;
    let (shape, values) = match way & 3 {
        0 => return (attribute, None),
        1 => (vec![len], values),
        2 => (vec![0], vec![]),
        _ if len == 1 => (vec![], values),
        _ => (vec![1, len], values),
    };
    let are_doubles = rules == Rules::Onnx(1) && dtype == DOUBLE;
    (attribute, Some(Lengths { shape, values, are_doubles }))
}

impl Node {
    fn new(script: &Script) -> Self {
        let rules = rules(script);
        let rank = script.rank.rem_euclid(6);
        let most = if script.is_wild(wild::SHAPE) { i64::MAX } else { 20 };
        let extents = script.shape[..rank as usize].iter();
        let axis = match rank {
            1.. if !script.is_wild(wild::OPERATOR) => script.axis.rem_euclid(2 * rank) - rank,
            _ => script.axis,
        };
        let outputs = 1 + script.given.rem_euclid(8) as usize;
        let dtype = DTYPES[script.input.dtype.rem_euclid(18) as usize];
        let has_num_outputs = matches!(rules, Rules::Onnx(18..) | Rules::AnySplit);
        let num_outputs = if has_num_outputs { script.num_outputs } else { 0 };
        let (lengths, input) = lengths(script, rules, dtype);
        Self {
            attributes: Attributes { rules, axis, num_outputs, lengths, outputs },
            dtype,
            shape: extents.map(|extent| extent.rem_euclid(most)).collect(),
            input,
            // ONNX Runtime removes a node without any output in use.
            unused: (0..outputs)
                .map(|index| index > 0 && script.outputs[index % 4].fault == 1)
                .collect(),
            seed: script.seed,
        }
    }

    /// Returns whether the operator has such elements.
    fn has_dtype(&self) -> bool {
        match self.attributes.rules {
            Rules::Onnx(1) => matches!(self.dtype, 1 | 10 | 11),
            Rules::Onnx(opset) => {
                version(ONNX_SPLIT, opset.into()).is_some_and(|(_, types)| self.dtype <= types)
            }
            Rules::AnySplit | Rules::VariadicSplit => true,
        }
    }

    /// Returns the axis, counted from the front.
    fn axis(&self) -> Option<usize> {
        let (axis, rank) = (i128::from(self.attributes.axis), self.shape.len() as i128);
        let axis = if axis < 0 { axis + rank } else { axis };
        usize::try_from(axis).ok().filter(|axis| *axis < self.shape.len())
    }

    /// Returns the list of lengths that counts; an empty one does not.
    fn list(&self) -> Result<Option<Vec<i128>>, Refused> {
        match &self.input {
            Some(input) if input.shape != [0] => {
                if input.shape.len() != 1 {
                    return Err(Refused);
                }
                Ok(Some(input.values.iter().map(|value| input.as_read(*value)).collect()))
            }
            _ if self.attributes.lengths.is_empty() => Ok(None),
            _ => Ok(Some(self.attributes.lengths.iter().map(|value| (*value).into()).collect())),
        }
    }

    /// Returns the length of each output.
    fn pieces(&self) -> Result<Vec<i64>, Refused> {
        let axis = self.axis().filter(|_| self.has_dtype()).ok_or(Refused)?;
        check_size(&self.shape, bits_of(self.dtype).ok_or(Refused)?)?;
        let extent = i128::from(self.shape[axis]);
        let pieces = match self.list()? {
            Some(list) => self.listed(list, extent),
            None => self.equal(extent),
        }?;
        Ok(pieces.into_iter().map(|length| length as i64).collect())
    }

    fn listed(&self, mut list: Vec<i128>, extent: i128) -> Result<Vec<i128>, Refused> {
        let Attributes { rules, num_outputs, outputs, .. } = self.attributes;
        if rules == Rules::VariadicSplit {
            let rest = extent - list.iter().filter(|length| **length != -1).sum::<i128>();
            if let Some(first) = list.iter_mut().find(|length| **length == -1) {
                *first = rest;
            }
        }
        let adds_up = list.iter().all(|length| *length >= 0) && list.iter().sum::<i128>() == extent;
        (adds_up && list.len() == outputs && num_outputs == 0).then_some(list).ok_or(Refused)
    }

    /// Returns as many parts as there are outputs, whatever `num_outputs` says. With ONNX Split-18
    /// the last one may be smaller; with the custom op, and in ONNX Runtime itself, this needs
    /// `num_outputs`.
    fn equal(&self, extent: i128) -> Result<Vec<i128>, Refused> {
        let Attributes { rules, num_outputs, outputs, .. } = self.attributes;
        let may_be_smaller = match rules {
            Rules::Onnx(version) => version >= 18,
            Rules::AnySplit => num_outputs != 0,
            Rules::VariadicSplit => return Err(Refused),
        };
        let count = outputs as i128;
        let each = (extent + count - 1) / count;
        let last = extent - each * (count - 1);
        let mut pieces = vec![each; outputs];
        pieces[outputs - 1] = last;
        (last == each || last >= 0 && may_be_smaller).then_some(pieces).ok_or(Refused)
    }

    /// Returns the shape of an output of this length.
    fn shape_of(&self, length: i64) -> Vec<i64> {
        let axis = self.axis();
        let extents = self.shape.iter().enumerate();
        extents.map(|(at, extent)| if Some(at) == axis { length } else { *extent }).collect()
    }
}

/// A tensor that is only read.
fn describe(shape: &[i64], dtype: libsplit_dtype, data: *mut u8) -> libsplit_tensor {
    let (rank, shape) = (shape.len() as i32, shape.as_ptr().cast_mut());
    libsplit_tensor { data: data.cast(), shape, rank, dtype, ..ZERO }
}

/// Calls libsplit as the adapter does. `pieces` are what must come out, `None` an error.
fn check(node: &Node, pieces: Option<&[i64]>) {
    let attributes = &node.attributes;
    let values = node.input.as_ref().map(|input| {
        input.values.iter().flat_map(|value| input.encoded(*value)).collect::<Vec<u8>>()
    });
    let input = node.input.as_ref().zip(values.as_ref()).map(|(input, values)| {
        let dtype = if input.are_doubles { DOUBLE } else { INT64 };
        let data = values.as_ptr().cast_mut();
        (describe(&input.shape, libsplit_dtype(dtype as i32), data), &input.shape[..])
    });
    let count = [attributes.lengths.len() as i64];
    let lengths = attributes.lengths(input, &count);
    let params = attributes.params(lengths.as_ref());
    let dtype = attributes.dtype(libsplit_dtype(node.dtype as i32));
    let mut source = describe(&node.shape, dtype, null_mut());
    check_count(node, pieces, &source, &params);

    let mut shapes = vec![vec![0; node.shape.len()]; attributes.outputs];
    let room = source.rank;
    let mut outputs: Vec<_> = shapes
        .iter_mut()
        .map(|shape| libsplit_tensor { shape: shape.as_mut_ptr(), capacity: room, ..ZERO })
        .collect();
    let params = &raw const params;
    // SAFETY: the descriptors are complete, and every shape has room for as many extents.
    let status = unsafe {
        libsplit_infer(&raw const source, params, outputs.as_mut_ptr(), outputs.len(), null_mut())
    };
    assert_ne!(status, libsplit_status::ERROR_INTERNAL);
    assert_eq!(status == libsplit_status::OK, pieces.is_some(), "{status:?} of {node:?}");
    let Some(pieces) = pieces else {
        assert!(shapes.iter().flatten().all(|extent| *extent == 0), "{node:?}");
        return;
    };
    let expected: Vec<_> = pieces.iter().map(|length| node.shape_of(*length)).collect();
    assert_eq!(shapes, expected, "{node:?}");

    // ONNX Runtime copies strings one by one.
    let element = bits_of(node.dtype).unwrap_or(0) as usize / 8;
    let size = node.shape.iter().try_fold(element, |size, extent| {
        size.checked_mul(*extent as usize).filter(|size| *size <= MOST_BYTES)
    });
    let (Some(size), false) = (size, node.dtype == STRING) else { return };
    let bytes = noise(size, node.seed);
    source.data = bytes.as_ptr().cast_mut().cast();
    let mut buffers: Vec<_> = expected
        .iter()
        .map(|shape| vec![0x5A; element * shape.iter().product::<i64>() as usize])
        .collect();
    for (index, output) in outputs.iter_mut().enumerate() {
        output.data = buffers[index].as_mut_ptr().cast();
        if node.unused[index] {
            *output = ZERO;
        }
    }
    // SAFETY: as above, and every buffer has the size of its tensor.
    let status = unsafe {
        libsplit_copy(
            &raw const source,
            params,
            outputs.as_ptr(),
            outputs.len(),
            null(),
            null_mut(),
        )
    };
    assert_eq!(status, libsplit_status::OK, "{node:?}");
    for (index, piece) in cut(node, element, &bytes, pieces).into_iter().enumerate() {
        let is_as_it_was = || buffers[index].iter().all(|byte| *byte == 0x5A);
        assert!(if node.unused[index] { is_as_it_was() } else { buffers[index] == piece });
    }
}

/// The number of outputs follows from the parameters.
fn check_count(
    node: &Node,
    pieces: Option<&[i64]>,
    source: &libsplit_tensor,
    params: &libsplit_params,
) {
    let mut count = usize::MAX;
    // SAFETY: the descriptors are complete.
    let status = unsafe { libsplit_count(source, params, &raw mut count, null_mut()) };
    if let Some(pieces) = pieces {
        assert_eq!((status, count), (libsplit_status::OK, pieces.len()), "{node:?}");
    }
}

/// Returns the bytes of each piece: row by row, each beginning where the one before it ends.
fn cut(node: &Node, element: usize, bytes: &[u8], pieces: &[i64]) -> Vec<Vec<u8>> {
    let mut cut = vec![vec![]; pieces.len()];
    let inner: i64 = node.shape[node.axis().unwrap_or(0) + 1..].iter().product();
    let mut rest = bytes;
    while !rest.is_empty() {
        for (piece, length) in cut.iter_mut().zip(pieces) {
            let (run, others) = rest.split_at((length * inner) as usize * element);
            piece.extend_from_slice(run);
            rest = others;
        }
    }
    cut
}
