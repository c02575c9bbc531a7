//! Where it lies: shapes around the split axis, layouts, and what all outputs must hold in the end.

use crate::ask::{ask, Ask};
use crate::common::{params, Tensor};
use crate::memory::{bits_of, noise, set_element, usize_of};
use libsplit::ffi::{libsplit_op, libsplit_params, libsplit_tensor};
use proptest::prelude::*;
use proptest::sample::{select, Index};
use std::ptr::null;

/// A tensor's strides in elements, and the lowest and highest element reached.
#[derive(Debug, Clone)]
pub struct Layout {
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
    pub low: i64,
    pub high: i64,
}

impl Layout {
    /// Strides by laying the axes out in `order`, innermost first, each with gaps of `gaps`
    /// (0 = broadcast) and backwards where `backward`.
    pub fn new(shape: &[i64], order: &[usize], gaps: &[i64], backward: &[bool]) -> Self {
        let mut strides = vec![0; shape.len()];
        let (mut reach, mut low, mut high) = (1, 0, 0);
        for &axis in order {
            let last = (shape[axis] - 1).max(0);
            let stride = reach * gaps[axis];
            strides[axis] = if backward[axis] { -stride } else { stride };
            *if backward[axis] { &mut low } else { &mut high } += last * strides[axis];
            reach += last * stride;
        }
        Self { shape: shape.to_vec(), strides, low, high }
    }

    pub fn packed(shape: &[i64]) -> Self {
        let order: Vec<usize> = (0..shape.len()).rev().collect();
        Self::new(shape, &order, &vec![1; shape.len()], &vec![false; shape.len()])
    }

    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Every element's offset in elements, in row-major order.
    pub fn offsets(&self) -> Vec<i64> {
        let mut offsets = vec![0];
        for (extent, stride) in self.shape.iter().zip(&self.strides) {
            offsets =
                offsets.iter().flat_map(|o| (0..*extent).map(move |i| o + i * stride)).collect();
        }
        offsets
    }
}

#[derive(Debug, Clone)]
pub struct Scene {
    pub ask: Ask,
    pub axis: usize,
    pub negative_axis: bool,
    pub input: Layout,
    /// Elements (or for whole bytes, bytes) before the input's lowest.
    pub lead: usize,
    /// How to lay out outputs that need not be packed.
    pub order: Vec<usize>,
    pub gaps: Vec<i64>,
    pub backward: Vec<bool>,
    pub strided_outputs: bool,
    pub unwanted: Index,
    pub skip_one: bool,
    pub seed: u64,
}

pub fn scene() -> impl Strategy<Value = Scene> {
    (ask(), prop::collection::vec(0i64..5, 0..5), any::<Index>())
        .prop_flat_map(|(ask, mut shape, at)| {
            let axis = at.index(shape.len() + 1);
            shape.insert(axis, ask.extent);
            let rank = shape.len();
            let order = Just((0..rank).collect::<Vec<_>>()).prop_shuffle();
            let rows = Just((0..rank).rev().collect::<Vec<_>>());
            let gaps = prop::collection::vec(select(vec![1i64, 1, 1, 2, 0]), rank);
            let input = prop_oneof![
                1 => Just(Layout::packed(&shape)),
                2 => (prop_oneof![order.clone(), rows.clone()], gaps,
                      prop::collection::vec(any::<bool>(), rank))
                    .prop_map(move |(order, gaps, back)| Layout::new(&shape, &order, &gaps, &back)),
            ];
            let output = (
                prop_oneof![order, rows],
                prop::collection::vec(1i64..3, rank),
                prop::collection::vec(any::<bool>(), rank),
            );
            (
                (Just(ask), Just(axis), any::<bool>(), input, 0usize..19),
                output,
                (any::<bool>(), any::<Index>(), any::<bool>(), any::<u64>()),
            )
        })
        .prop_map(|((ask, axis, negative_axis, input, lead), output, rest)| Scene {
            ask,
            axis,
            negative_axis,
            input,
            lead,
            order: output.0,
            gaps: output.1,
            backward: output.2,
            strided_outputs: rest.0,
            unwanted: rest.1,
            skip_one: rest.2,
            seed: rest.3,
        })
}

/// The input of a scene in memory: bytes, and the bit of element [0, …, 0].
pub struct Placed {
    pub bytes: Vec<u8>,
    pub origin: usize,
    pub tensor: Tensor,
}

pub fn place_input(scene: &Scene) -> Placed {
    let bits = bits_of(scene.ask.dtype);
    let lead = if bits < 8 { scene.lead * bits } else { scene.lead * 8 };
    let span = usize_of(scene.input.high - scene.input.low + 1) * bits;
    let bytes = noise((lead + span).div_ceil(8), scene.seed);
    let origin = lead + usize_of(-scene.input.low) * bits;
    let usable = if scene.input.is_empty() { 0 } else { bytes.len() - lead / 8 };
    // A bit offset may be that of another byte.
    let first = if bits < 8 { origin / 8 - origin / 8 % 3 } else { origin / 8 };
    let mut tensor =
        Tensor::new(scene.ask.dtype, &scene.input.shape).at(bytes[first..].as_ptr(), usable);
    tensor.bit_offset = u32::try_from(origin - first * 8).unwrap();
    tensor.strides = Some(scene.input.strides.clone());
    if scene.input.is_empty() && scene.lead.is_multiple_of(2) {
        tensor.strides = Some(vec![i64::MIN; scene.input.shape.len()]); // must not matter
        tensor.data = std::ptr::null_mut();
    }
    Placed { bytes, origin, tensor }
}

impl Scene {
    pub fn drops_axis(&self) -> bool {
        self.ask.op == libsplit_op::ONNX_SPLIT_TO_SEQUENCE
            && self.ask.lengths.is_none()
            && !self.ask.keepdims
    }

    pub fn output_shape(&self, len: i64) -> Vec<i64> {
        let mut shape = self.input.shape.clone();
        shape[self.axis] = len;
        if self.drops_axis() {
            shape.remove(self.axis);
        }
        shape
    }

    /// Where the elements of piece `index` lie in the input, in row-major order.
    pub fn source_offsets(&self, index: usize) -> Vec<i64> {
        let begin: i64 = self.ask.expected[..index].iter().sum();
        let mut piece = self.input.clone();
        piece.shape[self.axis] = self.ask.expected[index];
        let ahead = begin * self.input.strides[self.axis];
        piece.offsets().iter().map(|offset| offset + ahead).collect()
    }

    pub fn output_layout(&self, len: i64) -> Layout {
        let shape = self.output_shape(len);
        let sub_byte = bits_of(self.ask.dtype) < 8;
        let is_packed = self.seed & 16 == 0 && len % 2 == 0;
        if !self.strided_outputs || is_packed || sub_byte || self.drops_axis() {
            return Layout::packed(&shape);
        }
        Layout::new(&shape, &self.order, &self.gaps, &self.backward)
    }

    /// The lengths are there for as long as `body` runs, and then are others.
    pub fn with_params<R>(&self, body: impl FnOnce(&libsplit_params) -> R) -> R {
        let mut lengths = self.ask.lengths.as_ref().map(|given| {
            let bytes = given.encode();
            let len = i64::try_from(given.values.len()).unwrap();
            let shape = vec![len; given.rank];
            let back = if given.step < 0 { (len - 1) * -given.step } else { 0 };
            let first = usize_of(back) * bits_of(given.dtype);
            let mut tensor = Tensor::new(given.dtype, &shape).at(bytes[first / 8..].as_ptr(), 0);
            tensor.bit_offset = u32::try_from(first % 8).unwrap();
            tensor.strides = (given.rank == 1).then(|| vec![given.step]);
            (bytes, tensor)
        });
        let split = lengths.as_ref().map(|(_, tensor)| tensor.descriptor());
        let axis = i64::try_from(self.axis).unwrap();
        let rank = i64::try_from(self.input.shape.len()).unwrap();
        let result = body(&libsplit_params {
            axis: if self.negative_axis { axis - rank } else { axis },
            split: split.as_ref().map_or(null(), std::ptr::from_ref),
            num_outputs: self.ask.num_outputs,
            keepdims: self.ask.keepdims.into(),
            flags: self.ask.flags,
            ..params(self.ask.op, self.ask.opset)
        });
        if let Some((bytes, tensor)) = &mut lengths {
            bytes.fill(0xEE);
            overwrite(tensor);
        }
        std::hint::black_box(&lengths);
        result
    }
}

/// An output buffer with canaries around it, and what it must hold in the end.
pub struct Target {
    pub bytes: Vec<u8>,
    pub expected: Vec<u8>,
    pub tensor: Tensor,
}

fn place_output(scene: &Scene, index: usize, source: &Placed) -> Target {
    const MARGIN: usize = 16;
    let bits = bits_of(scene.ask.dtype);
    let layout = scene.output_layout(scene.ask.expected[index]);
    let (low, used) = if layout.is_empty() {
        (0, 0)
    } else {
        (layout.low, usize_of(layout.high - layout.low + 1) * bits)
    };
    let mut expected = noise(used.div_ceil(8) + 2 * MARGIN + scene.lead, !scene.seed);
    let bytes = expected.clone();
    let begin = (MARGIN + scene.lead) * 8;
    let first = begin + usize_of(-low) * bits;
    if bits < 8 && used % 8 != 0 {
        expected[begin / 8 + used / 8] = 0; // bits past the last element
    }
    for (from, to) in scene.source_offsets(index).iter().zip(layout.offsets()) {
        let width = i64::try_from(bits).unwrap();
        let from = usize_of(i64::try_from(source.origin).unwrap() + from * width);
        let to = usize_of(i64::try_from(first).unwrap() + to * width);
        set_element(&mut expected, to, &source.bytes, from, bits);
    }
    let mut tensor = Tensor::new(scene.ask.dtype, &layout.shape)
        .at(bytes[first / 8..].as_ptr(), used.div_ceil(8));
    let says_nothing =
        scene.seed & 32 == 0 && layout.strides == Layout::packed(&layout.shape).strides;
    tensor.strides = (!says_nothing).then_some(layout.strides);
    Target { bytes, expected, tensor }
}

/// All outputs, and the number of one that is not wanted: it stays as it is.
pub fn place_outputs(scene: &Scene, source: &Placed) -> (Vec<Target>, Option<usize>) {
    let count = scene.ask.expected.len();
    let mut targets: Vec<_> = (0..count).map(|index| place_output(scene, index, source)).collect();
    let skipped = (scene.skip_one && count > 1).then(|| scene.unwanted.index(count));
    if let Some(skipped) = skipped {
        let target = &mut targets[skipped];
        target.expected.clone_from(&target.bytes);
    }
    (targets, skipped)
}

/// As the C functions take them.
pub fn descriptors<'a>(
    tensors: impl Iterator<Item = &'a Tensor>,
    skipped: Option<usize>,
) -> Vec<libsplit_tensor> {
    let wanted = |(index, tensor): (usize, &Tensor)| match skipped {
        Some(skipped) if skipped == index => Tensor::unwanted(),
        _ => tensor.descriptor(),
    };
    tensors.enumerate().map(wanted).collect()
}

pub fn check_outputs(targets: &[Target]) {
    for (index, target) in targets.iter().enumerate() {
        assert_eq!(target.bytes, target.expected, "output {index}");
    }
}

/// Nobody shall look at these arrays again.
pub fn overwrite(tensor: &mut Tensor) {
    tensor.shape.fill(-77);
    tensor.strides.iter_mut().flatten().for_each(|stride| *stride = i64::MAX);
    std::hint::black_box(tensor);
}
