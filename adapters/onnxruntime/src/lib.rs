//! libsplit inside ONNX Runtime: `libsplit_onnxruntime.so`, which a program that runs models loads.
//!
//! | file | what it holds |
//! |---|---|
//! | `lib.rs` | the functions that ONNX Runtime looks for in the library |
//! | `provider.rs` | the plugin execution provider |
//! | `capability.rs`, `claims.rs` | which nodes it takes, and the rule for it |
//! | `surroundings.rs` | what ONNX Runtime would do with the nodes around a Split |
//! | `custom_ops.rs` | the custom ops |
//! | `node.rs`, `plan.rs` | how a node is run, for both, and what a run leaves to the next |
//! | `attributes.rs`, `params.rs` | a node's parameters |
//! | `tensor.rs`, `strings.rs` | ONNX Runtime's values |
//! | `ort.rs` | ONNX Runtime's function table, statuses, and the guard at the boundary |
//! | `abi.rs` | structures of ONNX Runtime that `ort-sys` lacks |

mod abi;
mod attributes;
mod capability;
mod claims;
mod custom_ops;
mod node;
mod ort;
mod params;
mod plan;
mod provider;
mod strings;
mod surroundings;
mod tensor;

use abi::OrtEpFactory;
use core::ffi::c_char;
use ort::{guard, Error, Ort};
use ort_sys::{OrtApiBase, OrtLogger, OrtSessionOptions, OrtStatusPtr};
use provider::Factory;

/// Called by `RegisterExecutionProviderLibrary`.
///
/// # Safety
/// As ONNX Runtime calls it.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn CreateEpFactories(
    _registered_name: *const c_char,
    base: *const OrtApiBase,
    _logger: *const OrtLogger,
    factories: *mut *mut OrtEpFactory,
    max_factories: usize,
    num_factories: *mut usize,
) -> OrtStatusPtr {
    // SAFETY: the caller's promise.
    let ort = unsafe {
        num_factories.write(0);
        match Ort::new(base, abi::VERSION, abi::VERSION) {
            Ok(ort) => ort,
            Err(status) => return status,
        }
    };
    guard(ort, || {
        if max_factories == 0 {
            return Err(Error::Refused("ONNX Runtime has no room for a provider".into()));
        }
        let factory = Factory::new(ort)?;
        // SAFETY: there is room for one.
        unsafe {
            factories.write(factory.into_raw());
            num_factories.write(1);
        }
        Ok(())
    })
}

/// Called by `UnregisterExecutionProviderLibrary`, when no session uses the provider any more.
///
/// # Safety
/// `factory` must come from [`CreateEpFactories`].
#[unsafe(no_mangle)]
pub unsafe extern "system" fn ReleaseEpFactory(factory: *mut OrtEpFactory) -> OrtStatusPtr {
    if !factory.is_null() {
        // SAFETY: the caller's promise.
        unsafe { Factory::release(factory) };
    }
    OrtStatusPtr::default()
}

/// Called by `RegisterCustomOpsLibrary`.
///
/// # Safety
/// As ONNX Runtime calls it.
#[unsafe(no_mangle)]
pub unsafe extern "system" fn RegisterCustomOps(
    options: *mut OrtSessionOptions,
    base: *const OrtApiBase,
) -> OrtStatusPtr {
    // SAFETY: the caller's promise.
    match unsafe { Ort::new(base, abi::VERSION, ort::OLDEST) } {
        // SAFETY: as above.
        Ok(ort) => guard(ort, || unsafe { custom_ops::register(ort, options) }),
        Err(status) => status,
    }
}
