//! The custom ops: `Split` and `VariadicSplit` of the domain `libsplit`, and on request a `Split`
//! that takes the place of ONNX Runtime's own.

use crate::node::Node;
use crate::ort::{guard, ort_call, Error, Ort, OLDEST};
use crate::params::Rules;
use core::ffi::{c_char, c_int, c_void, CStr};
use core::ptr;
use ort_sys::{
    ONNXTensorElementDataType as OrtDtype, OrtApi, OrtCustomOp, OrtCustomOpDomain,
    OrtCustomOpInputOutputCharacteristic as Characteristic, OrtKernelContext, OrtKernelInfo,
    OrtMemType, OrtSessionOptions, OrtStatusPtr,
};
use std::sync::{Mutex, PoisonError};

/// The domain of the operators.
const DOMAIN: &CStr = c"libsplit";
/// Set to "1" in the session's options, before the library is registered with them, it puts `Split`
/// in the place of ONNX Runtime's own.
const OVERRIDE: &CStr = c"libsplit.override_split";

/// An operator.
#[repr(C)]
struct Op {
    base: OrtCustomOp,
    ort: Ort,
    name: &'static CStr,
    rules: Rules,
}

impl Op {
    /// # Safety
    /// `op` must be the base of an `Op`.
    unsafe fn of<'a>(op: *const OrtCustomOp) -> &'a Self {
        // SAFETY: the caller's promise; `base` comes first.
        unsafe { &*op.cast() }
    }
}

/// The domains with their operators, made once for each ONNX Runtime in the process. Sessions refer
/// to them for as long as they live, and do not tell when that ends: they are never released.
struct Domains {
    ort: Ort,
    own: *mut OrtCustomOpDomain,
    /// The one of ONNX itself.
    default: *mut OrtCustomOpDomain,
}

// SAFETY: domains are not changed after they have been made.
unsafe impl Send for Domains {}

impl Domains {
    fn new(ort: Ort) -> Result<Self, Error> {
        let split = || new_op(ort, c"Split", Rules::AnySplit);
        let variadic = new_op(ort, c"VariadicSplit", Rules::VariadicSplit);
        let own = new_domain(ort, DOMAIN, &[split(), variadic])?;
        Ok(Self { ort, own, default: new_domain(ort, c"", &[split()])? })
    }
}

static DOMAINS: Mutex<Vec<Domains>> = Mutex::new(Vec::new());

/// Adds the operators to a session's options.
///
/// # Safety
/// `options` must be valid.
pub unsafe fn register(ort: Ort, options: *mut OrtSessionOptions) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let overrides = unsafe { is_override_wanted(ort, options) }?;
    let mut all = DOMAINS.lock().unwrap_or_else(PoisonError::into_inner);
    if all.iter().all(|domains| domains.ort != ort) {
        all.push(Domains::new(ort)?);
    }
    let Some(domains) = all.iter().find(|domains| domains.ort == ort) else { return Ok(()) };
    // SAFETY: the caller's promise; the domains are never released.
    unsafe {
        ort_call!(ort, AddCustomOpDomain, options, domains.own)?;
        if overrides {
            ort_call!(ort, AddCustomOpDomain, options, domains.default)?;
        }
    }
    Ok(())
}

/// # Safety
/// As [`register`].
unsafe fn is_override_wanted(ort: Ort, options: *const OrtSessionOptions) -> Result<bool, Error> {
    let mut has = 0;
    // SAFETY: the caller's promise.
    unsafe { ort_call!(ort, HasSessionConfigEntry, options, OVERRIDE.as_ptr(), &raw mut has) }?;
    if has == 0 {
        return Ok(false);
    }
    let mut size = 0;
    let name = OVERRIDE.as_ptr();
    // SAFETY: as above; the first call asks for the size.
    let value = unsafe {
        ort_call!(ort, GetSessionConfigEntry, options, name, ptr::null_mut(), &raw mut size)?;
        let mut value = vec![0u8; size];
        let buffer = value.as_mut_ptr().cast();
        ort_call!(ort, GetSessionConfigEntry, options, name, buffer, &raw mut size)?;
        value
    };
    match value.strip_suffix(b"\0").unwrap_or(&value) {
        b"0" => Ok(false),
        b"1" => Ok(true),
        other => Err(Error::Refused(format!(
            "session config entry libsplit.override_split is {:?}: give \"0\" or \"1\"",
            String::from_utf8_lossy(other)
        ))),
    }
}

fn new_domain(ort: Ort, name: &CStr, ops: &[&'static Op]) -> Result<*mut OrtCustomOpDomain, Error> {
    let mut domain = ptr::null_mut();
    // SAFETY: the name is copied.
    unsafe { ort_call!(ort, CreateCustomOpDomain, name.as_ptr(), &raw mut domain) }?;
    for op in ops {
        // SAFETY: the operator is static.
        unsafe { ort_call!(ort, CustomOpDomain_Add, domain, ptr::from_ref(*op).cast()) }?;
    }
    Ok(domain)
}

fn new_op(ort: Ort, name: &'static CStr, rules: Rules) -> &'static Op {
    let base = OrtCustomOp {
        version: OLDEST,
        CreateKernel: None,
        GetName: Some(get_name),
        GetExecutionProviderType: Some(get_execution_provider_type),
        GetInputType: Some(get_input_type),
        GetInputTypeCount: Some(get_input_type_count),
        GetOutputType: Some(get_output_type),
        GetOutputTypeCount: Some(get_output_type_count),
        KernelCompute: None,
        KernelDestroy: Some(destroy_kernel),
        GetInputCharacteristic: Some(get_input_characteristic),
        GetOutputCharacteristic: Some(get_output_characteristic),
        GetInputMemoryType: Some(get_input_memory_type),
        GetVariadicInputMinArity: None,
        GetVariadicInputHomogeneity: None,
        GetVariadicOutputMinArity: Some(one),
        GetVariadicOutputHomogeneity: Some(one),
        CreateKernelV2: Some(create_kernel),
        KernelComputeV2: Some(compute),
        // ONNX Runtime 1.24 does not pass the number of outputs to this function, and aborts.
        InferOutputShapeFn: None,
        GetStartVersion: Some(one),
        GetEndVersion: Some(any_version),
        GetMayInplace: None,
        ReleaseMayInplace: None,
        GetAliasMap: None,
        ReleaseAliasMap: None,
    };
    Box::leak(Box::new(Op { base, ort, name, rules }))
}

unsafe extern "system" fn get_name(op: *const OrtCustomOp) -> *const c_char {
    // SAFETY: ONNX Runtime passes an operator that it was given.
    unsafe { Op::of(op) }.name.as_ptr()
}

/// The CPU's.
unsafe extern "system" fn get_execution_provider_type(_: *const OrtCustomOp) -> *const c_char {
    ptr::null()
}

/// A tensor of any type, and lengths.
unsafe extern "system" fn get_input_type(_: *const OrtCustomOp, index: usize) -> OrtDtype {
    match index {
        0 => OrtDtype::ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED,
        _ => OrtDtype::ONNX_TENSOR_ELEMENT_DATA_TYPE_INT64,
    }
}

unsafe extern "system" fn get_input_type_count(_: *const OrtCustomOp) -> usize {
    2
}

unsafe extern "system" fn get_input_characteristic(
    op: *const OrtCustomOp,
    index: usize,
) -> Characteristic {
    // SAFETY: as in `get_name`.
    match (index, unsafe { Op::of(op) }.rules) {
        (0, _) | (_, Rules::VariadicSplit) => Characteristic::INPUT_OUTPUT_REQUIRED,
        _ => Characteristic::INPUT_OUTPUT_OPTIONAL,
    }
}

unsafe extern "system" fn get_input_memory_type(_: *const OrtCustomOp, _: usize) -> OrtMemType {
    OrtMemType::OrtMemTypeDefault
}

/// Pieces, as many as there are, all of the input's type.
unsafe extern "system" fn get_output_type(_: *const OrtCustomOp, _: usize) -> OrtDtype {
    OrtDtype::ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED
}

unsafe extern "system" fn get_output_type_count(_: *const OrtCustomOp) -> usize {
    1
}

unsafe extern "system" fn get_output_characteristic(
    _: *const OrtCustomOp,
    _: usize,
) -> Characteristic {
    Characteristic::INPUT_OUTPUT_VARIADIC
}

unsafe extern "system" fn one(_: *const OrtCustomOp) -> c_int {
    1
}

unsafe extern "system" fn any_version(_: *const OrtCustomOp) -> c_int {
    c_int::MAX
}

/// A node and the way to report its errors.
struct Kernel {
    ort: Ort,
    node: Node,
}

unsafe extern "system" fn create_kernel(
    op: *const OrtCustomOp,
    _: *const OrtApi,
    info: *const OrtKernelInfo,
    kernel: *mut *mut c_void,
) -> OrtStatusPtr {
    // SAFETY: as in `get_name`.
    let Op { ort, rules, .. } = unsafe { Op::of(op) };
    guard(*ort, || {
        // SAFETY: the node that a kernel is wanted for.
        let node = unsafe { Node::new(*ort, info, *rules) }?;
        // SAFETY: an address to write to; ONNX Runtime gives it back to `destroy_kernel`.
        unsafe { kernel.write(Box::into_raw(Box::new(Kernel { ort: *ort, node })).cast()) };
        Ok(())
    })
}

unsafe extern "system" fn compute(
    kernel: *mut c_void,
    context: *mut OrtKernelContext,
) -> OrtStatusPtr {
    // SAFETY: ONNX Runtime passes what `create_kernel` has given to it, and the context of a run.
    unsafe {
        let Kernel { ort, node } = &*kernel.cast::<Kernel>();
        guard(*ort, || node.run(context))
    }
}

unsafe extern "system" fn destroy_kernel(kernel: *mut c_void) {
    // SAFETY: from `create_kernel`, and not used any more.
    drop(unsafe { Box::from_raw(kernel.cast::<Kernel>()) });
}
