//! infer and view, and what a plan returns for views.

use super::{
    bytes_of, descriptors, fault_of, is_none_wanted, is_outputs_fault, known_answer, outputs_of,
    pieces, plan, shape_of, Arguments, ASKEW_SHAPE, ASKEW_STRIDES, NO_STRIDES, NULL_SHAPE,
    OTHER_CAPACITY, UNWANTED,
};
use crate::call::{askew, Call};
use crate::rules::{self, Ask};
use crate::script::Script;
use crate::tensor::{bits_of, check_size, Refused, Tensor};
use libsplit::ffi::{libsplit_infer, libsplit_plan_view, libsplit_tensor, libsplit_view};
use std::ffi::c_void;
use std::ptr::{null, null_mut};

/// Outputs that are to be filled in, with arrays of their exact size.
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

pub(super) fn check_infer(script: &Script, call: &Call, arguments: &Arguments, ask: &Ask) {
    let given = ask.given.unwrap_or(0);
    let answer = if call.ask.is_some() { rules::answer(ask) } else { Err(Refused) };
    let rank = answer.as_ref().map_or(3, |answer| shape_of(ask, answer, 0).len());
    let mut outputs = Empty::new(script, given, rank);
    let before = (bytes_of(&outputs.raw), outputs.arrays.clone());
    let pointer = outputs_of(arguments.fault, &mut outputs.raw);
    let is_error = arguments.error(|error| {
        // SAFETY: as above; if more outputs are claimed than there are, the call is refused.
        unsafe { libsplit_infer(arguments.input, arguments.params, pointer, given, error) }
    });
    let bits = bits_of(ask.dtype).unwrap_or(8);
    let sizes = answer.as_ref().map_err(|_| Refused).and_then(|answer| {
        let lengths = answer.lengths.clone().unwrap_or_default();
        let wanted = lengths.iter().enumerate().filter(|(i, _)| fault_of(script, *i) != UNWANTED);
        let mut shapes = wanted.map(|(_, len)| shape_of(ask, answer, *len));
        shapes.try_for_each(|shape| check_size(&shape, bits))
    });
    let mut is_wrong = arguments.is_refused()
        || is_outputs_fault(arguments.fault, given)
        || is_none_wanted(&outputs.raw);
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

pub(super) fn check_view(script: &Script, call: &Call, arguments: &Arguments, ask: &Ask) {
    let given = ask.given.unwrap_or(0);
    let answer = known_answer(call, ask);
    let rank = answer.as_ref().map_or(3, |answer| shape_of(ask, answer, 0).len());
    let mut outputs = Empty::new(script, given, rank);
    // The input's data is never read: if there is none, any address will do.
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
    let mut is_wrong = arguments.is_refused()
        || is_outputs_fault(arguments.fault, given)
        || is_none_wanted(&outputs.raw);
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

/// Checks where a valid plan says that the pieces lie.
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
