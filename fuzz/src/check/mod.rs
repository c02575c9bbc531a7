//! The functions, each compared with the model: what must be refused is refused and changes
//! nothing; everything else returns exactly what the model says, also by a plan.

mod copy;
mod describe;
mod memory;

use crate::call::{askew, noise, Call, ZERO};
use crate::rules::{self, Answer, Ask, FEW};
use crate::script::{wild, Script};
use crate::tensor::{packed_strides, Refused, Tensor};
use copy::check_copy;
use describe::{check_infer, check_view};
use libsplit::ffi::{
    libsplit_count, libsplit_error, libsplit_params, libsplit_plan_copy, libsplit_plan_init,
    libsplit_plan_size, libsplit_plan_view, libsplit_status, libsplit_tensor,
};
use std::ffi::CStr;
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

/// What every function is given.
struct Arguments {
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    fault: i64,
    /// Whether something is wrong that the model does not know about.
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
            status: libsplit_status(77),
            output_index: 77,
            expected: 77,
            actual: 77,
            message: [77; 240],
            ..libsplit_error::INIT
        };
        let status = match self.fault {
            11 => return body(askew(&raw const error).cast_mut()) != libsplit_status::OK,
            12 => {
                error.struct_size = size_of::<libsplit_error>() - 1;
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

    /// Returns whether the error structure is one that makes every call fail.
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

/// Returns what is requested of the functions that take outputs; `None` if there would be too many.
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

/// Returns descriptors for `given` outputs, or as many as possible if more are claimed.
fn descriptors(given: usize) -> Vec<libsplit_tensor> {
    vec![ZERO; given.min(FEW as usize)]
}

fn bytes_of<T>(slice: &[T]) -> Vec<u8> {
    // SAFETY: descriptors and numbers have no padding.
    unsafe { std::slice::from_raw_parts(slice.as_ptr().cast(), size_of_val(slice)) }.to_vec()
}

/// Returns what is wrong with the output that `script` describes at `index`, if outputs are wild.
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

/// Returns memory of any content.
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
    // SAFETY: memory that is no plan is not read any further.
    let (copied, viewed) = unsafe {
        (
            libsplit_plan_copy(plan, input, views.as_ptr(), given, null(), null_mut()),
            libsplit_plan_view(plan, input, views.as_mut_ptr(), given, null_mut()),
        )
    };
    assert_eq!([copied, viewed], [libsplit_status::ERROR_PLAN; 2]);
}

fn outputs_of(fault: i64, raw: &mut [libsplit_tensor]) -> *mut libsplit_tensor {
    match fault {
        7 => null_mut(),
        8 => askew(raw.as_ptr()).cast_mut(),
        _ => raw.as_mut_ptr(),
    }
}

/// Returns whether the pointer to the outputs is NULL or misaligned, and matters.
fn is_outputs_fault(fault: i64, given: usize) -> bool {
    matches!(fault, 7 | 8) && given > 0
}

/// Returns whether there are outputs, none of which is wanted.
fn is_none_wanted(outputs: &[libsplit_tensor]) -> bool {
    let is_unwanted = |output: &libsplit_tensor| bytes_of(&[*output]).iter().all(|byte| *byte == 0);
    !outputs.is_empty() && outputs.iter().all(is_unwanted)
}

/// Returns the shape of an output.
fn shape_of(ask: &Ask, answer: &Answer, len: i64) -> Vec<i64> {
    let mut shape = ask.shape.clone();
    shape[answer.axis] = len;
    if !answer.keeps_axis {
        shape.remove(answer.axis);
    }
    shape
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
        // SAFETY: as for copy; the memory is as long as it is said to be.
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

/// Returns the pieces where they lie in the input. Data of a piece without elements means nothing.
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

/// Returns what the model says, if extents and lengths must be known.
fn known_answer(call: &Call, ask: &Ask) -> Result<Answer, Refused> {
    let answer = call.ask.as_ref().ok_or(Refused).and_then(|_| rules::answer(ask))?;
    if ask.shape.contains(&-1) || !answer.known {
        return Err(Refused);
    }
    Ok(answer)
}
