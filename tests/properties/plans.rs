//! Plans do, and refuse, what copy and view do.

use crate::common::{call, copy, view, Failure, Tensor};
use crate::scene::{
    check_outputs, descriptors, overwrite, place_input, place_outputs, scene, Scene,
};
use crate::{config, tasks::backwards_on};
use libsplit::ffi::{
    libsplit_executor, libsplit_op, libsplit_params, libsplit_plan_copy, libsplit_plan_init,
    libsplit_plan_size, libsplit_plan_view, libsplit_tensor,
};
use proptest::prelude::*;
use proptest::sample::select;
use std::ffi::c_void;
use std::ptr::{from_ref, null};

/// A plan in memory of its exact size. `outputs` may be NULL.
pub fn plan(
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

pub fn run_plan(
    plan: &[u64],
    data: *const c_void,
    addresses: &[*mut c_void],
    executor: Option<&libsplit_executor>,
) -> Result<(), Failure> {
    call(|error| unsafe {
        let (plan, executor) = (plan.as_ptr().cast(), executor.map_or(null(), from_ref));
        libsplit_plan_copy(plan, data, addresses.as_ptr(), addresses.len(), executor, error)
    })
}

/// An address that must not be looked at.
pub fn nowhere<T>(seed: u64) -> *mut T {
    std::ptr::without_provenance_mut(usize::from(seed & 2 == 0))
}

/// A plan does what copy and view do; also one that has moved, and whose input, lengths and outputs
/// have been overwritten since.
pub fn check_plan(scene: &Scene) {
    let outputs = scene.ask.expected.len();
    let placed = place_input(scene);
    let (targets, skipped) = place_outputs(scene, &placed);
    // Neither data matters.
    let mut input = placed.tensor.clone().at(nowhere(scene.seed), 1);
    let mut tensors: Vec<Tensor> = targets.iter().map(|target| target.tensor.clone()).collect();
    for tensor in &mut tensors {
        tensor.data = nowhere(scene.seed);
    }
    let mut made_of = descriptors(tensors.iter(), skipped);
    let all_packed = skipped.is_none() && !scene.strided_outputs && scene.seed & 4 == 0;
    let given = if all_packed { null() } else { made_of.as_ptr() };
    let mut made = scene.with_params(|params| plan(&input, params, given, outputs)).unwrap();
    overwrite(&mut input);
    tensors.iter_mut().for_each(overwrite);
    made_of.fill(Tensor::unwanted());
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
    let executor = Some(&executor).filter(|_| scene.seed & 8 != 0);
    run_plan(&moved, data, &addresses, executor).unwrap();
    check_outputs(&targets);
}

/// What may be wrong about a call, whatever its addresses.
#[derive(Debug, Clone, Copy)]
pub enum Wrong {
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

pub fn wrong() -> impl Strategy<Value = Wrong> {
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

pub fn spoil_params(wrong: Wrong, params: &libsplit_params) -> libsplit_params {
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

pub fn spoil_input(wrong: Wrong, input: &mut Tensor) {
    match wrong {
        Wrong::InputDType => input.dtype = 27,
        Wrong::InputExtent(extent) => input.shape[0] = extent,
        Wrong::InputStrides => input.strides = Some(vec![i64::MAX; input.shape.len()]),
        Wrong::InputBitOffset => input.bit_offset = 1,
        _ => {}
    }
}

pub fn spoil_output(wrong: Wrong, output: &mut Tensor) {
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
pub fn check_errors_of_plan(scene: &Scene, wrong: Wrong) {
    let mut placed = place_input(scene);
    let outputs = scene.ask.expected.len();
    let (mut targets, _) = place_outputs(scene, &placed);
    if outputs > 0 {
        spoil_output(wrong, &mut targets[scene.unwanted.index(outputs)].tensor);
    }
    spoil_input(wrong, &mut placed.tensor);
    let input = &placed.tensor;
    let mut outputs = descriptors(targets.iter().map(|target| &target.tensor), None);
    if matches!(wrong, Wrong::OneOutputMore) {
        outputs.push(Tensor::unwanted());
    }
    scene.with_params(|params| {
        let params = spoil_params(wrong, params);
        let copied = copy(input, &params, &outputs, None);
        let planned = plan(input, &params, outputs.as_ptr(), outputs.len());
        assert_eq!(planned.map(|_| ()), copied);
    });
}

proptest! {
    #![proptest_config(config(3000))]

    #[test]
    fn a_plan_does_what_copy_and_view_do(scene in scene()) {
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
}
