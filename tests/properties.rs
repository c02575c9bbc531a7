//! Random splits of every operator, type and layout through the C functions, against an oracle
//! that walks the elements index by index, bit by bit.

// Calls into C functions are all unsafe, and what they get is made right above them.
#![allow(clippy::undocumented_unsafe_blocks, clippy::borrow_as_ptr)]

mod common;

use common::{call, count, infer, params, view, Failure, Tensor};
use libsplit::ffi::{
    libsplit_copy, libsplit_executor, libsplit_op, libsplit_params, libsplit_plan_copy,
    libsplit_plan_init, libsplit_plan_size, libsplit_plan_view, libsplit_task_fn, libsplit_tensor,
    LIBSPLIT_FLAG_CLAMP_UNEVEN,
};
use proptest::prelude::*;
use proptest::sample::{select, Index};
use std::ffi::c_void;
use std::ptr::null;

/// Bits of the elements by dtype number, from the ONNX documents.
const BITS: [usize; 27] = [
    0, 32, 8, 8, 16, 16, 32, 64, 128, 8, 16, 64, 32, 64, 64, 128, 16, 8, 8, 8, 8, 4, 4, 4, 8, 2, 2,
];

fn bits_of(dtype: i32) -> usize {
    BITS[usize::try_from(dtype).unwrap()]
}

// ---------------------------------------------------------------------------------------------
// What is asked: an operator with parameters, and the lengths that it must give.

#[derive(Debug, Clone)]
struct Ask {
    op: libsplit_op,
    opset: i32,
    dtype: i32,
    extent: i64,
    expected: Vec<i64>,
    lengths: Option<Given>,
    num_outputs: i64,
    keepdims: bool,
    flags: u32,
}

/// Lengths as the operator gets them: values, their dtype, rank, and a step between them.
#[derive(Debug, Clone)]
struct Given {
    values: Vec<i64>,
    dtype: i32,
    rank: usize,
    step: i64,
}

impl Given {
    /// The bytes of the lengths tensor, `step` elements apart, backwards if it is negative.
    fn encode(&self) -> Vec<u8> {
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
fn partition() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(0i64..5, 1..6)
}

fn classic() -> impl Strategy<Value = i32> {
    1i32..=15
}

fn list(values: Vec<i64>, dtype: i32) -> Given {
    Given { values, dtype, rank: 1, step: 1 }
}

fn base(op: libsplit_op, opset: i32, dtype: i32, expected: Vec<i64>) -> Ask {
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

fn onnx_split_listed() -> impl Strategy<Value = Ask> {
    let version =
        select(vec![(1, 15), (2, 15), (9, 15), (11, 15), (12, 15), (13, 16), (18, 16), (25, 16)]);
    (version, 1i32..=16, partition(), any::<bool>()).prop_map(
        |((opset, types), dtype, parts, float)| {
            let dtype = match opset {
                1 => [1, 10, 11][usize::try_from(dtype).unwrap() % 3],
                _ => dtype.min(types),
            };
            let lengths = list(parts.clone(), if opset == 1 && float { dtype } else { 7 });
            Ask { lengths: Some(lengths), ..base(libsplit_op::ONNX_SPLIT, opset, dtype, parts) }
        },
    )
}

fn onnx_split_equal() -> impl Strategy<Value = Ask> {
    let opset = select(vec![2, 11, 13, 18, 24]);
    (opset, classic(), 1usize..6, 0i64..5).prop_map(|(opset, dtype, parts, each)| Ask {
        num_outputs: i64::try_from(parts).unwrap(),
        ..base(libsplit_op::ONNX_SPLIT, opset, dtype, vec![each; parts])
    })
}

/// Split-18 with `num_outputs`, uneven as well, with the clamp flag where it is needed.
fn onnx_split_uneven() -> impl Strategy<Value = Ask> {
    (1i32..=16, 1i64..7, 0i64..20).prop_map(|(dtype, parts, extent)| {
        let chunk = (extent + parts - 1) / parts;
        let needs_clamp = extent - (parts - 1) * chunk < 0;
        let expected = (0..parts).map(|i| (extent - i * chunk).clamp(0, chunk)).collect();
        Ask {
            num_outputs: parts,
            flags: if needs_clamp { LIBSPLIT_FLAG_CLAMP_UNEVEN } else { 0 },
            ..base(libsplit_op::ONNX_SPLIT, 18, dtype, expected)
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
    let opset = select(vec![11, 18, 24]);
    (way, opset, classic(), select(vec![6, 7]), any::<bool>()).prop_map(
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

fn ask() -> impl Strategy<Value = Ask> {
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

// ---------------------------------------------------------------------------------------------
// Where it lies: shapes around the split axis, and layouts.

/// A tensor's strides in elements, and the lowest and highest element reached.
#[derive(Debug, Clone)]
struct Layout {
    shape: Vec<i64>,
    strides: Vec<i64>,
    low: i64,
    high: i64,
}

impl Layout {
    /// Strides by laying the axes out in `order`, innermost first, each with gaps of `gaps`
    /// (0 = broadcast) and backwards where `backward`.
    fn new(shape: &[i64], order: &[usize], gaps: &[i64], backward: &[bool]) -> Self {
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

    fn packed(shape: &[i64]) -> Self {
        let order: Vec<usize> = (0..shape.len()).rev().collect();
        Self::new(shape, &order, &vec![1; shape.len()], &vec![false; shape.len()])
    }

    fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Every element's offset in elements, in row-major order.
    fn offsets(&self) -> Vec<i64> {
        let mut offsets = vec![0];
        for (extent, stride) in self.shape.iter().zip(&self.strides) {
            offsets =
                offsets.iter().flat_map(|o| (0..*extent).map(move |i| o + i * stride)).collect();
        }
        offsets
    }
}

#[derive(Debug, Clone)]
struct Scene {
    ask: Ask,
    axis: usize,
    negative_axis: bool,
    input: Layout,
    /// Elements (or for whole bytes, bytes) before the input's lowest.
    lead: usize,
    /// How to lay out outputs that need not be packed.
    order: Vec<usize>,
    gaps: Vec<i64>,
    backward: Vec<bool>,
    strided_outputs: bool,
    unwanted: Index,
    skip_one: bool,
    seed: u64,
}

fn scene() -> impl Strategy<Value = Scene> {
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

// ---------------------------------------------------------------------------------------------
// Memory: bits in byte arrays.

fn bit(bytes: &[u8], at: usize) -> bool {
    bytes[at / 8] >> (at % 8) & 1 == 1
}

fn set_bit(bytes: &mut [u8], at: usize, value: bool) {
    bytes[at / 8] = bytes[at / 8] & !(1 << (at % 8)) | u8::from(value) << (at % 8);
}

/// Copies one element of `bits` from bit `from` to bit `to`.
fn set_element(target: &mut [u8], to: usize, source: &[u8], from: usize, bits: usize) {
    for i in 0..bits {
        set_bit(target, to + i, bit(source, from + i));
    }
}

/// Bytes that look random (xorshift).
fn noise(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32).to_le_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}

fn usize_of(number: i64) -> usize {
    usize::try_from(number).unwrap()
}

/// The input of a scene in memory: bytes, and the bit of element [0, …, 0].
struct Placed {
    bytes: Vec<u8>,
    origin: usize,
    tensor: Tensor,
}

fn place_input(scene: &Scene) -> Placed {
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
    fn drops_axis(&self) -> bool {
        self.ask.op == libsplit_op::ONNX_SPLIT_TO_SEQUENCE
            && self.ask.lengths.is_none()
            && !self.ask.keepdims
    }

    fn output_shape(&self, len: i64) -> Vec<i64> {
        let mut shape = self.input.shape.clone();
        shape[self.axis] = len;
        if self.drops_axis() {
            shape.remove(self.axis);
        }
        shape
    }

    /// Where the elements of piece `index` lie in the input, in row-major order.
    fn source_offsets(&self, index: usize) -> Vec<i64> {
        let begin: i64 = self.ask.expected[..index].iter().sum();
        let mut piece = self.input.clone();
        piece.shape[self.axis] = self.ask.expected[index];
        let ahead = begin * self.input.strides[self.axis];
        piece.offsets().iter().map(|offset| offset + ahead).collect()
    }

    fn output_layout(&self, len: i64) -> Layout {
        let shape = self.output_shape(len);
        let sub_byte = bits_of(self.ask.dtype) < 8;
        let is_packed = self.seed & 16 == 0 && len % 2 == 0;
        if !self.strided_outputs || is_packed || sub_byte || self.drops_axis() {
            return Layout::packed(&shape);
        }
        Layout::new(&shape, &self.order, &self.gaps, &self.backward)
    }

    /// The lengths are there for as long as `body` runs, and then are others.
    fn with_params<R>(&self, body: impl FnOnce(&libsplit_params) -> R) -> R {
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

// ---------------------------------------------------------------------------------------------
// Plans.

/// Nobody shall look at these arrays again.
fn overwrite(tensor: &mut Tensor) {
    tensor.shape.fill(-77);
    tensor.strides.iter_mut().flatten().for_each(|stride| *stride = i64::MAX);
    std::hint::black_box(tensor);
}

/// A plan in memory of its exact size. `outputs` may be NULL.
fn plan(
    input: &Tensor,
    params: &libsplit_params,
    outputs: *const libsplit_tensor,
    count: usize,
) -> Result<Vec<u64>, Failure> {
    let rank = i32::try_from(input.shape.len()).unwrap();
    let size = libsplit_plan_size(rank, count);
    assert_eq!(size % 8, 0);
    let mut memory = vec![0x5AFE; size / 8];
    let made = call(|error| unsafe {
        let (plan, input) = (memory.as_mut_ptr().cast(), input.descriptor());
        libsplit_plan_init(plan, size, &input, params, outputs, count, error)
    });
    if made.is_err() {
        assert!(memory.iter().all(|word| *word == 0x5AFE), "an error changes the plan's memory");
    }
    made.map(|()| memory)
}

/// An address that must not be looked at.
fn nowhere<T>(seed: u64) -> *mut T {
    std::ptr::without_provenance_mut(usize::from(seed & 2 == 0))
}

/// A plan does what copy and view do; also one that has moved, and whose input, lengths and outputs
/// have been overwritten since.
fn check_plan(scene: &Scene) {
    let outputs = scene.ask.expected.len();
    let placed = place_input(scene);
    let mut targets: Vec<Target> =
        (0..outputs).map(|index| place_output(scene, index, &placed)).collect();
    let skipped = (scene.skip_one && outputs > 0).then(|| scene.unwanted.index(outputs));
    if let Some(skipped) = skipped {
        let target = &mut targets[skipped];
        target.expected.clone_from(&target.bytes);
    }
    // Neither data matters.
    let mut input = placed.tensor.clone().at(nowhere(scene.seed), 1);
    let mut tensors: Vec<Tensor> = targets.iter().map(|target| target.tensor.clone()).collect();
    for tensor in &mut tensors {
        tensor.data = nowhere(scene.seed);
    }
    let wanted = |(index, tensor): (usize, &Tensor)| {
        if skipped == Some(index) {
            Tensor::unwanted()
        } else {
            tensor.descriptor()
        }
    };
    let mut descriptors: Vec<libsplit_tensor> = tensors.iter().enumerate().map(wanted).collect();
    let all_packed = skipped.is_none() && !scene.strided_outputs && scene.seed & 4 == 0;
    let given = if all_packed { null() } else { descriptors.as_ptr() };
    let mut made = scene.with_params(|params| plan(&input, params, given, outputs)).unwrap();
    overwrite(&mut input);
    tensors.iter_mut().for_each(overwrite);
    descriptors.fill(Tensor::unwanted());
    let moved = made.clone();
    made.fill(0);
    let plan = moved.as_ptr().cast();

    let rank = scene.output_shape(1).len();
    let views = scene.with_params(|params| view(&placed.tensor, params, outputs, rank)).unwrap();
    let mut addresses = vec![nowhere(scene.seed); outputs];
    let mut expected = addresses.clone();
    for (index, view) in views.descriptors.iter().enumerate() {
        if skipped != Some(index) {
            expected[index] = view.data;
        }
    }
    let data = placed.tensor.data.cast::<c_void>();
    call(|error| unsafe { libsplit_plan_view(plan, data, addresses.as_mut_ptr(), outputs, error) })
        .unwrap();
    assert_eq!(addresses, expected);

    for (index, (address, target)) in addresses.iter_mut().zip(&targets).enumerate() {
        let is_written = skipped != Some(index) && !target.tensor.shape.contains(&0);
        *address = if is_written { target.tensor.data.cast() } else { nowhere(scene.seed) };
    }
    let mut tasks = 0usize;
    let executor = backwards_on(&mut tasks, 0);
    let executor = if scene.seed & 8 == 0 { null() } else { &raw const executor };
    call(|error| unsafe {
        libsplit_plan_copy(plan, data, addresses.as_ptr(), outputs, executor, error)
    })
    .unwrap();
    for (index, target) in targets.iter().enumerate() {
        assert_eq!(target.bytes, target.expected, "output {index}");
    }
}

/// What may be wrong about a call, whatever its addresses.
#[derive(Debug, Clone, Copy)]
enum Wrong {
    Op,
    Opset,
    Axis,
    Flags,
    StructSize,
    NumOutputs,
    OneOutputMore,
    InputDType,
    InputExtent(i64),
    InputStrides,
    InputBitOffset,
    OutputDType,
    OutputRank,
    OutputExtent,
    OutputStrides,
    OutputBitOffset,
    OutputBytes,
}

fn wrong() -> impl Strategy<Value = Wrong> {
    select(vec![
        Wrong::Op,
        Wrong::Opset,
        Wrong::Axis,
        Wrong::Flags,
        Wrong::StructSize,
        Wrong::NumOutputs,
        Wrong::OneOutputMore,
        Wrong::InputDType,
        Wrong::InputExtent(-1),
        Wrong::InputExtent(-2),
        Wrong::InputExtent(i64::MAX),
        Wrong::InputStrides,
        Wrong::InputBitOffset,
        Wrong::OutputDType,
        Wrong::OutputRank,
        Wrong::OutputExtent,
        Wrong::OutputStrides,
        Wrong::OutputBitOffset,
        Wrong::OutputBytes,
    ])
}

fn spoil_params(wrong: Wrong, params: &libsplit_params) -> libsplit_params {
    let mut params = *params;
    match wrong {
        Wrong::Op => params.op = libsplit_op(9),
        Wrong::Opset => params.opset = -1,
        Wrong::Axis => params.axis = 70,
        Wrong::Flags => params.flags = 64,
        Wrong::StructSize => params.struct_size = 8,
        Wrong::NumOutputs => params.num_outputs = 77,
        _ => {}
    }
    params
}

fn spoil_input(wrong: Wrong, input: &mut Tensor) {
    match wrong {
        Wrong::InputDType => input.dtype = 27,
        Wrong::InputExtent(extent) => input.shape[0] = extent,
        Wrong::InputStrides => input.strides = Some(vec![i64::MAX; input.shape.len()]),
        Wrong::InputBitOffset => input.bit_offset = 1,
        _ => {}
    }
}

fn spoil_output(wrong: Wrong, output: &mut Tensor) {
    match wrong {
        Wrong::OutputDType => output.dtype = 1 + output.dtype % 26,
        Wrong::OutputRank => output.shape.push(1),
        Wrong::OutputExtent => output.shape.iter_mut().for_each(|extent| *extent += 1),
        Wrong::OutputStrides => output.strides = Some(vec![0; output.shape.len()]),
        Wrong::OutputBitOffset => output.bit_offset = 8,
        Wrong::OutputBytes => output.data_bytes = 1,
        _ => {}
    }
}

/// What is wrong about a call is told by a plan as it is by copy.
fn check_errors_of_plan(scene: &Scene, wrong: Wrong) {
    let mut placed = place_input(scene);
    let outputs = scene.ask.expected.len();
    let mut targets: Vec<Target> =
        (0..outputs).map(|index| place_output(scene, index, &placed)).collect();
    if outputs > 0 {
        spoil_output(wrong, &mut targets[scene.unwanted.index(outputs)].tensor);
    }
    spoil_input(wrong, &mut placed.tensor);
    let input = &placed.tensor;
    let mut descriptors: Vec<libsplit_tensor> =
        targets.iter().map(|target| target.tensor.descriptor()).collect();
    if matches!(wrong, Wrong::OneOutputMore) {
        descriptors.push(Tensor::unwanted());
    }
    let count = descriptors.len();
    scene.with_params(|params| {
        let params = spoil_params(wrong, params);
        let copied = call(|error| unsafe {
            let (input, outputs) = (input.descriptor(), descriptors.as_ptr());
            libsplit_copy(&input, &params, outputs, count, null(), error)
        });
        let planned = plan(input, &params, descriptors.as_ptr(), count);
        assert_eq!(planned.map(|_| ()), copied);
    });
}

/// Runs the tasks last to first.
fn backwards_on(tasks: &mut usize, max_tasks: u32) -> libsplit_executor {
    libsplit_executor {
        struct_size: size_of::<libsplit_executor>(),
        parallel_for: Some(backwards),
        pool: std::ptr::from_mut(tasks).cast(),
        max_tasks,
        flags: 0,
    }
}

// ---------------------------------------------------------------------------------------------
// The properties.

/// This many cases, or as many as `PROPTEST_CASES` says.
fn config(cases: u32) -> ProptestConfig {
    let config = ProptestConfig { failure_persistence: None, ..Default::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() {
        config
    } else {
        ProptestConfig { cases, ..config }
    }
}

fn check_infer(scene: &Scene, params: &libsplit_params, input: &Tensor) {
    let outputs = scene.ask.expected.len();
    assert_eq!(count(input, params), Ok(outputs));
    let rank = scene.output_shape(1).len();
    let described = infer(input, params, outputs, rank).unwrap();
    for (index, len) in scene.ask.expected.iter().enumerate() {
        let shape = scene.output_shape(*len);
        assert_eq!(described.shapes[index], shape);
        let elements: i64 = shape.iter().product();
        let bits = usize_of(elements) * bits_of(scene.ask.dtype);
        assert_eq!(described.descriptors[index].data_bytes, bits.div_ceil(8));
        assert_eq!(described.descriptors[index].data, std::ptr::null_mut());
        if elements > 0 {
            assert_eq!(described.strides[index], Layout::packed(&shape).strides);
        }
    }
}

fn check_view(scene: &Scene, params: &libsplit_params, placed: &Placed) {
    let bits = bits_of(scene.ask.dtype);
    let rank = scene.output_shape(1).len();
    let views = view(&placed.tensor, params, scene.ask.expected.len(), rank).unwrap();
    for (index, len) in scene.ask.expected.iter().enumerate() {
        let shape = scene.output_shape(*len);
        assert_eq!(views.shapes[index], shape);
        let descriptor = &views.descriptors[index];
        if shape.contains(&0) {
            assert_eq!(descriptor.data_bytes, 0);
            continue;
        }
        let layout = Layout { shape, strides: views.strides[index].clone(), low: 0, high: 0 };
        let base = descriptor.data as usize - placed.bytes.as_ptr() as usize;
        let base = i64::try_from(base * 8 + descriptor.bit_offset as usize).unwrap();
        let width = i64::try_from(bits).unwrap();
        let seen: Vec<i64> = layout.offsets().iter().map(|offset| base + offset * width).collect();
        let origin = i64::try_from(placed.origin).unwrap();
        let meant: Vec<i64> =
            scene.source_offsets(index).iter().map(|offset| origin + offset * width).collect();
        assert_eq!(seen, meant);
        assert!(descriptor.bit_offset < 8);
        let low = seen.iter().min().unwrap() / 8;
        let high = (seen.iter().max().unwrap() + width + 7) / 8;
        assert_eq!(descriptor.data_bytes, usize_of(high - low));
    }
}

/// An output buffer with canaries around it, and what it must hold in the end.
struct Target {
    bytes: Vec<u8>,
    expected: Vec<u8>,
    tensor: Tensor,
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

fn check_copy(scene: &Scene, params: &libsplit_params, placed: &Placed) {
    let outputs = scene.ask.expected.len();
    let mut targets: Vec<Target> =
        (0..outputs).map(|index| place_output(scene, index, placed)).collect();
    let skipped = (scene.skip_one && outputs > 0).then(|| scene.unwanted.index(outputs));
    let descriptors: Vec<libsplit_tensor> = (targets.iter_mut().enumerate())
        .map(|(index, target)| {
            if skipped == Some(index) {
                target.expected.clone_from(&target.bytes);
                return Tensor::unwanted();
            }
            target.tensor.descriptor()
        })
        .collect();
    call(|error| unsafe {
        libsplit_copy(
            &placed.tensor.descriptor(),
            params,
            descriptors.as_ptr(),
            outputs,
            null(),
            error,
        )
    })
    .unwrap();
    for (index, target) in targets.iter().enumerate() {
        assert_eq!(target.bytes, target.expected, "output {index}");
    }
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn infer_view_and_copy_agree_with_the_oracle(scene in scene()) {
        let placed = place_input(&scene);
        scene.with_params(|params| {
            check_infer(&scene, params, &placed.tensor);
            check_view(&scene, params, &placed);
            check_copy(&scene, params, &placed);
        });
        check_plan(&scene);
    }

    #[test]
    fn a_plan_refuses_what_copy_refuses(scene in scene(), wrong in wrong()) {
        check_errors_of_plan(&scene, wrong);
    }

    #[test]
    fn plans_are_as_small_as_promised(
        rank in -2i32..70,
        count in prop_oneof![0usize..2000, Just(usize::MAX), Just(usize::MAX / 50), any::<usize>()],
    ) {
        let size = |count| libsplit_plan_size(rank, count);
        let is_rank = (1..=64).contains(&rank);
        prop_assert_eq!(is_rank, size(1) > 0);
        if !is_rank || count > usize::MAX / 4096 {
            // Of the largest numbers some are out of range, the others as they must be.
            prop_assert!(is_rank || size(count) == 0);
            prop_assert!(size(count) <= isize::MAX.unsigned_abs());
            prop_assert_eq!(size(usize::MAX), 0);
            return Ok(());
        }
        let rank = usize::try_from(rank).unwrap();
        prop_assert!(size(count) <= 1024 + 24 * count + 32 * rank * count);
        let each = size(2) - size(1);
        prop_assert!(count == 0 || size(count) == size(1) + (count - 1) * each);
        prop_assert!(0 < size(0) && size(0) < size(1));
    }

    /// One length of the list is off, or the extent is: nothing but an error comes of it.
    #[test]
    fn lengths_that_do_not_add_up_are_refused(parts in partition(), at in any::<Index>(), off in select(vec![-9i64, -1, 1, 4])) {
        let mut wrong = parts.clone();
        let off_at = at.index(wrong.len());
        wrong[off_at] += off;
        let ask = Ask {
            lengths: Some(list(wrong, 7)),
            ..base(libsplit_op::ONNX_SPLIT, 18, 1, parts)
        };
        let input = Tensor::new(1, &[ask.extent, 2]);
        let scene = Scene {
            input: Layout::packed(&[ask.extent, 2]), ask, axis: 0, negative_axis: false, lead: 0,
            order: vec![], gaps: vec![], backward: vec![], strided_outputs: false,
            unwanted: at, skip_one: false, seed: 0,
        };
        scene.with_params(|params| {
            prop_assert_eq!(count(&input, params).unwrap_err().status, 12);
            Ok(())
        })?;
    }
}

// ---------------------------------------------------------------------------------------------
// Large enough for tasks: rows of any length, cut anywhere, must still come out whole.

/// Runs the tasks last to first.
unsafe extern "C" fn backwards(
    pool: *mut c_void,
    task: libsplit_task_fn,
    context: *mut c_void,
    count: usize,
) -> i32 {
    unsafe {
        pool.cast::<usize>().write(count);
        for index in (0..count).rev() {
            task.unwrap()(context, index);
        }
    }
    0
}

proptest! {
    #![proptest_config(config(40))]

    #[test]
    fn tasks_copy_what_one_thread_copies(
        dtype in select(vec![1, 2, 4, 8, 11, 21, 25]),
        inner in 1i64..700,
        parts in prop::collection::vec(0i64..40, 1..5),
        column_major in any::<bool>(),
        max_tasks in 0u32..20,
        seed in any::<u64>(),
    ) {
        let extent: i64 = parts.iter().sum();
        prop_assume!(extent > 0);
        let bits = i64::try_from(bits_of(dtype)).unwrap();
        let outer = 1 + 6_000_000 / (extent * inner * bits);
        let shape = [outer, extent, inner];
        let order = if column_major { [0, 1, 2] } else { [2, 1, 0] };
        let layout = Layout::new(&shape, &order, &[1; 3], &[false; 3]);
        let bytes = noise(usize_of((layout.high + 1) * bits).div_ceil(8), seed);
        let mut input = Tensor::new(dtype, &shape).at(bytes.as_ptr(), bytes.len());
        input.strides = Some(layout.strides);
        let lengths = Tensor::new(7, &[i64::try_from(parts.len()).unwrap()]).at(parts.as_ptr().cast(), 0);
        let lengths = lengths.descriptor();
        let params = libsplit_params { axis: 1, split: &lengths, ..params(libsplit_op::OPENVINO_VARIADIC_SPLIT, 1) };
        let described = infer(&input, &params, parts.len(), 3).unwrap();

        let mut tasks = 0usize;
        let executor = backwards_on(&mut tasks, max_tasks);
        let copy = |executor: *const libsplit_executor| {
            let mut buffers: Vec<Vec<u8>> =
                described.descriptors.iter().map(|output| vec![0xEE; output.data_bytes]).collect();
            let ready: Vec<libsplit_tensor> = described.descriptors.iter().zip(&mut buffers)
                .map(|(output, buffer)| libsplit_tensor { data: buffer.as_mut_ptr().cast(), ..*output })
                .collect();
            call(|error| unsafe {
                libsplit_copy(&input.descriptor(), &params, ready.as_ptr(), parts.len(), executor, error)
            }).unwrap();
            buffers
        };
        let alone = copy(null());
        prop_assert!(alone == copy(&executor));
        prop_assert_eq!(tasks > 1, max_tasks != 1);
        let in_one_go = std::mem::take(&mut tasks);
        let planned = plan(&input, &params, null(), parts.len()).unwrap();
        let mut buffers: Vec<Vec<u8>> = alone.iter().map(|bytes| vec![0xEE; bytes.len()]).collect();
        let targets: Vec<_> = buffers.iter_mut().map(|bytes| bytes.as_mut_ptr().cast()).collect();
        call(|error| unsafe {
            let data = bytes.as_ptr().cast();
            libsplit_plan_copy(planned.as_ptr().cast(), data, targets.as_ptr(), parts.len(), &executor, error)
        }).unwrap();
        prop_assert!(alone == buffers);
        prop_assert_eq!(tasks, in_one_go);
        prop_assert!(max_tasks == 0 || tasks <= max_tasks as usize);
    }
}

proptest! {
    #![proptest_config(config(60))]

    /// So many pieces that tasks are ranges of them: of one length or any, given or not, wanted or not.
    #[test]
    fn tasks_copy_many_pieces(
        dtype in select(vec![2, 4, 1, 7, 15]),
        rows in prop_oneof![1i64..64, 64i64..300],
        lengths in prop_oneof![
            (200usize..3000, 1i64..3).prop_map(|(count, len)| vec![len; count]),
            prop::collection::vec(0i64..6, 200..1500),
        ],
        unwanted in prop::option::of(2usize..50),
        are_given in any::<bool>(),
        are_short in any::<bool>(),
        is_turned in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let (count, extent) = (lengths.len(), lengths.iter().sum::<i64>());
        let size = bits_of(dtype) / 8;
        let row = usize_of(extent) * size;
        let bytes = noise(usize_of(rows) * row, seed);
        // Rows of the split axis, or, in the same memory, columns.
        let axis = i64::from(!is_turned);
        let shape = |len| if is_turned { [len, rows] } else { [rows, len] };
        let mut input = Tensor::new(dtype, &shape(extent)).at(bytes.as_ptr(), bytes.len());
        if is_turned {
            input.strides = Some(vec![1, extent]);
        }
        let short: Vec<i32> = lengths.iter().map(|len| i32::try_from(*len).unwrap()).collect();
        let (code, data) = if are_short { (6, short.as_ptr().cast()) } else { (7, lengths.as_ptr().cast()) };
        let given = Tensor::new(code, &[i64::try_from(count).unwrap()]).at(data, 0);
        let given = given.descriptor();
        let are_even = lengths.iter().all(|len| *len == lengths[0]);
        let params = if are_even && !are_given {
            libsplit_params { axis, num_outputs: i64::try_from(count).unwrap(), ..params(libsplit_op::OPENVINO_SPLIT, 1) }
        } else {
            libsplit_params { axis, split: &given, ..params(libsplit_op::OPENVINO_VARIADIC_SPLIT, 1) }
        };

        let mut begin = 0;
        let expected: Vec<Option<Vec<u8>>> = lengths.iter().enumerate().map(|(index, len)| {
            let steps = begin..begin + usize_of(*len) * size;
            begin = steps.end;
            let is_wanted = unwanted.is_none_or(|each| index % each != 1);
            let rows = || bytes.chunks(row).map(|row| &row[steps.clone()]);
            is_wanted.then(|| {
                if !is_turned {
                    return rows().flatten().copied().collect();
                }
                let column = |at: usize| rows().flat_map(move |row| &row[at..at + size]).copied();
                (0..steps.len()).step_by(size).flat_map(column).collect()
            })
        }).collect();
        let mut tasks = 0usize;
        for max_tasks in [1, 2, 7] {
            let executor = backwards_on(&mut tasks, max_tasks);
            let mut buffers: Vec<Option<Vec<u8>>> = expected.iter().map(|bytes| bytes.as_ref().map(|bytes| vec![0xEE; bytes.len()])).collect();
            let tensors: Vec<Option<Tensor>> = lengths.iter().zip(&mut buffers)
                .map(|(len, buffer)| {
                    let data = buffer.as_mut()?.as_mut_ptr();
                    Some(Tensor::new(dtype, &shape(*len)).at(data, 0))
                })
                .collect();
            let outputs: Vec<libsplit_tensor> = tensors.iter()
                .map(|tensor| tensor.as_ref().map_or_else(Tensor::unwanted, Tensor::descriptor))
                .collect();
            call(|error| unsafe {
                libsplit_copy(&input.descriptor(), &params, outputs.as_ptr(), count, &executor, error)
            }).unwrap();
            prop_assert!(buffers == expected);
            let planned = plan(&input, &params, outputs.as_ptr(), count).unwrap();
            buffers.iter_mut().flatten().for_each(|buffer| buffer.fill(0xEE));
            let targets: Vec<_> = outputs.iter().map(|output| output.data).collect();
            call(|error| unsafe {
                let data = bytes.as_ptr().cast();
                libsplit_plan_copy(planned.as_ptr().cast(), data, targets.as_ptr(), count, &executor, error)
            }).unwrap();
            prop_assert!(buffers == expected);
        }
    }
}

// ---------------------------------------------------------------------------------------------
// The way back: outputs that are columns of one matrix, some of which nobody wants.

proptest! {
    #![proptest_config(config(150))]

    #[test]
    fn columns_of_one_matrix_are_written_and_nothing_else(
        dtype in select(vec![2, 4, 1, 7, 15]),
        batch in 1i64..4,
        rows in prop_oneof![2 => 1i64..70, 3 => 70i64..400, 1 => Just(0)],
        parts in prop_oneof![
            prop::collection::vec((Just(1i64), prop::bool::weighted(0.9)), 2..24),
            prop::collection::vec((1i64..5, prop::bool::weighted(0.8)), 2..7),
        ],
        [before, after, pitch] in [select(vec![0i64, 0, 0, 1, 3]), select(vec![0i64, 0, 0, 1, 60]), select(vec![0i64, 0, 5])],
        ahead in 0usize..9,
        max_tasks in 0u32..20,
        seed in any::<u64>(),
    ) {
        let channels: i64 = parts.iter().map(|(len, _)| len).sum();
        let size = bits_of(dtype) / 8;
        // None given: enough for tasks.
        let large = 1 + 700_000 / (batch * channels * i64::try_from(size).unwrap());
        let rows = if rows == 0 { large } else { rows };
        let (stream, width) = (rows + pitch, before + channels + after);

        let bytes = noise(usize_of(batch * channels * stream) * size, seed);
        let mut input = Tensor::new(dtype, &[batch, channels, rows]).at(bytes.as_ptr(), bytes.len());
        input.strides = Some(vec![channels * stream, stream, 1]);
        let lengths: Vec<i64> = parts.iter().map(|(len, _)| *len).collect();
        let lengths = Tensor::new(7, &[i64::try_from(parts.len()).unwrap()]).at(lengths.as_ptr().cast(), 0);
        let lengths = lengths.descriptor();
        let params = libsplit_params { axis: 1, split: &lengths, ..params(libsplit_op::OPENVINO_VARIADIC_SPLIT, 1) };

        let mut matrix = vec![0xEE; usize_of(batch * rows * width + 9) * size];
        let mut expected = matrix.clone();
        let first = ahead * size; // anywhere in a line
        let mut channel = 0;
        let mut outputs = Vec::new();
        for (len, is_wanted) in &parts {
            let begin = first + usize_of(before + channel) * size;
            let mut output = Tensor::new(dtype, &[batch, *len, rows]).at(matrix[begin..].as_mut_ptr(), 0);
            output.strides = Some(vec![rows * width, 1, width]);
            outputs.push(is_wanted.then_some(output));
            for (image, (step, row)) in (0..batch).flat_map(|image| {
                (0..*len).flat_map(move |step| (0..rows).map(move |row| (image, (step, row))))
            }) {
                let from = usize_of((image * channels + channel + step) * stream + row) * size;
                let to = begin + usize_of((image * rows + row) * width + step) * size;
                if *is_wanted {
                    expected[to..to + size].copy_from_slice(&bytes[from..from + size]);
                }
            }
            channel += len;
        }
        let outputs: Vec<libsplit_tensor> = outputs.iter()
            .map(|output| output.as_ref().map_or_else(Tensor::unwanted, Tensor::descriptor))
            .collect();
        let mut tasks = 0usize;
        let executor = backwards_on(&mut tasks, max_tasks);
        for executor in [null(), &raw const executor] {
            matrix.fill(0xEE);
            call(|error| unsafe {
                libsplit_copy(&input.descriptor(), &params, outputs.as_ptr(), parts.len(), executor, error)
            }).unwrap();
            prop_assert!(matrix == expected);
        }
    }
}
