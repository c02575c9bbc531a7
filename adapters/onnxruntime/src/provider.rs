//! The plugin execution provider: one factory a registration, one provider a session, one kernel a
//! node.

use crate::abi::{
    OrtEp, OrtEpApi, OrtEpFactory, OrtEpGraphSupportInfo, OrtKernelDef, OrtKernelImpl,
    OrtKernelRegistry, VERSION,
};
use crate::capability::Capability;
use crate::node::Node;
use crate::ort::{guard, ort_call, text, Error, Ort};
use crate::params::Rules;
use core::ffi::{c_char, c_void, CStr};
use core::ptr;
use libsplit::Operator;
use ort_sys::{
    OrtEpDevice, OrtGraph, OrtHardwareDevice, OrtHardwareDeviceType, OrtKernelContext,
    OrtKernelInfo, OrtKeyValuePairs, OrtLogger, OrtSessionOptions, OrtStatusPtr,
};

/// The provider's name, which applications choose it by.
pub const NAME: &CStr = c"LibsplitExecutionProvider";

const PACKAGE_VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => c"",
    };

/// The versions of ONNX Split that libsplit knows, which are the opsets at which another one begins to govern. A version
/// that ONNX may add is left to ONNX Runtime.
fn split_versions() -> impl Iterator<Item = i32> {
    (1..100).filter(|opset| Operator::onnx_split(*opset) != Operator::onnx_split(opset - 1))
}

/// The types that both ONNX Runtime and the schema of Split have, by ONNX's numbers: the 14 from float to
/// bfloat16 except the complex ones.
const DTYPES: [i32; 14] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 16];

/// Lives from registration to its end, and longer than every session with the provider.
#[repr(C)]
pub struct Factory {
    base: OrtEpFactory,
    ort: Ort,
    api: &'static OrtEpApi,
    registry: Registry,
}

impl Factory {
    /// Makes the kernel registry too, which proves that ONNX Runtime's functions are where this
    /// adapter looks for them.
    pub fn new(ort: Ort) -> Result<Box<Self>, Error> {
        let api = ort.ep_api()?;
        let base = OrtEpFactory {
            version: VERSION,
            get_name: factory_name,
            get_vendor,
            get_supported_devices,
            create_ep,
            release_ep,
            get_vendor_id,
            get_version,
            validate_compiled_model_compatibility_info: None,
            create_allocator,
            release_allocator,
            create_data_transfer,
            is_stream_aware,
            create_sync_stream_for_device: None,
            get_hardware_device_incompatibility_details: None,
            create_external_resource_importer_for_device: None,
            get_num_custom_op_domains: None,
            get_custom_op_domains: None,
        };
        Ok(Box::new(Self { base, ort, api, registry: Registry::new(ort, api)? }))
    }

    pub fn into_raw(self: Box<Self>) -> *mut OrtEpFactory {
        Box::into_raw(self).cast()
    }

    /// # Safety
    /// `factory` must come from [`Factory::into_raw`] and not be used any more.
    pub unsafe fn release(factory: *mut OrtEpFactory) {
        // SAFETY: the caller's promise.
        drop(unsafe { Box::from_raw(factory.cast::<Self>()) });
    }

    /// # Safety
    /// `factory` must come from [`Factory::into_raw`].
    unsafe fn of<'a>(factory: *mut OrtEpFactory) -> &'a Self {
        // SAFETY: the caller's promise; `base` comes first.
        unsafe { &*factory.cast::<Self>() }
    }
}

/// Which kernels there are.
struct Registry {
    api: &'static OrtEpApi,
    kernels: *mut OrtKernelRegistry,
    /// What kernels are made with.
    ort: Box<Ort>,
}

impl Drop for Registry {
    fn drop(&mut self) {
        // SAFETY: it is ours, and not used any more.
        unsafe { (self.api.release_kernel_registry)(self.kernels) };
    }
}

impl Registry {
    fn new(ort: Ort, api: &'static OrtEpApi) -> Result<Self, Error> {
        let mut registry = ptr::null_mut();
        // SAFETY: it has an address to write to.
        ort.check(unsafe { (api.create_kernel_registry)(&raw mut registry) })?;
        let registry = Self { api, kernels: registry, ort: Box::new(ort) };
        for version in split_versions() {
            let def = KernelDef::new(ort, api, version)?;
            def.read_back(ort, version)?;
            let state = (&raw const *registry.ort).cast_mut().cast();
            // SAFETY: the definition is copied; the state lives as long as the registry.
            ort.check(unsafe {
                (api.kernel_registry_add_kernel)(registry.kernels, def.def, create_kernel, state)
            })?;
        }
        Ok(registry)
    }
}

/// What ONNX Runtime knows of a kernel.
struct KernelDef {
    api: &'static OrtEpApi,
    def: *mut OrtKernelDef,
}

impl Drop for KernelDef {
    fn drop(&mut self) {
        // SAFETY: it is ours, and not used any more.
        unsafe { (self.api.release_kernel_def)(self.def) };
    }
}

impl KernelDef {
    /// The kernel for this version of Split.
    fn new(ort: Ort, api: &'static OrtEpApi, version: i32) -> Result<Self, Error> {
        let mut types = [ptr::null(); DTYPES.len()];
        for (dtype, out) in DTYPES.into_iter().zip(&mut types) {
            // SAFETY: it has an address to write to; unknown numbers give a status.
            ort.check(unsafe { (api.get_tensor_data_type)(dtype, out) })?;
        }
        let (mut builder, mut def) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: it has an address to write to.
        ort.check(unsafe { (api.create_kernel_def_builder)(&raw mut builder) })?;
        // SAFETY: a builder of our own, and texts and types that it copies.
        let built = unsafe {
            ort.check((api.kernel_def_builder_set_operator_type)(builder, c"Split".as_ptr()))
                .and_then(|()| {
                    ort.check((api.kernel_def_builder_set_domain)(builder, c"".as_ptr()))
                })
                .and_then(|()| {
                    ort.check((api.kernel_def_builder_set_since_version)(builder, version, version))
                })
                .and_then(|()| {
                    let set = api.kernel_def_builder_set_execution_provider;
                    ort.check(set(builder, NAME.as_ptr()))
                })
                .and_then(|()| {
                    let add = api.kernel_def_builder_add_type_constraint;
                    ort.check(add(builder, c"T".as_ptr(), types.as_ptr(), types.len()))
                })
                .and_then(|()| ort.check((api.kernel_def_builder_build)(builder, &raw mut def)))
        };
        // SAFETY: it is ours, and not used any more.
        unsafe { (api.release_kernel_def_builder)(builder) };
        built.map(|()| Self { api, def })
    }

    /// Whether ONNX Runtime has understood: if its functions were in other places than this adapter
    /// believes, something else would come back.
    fn read_back(&self, ort: Ort, version: i32) -> Result<(), Error> {
        let Self { api, def } = *self;
        let mut since = [0; 2];
        let [start, end] = &mut since;
        // SAFETY: a definition of our own, and strings that live as long.
        let read = unsafe {
            ort.check((api.kernel_def_get_since_version)(def, start, end))?;
            [
                text((api.kernel_def_get_operator_type)(def)),
                text((api.kernel_def_get_domain)(def)),
                text((api.kernel_def_get_execution_provider)(def)),
            ]
        };
        if read != ["Split".into(), "".into(), NAME.to_string_lossy()] || since != [version; 2] {
            return Err(Error::Refused(
                "cannot talk to this ONNX Runtime: a kernel definition came back changed".into(),
            ));
        }
        Ok(())
    }
}

unsafe extern "system" fn factory_name(_: *const OrtEpFactory) -> *const c_char {
    NAME.as_ptr()
}

unsafe extern "system" fn get_vendor(_: *const OrtEpFactory) -> *const c_char {
    c"libsplit".as_ptr()
}

/// libsplit makes no devices, so it has no number on the PCI bus.
unsafe extern "system" fn get_vendor_id(_: *const OrtEpFactory) -> u32 {
    0
}

unsafe extern "system" fn get_version(_: *const OrtEpFactory) -> *const c_char {
    PACKAGE_VERSION.as_ptr()
}

/// The CPU.
unsafe extern "system" fn get_supported_devices(
    factory: *mut OrtEpFactory,
    devices: *const *const OrtHardwareDevice,
    num_devices: usize,
    ep_devices: *mut *mut OrtEpDevice,
    max_ep_devices: usize,
    num_ep_devices: *mut usize,
) -> OrtStatusPtr {
    // SAFETY: ONNX Runtime passes what `CreateEpFactories` has given to it.
    let Factory { ort, api, .. } = unsafe { Factory::of(factory) };
    guard(*ort, || {
        // SAFETY: a valid array of this many devices, and an address to write to.
        let mut devices = unsafe {
            num_ep_devices.write(0);
            (0..num_devices).map(|i| devices.add(i).read())
        };
        // SAFETY: devices of ONNX Runtime's. (A type that is not known yet is not the CPU.)
        let is_cpu = |device: &*const OrtHardwareDevice| unsafe {
            let of_device: unsafe extern "system" fn(*const OrtHardwareDevice) -> i32 =
                core::mem::transmute((*ort.table()).HardwareDevice_Type);
            of_device(*device) == OrtHardwareDeviceType::OrtHardwareDeviceType_CPU as i32
        };
        let Some(cpu) = devices.find(is_cpu).filter(|_| max_ep_devices > 0) else {
            return Ok(());
        };
        // SAFETY: there is room for a device, which is ONNX Runtime's from then on.
        unsafe {
            ort.check((api.create_ep_device)(factory, cpu, ptr::null(), ptr::null(), ep_devices))?;
            num_ep_devices.write(1);
        }
        Ok(())
    })
}

unsafe extern "system" fn create_ep(
    factory: *mut OrtEpFactory,
    _: *const *const OrtHardwareDevice,
    _: *const *const OrtKeyValuePairs,
    _: usize,
    options: *const OrtSessionOptions,
    logger: *const OrtLogger,
    ep: *mut *mut OrtEp,
) -> OrtStatusPtr {
    // SAFETY: as in `get_supported_devices`.
    let factory = unsafe { Factory::of(factory) };
    guard(factory.ort, || {
        // SAFETY: options and logger of the session that the provider is for.
        let capability = unsafe { Capability::new(factory.ort, factory.api, options, logger) }?;
        let base = OrtEp {
            version: VERSION,
            get_name: ep_name,
            get_capability,
            compile: None,
            release_node_compute_infos: None,
            get_preferred_data_layout: None,
            should_convert_data_layout_for_op: None,
            set_dynamic_options: None,
            on_run_start: None,
            on_run_end: None,
            create_allocator: None,
            create_sync_stream_for_device: None,
            get_compiled_model_compatibility_info: None,
            get_kernel_registry,
            is_concurrent_run_supported: None,
        };
        let provider = Box::new(Provider { base, factory, capability });
        // SAFETY: an address to write to; ONNX Runtime gives it back to `release_ep`.
        unsafe { ep.write(Box::into_raw(provider).cast()) };
        Ok(())
    })
}

unsafe extern "system" fn release_ep(_: *mut OrtEpFactory, ep: *mut OrtEp) {
    if !ep.is_null() {
        // SAFETY: from `create_ep`, and not used any more.
        drop(unsafe { Box::from_raw(ep.cast::<Provider<'_>>()) });
    }
}

/// ONNX Runtime's own allocator for the CPU serves.
unsafe extern "system" fn create_allocator(
    _: *mut OrtEpFactory,
    _: *const c_void,
    _: *const OrtKeyValuePairs,
    allocator: *mut *mut c_void,
) -> OrtStatusPtr {
    // SAFETY: an address to write to.
    unsafe { allocator.write(ptr::null_mut()) };
    OrtStatusPtr::default()
}

unsafe extern "system" fn release_allocator(_: *mut OrtEpFactory, _: *mut c_void) {}

/// Everything lies in the CPU's memory.
unsafe extern "system" fn create_data_transfer(
    _: *mut OrtEpFactory,
    transfer: *mut *mut c_void,
) -> OrtStatusPtr {
    // SAFETY: an address to write to.
    unsafe { transfer.write(ptr::null_mut()) };
    OrtStatusPtr::default()
}

unsafe extern "system" fn is_stream_aware(_: *const OrtEpFactory) -> bool {
    false
}

/// One session's provider.
#[repr(C)]
struct Provider<'a> {
    base: OrtEp,
    factory: &'a Factory,
    capability: Capability,
}

unsafe extern "system" fn ep_name(_: *const OrtEp) -> *const c_char {
    NAME.as_ptr()
}

/// Called for the model's graph and for every graph in an If, Loop or Scan.
unsafe extern "system" fn get_capability(
    ep: *mut OrtEp,
    graph: *const OrtGraph,
    info: *mut OrtEpGraphSupportInfo,
) -> OrtStatusPtr {
    // SAFETY: ONNX Runtime passes what `create_ep` has given to it.
    let provider = unsafe { &*ep.cast::<Provider<'_>>() };
    // SAFETY: a graph of ONNX Runtime's, and where the claims on it go.
    guard(provider.factory.ort, || unsafe { provider.capability.of_graph(graph, info) })
}

unsafe extern "system" fn get_kernel_registry(
    ep: *mut OrtEp,
    registry: *mut *const OrtKernelRegistry,
) -> OrtStatusPtr {
    // SAFETY: as in `get_capability`, and an address to write to.
    unsafe {
        let provider = &*ep.cast::<Provider<'_>>();
        registry.write(provider.factory.registry.kernels);
    }
    OrtStatusPtr::default()
}

/// A node with the functions that run it.
#[repr(C)]
struct Kernel {
    base: OrtKernelImpl,
    ort: Ort,
    node: Node,
}

unsafe extern "system" fn create_kernel(
    state: *mut c_void,
    info: *const OrtKernelInfo,
    kernel: *mut *mut OrtKernelImpl,
) -> OrtStatusPtr {
    // SAFETY: the state that the kernels were registered with.
    let ort = unsafe { *state.cast::<Ort>() };
    guard(ort, || {
        let mut version = 0;
        // SAFETY: the node that a kernel is wanted for.
        let node = unsafe {
            ort_call!(ort, KernelInfo_GetOperatorSinceVersion, info, &raw mut version)?;
            Node::new(ort, info, Rules::Onnx(version))?
        };
        let base = OrtKernelImpl {
            version: VERSION,
            flags: 0,
            compute,
            release,
            pre_pack_weight: None,
            set_shared_pre_packed_weight: None,
        };
        // SAFETY: an address to write to; ONNX Runtime gives it back to `release`.
        unsafe { kernel.write(Box::into_raw(Box::new(Kernel { base, ort, node })).cast()) };
        Ok(())
    })
}

unsafe extern "system" fn compute(
    kernel: *mut OrtKernelImpl,
    context: *mut OrtKernelContext,
) -> OrtStatusPtr {
    // SAFETY: ONNX Runtime passes what `create_kernel` has given to it, and the context of a run.
    unsafe {
        let kernel = &*kernel.cast::<Kernel>();
        guard(kernel.ort, || kernel.node.run(context))
    }
}

unsafe extern "system" fn release(kernel: *mut OrtKernelImpl) {
    // SAFETY: from `create_kernel`, and not used any more.
    drop(unsafe { Box::from_raw(kernel.cast::<Kernel>()) });
}
