//! Large enough for tasks: rows of any length, cut anywhere, must still come out whole.

use crate::common::{copy, infer, params, Tensor};
use crate::config;
use crate::memory::{bits_of, noise, usize_of};
use crate::plans::{plan, run_plan};
use crate::scene::Layout;
use libsplit::ffi::{
    libsplit_executor, libsplit_op, libsplit_params, libsplit_task_fn, libsplit_tensor,
};
use proptest::prelude::*;
use proptest::sample::select;
use std::ffi::c_void;
use std::ptr::null;

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

/// The same for a call, which then writes down how many there were.
pub fn backwards_on(tasks: &mut usize, max_tasks: u32) -> libsplit_executor {
    libsplit_executor {
        max_tasks,
        ..libsplit_executor::init(Some(backwards), std::ptr::from_mut(tasks).cast())
    }
}

fn wanted(tensors: &[Option<Tensor>]) -> Vec<libsplit_tensor> {
    let descriptor = |tensor: &Option<Tensor>| tensor.as_ref().map(Tensor::descriptor);
    tensors.iter().map(|tensor| descriptor(tensor).unwrap_or_else(Tensor::unwanted)).collect()
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
        let copied = |executor: Option<&libsplit_executor>| {
            let mut buffers: Vec<Vec<u8>> =
                described.descriptors.iter().map(|output| vec![0xEE; output.data_bytes]).collect();
            let ready: Vec<libsplit_tensor> = described.descriptors.iter().zip(&mut buffers)
                .map(|(output, buffer)| libsplit_tensor { data: buffer.as_mut_ptr().cast(), ..*output })
                .collect();
            copy(&input, &params, &ready, executor).unwrap();
            buffers
        };
        let alone = copied(None);
        prop_assert!(alone == copied(Some(&executor)));
        prop_assert_eq!(tasks > 1, max_tasks != 1);
        let in_one_go = std::mem::take(&mut tasks);
        let planned = plan(&input, &params, null(), parts.len()).unwrap();
        let mut buffers: Vec<Vec<u8>> = alone.iter().map(|bytes| vec![0xEE; bytes.len()]).collect();
        let targets: Vec<_> = buffers.iter_mut().map(|bytes| bytes.as_mut_ptr().cast()).collect();
        run_plan(&planned, bytes.as_ptr().cast(), &targets, Some(&executor)).unwrap();
        prop_assert!(alone == buffers);
        prop_assert_eq!(tasks, in_one_go);
        prop_assert!(max_tasks == 0 || tasks <= max_tasks as usize);
    }
}

/// What the pieces of rows must hold, or of the same memory's columns: none for one of each `unwanted`.
fn pieces(
    bytes: &[u8],
    lengths: &[i64],
    size: usize,
    is_turned: bool,
    unwanted: Option<usize>,
) -> Vec<Option<Vec<u8>>> {
    let row = usize_of(lengths.iter().sum()) * size;
    let mut begin = 0;
    let piece = |(index, len): (usize, &i64)| {
        let steps = begin..begin + usize_of(*len) * size;
        begin = steps.end;
        let is_wanted = unwanted.is_none_or(|each| index % each != 1);
        let rows = || bytes.chunks(row).map(|row| &row[steps.clone()]);
        let column = |at: usize| rows().flat_map(move |row| &row[at..at + size]).copied();
        is_wanted.then(|| {
            if is_turned {
                (0..steps.len()).step_by(size).flat_map(column).collect()
            } else {
                rows().flatten().copied().collect()
            }
        })
    };
    lengths.iter().enumerate().map(piece).collect()
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

        let expected = pieces(&bytes, &lengths, size, is_turned, unwanted);
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
            let outputs = wanted(&tensors);
            copy(&input, &params, &outputs, Some(&executor)).unwrap();
            prop_assert!(buffers == expected);
            let planned = plan(&input, &params, outputs.as_ptr(), count).unwrap();
            buffers.iter_mut().flatten().for_each(|buffer| buffer.fill(0xEE));
            let targets: Vec<_> = outputs.iter().map(|output| output.data).collect();
            run_plan(&planned, bytes.as_ptr().cast(), &targets, Some(&executor)).unwrap();
            prop_assert!(buffers == expected);
        }
    }
}

/// Splits bytes into two pieces or more, on tasks, and gives the outputs' bytes and how many tasks there were.
fn copy_on_tasks(
    input: &Tensor,
    (axis, lengths): (i64, &[i64]),
    strides_of: &dyn Fn(&[i64]) -> Option<Vec<i64>>,
    max_tasks: u32,
) -> (Vec<Vec<u8>>, usize) {
    let split =
        Tensor::new(7, &[i64::try_from(lengths.len()).unwrap()]).at(lengths.as_ptr().cast(), 0);
    let split = split.descriptor();
    let params =
        libsplit_params { axis, split: &split, ..params(libsplit_op::OPENVINO_VARIADIC_SPLIT, 1) };
    let shape = |len: &i64| {
        let mut shape = input.shape.clone();
        shape[usize_of(axis)] = *len;
        shape
    };
    let bytes = |len| vec![0xEE; usize_of(shape(len).iter().product())];
    let mut buffers: Vec<Vec<u8>> = lengths.iter().map(bytes).collect();
    let tensors: Vec<Option<Tensor>> = (lengths.iter().zip(&mut buffers))
        .map(|(len, buffer)| {
            let mut tensor = Tensor::new(2, &shape(len)).at(buffer.as_mut_ptr(), 0);
            tensor.strides = strides_of(&shape(len));
            Some(tensor)
        })
        .collect();
    let mut tasks = 0usize;
    let executor = backwards_on(&mut tasks, max_tasks);
    copy(input, &params, &wanted(&tensors), Some(&executor)).unwrap();
    (buffers, tasks)
}

/// The axes in the other order: the innermost one is the outermost, and may be cut, or only the others.
#[test]
fn tasks_turn_tensors() {
    for (shape, axis, lengths) in [
        ([211, 61, 53], 0, &[100, 1, 110][..]),
        ([90, 3, 2500], 1, &[2, 1]),
        ([2500, 3, 90], 1, &[1, 1, 1]),
        ([7001, 1, 100], 0, &[5000, 2001]),
        ([9, 90, 900], 2, &[450, 450]),
        ([70001, 1, 10], 0, &[70001]),
    ] {
        let [_, b, c] = shape;
        let bytes = noise(usize_of(shape.iter().product()), 5);
        let input = Tensor::new(2, &shape).at(bytes.as_ptr(), bytes.len());
        let turned = |shape: &[i64]| Some(vec![1, shape[0], shape[0] * shape[1]]);
        for max_tasks in [2, 3, 9] {
            let (copied, tasks) = copy_on_tasks(&input, (axis, lengths), &turned, max_tasks);
            assert!(tasks > 1);
            let mut offset = 0;
            for (len, copied) in lengths.iter().zip(copied) {
                let mut ends = shape;
                ends[usize_of(axis)] = *len;
                let mut from = [0; 3];
                from[usize_of(axis)] = offset;
                offset += len;
                let mut expected = vec![];
                for k in from[2]..from[2] + ends[2] {
                    for j in from[1]..from[1] + ends[1] {
                        let at = |i| bytes[usize_of((i * b + j) * c + k)];
                        expected.extend((from[0]..from[0] + ends[0]).map(at));
                    }
                }
                assert!(copied == expected, "{shape:?} in {lengths:?}, {max_tasks} tasks");
            }
        }
    }
}

/// One row again and again, into few pieces and into many.
#[test]
fn tasks_repeat_rows() {
    for (times, lengths) in [
        (8140, (0..200).map(|at| 1 + at % 3).collect()),
        (3000, (0..40).map(|at| at * 7 % 50).collect()),
        (20_001, vec![60, 1, 39]),
        (1200, vec![300, 200]),
    ] {
        let width: i64 = lengths.iter().sum();
        let row = noise(usize_of(width), 7);
        let mut input = Tensor::new(2, &[times, width]).at(row.as_ptr(), row.len());
        input.strides = Some(vec![0, 1]);
        for max_tasks in [2, 5] {
            let (copied, _) = copy_on_tasks(&input, (1, &lengths), &|_| None, max_tasks);
            let mut begin = 0;
            for (len, copied) in lengths.iter().zip(copied) {
                let run = &row[begin..begin + usize_of(*len)];
                begin += run.len();
                assert!(copied == run.repeat(usize_of(times)), "{lengths:?}, {max_tasks} tasks");
            }
        }
    }
}

proptest! {
    #![proptest_config(config(150))]

    /// The way back: outputs that are columns of one matrix, some of which nobody wants.
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
        let outputs = wanted(&outputs);
        let mut tasks = 0usize;
        let executor = backwards_on(&mut tasks, max_tasks);
        for executor in [None, Some(&executor)] {
            matrix.fill(0xEE);
            let done = copy(&input, &params, &outputs, executor);
            // A copy has to want an output.
            prop_assert_eq!(done.is_ok(), parts.iter().any(|(_, is_wanted)| *is_wanted));
            prop_assert!(matrix == expected);
        }
    }
}
