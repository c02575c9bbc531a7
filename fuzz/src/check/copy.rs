//! libsplit_copy(), and a plan that copies.

use super::memory::{meeting, Meeting, Snapshot};
use super::{
    descriptors, fault_of, is_none_wanted, is_outputs_fault, known_answer, outputs_of, pieces,
    plan, shape_of, Arguments, ASKEW_SHAPE, ASKEW_STRIDES, ELSEWHERE, NULL_DATA, NULL_SHAPE,
    OTHER_DTYPE, OTHER_EXTENT, OTHER_RANK, UNWANTED,
};
use crate::call::{askew, most_bytes, Call, Described};
use crate::rules::{Answer, Ask};
use crate::script::{wild, Script};
use crate::tensor::{bits_of, Refused, Tensor};
use libsplit::ffi::{
    libsplit_copy, libsplit_executor, libsplit_plan_copy, libsplit_task_fn, libsplit_tensor,
};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

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

impl Pool {
    /// Returns the executor, spoilt according to the fault.
    fn executor(&mut self, script: &Script, fault: i64) -> libsplit_executor {
        let mut executor = libsplit_executor {
            max_tasks: script.max_tasks as u32,
            ..libsplit_executor::init(Some(parallel_for), std::ptr::from_mut(self).cast())
        };
        match fault {
            13 => executor.struct_size -= 1,
            14 => executor.flags = 1,
            15 => executor.parallel_for = None,
            _ => {}
        }
        executor
    }
}

/// Returns the outputs, spoilt according to the script, and their descriptors.
fn targets(
    script: &Script,
    call: &Call,
    ask: &Ask,
    answer: Option<&Answer>,
) -> (Vec<Option<Described>>, Vec<libsplit_tensor>) {
    let mut raw = descriptors(ask.given.unwrap_or(0));
    let lengths = answer.and_then(|answer| answer.lengths.as_deref()).unwrap_or_default();
    let targets = raw.iter_mut().enumerate().map(|(index, output)| {
        let shape = match (answer, lengths.get(index)) {
            (Some(answer), Some(len)) => shape_of(ask, answer, *len),
            _ => vec![2; 2],
        };
        let target = target(script, ask, index, shape, &call.input);
        *output = target.as_ref().map_or(*output, |target| target.raw);
        target
    });
    (targets.collect(), raw)
}

/// Returns the pieces of a valid input, if all outputs are valid.
fn checked(
    call: &Call,
    ask: &Ask,
    answer: &Answer,
    targets: &[Option<Described>],
) -> Result<Vec<Tensor>, Refused> {
    let input = call.input.model.as_ref().ok_or(Refused)?;
    input.span()?;
    let pieces = pieces(ask, answer, input);
    for (target, piece) in targets.iter().zip(&pieces) {
        if let Some(target) = target {
            check_target(ask, target, piece)?;
        }
    }
    Ok(pieces)
}

pub(super) fn check_copy(script: &Script, call: &Call, arguments: &Arguments, ask: &Ask) {
    let given = ask.given.unwrap_or(0);
    let answer = known_answer(call, ask);
    let (targets, mut raw) = targets(script, call, ask, answer.as_ref().ok());
    let models = targets.iter().flatten().filter_map(|target| target.model.as_ref());
    if models.map(size_of_tensor).sum::<i128>() > 2 * most_bytes(script) {
        // Too long for the model. What is refused is refused without regard to the size.
        return;
    }
    let mut pool = Pool { way: script.executor.rem_euclid(4), calls: 0 };
    let way = pool.way;
    let executor = pool.executor(script, arguments.fault);
    let executor = match arguments.fault {
        17 => askew(&raw const executor),
        13..=15 => &raw const executor,
        _ if way == 0 => null(),
        _ => &raw const executor,
    };
    let is_wrong = arguments.is_refused()
        || is_outputs_fault(arguments.fault, given)
        || matches!(arguments.fault, 13 | 14 | 17)
        || is_none_wanted(&raw)
        || call.input.has_spoilt_strides();

    let before = Snapshot::new(call, &targets, &raw);
    let pointer = outputs_of(arguments.fault, &mut raw);
    let is_error = arguments.error(|error| {
        // SAFETY: as for infer; every buffer is as long as its descriptor says.
        unsafe { libsplit_copy(arguments.input, arguments.params, pointer, given, executor, error) }
    });
    let after = Snapshot::new(call, &targets, &raw);
    let plan = plan(arguments, arguments.input, call.input.raw.rank, pointer, given);
    assert!(is_error || plan.is_some(), "a plan refuses {script:?}");
    if pool.calls > 0 && way == 3 {
        assert!(is_error, "a failed executor goes unnoticed: {script:?}");
        return;
    }
    let pieces = answer.and_then(|answer| checked(call, ask, &answer, &targets));
    let (Ok(pieces), false) = (pieces, is_wrong) else {
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
    run_plan(arguments, call, &plan.unwrap(), &targets, executor);
    let planned = Snapshot::new(call, &targets, &raw);
    assert!(expected == planned, "a plan gives other bytes: {script:?}");
}

/// Copies by a valid plan.
fn run_plan(
    arguments: &Arguments,
    call: &Call,
    plan: &[u64],
    targets: &[Option<Described>],
    executor: *const libsplit_executor,
) {
    // Outputs that are not wanted or have no elements are not looked at.
    let address = |target: &Option<Described>| {
        let is_written = |target: &&Described| target.model.as_ref().is_some_and(|m| !m.is_empty());
        target.as_ref().filter(is_written).map_or(null_mut(), |target| target.raw.data)
    };
    let addresses: Vec<*mut c_void> = targets.iter().map(address).collect();
    let data = call.input.raw.data;
    let is_error = arguments.error(|error| {
        let (plan, outputs, count) = (plan.as_ptr().cast(), addresses.as_ptr(), addresses.len());
        // SAFETY: as for copy.
        unsafe { libsplit_plan_copy(plan, data, outputs, count, executor, error) }
    });
    assert!(!is_error, "a plan does not copy");
}

fn size_of_tensor(tensor: &Tensor) -> i128 {
    if tensor.span().is_err() {
        return 0;
    }
    (tensor.elements() * tensor.bits + 7) / 8
}

/// Returns the descriptor of an output to be written, with a buffer; `None` if it is not wanted.
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
    /// Puts an output into the input's buffer, if it fits there.
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
    // This holds without elements, too.
    if model.bit_offset != 0 {
        return Err(Refused);
    }
    if model.span()?.is_none() {
        return Ok(());
    }
    let is_writable =
        if model.bits < 8 { model.is_packed() } else { model.is_packed() || model.strides_nest() };
    if is_writable {
        Ok(())
    } else {
        Err(Refused)
    }
}
