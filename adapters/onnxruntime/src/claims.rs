//! Which nodes of a model the provider takes, by the options that it is added with.

use crate::abi::{OrtEpApi, OrtEpGraphSupportInfo};
use crate::ort::{ort_call, text, Error, Ort};
use core::ptr;
use libsplit::ffi::{libsplit_dtype, libsplit_dtype_bits};
use ort_sys::{
    ONNXTensorElementDataType as OrtDtype, OrtGraph, OrtLogger, OrtLoggingLevel, OrtNode,
    OrtSessionOptions,
};
use std::ffi::CString;

/// How ONNX Runtime passes on the options of `add_provider_for_devices`: behind this.
const PREFIX: &str = "ep.libsplitexecutionprovider.";

/// The options, and what it takes to say what came of them.
pub struct Claims {
    ort: Ort,
    api: &'static OrtEpApi,
    logger: *const OrtLogger,
    /// Nodes whose input is known to have fewer bytes stay ONNX Runtime's, if it can run them.
    min_bytes: u64,
    /// Whether claims are logged as warnings, which are seen by default.
    as_warnings: bool,
}

impl Claims {
    /// Reads the provider's options.
    ///
    /// # Safety
    /// `options` and `logger` must be those of the session that the provider is made for.
    pub unsafe fn new(
        ort: Ort,
        api: &'static OrtEpApi,
        options: *const OrtSessionOptions,
        logger: *const OrtLogger,
    ) -> Result<Self, Error> {
        let mut claims = Self { ort, api, logger, min_bytes: 0, as_warnings: false };
        // SAFETY: the caller's promise.
        for (name, value) in unsafe { provider_options(ort, options) }? {
            let refused = |what| Error::Refused(format!("provider option {name}={value}: {what}"));
            match name.as_str() {
                "min_bytes" => {
                    let number = value.parse();
                    claims.min_bytes = number.map_err(|_| refused("not a number of bytes"))?;
                }
                "log_claims" => match value.as_str() {
                    "0" => claims.as_warnings = false,
                    "1" => claims.as_warnings = true,
                    _ => return Err(refused("neither 0 nor 1")),
                },
                _ => return Err(refused("unknown; there are min_bytes and log_claims")),
            }
        }
        Ok(claims)
    }

    /// Claims what it can of a graph.
    ///
    /// # Safety
    /// `graph` and `info` must be what ONNX Runtime asks about.
    pub unsafe fn of_graph(
        &self,
        graph: *const OrtGraph,
        info: *mut OrtEpGraphSupportInfo,
    ) -> Result<(), Error> {
        let Self { ort, api, .. } = *self;
        let mut count = 0;
        // SAFETY: the caller's promise.
        unsafe { ort_call!(ort, Graph_GetNumNodes, graph, &raw mut count) }?;
        let mut nodes = vec![ptr::null(); count];
        // SAFETY: the caller's promise, and room for as many nodes as there are.
        unsafe { ort_call!(ort, Graph_GetNodes, graph, nodes.as_mut_ptr(), count) }?;
        for node in nodes {
            let mut kernel = ptr::null();
            // SAFETY: a node of the graph.
            ort.check(unsafe {
                (api.graph_support_info_look_up_kernel)(info, node, &raw mut kernel)
            })?;
            // SAFETY: as above; that there is a kernel means that it is a Split.
            if !kernel.is_null() && unsafe { self.is_worth_it(node) }? {
                // SAFETY: as above.
                unsafe {
                    ort.check((api.graph_support_info_add_single_node)(info, node))?;
                    self.log(node)?;
                }
            }
        }
        Ok(())
    }

    /// Whether a Split is large enough, or one that ONNX Runtime cannot run.
    ///
    /// # Safety
    /// `node` must be a Split.
    unsafe fn is_worth_it(&self, node: *const OrtNode) -> Result<bool, Error> {
        if self.min_bytes == 0 {
            return Ok(true);
        }
        let ort = self.ort;
        let (mut version, mut inputs, mut outputs) = (0, 0, 0);
        // SAFETY: the caller's promise.
        unsafe {
            ort_call!(ort, Node_GetSinceVersion, node, &raw mut version)?;
            ort_call!(ort, Node_GetNumInputs, node, &raw mut inputs)?;
            ort_call!(ort, Node_GetNumOutputs, node, &raw mut outputs)?;
        }
        let mut values = vec![ptr::null(); inputs.max(outputs)];
        // SAFETY: the caller's promise, and room for as many values as there are.
        unsafe { ort_call!(ort, Node_GetOutputs, node, values.as_mut_ptr(), outputs) }?;
        // ONNX Runtime has no kernel for the first version, and crashes on outputs without a name.
        if version == 1 || values.iter().take(outputs).any(|value| value.is_null()) {
            return Ok(true);
        }
        // SAFETY: as above.
        unsafe { ort_call!(ort, Node_GetInputs, node, values.as_mut_ptr(), inputs) }?;
        let Some(input) = values.first() else { return Ok(true) };
        // SAFETY: a value of the node's.
        let bytes = unsafe { known_bytes(ort, *input) }?;
        Ok(bytes.is_none_or(|bytes| bytes >= self.min_bytes))
    }

    /// # Safety
    /// `node` must be a node of the graph that is asked about.
    unsafe fn log(&self, node: *const OrtNode) -> Result<(), Error> {
        let level = if self.as_warnings {
            OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING
        } else {
            OrtLoggingLevel::ORT_LOGGING_LEVEL_INFO
        };
        let (mut name, mut version) = (ptr::null(), 0);
        // SAFETY: the caller's promise; the name lives as long as the node.
        let message = unsafe {
            ort_call!(self.ort, Node_GetName, node, &raw mut name)?;
            ort_call!(self.ort, Node_GetSinceVersion, node, &raw mut version)?;
            format!("libsplit takes node '{}' (Split-{version})", text(name))
        };
        let message = CString::new(message).unwrap_or_default();
        let (file, function) = (c"claims.rs".as_ptr(), c"log".as_ptr());
        // SAFETY: the session's logger, which lives as long as its provider.
        unsafe {
            let line = i32::try_from(line!()).unwrap_or(0);
            let message = message.as_ptr();
            ort_call!(
                self.ort,
                Logger_LogMessage,
                self.logger,
                level,
                message,
                file.cast(),
                line,
                function
            )
        }
    }
}

/// The options that the provider was added with, without the prefix.
///
/// # Safety
/// `options` must be a session's.
unsafe fn provider_options(
    ort: Ort,
    options: *const OrtSessionOptions,
) -> Result<Vec<(String, String)>, Error> {
    let mut pairs = ptr::null_mut();
    // SAFETY: the caller's promise.
    unsafe { ort_call!(ort, GetSessionOptionsConfigEntries, options, &raw mut pairs) }?;
    let (mut keys, mut values, mut count) = (ptr::null(), ptr::null(), 0);
    // SAFETY: pairs of our own, whose texts are copied before they are released.
    let found = unsafe {
        ((*ort.table()).GetKeyValuePairs)(pairs, &raw mut keys, &raw mut values, &raw mut count);
        let pair = |i| (text(*keys.add(i)), text(*values.add(i)).into_owned());
        let pairs = (0..count).map(pair);
        pairs.filter_map(|(key, value)| Some((key.strip_prefix(PREFIX)?.into(), value))).collect()
    };
    // SAFETY: they are ours, and not used any more.
    unsafe { ((*ort.table()).ReleaseKeyValuePairs)(pairs) };
    Ok(found)
}

/// The size of a tensor, if the model tells.
///
/// # Safety
/// `value` must be NULL or a value of the graph that is asked about.
unsafe fn known_bytes(ort: Ort, value: *const ort_sys::OrtValueInfo) -> Result<Option<u64>, Error> {
    if value.is_null() {
        return Ok(None);
    }
    let (mut info, mut tensor, mut dtype, mut rank) = (ptr::null(), ptr::null(), 0i32, 0);
    // SAFETY: the caller's promise; what is got lives as long as the value.
    let shape = unsafe {
        ort_call!(ort, GetValueInfoTypeInfo, value, &raw mut info)?;
        ort_call!(ort, CastTypeInfoToTensorInfo, info, &raw mut tensor)?;
        if tensor.is_null() || !((*ort.table()).TensorTypeAndShape_HasShape)(tensor) {
            return Ok(None);
        }
        let out = (&raw mut dtype).cast::<OrtDtype>();
        ort_call!(ort, GetTensorElementType, tensor, out)?;
        ort_call!(ort, GetDimensionsCount, tensor, &raw mut rank)?;
        let mut shape = vec![0; rank];
        ort_call!(ort, GetDimensions, tensor, shape.as_mut_ptr(), rank)?;
        shape
    };
    let elements =
        shape.iter().try_fold(1, |n: u64, &extent| n.checked_mul(extent.try_into().ok()?));
    // The numbers of the types that Split has are libsplit's.
    let bytes = u64::from(libsplit_dtype_bits(libsplit_dtype(dtype)) / 8);
    Ok(elements.and_then(|elements| elements.checked_mul(bytes)))
}
