//! Every error of the C functions tells a remedy, and the remedy works: the call that is refused is made again with
//! what its message says, to the letter. A rule without a row here fails.

use libsplit::ffi::{
    calls, libsplit_dtype, libsplit_executor, libsplit_op, libsplit_params, libsplit_plan_size,
    libsplit_task_fn, libsplit_tensor, LIBSPLIT_FLAG_CLAMP_UNEVEN,
};
use libsplit::{Error, Words};
use std::collections::BTreeSet;
use std::ffi::c_void;
use std::ptr::{null, null_mut};

#[derive(Clone, core::marker::Copy)]
enum Function {
    Count,
    Infer,
    View,
    Copy,
    PlanInit,
    PlanCopy,
}
use Function::{Copy, Count, Infer, PlanCopy, PlanInit, View};

const SPLIT: libsplit_op = libsplit_op::ONNX_SPLIT;
const SEQUENCE: libsplit_op = libsplit_op::ONNX_SPLIT_TO_SEQUENCE;
const VARIADIC: libsplit_op = libsplit_op::OPENVINO_VARIADIC_SPLIT;
const OPENVINO: libsplit_op = libsplit_op::OPENVINO_SPLIT;

/// Parameters, with room for those of a later version.
#[repr(C)]
struct Params {
    params: libsplit_params,
    tail: [u8; 16],
}

/// A call with all its memory: bytes [2, 6] in columns of 2 and 4. Descriptors point into it, so it stays where it is.
struct Scene {
    function: Function,
    params: Params,
    input: libsplit_tensor,
    shape: [i64; 70],
    strides: [i64; 2],
    data: Vec<u64>,
    split: libsplit_tensor,
    lengths: [i64; 2],
    split_shape: [i64; 2],
    outputs: Vec<libsplit_tensor>,
    shapes: [[i64; 2]; 2],
    output_strides: [[i64; 2]; 2],
    buffers: [Vec<u64>; 2],
    num_outputs: usize,
    executor: libsplit_executor,
    plan: Vec<u64>,
    plan_size: usize,
    is_planned: bool,
}

/// Bytes of the input and of each output, enough for a copy on several tasks.
const BYTES: usize = 4 << 20;

impl Scene {
    fn new(function: Function) -> Box<Self> {
        let mut scene = Box::new(Self {
            function,
            params: Params { params: libsplit_params::init(SPLIT, 18), tail: [0; 16] },
            input: libsplit_tensor::ZERO,
            shape: [1; 70],
            strides: [6, 1],
            data: vec![0; BYTES / 8],
            split: libsplit_tensor::ZERO,
            lengths: [2, 4],
            split_shape: [2, 1],
            outputs: vec![libsplit_tensor::ZERO; 2],
            shapes: [[2, 2], [2, 4]],
            output_strides: [[2, 1], [4, 1]],
            buffers: [(); 2].map(|()| vec![0; BYTES / 8]),
            num_outputs: 2,
            executor: libsplit_executor::init(Some(in_order), null_mut()),
            plan: vec![0; 1 << 10],
            plan_size: 8 << 10,
            is_planned: false,
        });
        let s = &mut *scene;
        s.shape[..2].copy_from_slice(&[2, 6]);
        s.params.params.axis = 1;
        s.input.dtype = libsplit_dtype::UINT8;
        s.input.rank = 2;
        s.split.dtype = libsplit_dtype::INT64;
        s.split.rank = 1;
        s.place();
        s.describe();
        scene
    }

    /// Points to the memory of the input, the lengths and the parameters.
    fn place(&mut self) {
        self.input.data = self.data.as_mut_ptr().cast();
        self.input.shape = self.shape.as_mut_ptr();
        self.input.strides = null_mut();
        self.split.data = self.lengths.as_mut_ptr().cast();
        self.split.shape = self.split_shape.as_mut_ptr();
        self.params.params.split = &raw const self.split;
    }

    /// Describes the outputs, as `libsplit_outputs_init` and `libsplit_infer` would, and gives them memory.
    fn describe(&mut self) {
        for index in 0..2 {
            self.outputs[index] = libsplit_tensor {
                data: self.buffers[index].as_mut_ptr().cast(),
                shape: self.shapes[index].as_mut_ptr(),
                strides: self.output_strides[index].as_mut_ptr(),
                rank: 2,
                capacity: 2,
                dtype: self.input.dtype,
                ..libsplit_tensor::ZERO
            };
        }
    }

    /// 512 KiB for each of two tasks.
    fn enlarge(&mut self) {
        (self.shape[0], self.shapes[0][0], self.shapes[1][0]) = (500_000, 500_000, 500_000);
    }

    fn op(&mut self, op: libsplit_op, opset: i32) {
        (self.params.params.op, self.params.params.opset) = (op, opset);
    }

    fn leave_out_lengths(&mut self) {
        self.params.params.split = null();
    }

    fn parts(&mut self, number: i64) {
        self.params.params.num_outputs = number;
    }

    /// Nibbles: the input's rows lie 8 bytes apart, and its pieces have whole bytes.
    fn nibbles(&mut self) {
        self.op(VARIADIC, 1);
        (self.input.dtype, self.strides) = (libsplit_dtype::UINT4, [16, 1]);
        self.input.strides = self.strides.as_mut_ptr();
        self.describe();
    }

    fn call(&mut self) -> Result<(), Error> {
        let (input, params) = (&raw const self.input, &raw const self.params.params);
        let (outputs, count) = (self.outputs.as_mut_ptr(), self.num_outputs);
        let (plan, size, executor) =
            (self.plan.as_mut_ptr().cast(), self.plan_size, &raw const self.executor);
        // SAFETY: every pointer is NULL, or to memory of the scene that is as long as its descriptor says.
        unsafe {
            match self.function {
                Count => calls::count(input, params, &mut 0),
                Infer => calls::infer(input, params, outputs, count, null()),
                View => calls::view(input, params, outputs, count, null()),
                Copy => calls::copy(input, params, outputs, count, executor, null()),
                PlanInit => calls::plan_init(plan, size, input, params, null(), count, null()),
                PlanCopy => {
                    if !self.is_planned {
                        calls::plan_init(plan, size, input, params, null(), 2, null())?;
                    }
                    let addresses =
                        self.outputs.iter().map(|output| output.data).collect::<Vec<_>>();
                    let (data, addresses) = (self.data.as_ptr().cast(), addresses.as_ptr().cast());
                    calls::plan_copy(plan, data, addresses, count, executor, null())
                }
            }
        }
    }
}

unsafe extern "C" fn in_order(
    _: *mut c_void,
    task: libsplit_task_fn,
    work: *mut c_void,
    count: usize,
) -> i32 {
    for index in 0..count {
        // SAFETY: what the library asks for.
        unsafe { task.unwrap()(work, index) };
    }
    0
}

unsafe extern "C" fn failing(_: *mut c_void, _: libsplit_task_fn, _: *mut c_void, _: usize) -> i32 {
    7
}

unsafe extern "C" fn lazy(_: *mut c_void, _: libsplit_task_fn, _: *mut c_void, _: usize) -> i32 {
    0
}

/// A rule, the function, the mistake, and each remedy: what the message says, and doing it.
type Change = fn(&mut Scene);
type Row = (&'static str, Function, Change, &'static [(&'static str, Change)]);

#[rustfmt::skip] // a rule reads as a line, or two
const ROWS: &[Row] = &[
    ("Null", Copy, |s| s.outputs[1].data = null_mut(), &[("give a valid pointer", Scene::describe)]),
    ("NoneWanted", Infer, |s| s.outputs.fill(libsplit_tensor::ZERO),
        &[("make their descriptors with libsplit_outputs_init", Scene::describe)]),
    ("Alignment", Infer, |s| s.input.shape = s.input.shape.wrapping_byte_add(1),
        &[("use a properly declared variable", |s| s.input.shape = s.shape.as_mut_ptr())]),
    ("StructSize", Infer, |s| s.params.params.struct_size = 8,
        &[("start from its LIBSPLIT_..._INIT macro", |s| {
            s.params.params = libsplit_params { axis: 1, split: &raw const s.split, ..libsplit_params::init(SPLIT, 18) };
        })]),
    ("StructSizeHuge", Infer, |s| s.params.params.struct_size = 5000,
        &[("start from its LIBSPLIT_..._INIT macro", |s| {
            s.params.params = libsplit_params { axis: 1, split: &raw const s.split, ..libsplit_params::init(SPLIT, 18) };
        })]),
    ("NonZeroTail", Infer, |s| { s.params.params.struct_size += 16; s.params.tail[3] = 1; },
        &[("zero them", |s| s.params.tail[3] = 0)]),
    ("OperatorUnknown", Infer, |s| s.op(libsplit_op(9), 18),
        &[("use one of LIBSPLIT_OP_* (1 to 4)", |s| s.op(SPLIT, 18))]),
    ("Opset", Infer, |s| s.op(SPLIT, 0), &[("pass the model's opset import", |s| s.op(SPLIT, 18))]),
    ("OpenVinoOpset", Infer, |s| s.op(VARIADIC, 7),
        &[("pass that", |s| s.op(VARIADIC, 1)), ("or 0 for version 1", |s| s.op(VARIADIC, 0))]),
    ("Flags", Infer, |s| s.params.params.flags = 0x100, &[("clear the others", |s| s.params.params.flags = 0)]),
    ("DTypeUnknown", Infer, |s| s.input.dtype = libsplit_dtype(99),
        &[("use a number of ONNX TensorProto.DataType (1 to 26)", |s| s.input.dtype = libsplit_dtype(2))]),
    ("NotDescribed", Copy, |s| s.outputs[1] = libsplit_tensor { data: s.outputs[1].data, ..libsplit_tensor::ZERO },
        &[("call libsplit_infer first, or fill in dtype, rank and shape", Scene::describe)]),
    ("DTypeNotAllowed", Infer, |s| { s.op(SPLIT, 11); s.input.dtype = libsplit_dtype::BFLOAT16; },
        &[("ONNX Split-13 allows it", |s| s.op(SPLIT, 13))]),
    ("RankZero", Count, |s| { s.op(SEQUENCE, 24); s.leave_out_lengths(); s.params.params.axis = 0; s.input.rank = 0; },
        &[("give it an axis of extent 1", |s| { s.input.rank = 1; s.shape[0] = 1; })]),
    ("Rank", Count, |s| s.input.rank = 65, &[("merge axes", |s| s.input.rank = 2)]),
    ("RankNegative", Count, |s| s.input.rank = -1, &[("set it to the number of axes", |s| s.input.rank = 2)]),
    ("Axis", Infer, |s| s.params.params.axis = 2, &[("choose one inside", |s| s.params.params.axis = -1)]),
    ("ExtentNegative", Infer, |s| s.shape[0] = -7, &[("correct the shape", |s| s.shape[0] = 2)]),
    ("ExtentUnknown", View, |s| s.shape[0] = -1,
        &[("give the extent", |s| s.shape[0] = 2), ("unknown extents are for libsplit_infer", |s| s.function = Infer)]),
    ("LengthsExtent", Infer, |s| s.split_shape[0] = -2, &[("give the number of lengths", |s| s.split_shape[0] = 2)]),
    ("LengthsAbsent", Infer, |s| { s.op(VARIADIC, 1); s.leave_out_lengths(); }, &[("give params.split", Scene::place)]),
    ("LengthsRefused", Infer, |s| { s.op(OPENVINO, 1); s.parts(2); },
        &[("leave out params.split", Scene::leave_out_lengths), ("or use VariadicSplit", |s| s.op(VARIADIC, 1))]),
    ("LengthsAndNumOutputs", Infer, |s| s.parts(2),
        &[("leave out the lengths", Scene::leave_out_lengths), ("or set params.num_outputs to 0", |s| s.parts(0))]),
    ("NeitherLengthsNorNumOutputs", Infer, Scene::leave_out_lengths,
        &[("needs one of them", |s| s.parts(2)), ("needs one of them", Scene::place)]),
    ("LengthsDType", Infer, |s| s.split.dtype = libsplit_dtype::INT32,
        &[("convert the lengths", |s| s.split.dtype = libsplit_dtype::INT64)]),
    ("LengthsScalar", Infer, |s| s.split.rank = 0, &[("use rank 1", |s| s.split.rank = 1)]),
    ("LengthsRank", Infer, |s| s.split.rank = 2, &[("use rank 1", |s| s.split.rank = 1)]),
    ("LengthsUnknown", View, |s| s.split.data = null_mut(),
        &[("give them", Scene::place), ("unknown lengths are for libsplit_infer", |s| s.function = Infer)]),
    ("LengthNegative", Infer, |s| s.lengths = [-1, 4],
        &[("only in VariadicSplit may one be -1, for the rest", |s| s.op(VARIADIC, 1))]),
    ("LengthNotInteger", Infer, |s| {
        s.op(SPLIT, 1);
        (s.input.dtype, s.split.dtype) = (libsplit_dtype::DOUBLE, libsplit_dtype::DOUBLE);
        s.lengths = [2.5f64, 3.5].map(|length| length.to_bits().cast_signed());
    }, &[("lengths count elements", |s| s.lengths = [2.0f64, 4.0].map(|length| length.to_bits().cast_signed()))]),
    ("SecondRest", Infer, |s| { s.op(VARIADIC, 1); s.lengths = [-1, -1]; },
        &[("give the others", |s| s.lengths = [2, -1])]),
    ("LengthsSum", Infer, |s| s.lengths = [2, 3], &[("make the lengths add up to it", |s| s.lengths = [3, 3])]),
    ("LengthsExceed", Infer, |s| { s.op(VARIADIC, 1); s.lengths = [-1, 7]; },
        &[("make the lengths smaller", |s| s.lengths = [-1, 6])]),
    ("LengthsSumOverflow", Infer, |s| s.lengths = [i64::MAX; 2],
        &[("make the lengths add up to it", |s| s.lengths = [2, 4])]),
    ("ScalarNotPositive", Infer, |s| { s.op(SEQUENCE, 24); s.split.rank = 0; s.lengths[0] = 0; },
        &[("give a larger one", |s| s.lengths[0] = 3)]),
    ("Uneven", Count, |s| { s.op(OPENVINO, 1); s.leave_out_lengths(); s.parts(4); },
        &[("split by lengths", |s| { s.place(); s.parts(0); s.op(VARIADIC, 1); }),
          ("or by ONNX Split-18", |s| s.op(SPLIT, 18))]),
    ("LastNegative", Count, |s| { s.leave_out_lengths(); s.parts(5); },
        &[("use fewer", |s| s.parts(4)),
          ("LIBSPLIT_FLAG_CLAMP_UNEVEN", |s| s.params.params.flags = LIBSPLIT_FLAG_CLAMP_UNEVEN),
          ("or lengths", |s| { s.place(); s.parts(0); })]),
    ("NumOutputsParam", Infer, |s| { s.op(VARIADIC, 1); s.parts(3); },
        &[("make them equal", |s| s.parts(2)), ("or leave it out", |s| s.parts(0))]),
    ("NumOutputsGiven", Infer, |s| s.num_outputs = 1, &[("pass as many outputs", |s| s.num_outputs = 2),
        ("all-zero where unwanted", |s| { s.num_outputs = 2; s.outputs[1] = libsplit_tensor::ZERO; })]),
    ("NumOutputsNegative", Infer, |s| { s.leave_out_lengths(); s.parts(-1); },
        &[("it is the number of parts", |s| s.parts(2))]),
    ("NumOutputsUnknown", Count, |s| { s.op(SPLIT, 13); s.leave_out_lengths(); },
        &[("set params.num_outputs", |s| s.parts(2))]),
    ("NoOutputs", Infer, |s| { s.op(SPLIT, 13); s.leave_out_lengths(); s.num_outputs = 0; },
        &[("pass the outputs of the node", |s| s.num_outputs = 2)]),
    ("NoLengths", Count, |s| { s.shape[1] = 0; s.split_shape[0] = 0; },
        &[("give a length for each", |s| { s.split_shape[0] = 2; s.lengths = [0, 0]; })]),
    ("TooManyOutputs", Infer, |s| {
        s.op(SEQUENCE, 24);
        s.leave_out_lengths();
        (s.params.params.axis, s.input.rank, s.shape[0], s.num_outputs) = (0, 1, 1 << 59, 1 << 59);
    }, &[("use fewer", |s| (s.shape[0], s.num_outputs) = (2, 2))]),
    ("PlanOutputs", PlanCopy, |s| s.num_outputs = 1,
        &[("pass as many addresses as it was made for", |s| s.num_outputs = 2)]),
    ("Capacity", Infer, |s| s.outputs[1].capacity = 1,
        &[("give shape and strides that much room", |s| s.outputs[1].capacity = 2)]),
    ("ViewNotPacked", View, |s| s.outputs[1].strides = null_mut(),
        &[("give an array for the strides", Scene::describe)]),
    ("StridesCollide", Copy, |s| s.output_strides[1] = [3, 1],
        &[("step over all of them", |s| s.output_strides[1] = [5, 1])]),
    ("SubByteStrides", Copy, |s| { s.nibbles(); s.output_strides[1] = [6, 1]; },
        &[("give packed memory", |s| s.output_strides[1] = [4, 1])]),
    ("BitOffset", View, |s| { s.nibbles(); s.input.bit_offset = 3; },
        &[("offset by whole elements", |s| s.input.bit_offset = 4)]),
    ("BitOffsetNotZero", Copy, |s| { s.nibbles(); s.outputs[1].bit_offset = 4; },
        &[("start at a whole byte", |s| s.outputs[1].bit_offset = 0)]),
    ("DataBytes", Copy, |s| s.outputs[1].data_bytes = 7, &[("correct the size", |s| s.outputs[1].data_bytes = 8)]),
    ("TooManyElements", Infer, |s| s.shape[0] = i64::MAX / 8, &[("use smaller extents", |s| s.shape[0] = 2)]),
    ("StridesOverflow", View, |s| { s.strides[0] = i64::MAX; s.input.strides = s.strides.as_mut_ptr(); },
        &[("correct the strides", |s| s.strides[0] = 6)]),
    ("AddressOverflow", View, |s| s.input.data = usize::MAX as *mut c_void, &[("correct its address", Scene::place)]),
    ("Overlap", Copy, |s| s.outputs[1].data = s.outputs[0].data.wrapping_byte_add(3),
        &[("give every output a buffer of its own", Scene::describe)]),
    ("NotShownApart", Copy, among_columns, &[
        ("give the first other memory", |s| s.outputs[OTHER].data = s.buffers[1].as_mut_ptr().cast()),
        ("or copy it in a call of its own with the other outputs all-zero", |s| {
            for (index, output) in s.outputs.iter_mut().enumerate() {
                if index != OTHER {
                    *output = libsplit_tensor::ZERO;
                }
            }
        }),
    ]),
    ("NotShownApartFromInput", Copy, |s| { s.nibbles(); s.outputs[0].data = s.input.data.wrapping_byte_add(4); },
        &[("give the output other memory", Scene::describe)]),
    ("UsedElsewhere", Infer, |s| s.outputs[1].shape = s.shape.as_mut_ptr(),
        &[("give it memory of its own", Scene::describe)]),
    ("ArrayOverlap", PlanInit, |s| s.params.params.split = {
        // SAFETY: there is room for a descriptor where the plan would be.
        unsafe { s.plan.as_mut_ptr().cast::<libsplit_tensor>().write(s.split) };
        s.plan.as_ptr().cast()
    }, &[("give it memory of its own", Scene::place)]),
    ("OutputDType", Copy, |s| s.outputs[1].dtype = libsplit_dtype::INT8,
        &[("splitting does not convert", |s| s.outputs[1].dtype = libsplit_dtype::UINT8)]),
    ("OutputRank", Copy, |s| s.outputs[1].rank = 1, &[("see libsplit_infer", infer)]),
    ("OutputShape", Copy, |s| s.shapes[1][1] = 5, &[("see libsplit_infer", infer)]),
    ("CountUnknown", Count, |s| { s.op(SEQUENCE, 24); s.leave_out_lengths(); s.shape[1] = -1; },
        &[("call again when it is", |s| s.shape[1] = 6)]),
    ("ExecutorFailed", Copy, |s| { s.enlarge(); s.executor.parallel_for = Some(failing); },
        &[("copy again", |s| s.executor.parallel_for = Some(in_order))]),
    ("ExecutorSkipped", Copy, |s| { s.enlarge(); s.executor.parallel_for = Some(lazy); },
        &[("run each of them once before it returns", |s| s.executor.parallel_for = Some(in_order))]),
    ("NoPlan", PlanCopy, |s| s.is_planned = true,
        &[("make one with libsplit_plan_init of this build", |s| s.is_planned = false)]),
    ("PlanSize", PlanInit, |s| s.plan_size = 8, &[("see libsplit_plan_size", |s| {
        s.plan_size = libsplit_plan_size(2, 2);
    })]),
];

const COLUMNS: i32 = 70;
const OTHER: usize = 3;

/// Many columns of a matrix, and one of another matrix in their gaps.
fn among_columns(s: &mut Scene) {
    const HIGH: i64 = 50;
    s.op(OPENVINO, 1);
    s.leave_out_lengths();
    s.parts(COLUMNS.into());
    s.num_outputs = COLUMNS.unsigned_abs() as usize;
    (s.shape[0], s.shape[1], s.shapes[0]) = (HIGH, COLUMNS.into(), [HIGH, 1]);
    s.output_strides = [[200, 1], [400, 1]];
    let [column, other] = s.output_strides.each_mut().map(|strides| strides.as_mut_ptr());
    let matrix = s.buffers[0].as_mut_ptr().cast::<u8>();
    s.outputs = (0..s.num_outputs)
        .map(|index| libsplit_tensor {
            data: matrix.wrapping_add(if index == OTHER { s.num_outputs } else { index }).cast(),
            shape: s.shapes[0].as_mut_ptr(),
            strides: if index == OTHER { other } else { column },
            rank: 2,
            dtype: libsplit_dtype::UINT8,
            ..libsplit_tensor::ZERO
        })
        .collect();
}

/// Lets `infer` describe the outputs.
fn infer(s: &mut Scene) {
    s.function = Infer;
    s.call().unwrap();
    s.function = Copy;
}

fn name(error: &Error) -> String {
    format!("{error:?}").split([' ', '{']).next().unwrap().into()
}

#[test]
fn every_remedy_works() {
    for (rule, function, mistake, remedies) in ROWS {
        for (remedy, follow) in *remedies {
            let mut scene = Scene::new(*function);
            mistake(&mut scene);
            let error = scene.call().expect_err(rule);
            let message = error.message(&Words::C).to_string();
            assert_eq!(name(&error), *rule, "{message}");
            assert!(message.contains(remedy), "{message}: does not say '{remedy}'");
            follow(&mut scene);
            if let Err(other) = scene.call() {
                panic!("{message}: after that, {}", other.message(&Words::C));
            }
        }
    }
}

#[test]
fn every_rule_has_a_row() {
    let mut rule = "";
    let mut rules = BTreeSet::new();
    for line in include_str!("messages.txt").lines() {
        if let Some(name) = line.strip_prefix("Error::") {
            rule = name;
        } else if line.starts_with("    C:") || line.starts_with("    C,") {
            rules.extend((!rule.is_empty()).then_some(rule));
        }
    }
    assert_eq!(rules, ROWS.iter().map(|(rule, ..)| *rule).collect());
}
