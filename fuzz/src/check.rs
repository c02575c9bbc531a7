//! The functions, each compared with the model: what must be refused is, and changes nothing;
//! everything else gives exactly what the model says, by a plan too.

use crate::call::{askew, most_bytes, noise, Call, Described, ZERO};
use crate::rules::{self, Answer, Ask, FEW};
use crate::script::{wild, Script};
use crate::tensor::{bits_of, check_size, packed_strides, Refused, Tensor};
use libsplit::ffi::{
    libsplit_copy, libsplit_count, libsplit_error, libsplit_executor, libsplit_infer,
    libsplit_params, libsplit_plan_copy, libsplit_plan_init, libsplit_plan_size,
    libsplit_plan_view, libsplit_status, libsplit_task_fn, libsplit_tensor, libsplit_view,
};
use std::collections::HashMap;
use std::ffi::{c_void, CStr};
use std::ptr::{null, null_mut};

/// Makes the call of a script through each function.
pub fn run(script: &Script) {
    let mut call = Call::new(script);
    let fault = if script.is_wild(wild::POINTERS) { script.fault.rem_euclid(24) } else { 0 };
    let mut arguments = Arguments {
        input: &raw const call.input.raw,
        params: &raw const call.params.params,
        fault,
        is_wrong: call.ask.is_none() || call.input.raw.shape.is_null() && call.input.raw.rank > 0,
    };
    arguments.is_wrong |= !call.input.raw.shape.is_aligned();
    arguments.spoil(&mut call, script);
    check_count(script, &call, &arguments);
    let Some(ask) = given(script, &call) else { return };
    check_infer(script, &call, &arguments, &ask);
    check_view(script, &call, &arguments, &ask);
    check_copy(script, &call, &arguments, &ask);
    check_no_plan(script);
}

/// What every function gets.
struct Arguments {
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    fault: i64,
    /// Whether something is wrong that the model does not know of.
    is_wrong: bool,
}

impl Arguments {
    fn spoil(&mut self, call: &mut Call, script: &Script) {
        match self.fault {
            1 => self.input = null(),
            2 => self.input = askew(self.input),
            3 => self.params = null(),
            4 => self.params = askew(self.params),
            5 => {
                let size = script.fault_size as usize;
                call.params.params.struct_size = size;
                if (size_of::<libsplit_params>()..=4096).contains(&size) {
                    return;
                }
            }
            6 => {
                let size = size_of::<libsplit_params>();
                let tail = 1 + script.fault_size.rem_euclid(4000) as usize;
                call.params.params.struct_size = size + tail;
                call.params.tail[tail - 1] = 1;
            }
            16 if !call.params.params.split.is_null() => {
                call.params.params.split = askew(call.params.params.split);
            }
            _ => return,
        }
        self.is_wrong = true;
    }

    fn error(&self, body: impl FnOnce(*mut libsplit_error) -> libsplit_status) -> bool {
        let mut error = libsplit_error {
            struct_size: size_of::<libsplit_error>(),
            status: libsplit_status(77),
            output_index: 77,
            expected: 77,
            actual: 77,
            message: [77; 240],
        };
        let status = match self.fault {
            11 => return body(askew(&raw const error).cast_mut()) != libsplit_status::OK,
            12 => {
                error.struct_size -= 1;
                return body(&raw mut error) != libsplit_status::OK;
            }
            20 => body(null_mut()),
            _ => {
                let status = body(&raw mut error);
                assert_eq!(status, error.status);
                let message = error.message.map(|letter| letter as u8);
                let message = CStr::from_bytes_until_nul(&message).unwrap().to_str().unwrap();
                assert_eq!(status == libsplit_status::OK, message.is_empty());
                status
            }
        };
        assert_ne!(status, libsplit_status::ERROR_INTERNAL);
        status != libsplit_status::OK
    }

    /// Whether the error structure is one that refuses every call.
    fn is_refused(&self) -> bool {
        self.is_wrong || matches!(self.fault, 11 | 12)
    }
}

fn check_count(script: &Script, call: &Call, arguments: &Arguments) {
    let expected = call.ask.as_ref().ok_or(Refused).and_then(rules::answer);
    let mut count = usize::MAX - 7;
    let pointer = match arguments.fault {
        9 => null_mut(),
        10 => askew(&raw const count).cast_mut(),
        _ => &raw mut count,
    };
    let is_error = arguments.error(|error| {
        // SAFETY: every pointer is valid for what its structure says, NULL or askew.
        unsafe { libsplit_count(arguments.input, arguments.params, pointer, error) }
    });
    let is_wrong = arguments.is_refused() || matches!(arguments.fault, 9 | 10);
    match expected {
        Ok(answer) if !is_wrong => {
            assert!(!is_error, "count refuses {script:?}");
            assert_eq!(count as i128, answer.count, "count of {script:?}");
        }
        _ => {
            assert!(is_error, "count accepts {script:?}");
            assert_eq!(count, usize::MAX - 7);
        }
    }
}

/// What is asked of the functions that take outputs; `None` where there would be too many.
fn given(script: &Script, call: &Call) -> Option<Ask> {
    let ask = call.ask.clone().unwrap_or_else(|| Ask {
        op: 0,
        opset: 0,
        dtype: 0,
        shape: vec![],
        axis: 0,
        lengths: None,
        num_outputs: 0,
        keepdims: true,
        flags: 0,
        given: None,
    });
    let counted = rules::answer(&ask).ok().and_then(|answer| usize::try_from(answer.count).ok());
    let given = match counted {
        _ if script.is_wild(wild::OUTPUTS) && script.given != 0 => script.given as usize,
        Some(counted) => counted,
        None => 1 + script.given.rem_euclid(6) as usize,
    };
    let ask = Ask { given: Some(given), ..ask };
    let are_many = rules::answer(&ask).is_ok_and(|answer| answer.count > FEW);
    (!are_many).then_some(ask)
}

/// Descriptors for `given` outputs, or as many as there can be where more are claimed.
fn descriptors(given: usize) -> Vec<libsplit_tensor> {
    vec![ZERO; given.min(FEW as usize)]
}

fn bytes_of<T>(slice: &[T]) -> Vec<u8> {
    // SAFETY: descriptors and numbers have no padding.
    unsafe { std::slice::from_raw_parts(slice.as_ptr().cast(), size_of_val(slice)) }.to_vec()
}

/// What is wrong with the output that `script` describes in place `index`, if outputs are wild.
fn fault_of(script: &Script, index: usize) -> i64 {
    let fault = script.outputs[index % 4].fault;
    match fault {
        _ if script.is_wild(wild::OUTPUTS) => fault,
        UNWANTED => fault,
        _ => 0,
    }
}

const UNWANTED: i64 = 1;
const NULL_SHAPE: i64 = 2;
const ASKEW_SHAPE: i64 = 3;
const ASKEW_STRIDES: i64 = 4;
const OTHER_RANK: i64 = 5;
const OTHER_DTYPE: i64 = 6;
const OTHER_EXTENT: i64 = 7;
const NULL_DATA: i64 = 8;
const ELSEWHERE: i64 = 9;
const OTHER_CAPACITY: i64 = 10;
const NO_STRIDES: i64 = 11;

/// Outputs that are to be filled, with arrays of their exact size.
struct Empty {
    raw: Vec<libsplit_tensor>,
    arrays: Vec<[Vec<i64>; 2]>,
    is_wrong: bool,
}

impl Empty {
    fn new(script: &Script, given: usize, rank: usize) -> Self {
        let mut raw = descriptors(given);
        let mut arrays = vec![];
        let mut is_wrong = false;
        for (index, output) in raw.iter_mut().enumerate() {
            arrays.push([vec![0x5AFE; rank], vec![0x5AFE; rank]]);
            let fault = fault_of(script, index);
            if fault == UNWANTED {
                continue;
            }
            let [shape, strides] = arrays.last_mut().unwrap();
            output.shape = shape.as_mut_ptr();
            output.strides = strides.as_mut_ptr();
            output.capacity = rank as i32;
            output.data = std::ptr::without_provenance_mut(0x77);
            match fault {
                NULL_SHAPE => output.shape = null_mut(),
                ASKEW_SHAPE => output.shape = askew(output.shape).cast_mut(),
                ASKEW_STRIDES => output.strides = askew(output.strides).cast_mut(),
                OTHER_CAPACITY => output.capacity = script.outputs[index % 4].lead as i32,
                NO_STRIDES => output.strides = null_mut(),
                _ => {}
            }
            let is_askew = matches!(fault, NULL_SHAPE | ASKEW_SHAPE | ASKEW_STRIDES);
            is_wrong |= is_askew && rank > 0;
            is_wrong |= usize::try_from(output.capacity).map_or(true, |room| room < rank);
        }
        Self { raw, arrays, is_wrong }
    }
}

fn outputs_of(fault: i64, raw: &mut [libsplit_tensor]) -> *mut libsplit_tensor {
    match fault {
        7 => null_mut(),
        8 => askew(raw.as_ptr()).cast_mut(),
        _ => raw.as_mut_ptr(),
    }
}

/// Whether the pointer to the outputs is NULL or askew, and matters.
fn is_outputs_fault(fault: i64, given: usize) -> bool {
    matches!(fault, 7 | 8) && given > 0
}

/// The shape of an output.
fn shape_of(ask: &Ask, answer: &Answer, len: i64) -> Vec<i64> {
    let mut shape = ask.shape.clone();
    shape[answer.axis] = len;
    if !answer.keeps_axis {
        shape.remove(answer.axis);
    }
    shape
}

fn check_infer(script: &Script, call: &Call, arguments: &Arguments, ask: &Ask) {
    let given = ask.given.unwrap_or(0);
    let answer = if call.ask.is_some() { rules::answer(ask) } else { Err(Refused) };
    let rank = answer.as_ref().map_or(3, |answer| shape_of(ask, answer, 0).len());
    let mut outputs = Empty::new(script, given, rank);
    let before = (bytes_of(&outputs.raw), outputs.arrays.clone());
    let pointer = outputs_of(arguments.fault, &mut outputs.raw);
    let is_error = arguments.error(|error| {
        // SAFETY: as above; where more outputs are claimed than there are, the call is refused.
        unsafe { libsplit_infer(arguments.input, arguments.params, pointer, given, error) }
    });
    let bits = bits_of(ask.dtype).unwrap_or(8);
    let sizes = answer.as_ref().map_err(|_| Refused).and_then(|answer| {
        let lengths = answer.lengths.clone().unwrap_or_default();
        let wanted = lengths.iter().enumerate().filter(|(i, _)| fault_of(script, *i) != UNWANTED);
        let mut shapes = wanted.map(|(_, len)| shape_of(ask, answer, *len));
        shapes.try_for_each(|shape| check_size(&shape, bits))
    });
    let mut is_wrong = arguments.is_refused() || is_outputs_fault(arguments.fault, given);
    is_wrong |= outputs.is_wrong && !outputs.raw.is_empty();
    let (Ok(answer), Ok(()), false) = (answer, sizes, is_wrong) else {
        assert!(is_error, "infer accepts {script:?}");
        assert_eq!((bytes_of(&outputs.raw), outputs.arrays), before);
        return;
    };
    assert!(!is_error, "infer refuses {script:?}");
    for (index, len) in answer.lengths.clone().unwrap_or_default().into_iter().enumerate() {
        let raw = &outputs.raw[index];
        let [room, stride_room] = &outputs.arrays[index];
        if fault_of(script, index) == UNWANTED {
            assert_eq!(bytes_of(&[*raw]), [0; 48]);
            continue;
        }
        let shape = shape_of(ask, &answer, len);
        assert_eq!(*room, shape);
        assert_eq!((raw.rank as usize, i64::from(raw.dtype.0)), (shape.len(), ask.dtype));
        assert_eq!((raw.bit_offset, raw.data as usize), (0, 0x77));
        let is_known = !shape.contains(&-1);
        let elements: i128 = shape.iter().map(|extent| i128::from(*extent)).product();
        let bytes = if is_known { (elements * bits + 7) / 8 } else { 0 };
        assert_eq!(raw.data_bytes as i128, bytes, "{script:?}");
        if !raw.strides.is_null() {
            for (axis, stride) in stride_room.iter().enumerate() {
                // The axis that is dropped would count as 1.
                let inward = &shape[axis + 1..];
                let product = || inward.iter().map(|e| i128::from((*e).max(1))).product();
                let expected: i128 = if inward.contains(&-1) { -1 } else { product() };
                assert_eq!(i128::from(*stride), expected, "{script:?}");
            }
        }
    }
}

fn check_view(script: &Script, call: &Call, arguments: &Arguments, ask: &Ask) {
    let given = ask.given.unwrap_or(0);
    let mut answer = if call.ask.is_some() { rules::answer(ask) } else { Err(Refused) };
    if ask.shape.contains(&-1) || answer.as_ref().is_ok_and(|answer| !answer.known) {
        answer = Err(Refused);
    }
    let rank = answer.as_ref().map_or(3, |answer| shape_of(ask, answer, 0).len());
    let mut outputs = Empty::new(script, given, rank);
    // The input's data is never read: where there is none, any address will do.
    let mut raw = call.input.raw;
    if !call.input.is_placed {
        raw.data = std::ptr::without_provenance_mut(script.input.lead as usize);
        raw.data_bytes = script.input.data_bytes as usize;
    }
    let input = call.input.model.as_ref().map(|model| Tensor {
        data: raw.data as usize,
        data_bytes: raw.data_bytes,
        ..model.clone()
    });
    let before = (bytes_of(&outputs.raw), outputs.arrays.clone());
    let pointer = outputs_of(arguments.fault, &mut outputs.raw);
    let argument = match arguments.fault {
        1 | 2 => arguments.input,
        _ => &raw const raw,
    };
    let is_error = arguments.error(|error| {
        // SAFETY: as for infer; data may be any address.
        unsafe { libsplit_view(argument, arguments.params, pointer, given, error) }
    });
    let span = input.as_ref().ok_or(Refused).and_then(Tensor::span);
    let mut is_wrong = arguments.is_refused() || is_outputs_fault(arguments.fault, given);
    is_wrong |= outputs.is_wrong && !outputs.raw.is_empty();
    is_wrong |= call.input.has_spoilt_strides();
    let pieces = answer.and_then(|answer| span.map(|_| answer)).map(|answer| {
        let input = input.unwrap();
        let pieces = pieces(ask, &answer, &input);
        for (output, piece) in outputs.raw.iter().zip(&pieces) {
            let is_wanted = output.capacity != 0 || !output.shape.is_null();
            is_wrong |= is_wanted
                && output.strides.is_null()
                && !input.is_empty()
                && !piece.is_empty()
                && !piece.is_packed();
        }
        (input, pieces)
    });
    let (Ok((input, pieces)), false) = (pieces, is_wrong) else {
        assert!(is_error, "view accepts {script:?}");
        assert_eq!((bytes_of(&outputs.raw), outputs.arrays), before);
        return;
    };
    assert!(!is_error, "view refuses {script:?}");
    let planned = planned_views(arguments, &raw, given);
    for (index, piece) in pieces.iter().enumerate() {
        let raw = &outputs.raw[index];
        if fault_of(script, index) == UNWANTED {
            assert_eq!(bytes_of(&[*raw]), [0; 48]);
            continue;
        }
        assert_eq!(raw.data as usize, planned[index], "{script:?}");
        let [shape, strides] = &outputs.arrays[index];
        assert_eq!(*shape, piece.shape);
        assert_eq!((raw.rank as usize, i64::from(raw.dtype.0)), (shape.len(), ask.dtype));
        if input.is_empty() || piece.is_empty() {
            assert_eq!(raw.data_bytes, 0);
            continue;
        }
        let seen = Tensor {
            data: raw.data as usize,
            data_bytes: raw.data_bytes,
            shape: shape.clone(),
            strides: (!raw.strides.is_null()).then(|| strides.clone()),
            bit_offset: raw.bit_offset,
            ..piece.clone()
        };
        assert_eq!(seen.axes(), piece.axes(), "{script:?}");
        assert!(raw.bit_offset < 8);
        let bit = |tensor: &Tensor| tensor.data as i128 * 8 + i128::from(tensor.bit_offset);
        assert_eq!(bit(&seen), bit(piece), "{script:?}");
        let range = seen.reach().unwrap();
        assert_eq!(raw.data_bytes as i128, range.end - range.start, "{script:?}");
    }
}

/// Makes a plan in memory of its exact size, and then moves it; `None` if it is refused.
fn plan(
    arguments: &Arguments,
    input: *const libsplit_tensor,
    rank: i32,
    outputs: *const libsplit_tensor,
    given: usize,
) -> Option<Vec<u64>> {
    // More outputs are refused, if nothing else is.
    let size = if given as i128 <= FEW { libsplit_plan_size(rank, given) } else { 0 };
    let mut memory = vec![0x5AFE_u64; size / 8];
    let before = memory.clone();
    let is_error = arguments.error(|error| {
        let (plan, size) = (memory.as_mut_ptr().cast(), size_of_val(memory.as_slice()));
        // SAFETY: as for copy; the memory is as long as is said.
        unsafe { libsplit_plan_init(plan, size, input, arguments.params, outputs, given, error) }
    });
    if is_error {
        assert!(memory == before, "a refused plan has been written");
        return None;
    }
    let moved = memory.clone();
    memory.fill(u64::MAX);
    Some(moved)
}

/// Where a plan that is right says that the pieces lie.
fn planned_views(arguments: &Arguments, input: &libsplit_tensor, given: usize) -> Vec<usize> {
    let plan = plan(arguments, input, input.rank, null(), given).expect("a plan of a view");
    let mut views = vec![null_mut(); given];
    let is_error = arguments.error(|error| {
        // SAFETY: the plan and as many entries as there are outputs.
        unsafe {
            let (plan, views) = (plan.as_ptr().cast(), views.as_mut_ptr());
            libsplit_plan_view(plan, input.data, views, given, error)
        }
    });
    assert!(!is_error, "a plan does not give views");
    views.into_iter().map(|view: *mut c_void| view as usize).collect()
}

/// Memory of any content.
fn check_no_plan(script: &Script) {
    let mut memory: Vec<u64> = noise(512, script.seed)
        .chunks_exact(8)
        .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
        .collect();
    if script.seed & 1 == 0 {
        memory.fill(0);
    }
    let (mut data, given) = ([0u8; 64], script.given as usize % 8);
    let mut views = [data.as_mut_ptr().cast(); 8];
    let (plan, input) = (memory.as_ptr().cast(), data.as_mut_ptr().cast());
    // SAFETY: what is no plan is not looked at further.
    let (copied, viewed) = unsafe {
        (
            libsplit_plan_copy(plan, input, views.as_ptr(), given, null(), null_mut()),
            libsplit_plan_view(plan, input, views.as_mut_ptr(), given, null_mut()),
        )
    };
    assert_eq!([copied, viewed], [libsplit_status::ERROR_PLAN; 2]);
}

/// The pieces where they lie in the input. Data of a piece without elements means nothing.
fn pieces(ask: &Ask, answer: &Answer, input: &Tensor) -> Vec<Tensor> {
    let strides = input.strides.clone().unwrap_or_else(|| packed_strides(&input.shape));
    let mut begin = 0i128;
    let lengths = answer.lengths.clone().unwrap_or_default();
    lengths
        .into_iter()
        .map(|len| {
            let shape = shape_of(ask, answer, len);
            let mut own = strides.clone();
            if !answer.keeps_axis {
                own.remove(answer.axis);
            }
            let step = i128::from(strides[answer.axis]) * input.bits;
            let bit = i128::from(input.bit_offset) + if begin > 0 { begin * step } else { 0 };
            begin += i128::from(len);
            Tensor {
                data: (input.data as i128 + bit.div_euclid(8)) as usize,
                data_bytes: 0,
                shape,
                strides: Some(own),
                bits: input.bits,
                bit_offset: bit.rem_euclid(8) as u32,
            }
        })
        .collect()
}

/// An executor that runs tasks in its own way.
struct Pool {
    way: i64,
    calls: usize,
}

unsafe extern "C" fn parallel_for(
    pool: *mut c_void,
    task: libsplit_task_fn,
    context: *mut c_void,
    count: usize,
) -> i32 {
    // SAFETY: the pool of the call below, and its tasks.
    unsafe {
        let pool = &mut *pool.cast::<Pool>();
        pool.calls += 1;
        for index in 0..count {
            match pool.way {
                1 => task.unwrap()(context, index),
                2 => {
                    task.unwrap()(context, count - 1 - index);
                    task.unwrap()(context, count - 1 - index / 2);
                }
                _ => return 5,
            }
        }
    }
    0
}

fn check_copy(script: &Script, call: &Call, arguments: &Arguments, ask: &Ask) {
    let given = ask.given.unwrap_or(0);
    let mut answer = if call.ask.is_some() { rules::answer(ask) } else { Err(Refused) };
    if ask.shape.contains(&-1) || answer.as_ref().is_ok_and(|answer| !answer.known) {
        answer = Err(Refused);
    }
    let lengths = answer.as_ref().map_or(vec![1; given.min(FEW as usize)], |answer| {
        answer.lengths.clone().unwrap_or_default()
    });
    let mut targets: Vec<Option<Described>> = vec![];
    let mut raw = descriptors(given);
    for (index, output) in raw.iter_mut().enumerate() {
        let shape = match (&answer, lengths.get(index)) {
            (Ok(answer), Some(len)) => shape_of(ask, answer, *len),
            _ => vec![2; 2],
        };
        let target = target(script, ask, index, shape, &call.input);
        *output = target.as_ref().map_or(*output, |target| target.raw);
        targets.push(target);
    }
    let wanted = || targets.iter().flatten();
    let size: i128 = wanted().filter_map(|target| target.model.as_ref()).map(size_of_tensor).sum();
    if size > 2 * most_bytes(script) {
        // Too long for the model. What is refused is refused without a look at the size.
        return;
    }
    let mut pool = Pool { way: script.executor.rem_euclid(4), calls: 0 };
    let mut executor = libsplit_executor {
        struct_size: size_of::<libsplit_executor>(),
        parallel_for: Some(parallel_for),
        pool: (&raw mut pool).cast(),
        max_tasks: script.max_tasks as u32,
        flags: 0,
    };
    match arguments.fault {
        13 => executor.struct_size -= 1,
        14 => executor.flags = 1,
        15 => executor.parallel_for = None,
        _ => {}
    }
    let executor = match arguments.fault {
        17 => askew(&raw const executor),
        13..=15 => &raw const executor,
        _ if pool.way == 0 => null(),
        _ => &raw const executor,
    };
    let mut is_wrong = arguments.is_refused() || is_outputs_fault(arguments.fault, given);
    is_wrong |= matches!(arguments.fault, 13 | 14 | 15 | 17);

    let before = Snapshot::new(call, &targets, &raw);
    let pointer = outputs_of(arguments.fault, &mut raw);
    let is_error = arguments.error(|error| {
        // SAFETY: as for infer; every buffer is as long as its descriptor says.
        unsafe { libsplit_copy(arguments.input, arguments.params, pointer, given, executor, error) }
    });
    let after = Snapshot::new(call, &targets, &raw);
    let plan = plan(arguments, arguments.input, call.input.raw.rank, pointer, given);
    assert!(is_error || plan.is_some(), "a plan refuses {script:?}");
    let input = call.input.model.as_ref();
    let span = input.ok_or(Refused).and_then(Tensor::span);
    is_wrong |= call.input.has_spoilt_strides();
    if pool.calls > 0 && pool.way == 3 {
        assert!(is_error, "a failed executor goes unnoticed: {script:?}");
        return;
    }
    let checked = answer.and_then(|answer| {
        span?;
        let pieces = pieces(ask, &answer, input.ok_or(Refused)?);
        for (target, piece) in targets.iter().zip(&pieces) {
            if let Some(target) = target {
                check_target(ask, target, piece)?;
            }
        }
        Ok(pieces)
    });
    let (Ok(pieces), false) = (checked, is_wrong) else {
        assert!(is_error, "copy accepts {script:?}");
        assert!(before == after, "a refused copy has changed something: {script:?}");
        return;
    };
    let meeting = meeting(call, &targets, &pieces);
    if meeting == Meeting::Overlap || is_error {
        assert!(is_error, "copy accepts an overlap: {script:?}");
        assert!(meeting != Meeting::Apart, "copy refuses {script:?}");
        assert!(before == after, "a refused copy has changed something: {script:?}");
        return;
    }
    let mut expected = before.clone();
    for (target, piece) in targets.iter().zip(&pieces) {
        if let Some(target) = target.as_ref().and_then(|target| target.model.as_ref()) {
            expected.copy(target, piece);
        }
    }
    assert!(expected == after, "copy gives other bytes: {script:?}");

    before.restore();
    let plan = plan.unwrap();
    // What is not wanted or has no elements is not looked at.
    let address = |target: &Option<Described>| {
        let is_written = |target: &&Described| target.model.as_ref().is_some_and(|m| !m.is_empty());
        target.as_ref().filter(is_written).map_or(null_mut(), |target| target.raw.data)
    };
    let addresses: Vec<*mut c_void> = targets.iter().map(address).collect();
    let data = call.input.raw.data;
    let is_error = arguments.error(|error| {
        // SAFETY: as for copy.
        unsafe {
            let (plan, outputs) = (plan.as_ptr().cast(), addresses.as_ptr());
            libsplit_plan_copy(plan, data, outputs, given, executor, error)
        }
    });
    assert!(!is_error, "a plan does not copy {script:?}");
    let planned = Snapshot::new(call, &targets, &raw);
    assert!(expected == planned, "a plan gives other bytes: {script:?}");
}

fn size_of_tensor(tensor: &Tensor) -> i128 {
    if tensor.span().is_err() {
        return 0;
    }
    (tensor.elements() * tensor.bits + 7) / 8
}

/// The descriptor of an output to be written, with a buffer, or `None` for one not wanted.
fn target(
    script: &Script,
    ask: &Ask,
    index: usize,
    mut shape: Vec<i64>,
    input: &Described,
) -> Option<Described> {
    let mut numbers = script.outputs[index % 4].clone();
    let fault = fault_of(script, index);
    if fault == UNWANTED {
        return None;
    }
    numbers.fault = 0;
    let mut dtype = ask.dtype as i32;
    if bits_of(ask.dtype).is_some_and(|bits| bits < 8) && !script.is_wild(wild::OUTPUTS) {
        (numbers.layout, numbers.bit_offset) = (numbers.layout.rem_euclid(2), 0);
    }
    match fault {
        OTHER_DTYPE => dtype = numbers.dtype as i32,
        OTHER_EXTENT if !shape.is_empty() => shape[0] = numbers.dtype,
        _ => {}
    }
    let rank = if fault == OTHER_RANK { numbers.dtype as i32 } else { shape.len() as i32 };
    if fault == OTHER_RANK {
        let len = usize::try_from(rank).ok().filter(|rank| *rank <= 64).unwrap_or(8);
        shape.resize(len, 1);
    }
    let script = &Script { seed: !script.seed, ..script.clone() };
    let may_repeat = script.is_wild(wild::OUTPUTS);
    let mut target =
        Described::new(script, &numbers, dtype, rank, shape, (may_repeat, most_bytes(script)));
    match fault {
        NULL_SHAPE => target.raw.shape = null_mut(),
        ASKEW_SHAPE => target.raw.shape = askew(target.raw.shape).cast_mut(),
        ASKEW_STRIDES if !target.raw.strides.is_null() => {
            target.raw.strides = askew(target.raw.strides).cast_mut();
        }
        NULL_DATA => target.raw.data = null_mut(),
        ELSEWHERE => target.move_into(input, numbers.dtype),
        _ => {}
    }
    let has_arrays = rank > 0;
    let shape_is_wrong = target.raw.shape.is_null() || !target.raw.shape.is_aligned();
    target.is_spoilt = has_arrays && (shape_is_wrong || !target.raw.strides.is_aligned());
    target.agree();
    Some(target)
}

impl Described {
    /// Puts an output into the input's buffer, if it fits in there.
    fn move_into(&mut self, input: &Self, ahead: i64) {
        let Some(model) = self.model.as_ref().filter(|model| model.span().is_ok()) else { return };
        let (false, Ok(range)) = (model.is_empty(), model.reach()) else { return };
        let room = input.buffer.len() as i128 - (range.end - range.start);
        if room >= 0 && self.is_placed {
            let begin = i128::from(ahead).rem_euclid(room + 1);
            let base = input.buffer.as_ptr() as i128;
            let data = (base + begin - range.start) as usize;
            self.raw.data = input.buffer.as_ptr().with_addr(data).cast_mut().cast();
        }
    }
}

fn check_target(ask: &Ask, target: &Described, piece: &Tensor) -> Result<(), Refused> {
    let model = target.model.as_ref().filter(|_| !target.is_spoilt).ok_or(Refused)?;
    if i64::from(target.raw.dtype.0) != ask.dtype || model.shape != piece.shape {
        return Err(Refused);
    }
    if model.span()?.is_none() {
        return Ok(());
    }
    let is_writable = if model.bits < 8 {
        model.bit_offset == 0 && model.is_packed()
    } else {
        model.is_packed() || model.strides_nest()
    };
    if is_writable {
        Ok(())
    } else {
        Err(Refused)
    }
}

/// How outputs lie to each other, to the input and to the lengths.
#[derive(PartialEq)]
enum Meeting {
    Apart,
    /// Their spans meet, their bytes do not.
    Interleaved,
    Overlap,
}

fn meeting(call: &Call, targets: &[Option<Described>], pieces: &[Tensor]) -> Meeting {
    let model = |described: &Described| {
        described.model.clone().filter(|model| matches!(model.span(), Ok(Some(_))))
    };
    let written: Vec<Tensor> = targets.iter().flatten().filter_map(model).collect();
    let mut read: Vec<Tensor> = model(&call.input).into_iter().collect();
    read.extend(call.split.as_deref().and_then(model));
    let all: Vec<_> = written.iter().chain(&read).collect();
    let meet = |a: &Tensor, b: &Tensor| {
        let (Ok(Some(a)), Ok(Some(b))) = (a.span(), b.span()) else { return false };
        a.start.max(b.start) < a.end.min(b.end)
    };
    let meets = |index: usize| all[index + 1..].iter().any(|other| meet(all[index], other));
    if !(0..written.len()).any(meets) {
        return Meeting::Apart;
    }
    // Byte by byte. What of the input is read is what the pieces have of it; an output that
    // lies over another part of it must be refused as well, which is not looked at here.
    let mut owners: HashMap<i128, usize> = HashMap::new();
    for (index, tensor) in written.iter().enumerate() {
        for byte in bytes_touched(tensor) {
            if owners.insert(byte, index).is_some_and(|other| other != index) {
                return Meeting::Overlap;
            }
        }
    }
    let wanted = targets.iter().zip(pieces).filter(|(target, _)| target.is_some());
    let list = call.split.as_deref().and_then(model).filter(|list| list.elements() < 5000);
    let mut read = wanted.map(|(_, piece)| piece).chain(&list);
    if read.any(|tensor| bytes_touched(tensor).any(|byte| owners.contains_key(&byte))) {
        return Meeting::Overlap;
    }
    Meeting::Interleaved
}

fn bytes_touched(tensor: &Tensor) -> impl Iterator<Item = i128> {
    let bits = tensor.bits;
    let touched = move |bit: i128| bit.div_euclid(8)..=(bit + bits - 1).div_euclid(8);
    tensor.positions().into_iter().flat_map(touched)
}

/// All the memory of a copy.
#[derive(Clone, PartialEq)]
struct Snapshot {
    /// By address: the input's buffer, then those of the outputs.
    buffers: Vec<(usize, Vec<u8>)>,
    arrays: Vec<Vec<i64>>,
    descriptors: Vec<u8>,
}

impl Snapshot {
    fn new(call: &Call, targets: &[Option<Described>], raw: &[libsplit_tensor]) -> Self {
        let split = call.split.as_deref();
        let all = || [&call.input].into_iter().chain(split).chain(targets.iter().flatten());
        let mut descriptors = bytes_of(raw);
        descriptors.extend(bytes_of(&[call.input.raw]));
        Self {
            buffers: all().map(|one| (one.buffer.as_ptr() as usize, one.buffer.clone())).collect(),
            arrays: all().flat_map(|one| [one.shape.clone(), one.strides.clone()]).collect(),
            descriptors,
        }
    }

    /// Makes the buffers again what they were.
    fn restore(&self) {
        for (base, bytes) in &self.buffers {
            let buffer = std::ptr::with_exposed_provenance_mut(*base);
            // SAFETY: the buffers are there, and nobody looks at them meanwhile.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), buffer, bytes.len()) };
        }
    }

    fn find(&self, byte: i128) -> (usize, usize) {
        let holds = |(base, bytes): &(usize, Vec<u8>)| {
            usize::try_from(byte - *base as i128).ok().filter(|at| *at < bytes.len())
        };
        let mut places = self.buffers.iter().enumerate();
        places.find_map(|(index, buffer)| Some((index, holds(buffer)?))).expect("a byte of ours")
    }

    /// Copies a piece, element by element and bit by bit; bits past the last become 0.
    fn copy(&mut self, target: &Tensor, piece: &Tensor) {
        if target.is_empty() {
            return;
        }
        let span = target.span().unwrap().unwrap();
        let last = span.end - 1;
        if target.bits < 8 {
            let (buffer, at) = self.find(last);
            let used = (target.elements() * target.bits).rem_euclid(8);
            if used != 0 {
                self.buffers[buffer].1[at] &= (1 << used) - 1;
            }
        }
        // Each lies in one buffer.
        let (to_buffer, _) = self.find(span.start);
        let Some(first) = piece.positions().first().copied() else { return };
        let (from_buffer, _) = self.find(first.div_euclid(8));
        let base = |buffer: usize| self.buffers[buffer].0 as i128 * 8;
        let (from_base, to_base) = (base(from_buffer), base(to_buffer));
        for (to, from) in target.positions().into_iter().zip(piece.positions()) {
            let (to, from) = ((to - to_base) as usize, (from - from_base) as usize);
            let bits = target.bits as usize;
            if bits >= 8 {
                for byte in 0..bits / 8 {
                    let value = self.buffers[from_buffer].1[from / 8 + byte];
                    self.buffers[to_buffer].1[to / 8 + byte] = value;
                }
                continue;
            }
            for bit in 0..bits {
                let (from, to) = (from + bit, to + bit);
                let value = self.buffers[from_buffer].1[from / 8] >> (from % 8) & 1;
                let slot = &mut self.buffers[to_buffer].1[to / 8];
                *slot = *slot & !(1 << (to % 8)) | value << (to % 8);
            }
        }
    }
}
