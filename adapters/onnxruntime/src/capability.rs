//! What the provider says of a model: which nodes it takes, by the options that it is added with.

use crate::abi::{OrtEpApi, OrtEpGraphSupportInfo};
use crate::claims::{Claim, Split};
use crate::ort::{ort_call, text, Error, Ort};
use crate::surroundings::{inputs, outputs, Surroundings};
use crate::tensor::{self, axis_index, Shape};
use core::ffi::CStr;
use core::ptr;
use libsplit::ffi::{libsplit_dtype, libsplit_dtype_bits};
use ort_sys::{
    OrtGraph, OrtLogger, OrtLoggingLevel, OrtNode, OrtOpAttrType, OrtSessionOptions, OrtValueInfo,
};
use std::ffi::CString;

/// How ONNX Runtime passes on the options of `add_provider_for_devices`: behind this.
const PREFIX: &str = "ep.libsplitexecutionprovider.";

/// The options, and what it takes to say what came of them.
pub struct Capability {
    ort: Ort,
    api: &'static OrtEpApi,
    logger: *const OrtLogger,
    /// Whether every Split is taken, or only those that it is of benefit to.
    all: bool,
    /// Nodes whose input is known to have fewer bytes stay ONNX Runtime's, if it can run them.
    min_bytes: u64,
    /// Whether claims are logged as warnings, which are seen by default.
    as_warnings: bool,
}

impl Capability {
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
        let mut own = Self { ort, api, logger, all: false, min_bytes: 0, as_warnings: false };
        // SAFETY: the caller's promise.
        for (name, value) in unsafe { provider_options(ort, options) }? {
            let refused = |what| Error::Refused(format!("provider option {name}={value}: {what}"));
            match name.as_str() {
                "claim" => match value.as_str() {
                    "all" => own.all = true,
                    "benefit" => own.all = false,
                    _ => return Err(refused("give benefit or all")),
                },
                "min_bytes" => {
                    let number = value.parse();
                    own.min_bytes = number
                        .map_err(|_| refused("give a whole number of bytes, such as 1048576"))?;
                }
                "log_claims" => match value.as_str() {
                    "0" => own.as_warnings = false,
                    "1" => own.as_warnings = true,
                    _ => return Err(refused("give 0 or 1")),
                },
                _ => {
                    return Err(refused(
                        "there is no such option: give claim, min_bytes or log_claims",
                    ))
                }
            }
        }
        Ok(own)
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
        let surroundings = unsafe {
            ort_call!(ort, Graph_GetNodes, graph, nodes.as_mut_ptr(), count)?;
            Surroundings::new(ort, &nodes)?
        };
        for node in nodes {
            let mut kernel = ptr::null();
            // SAFETY: a node of the graph.
            ort.check(unsafe {
                (api.graph_support_info_look_up_kernel)(info, node, &raw mut kernel)
            })?;
            if kernel.is_null() {
                // SAFETY: as above.
                unsafe { self.log_sequence(node) }?;
                continue;
            }
            // SAFETY: as above; that there is a kernel means that it is a Split.
            let (is_taken, why) = self.decide(&unsafe { self.describe(node, &surroundings) }?);
            if is_taken {
                // SAFETY: as above.
                ort.check(unsafe { (api.graph_support_info_add_single_node)(info, node) })?;
            }
            // SAFETY: as above.
            unsafe { self.log(node, "Split", is_taken, why) }?;
        }
        Ok(())
    }

    /// Whether to take a node by the options, and why.
    fn decide(&self, split: &Split) -> (bool, &'static str) {
        let is_small = || split.bytes().is_some_and(|bytes| bytes < self.min_bytes);
        match split.claim() {
            Claim::Needed(why) => (true, why),
            _ if is_small() => (false, "smaller than min_bytes"),
            Claim::Faster(why) => (true, why),
            Claim::Left(_) if self.all => (true, "claim=all"),
            Claim::Left(why) => (false, why),
        }
    }

    /// What the model says about a Split.
    ///
    /// # Safety
    /// `node` must be a Split of the graph that these are the surroundings in.
    unsafe fn describe(
        &self,
        node: *const OrtNode,
        surroundings: &Surroundings,
    ) -> Result<Split, Error> {
        let (ort, mut version) = (self.ort, 0);
        // SAFETY: the caller's promise.
        let (inputs, outputs) = unsafe {
            ort_call!(ort, Node_GetSinceVersion, node, &raw mut version)?;
            (inputs(ort, node)?, outputs(ort, node)?)
        };
        let input = inputs.first().copied().unwrap_or(ptr::null());
        // SAFETY: values of the node's, and the node.
        let ((dtype, shape), axis, split, types) = unsafe {
            (
                type_of(ort, input)?,
                attribute(ort, node, c"axis", OrtOpAttrType::ORT_OP_ATTR_INT)?,
                attribute(ort, node, c"split", OrtOpAttrType::ORT_OP_ATTR_INTS)?,
                outputs.iter().map(|value| type_of(ort, *value)).collect::<Result<Vec<_>, _>>()?,
            )
        };
        let axis = axis.first().copied().unwrap_or(0);
        let length = |shape: &Shape| axis_index(axis, shape).map(|index| shape[index]);
        // The numbers of the types that Split has are libsplit's.
        let element = match libsplit_dtype(dtype) {
            libsplit_dtype::STRING => 0,
            dtype => u64::from(libsplit_dtype_bits(dtype) / 8),
        };
        Ok(Split {
            version,
            element,
            shape: shape.to_vec(),
            axis,
            lengths: types.iter().map(|(_, shape)| length(shape).unwrap_or(-1)).collect(),
            has_unused: outputs.iter().any(|value| value.is_null()),
            release: ort.release,
            // SAFETY: values of the node's.
            crossed: unsafe { surroundings.crossed(dtype, input, &outputs) }?,
            has_lengths: !split.is_empty() || inputs.get(1).is_some_and(|value| !value.is_null()),
        })
    }

    /// Says of a `SplitToSequence` what would become of it.
    ///
    /// # Safety
    /// `node` must be a node of the graph that is asked about.
    unsafe fn log_sequence(&self, node: *const OrtNode) -> Result<(), Error> {
        let mut operator = ptr::null();
        // SAFETY: the caller's promise; the name lives as long as the node.
        let operator = unsafe {
            ort_call!(self.ort, Node_GetOperatorType, node, &raw mut operator)?;
            text(operator)
        };
        if operator != "SplitToSequence" {
            return Ok(());
        }
        let why = "providers cannot fill a sequence in ONNX Runtime; rewrite_sequences=True, or \
                   python -m libsplit_onnxruntime.rewrite, turns it into Split if possible";
        // SAFETY: as above.
        unsafe { self.log(node, &operator, false, why) }
    }

    /// What a person would call the node: its name, or else that of its first output.
    ///
    /// # Safety
    /// `node` must be a node of the graph that is asked about.
    unsafe fn title(&self, node: *const OrtNode) -> Result<String, Error> {
        let (ort, mut name) = (self.ort, ptr::null());
        // SAFETY: the caller's promise; names live as long as the node.
        unsafe {
            ort_call!(ort, Node_GetName, node, &raw mut name)?;
            if !text(name).is_empty() {
                return Ok(format!("node '{}'", text(name)));
            }
            if let Some(first) = outputs(ort, node)?.into_iter().find(|output| !output.is_null()) {
                ort_call!(ort, GetValueInfoName, first, &raw mut name)?;
            }
            Ok(format!("the node without a name that gives '{}'", text(name)))
        }
    }

    /// # Safety
    /// `node` must be a node of the graph that is asked about.
    unsafe fn log(
        &self,
        node: *const OrtNode,
        operator: &str,
        is_taken: bool,
        why: &str,
    ) -> Result<(), Error> {
        let level = if self.as_warnings {
            OrtLoggingLevel::ORT_LOGGING_LEVEL_WARNING
        } else {
            OrtLoggingLevel::ORT_LOGGING_LEVEL_INFO
        };
        let mut version = 0;
        // SAFETY: the caller's promise.
        let message = unsafe {
            ort_call!(self.ort, Node_GetSinceVersion, node, &raw mut version)?;
            let verb = if is_taken { "takes" } else { "leaves" };
            format!("libsplit {verb} {} ({operator}-{version}): {why}", self.title(node)?)
        };
        let message = CString::new(message).unwrap_or_default();
        let (file, function) = (c"capability.rs".as_ptr(), c"log".as_ptr());
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

/// The type of a value, and as much of its shape as the model declares.
///
/// # Safety
/// `value` must be NULL or a value of the graph that is asked about.
unsafe fn type_of(ort: Ort, value: *const OrtValueInfo) -> Result<(i32, Shape), Error> {
    if value.is_null() {
        return Ok((0, Shape::new()));
    }
    let mut info = ptr::null();
    // SAFETY: the caller's promise; the information lives as long as the value.
    unsafe {
        ort_call!(ort, GetValueInfoTypeInfo, value, &raw mut info)?;
        tensor::declared(ort, info)
    }
}

/// The integers of an attribute; none if the node does not have it.
///
/// # Safety
/// `node` must be a node of the graph that is asked about.
unsafe fn attribute(
    ort: Ort,
    node: *const OrtNode,
    name: &CStr,
    kind: OrtOpAttrType,
) -> Result<Vec<i64>, Error> {
    let mut attribute = ptr::null();
    // SAFETY: the caller's promise. An absent attribute is an error, or NULL.
    let found =
        unsafe { ort_call!(ort, Node_GetAttributeByName, node, name.as_ptr(), &raw mut attribute) };
    if found.is_err() || attribute.is_null() {
        return Ok(Vec::new());
    }
    let mut values = vec![0i64; 1];
    let mut size = 0;
    // SAFETY: the node's own attribute. Where there is too little room, the size is told.
    unsafe {
        let room = values.len() * size_of::<i64>();
        let out = values.as_mut_ptr().cast();
        if ort_call!(ort, ReadOpAttr, attribute, kind, out, room, &raw mut size).is_err() {
            values.resize(size / size_of::<i64>(), 0);
            let out = values.as_mut_ptr().cast();
            ort_call!(ort, ReadOpAttr, attribute, kind, out, size, &raw mut size)?;
        }
    }
    values.truncate(size / size_of::<i64>());
    Ok(values)
}
