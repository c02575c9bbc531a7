//! Random splits of every operator, type and layout through the C functions, against an oracle
//! that walks the elements index by index, bit by bit.

// Calls into C functions are all unsafe, and what they get is made right above them.
#![allow(clippy::undocumented_unsafe_blocks, clippy::borrow_as_ptr)]

mod ask;
#[path = "../common/mod.rs"]
mod common;
mod memory;
mod plans;
mod scene;
mod tasks;

use ask::{base, list, partition, Ask};
use common::{copy, count, infer, view, Tensor};
use libsplit::ffi::{libsplit_op, libsplit_params};
use memory::{bits_of, usize_of};
use proptest::prelude::*;
use proptest::sample::{select, Index};
use scene::{check_outputs, descriptors, place_input, place_outputs, scene, Layout, Placed, Scene};

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

fn check_copy(scene: &Scene, params: &libsplit_params, placed: &Placed) {
    let (targets, skipped) = place_outputs(scene, placed);
    let outputs = descriptors(targets.iter().map(|target| &target.tensor), skipped);
    copy(&placed.tensor, params, &outputs, None).unwrap();
    check_outputs(&targets);
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
