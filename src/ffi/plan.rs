//! Plans, by pointers to them.
//!
//! # Safety
//! For everything unsafe here: promises 1, 3 and 5 of [`super`].

use super::executor::Pool;
use super::parse::{self, span_of_error};
use crate::copy::Executor;
use crate::descriptor::checked;
use crate::error::Error;
use crate::plan::{self, Planned};
use crate::reads::{Area, Reads};
use crate::span::Span;
use crate::types::{
    libsplit_error, libsplit_executor, libsplit_params, libsplit_plan, libsplit_tensor,
};
use crate::words::{Argument, Field};

/// [`super::libsplit_plan_init`].
pub unsafe fn plan_init(
    plan: *mut libsplit_plan,
    plan_size: usize,
    input: *const libsplit_tensor,
    params: *const libsplit_params,
    outputs: *const libsplit_tensor,
    num_outputs: usize,
    error: *const libsplit_error,
) -> Result<(), Error> {
    // SAFETY: promise 1.
    unsafe {
        let call = parse::call(input, params, Some(num_outputs), false, error)?;
        let wanted = || parse::descriptors(outputs, num_outputs);
        let wanted = if outputs.is_null() { None } else { Some(wanted()?) };
        plan::make(plan, plan_size, &call, wanted, num_outputs)
    }
}

/// [`super::libsplit_plan_copy`].
pub unsafe fn plan_copy(
    plan: *const libsplit_plan,
    input: *const u8,
    outputs: *const *mut u8,
    num_outputs: usize,
    executor: *const libsplit_executor,
    error: *const libsplit_error,
) -> Result<(), Error> {
    // SAFETY: promises 1, 3 and 5.
    unsafe {
        let planned = Planned::for_outputs(plan, num_outputs)?;
        let error = span_of_error(error);
        let mut reads = Reads { request: planned.area(), error, ..Reads::NOTHING };
        let pool = Pool::parse(executor, &mut reads.executor)?;
        planned.copy(input, outputs, pool.as_ref().map(|pool| pool as &dyn Executor), &reads)
    }
}

/// [`super::libsplit_plan_view`].
pub unsafe fn plan_view(
    plan: *const libsplit_plan,
    input: *mut u8,
    outputs: *mut *mut u8,
    num_outputs: usize,
    error: *const libsplit_error,
) -> Result<(), Error> {
    // SAFETY: promises 1 and 3.
    unsafe {
        let planned = Planned::for_outputs(plan, num_outputs)?;
        if num_outputs == 0 {
            return Ok(());
        }
        checked(outputs.cast_const(), Argument::Outputs, Field::Itself)?;
        planned.input(input)?;
        let written = Span::of_array(outputs.cast_const(), num_outputs);
        let error = Area { argument: Argument::Error, span: span_of_error(error) };
        for Area { argument: other, span } in [planned.area(), error] {
            if span.intersects(written) {
                return Err(Error::ArrayOverlap { argument: Argument::Outputs, other });
            }
        }
        for (index, ahead) in planned.pieces_ahead().enumerate() {
            if let Some(ahead) = ahead {
                outputs.add(index).write(input.wrapping_offset(ahead));
            }
        }
    }
    Ok(())
}
