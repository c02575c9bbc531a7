//! Calls that once did harm, or would in other libraries: each returns an error or a right result.

// Calls into C functions are all unsafe, and their arguments are made right above them.
#![allow(clippy::undocumented_unsafe_blocks, clippy::borrow_as_ptr)]

mod common;

use common::{call, copy, count, infer, params, view, Tensor};
use libsplit::ffi::{
    libsplit_copy, libsplit_infer, libsplit_op, libsplit_params, libsplit_plan_copy,
    libsplit_plan_init, libsplit_plan_size, libsplit_status, libsplit_tensor, libsplit_view,
};
use std::ptr::null;

const OVERLAP: i32 = libsplit_status::ERROR_OVERLAP.0;

/// Two halves of eight rows of bytes.
fn halves() -> libsplit_params {
    libsplit_params { num_outputs: 2, ..params(libsplit_op::ONNX_SPLIT, 18) }
}

/// The first output has rows on both sides of the second, and one of them on the second's strides.
#[test]
fn data_of_an_output_may_not_lie_over_the_strides_of_another_between_its_rows() {
    let data = [0x41u8; 8];
    let input = Tensor::new(2, &[4, 2]).at(data.as_ptr(), 8);
    let mut memory = [0i64; 16];
    memory[8..10].copy_from_slice(&[2, 1]);
    let before = memory;
    let (mut shape, mut strides) = ([2i64, 2], [64i64, 1]);
    let at = memory.as_mut_ptr();
    let outputs = [(at, strides.as_mut_ptr()), (at.wrapping_add(2), at.wrapping_add(8))];
    let outputs = outputs.map(|(data, strides)| libsplit_tensor {
        data: data.cast(),
        shape: shape.as_mut_ptr(),
        strides,
        rank: 2,
        dtype: input.descriptor().dtype,
        ..Tensor::unwanted()
    });
    let failure = copy(&input, &halves(), &outputs, None);
    assert_eq!(failure.unwrap_err().status, OVERLAP);
    assert_eq!(memory, before);
}

/// Takes minutes if every entry is looked at.
#[test]
fn a_number_repeated_by_stride_0_is_summed_at_once() {
    let entries = i64::from(i32::MAX);
    let sequence = |length: i64, extent: i64| {
        let mut lengths = Tensor::new(7, &[entries]).at((&raw const length).cast(), 8);
        lengths.strides = Some(vec![0]);
        let split = lengths.descriptor();
        let params = libsplit_params { split: &split, ..params(libsplit_op::ONNX_SPLIT, 18) };
        count(&Tensor::new(2, &[extent]), &params).map_err(|failure| failure.status)
    };
    let sizes = libsplit_status::ERROR_SPLIT_SIZES.0;
    assert_eq!(sequence(2, entries * 2), Ok(usize::try_from(entries).unwrap()));
    assert_eq!(sequence(2, entries), Err(sizes));
    assert_eq!(sequence(-1, entries), Err(sizes));
    assert_eq!(sequence(i64::MAX, entries), Err(sizes));
    assert_eq!(sequence(0, 0), Ok(usize::try_from(entries).unwrap()));
}

#[test]
fn more_descriptors_than_memory_can_hold_are_refused() {
    let pieces = 1i64 << 59;
    let data = 0u8;
    let mut input = Tensor::new(2, &[pieces]).at(&raw const data, 1);
    input.strides = Some(vec![0]);
    let params = params(libsplit_op::ONNX_SPLIT_TO_SEQUENCE, 24);
    let pieces = usize::try_from(pieces).unwrap();
    assert_eq!(count(&input, &params), Ok(pieces));
    let mut output = Tensor::unwanted();
    for function in [libsplit_infer, libsplit_view] {
        let failure = call(|error| unsafe {
            function(&input.descriptor(), &params, &mut output, pieces, error)
        });
        assert_eq!(failure.unwrap_err().status, libsplit_status::ERROR_NUM_OUTPUTS.0);
    }
    let failure = call(|error| unsafe {
        libsplit_copy(&input.descriptor(), &params, &output, pieces, null(), error)
    });
    assert_eq!(failure.unwrap_err().status, libsplit_status::ERROR_NUM_OUTPUTS.0);
    assert_eq!(libsplit_plan_size(1, pieces), 0);
    let mut memory = [7u64; 64];
    let plan = memory.as_mut_ptr().cast();
    for outputs in [null(), &raw const output] {
        let failure = call(|error| unsafe {
            let input = input.descriptor();
            libsplit_plan_init(plan, usize::MAX, &input, &params, outputs, pieces, error)
        });
        assert_eq!(failure.unwrap_err().status, libsplit_status::ERROR_NUM_OUTPUTS.0);
    }
    assert_eq!(memory, [7; 64]);
}

/// Takes minutes if every piece is looked at before the size of the plan is.
#[test]
fn a_plan_too_small_for_its_pieces_is_refused_at_once() {
    let entries = i64::from(i32::MAX);
    let length = 2i64;
    let mut lengths = Tensor::new(7, &[entries]).at((&raw const length).cast(), 8);
    lengths.strides = Some(vec![0]);
    let split = lengths.descriptor();
    let params = libsplit_params { split: &split, ..params(libsplit_op::ONNX_SPLIT, 18) };
    let input = Tensor::new(2, &[2 * entries]);
    let entries = usize::try_from(entries).unwrap();
    let mut memory = [7u64; 64];
    let plan = memory.as_mut_ptr().cast();
    let failure = call(|error| unsafe {
        libsplit_plan_init(plan, 512, &input.descriptor(), &params, null(), entries, error)
    });
    assert_eq!(failure.unwrap_err().status, libsplit_status::ERROR_PLAN.0);
    assert_eq!(memory, [7; 64]);
}

/// The rows of an output lie on both sides of the array of addresses, and one of them on it.
#[test]
fn data_of_a_planned_output_may_not_lie_over_the_addresses_between_its_rows() {
    let data = [0x41u8; 16];
    let input = Tensor::new(2, &[2, 8]).at(data.as_ptr(), 16);
    let mut row = Tensor::new(2, &[1, 8]);
    row.strides = Some(vec![64, 1]);
    let mut memory = [0u64; 64];
    let size = libsplit_plan_size(2, 2);
    let mut plan = vec![0u64; size / 8];
    let plan = plan.as_mut_ptr().cast();
    let outputs = [row.descriptor(); 2];
    call(|error| unsafe {
        libsplit_plan_init(plan, size, &input.descriptor(), &halves(), outputs.as_ptr(), 2, error)
    })
    .unwrap();
    for over in [0usize, 8] {
        let at = memory.as_mut_ptr();
        let addresses = at.wrapping_add(8).cast::<*mut std::ffi::c_void>();
        unsafe {
            *addresses = at.cast();
            *addresses.add(1) = addresses.byte_add(over).cast();
        }
        let before = memory;
        let failure = call(|error| unsafe {
            libsplit_plan_copy(plan, data.as_ptr().cast(), addresses, 2, null(), error)
        });
        assert_eq!(failure.unwrap_err().status, OVERLAP);
        assert_eq!(memory, before);
    }
}

#[test]
fn a_sequence_of_unknown_length_has_as_many_pieces_as_the_caller_says() {
    let input = Tensor::new(1, &[-1, 4]);
    let params = params(libsplit_op::ONNX_SPLIT_TO_SEQUENCE, 24);
    assert_eq!(count(&input, &params).unwrap_err().status, libsplit_status::ERROR_COUNT_UNKNOWN.0);
    assert_eq!(infer(&input, &params, 3, 2).unwrap().shapes, [[1, 4]; 3]);
    let scalar = Tensor::new(7, &[]).descriptor();
    let params = libsplit_params { split: &scalar, ..params };
    let known = Tensor::new(1, &[6, 4]);
    assert_eq!(count(&known, &params).unwrap_err().status, libsplit_status::ERROR_COUNT_UNKNOWN.0);
    assert_eq!(infer(&known, &params, 2, 2).unwrap().shapes, [[-1, 4]; 2]);
}

#[test]
fn strides_that_do_not_matter_are_not_looked_at() {
    let data = [7u8; 4];
    let lengths = [1i64, 0];
    let list = Tensor::new(7, &[2]).at(lengths.as_ptr().cast(), 16);
    let list = list.descriptor();
    let split = libsplit_params { split: &list, ..params(libsplit_op::ONNX_SPLIT, 18) };
    let mut input = Tensor::new(2, &[1, 4]).at(data.as_ptr(), 4);
    input.strides = Some(vec![1 << 61, 1]);
    let views = view(&input, &split, 2, 2).unwrap();
    assert_eq!(views.descriptors[1].data.cast::<u8>().cast_const(), data.as_ptr());

    let scalar = 2i64;
    let mut length = Tensor::new(7, &[]).at((&raw const scalar).cast(), 8).descriptor();
    length.strides = std::ptr::without_provenance_mut(1);
    let chunks =
        libsplit_params { split: &length, ..params(libsplit_op::ONNX_SPLIT_TO_SEQUENCE, 11) };
    assert_eq!(count(&Tensor::new(2, &[5]), &chunks), Ok(3));
}

#[test]
fn a_tensor_of_the_highest_rank_is_split() {
    let data: Vec<u8> = (0..64).collect();
    let mut shape = [1i64; 64];
    (shape[0], shape[31], shape[63]) = (4, 4, 4);
    let input = Tensor::new(2, &shape).at(data.as_ptr(), 64);
    let params = libsplit_params { axis: 31, ..halves() };
    let views = view(&input, &params, 2, 64).unwrap();
    let second = views.descriptors[1];
    assert_eq!(views.shapes[1][31], 2);
    assert_eq!(unsafe { *second.data.cast::<u8>() }, 8);
    let mut bytes = [0u8; 32];
    let described = infer(&input, &params, 2, 64).unwrap();
    let mut outputs = [Tensor::unwanted(), described.descriptors[1]];
    outputs[1].data = bytes.as_mut_ptr().cast();
    copy(&input, &params, &outputs, None).unwrap();
    let expected: Vec<u8> = data.chunks(16).flat_map(|row| row[8..].to_vec()).collect();
    assert_eq!(bytes.as_slice(), expected);
}

#[test]
fn outputs_too_large_are_noticed_before_the_first_is_described() {
    let input = Tensor::new(2, &[-1, 1 << 40]);
    let lengths = [1i64, 1 << 40];
    let lengths = Tensor::new(7, &[2]).at(lengths.as_ptr().cast(), 16);
    let split = lengths.descriptor();
    let params = libsplit_params { split: &split, ..params(libsplit_op::ONNX_SPLIT, 13) };
    let mut shapes = [[7i64; 2]; 2];
    let mut outputs = [Tensor::unwanted(), Tensor::unwanted()];
    for (output, shape) in outputs.iter_mut().zip(&mut shapes) {
        (output.shape, output.capacity) = (shape.as_mut_ptr(), 2);
    }
    let failure = call(|error| unsafe {
        libsplit_infer(&input.descriptor(), &params, outputs.as_mut_ptr(), 2, error)
    });
    assert_eq!(failure.unwrap_err().status, libsplit_status::ERROR_OVERFLOW.0);
    assert_eq!(shapes, [[7; 2]; 2]);
}

#[test]
fn empty_tensors_have_the_strides_of_extents_of_1() {
    let input = Tensor::new(2, &[2, 4, 0, 3]);
    let params = libsplit_params { axis: 1, ..halves() };
    for described in [infer(&input, &params, 2, 4), view(&input, &params, 2, 4)] {
        assert_eq!(described.unwrap().strides, [[6, 3, 3, 1], [6, 3, 3, 1]]);
    }
}

/// Outputs at NULL, within another one, or in the input: the others are copied, with at most one of them at a bad
/// place.
#[test]
fn outputs_without_elements_may_lie_anywhere() {
    let data: [u8; 9] = std::array::from_fn(|at| u8::try_from(at).unwrap());
    let input = Tensor::new(2, &[3, 3]).at(data.as_ptr(), 9);
    let lengths = [0i64, 2, 0, 1, 0];
    let split = Tensor::new(7, &[5]).at(lengths.as_ptr().cast(), 40);
    let split = &split.descriptor();
    let params = libsplit_params { axis: 1, split, ..params(libsplit_op::ONNX_SPLIT, 18) };
    let mut memory = [0xEEu8; 16];
    let first = memory.as_mut_ptr();
    let anywhere = [std::ptr::null_mut(), first, first.wrapping_add(3), data.as_ptr().cast_mut()];
    for (others, at) in [(0, 6), (1, 6), (2, 6), (3, 6), (1, 5)] {
        memory.fill(0xEE);
        let mut shapes = lengths.map(|len| [3i64, len]);
        let mut outputs = shapes.iter_mut().map(|shape| libsplit_tensor {
            data: anywhere[others].cast(),
            shape: shape.as_mut_ptr(),
            rank: 2,
            dtype: input.descriptor().dtype,
            ..Tensor::unwanted()
        });
        let mut outputs: [_; 5] = std::array::from_fn(|_| outputs.next().unwrap());
        outputs[1].data = first.cast();
        outputs[3].data = first.wrapping_add(at).cast();
        match copy(&input, &params, &outputs, None) {
            Ok(()) => assert_eq!(memory[..10], [0, 1, 3, 4, 6, 7, 2, 5, 8, 0xEE]),
            Err(failure) => {
                assert_eq!((failure.status, at), (OVERLAP, 5));
                assert_eq!(memory, [0xEE; 16]);
            }
        }
    }
}

#[test]
fn structures_of_more_than_4096_bytes_are_not_believed() {
    #[repr(C)]
    struct Long(libsplit_params, [u8; 4096]);
    let mut long = Long(halves(), [0; 4096]);
    let input = Tensor::new(2, &[8]);
    long.0.struct_size = 4096;
    assert_eq!(count(&input, unsafe { &*(&raw const long).cast() }), Ok(2));
    long.0.struct_size = 4097;
    let failure = count(&input, unsafe { &*(&raw const long).cast() }).unwrap_err();
    assert_eq!(failure.status, libsplit_status::ERROR_STRUCT_SIZE.0);
}

#[test]
fn an_output_is_unwanted_only_if_all_of_it_is_zero() {
    let data = [0x41u8; 64];
    let input = Tensor::new(2, &[8, 8]).at(data.as_ptr(), 64);
    let spoils: [fn(&mut libsplit_tensor); 5] = [
        |output| output.data_bytes = 1,
        |output| output.capacity = 1,
        |output| output.rank = 2,
        |output| output.dtype.0 = 2,
        |output| output.bit_offset = 8,
    ];
    for spoil in spoils {
        let mut outputs = [Tensor::unwanted(), Tensor::unwanted()];
        spoil(&mut outputs[1]);
        let result = copy(&input, &halves(), &outputs, None);
        assert!(result.is_err());
        let mut memory = vec![7u64; libsplit_plan_size(2, 2) / 8];
        let (plan, size) = (memory.as_mut_ptr().cast(), memory.len() * 8);
        let planned = call(|error| unsafe {
            let (input, outputs) = (input.descriptor(), outputs.as_ptr());
            libsplit_plan_init(plan, size, &input, &halves(), outputs, 2, error)
        });
        assert_eq!(planned, result);
    }
}

/// Columns are made 16 at a time; those that nobody wants have room for only some of the rows.
#[test]
fn two_of_three_columns_of_many_rows_are_copied() {
    let data: Vec<u8> = (0..120_000u32).map(|i| (i * 31 % 251).to_le_bytes()[0]).collect();
    let input = Tensor::new(2, &[40_000, 3]).at(data.as_ptr(), data.len());
    let params = libsplit_params { axis: 1, num_outputs: 3, ..halves() };
    let mut described = infer(&input, &params, 3, 2).unwrap();
    let mut columns = vec![vec![0u8; 40_000]; 2];
    for (output, column) in described.descriptors.iter_mut().zip(&mut columns) {
        (output.data, output.strides) = (column.as_mut_ptr().cast(), std::ptr::null_mut());
    }
    described.descriptors[2] = Tensor::unwanted();
    copy(&input, &params, &described.descriptors, None).unwrap();
    for (first, column) in columns.iter().enumerate() {
        assert!(column.iter().eq(data[first..].iter().step_by(3)));
    }
}

/// A plan is made for columns, or blocks of them, of any matrix: only their addresses tell them apart.
#[test]
fn planned_columns_go_where_their_addresses_say_or_nowhere() {
    for (rows, unit) in [(400i64, 1i64), (2, 1), (9, 5), (70, 16), (33, 40), (1, 8)] {
        let (all, width) =
            (usize::try_from(3 * rows * unit).unwrap(), usize::try_from(unit).unwrap());
        let mut data: Vec<u8> = (0..all).map(|at| (at * 31 % 251).to_le_bytes()[0]).collect();
        let input = Tensor::new(2, &[3 * rows, unit]).at(data.as_ptr(), all);
        let mut column = Tensor::new(2, &[rows, unit]);
        column.strides = Some(vec![3 * unit, 1]);
        let mut plan = vec![0u64; libsplit_plan_size(2, 3) / 8];
        let (plan, size) = (plan.as_mut_ptr().cast(), plan.len() * 8);
        let (outputs, params) =
            ([column.descriptor(); 3], libsplit_params { num_outputs: 3, ..halves() });
        call(|error| unsafe {
            libsplit_plan_init(plan, size, &input.descriptor(), &params, outputs.as_ptr(), 3, error)
        })
        .unwrap();
        let run = |from: *const u8, first: *mut u8, columns: [usize; 3]| {
            let addresses = columns.map(|at| first.wrapping_add(at * width).cast());
            call(|error| unsafe {
                libsplit_plan_copy(plan, from.cast(), addresses.as_ptr(), 3, null(), error)
            })
        };
        for columns in [[0, 1, 2], [2, 1, 0], [0, 2, 1], [0, 1, 1], [0, 0, 1], [1, 2, 2]] {
            let mut matrix = vec![0xEE; all];
            let result = run(data.as_ptr(), matrix.as_mut_ptr(), columns);
            let is_right = columns.iter().sum::<usize>() == 3 && columns[0] != 1;
            assert_eq!(
                result.map_err(|failure| failure.status),
                if is_right { Ok(()) } else { Err(OVERLAP) }
            );
            let mut expected = vec![0xEE; all];
            for (piece, at) in columns.into_iter().enumerate().filter(|_| is_right) {
                for row in 0..usize::try_from(rows).unwrap() {
                    let from = (piece * usize::try_from(rows).unwrap() + row) * width;
                    expected[(row * 3 + at) * width..][..width]
                        .copy_from_slice(&data[from..][..width]);
                }
            }
            assert!(matrix == expected, "{rows} rows of {unit}: {columns:?}");
        }
        let over = data.as_mut_ptr();
        let status = run(over, over, [0, 1, 2]).unwrap_err().status;
        assert_eq!(status, OVERLAP);
    }
}
