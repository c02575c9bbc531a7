//! No call allocates, whether it succeeds or fails.

// Calls into C functions are all unsafe, and what they get is made right above them.
#![allow(clippy::undocumented_unsafe_blocks, clippy::borrow_as_ptr)]

mod common;

use common::{params, Tensor};
use libsplit::ffi::{
    libsplit_copy, libsplit_count, libsplit_error, libsplit_infer, libsplit_op, libsplit_params,
    libsplit_plan_copy, libsplit_plan_init, libsplit_plan_size, libsplit_plan_view,
    libsplit_status, libsplit_tensor, libsplit_view,
};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ptr::{null, null_mut};

struct Counting;

thread_local! {
    /// Of this thread: the test harness allocates on others meanwhile.
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: hands everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, address: *mut u8, layout: Layout) {
        unsafe { System.dealloc(address, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn without_allocating(what: &str, body: impl FnOnce()) {
    let before = ALLOCATIONS.get();
    body();
    assert_eq!(ALLOCATIONS.get(), before, "{what} allocated");
}

#[test]
fn calls_do_not_allocate() {
    const PIECES: usize = 3000; // more than any array on the stack holds
    let data = vec![7u8; 8 * PIECES];
    let input = Tensor::new(2, &[4, i64::try_from(PIECES).unwrap(), 2]).at(data.as_ptr(), 0);
    let mut shapes = vec![[0i64; 3]; PIECES];
    let mut strides = shapes.clone();
    let mut outputs: Vec<libsplit_tensor> = (shapes.iter_mut().zip(&mut strides))
        .map(|(shape, strides)| libsplit_tensor {
            shape: shape.as_mut_ptr(),
            strides: strides.as_mut_ptr(),
            capacity: 3,
            ..Tensor::unwanted()
        })
        .collect();
    let mut buffers = vec![[0u8; 8]; PIECES];
    let input = input.descriptor();
    let params = libsplit_params { axis: 1, ..params(libsplit_op::ONNX_SPLIT_TO_SEQUENCE, 24) };
    let mut error = libsplit_error::INIT;
    let mut count = 0;
    without_allocating("count", || {
        let status = unsafe { libsplit_count(&input, &params, &mut count, &mut error) };
        assert_eq!(status, libsplit_status::OK);
    });
    assert_eq!(count, PIECES);
    without_allocating("view", || {
        let status =
            unsafe { libsplit_view(&input, &params, outputs.as_mut_ptr(), PIECES, &mut error) };
        assert_eq!(status, libsplit_status::OK);
    });
    without_allocating("infer", || {
        let status =
            unsafe { libsplit_infer(&input, &params, outputs.as_mut_ptr(), PIECES, &mut error) };
        assert_eq!(status, libsplit_status::OK);
    });
    // Shuffled, so that overlaps have to be looked for in blocks.
    for (index, output) in outputs.iter_mut().enumerate() {
        output.data = buffers[index * 7 % PIECES].as_mut_ptr().cast();
    }
    without_allocating("copy", || {
        let status =
            unsafe { libsplit_copy(&input, &params, outputs.as_ptr(), PIECES, null(), &mut error) };
        assert_eq!(status, libsplit_status::OK);
    });
    let size = libsplit_plan_size(3, PIECES);
    let mut memory = vec![0u64; size / 8];
    let plan = memory.as_mut_ptr().cast();
    let mut addresses: Vec<_> = outputs.iter().map(|output| output.data).collect();
    let mut views = addresses.clone();
    without_allocating("plan_init", || {
        let outputs = outputs.as_ptr();
        let status =
            unsafe { libsplit_plan_init(plan, size, &input, &params, outputs, PIECES, &mut error) };
        assert_eq!(status, libsplit_status::OK);
    });
    without_allocating("plan_view", || {
        let views = views.as_mut_ptr();
        let status = unsafe { libsplit_plan_view(plan, input.data, views, PIECES, &mut error) };
        assert_eq!(status, libsplit_status::OK);
    });
    without_allocating("plan_copy", || {
        let (source, outputs) = (input.data, addresses.as_ptr());
        let status =
            unsafe { libsplit_plan_copy(plan, source, outputs, PIECES, null(), &mut error) };
        assert_eq!(status, libsplit_status::OK);
    });
    addresses[PIECES - 1] = addresses[0];
    without_allocating("a plan's error", || {
        let (source, outputs) = (input.data, addresses.as_ptr());
        let status =
            unsafe { libsplit_plan_copy(plan, source, outputs, PIECES, null(), &mut error) };
        assert_eq!(status, libsplit_status::ERROR_OVERLAP);
        let status =
            unsafe { libsplit_plan_init(plan, 8, &input, &params, null(), PIECES, &mut error) };
        assert_eq!(status, libsplit_status::ERROR_PLAN);
    });
    outputs[PIECES - 1].data = outputs[0].data;
    without_allocating("an error", || {
        let status =
            unsafe { libsplit_copy(&input, &params, outputs.as_ptr(), PIECES, null(), &mut error) };
        assert_eq!(status, libsplit_status::ERROR_OVERLAP);
        let status = unsafe { libsplit_view(null(), &params, null_mut(), 0, &mut error) };
        assert_eq!(status, libsplit_status::ERROR_NULL);
    });
}
