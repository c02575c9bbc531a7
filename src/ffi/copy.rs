//! Copies of what pointers describe.

use super::executor::Pool;
use super::parse;
use crate::copy::Executor;
use crate::error::Error;
use crate::types::{libsplit_error, libsplit_executor, libsplit_params, libsplit_tensor};

/// [`super::libsplit_copy`].
pub unsafe fn copy(
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    executor: *const libsplit_executor,
    error: *const libsplit_error,
) -> Result<(), Error> {
    // SAFETY: promises 1 and 2.
    unsafe {
        let mut call = parse::call(input, params, Some(num_outputs), false, error)?;
        let pool = Pool::parse(executor, &mut call.reads.executor)?;
        let outputs = parse::descriptors(outputs, num_outputs)?;
        call.copy(outputs, pool.as_ref().map(|pool| pool as &dyn Executor))
    }
}
