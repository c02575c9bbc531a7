//! The structures of ONNX Runtime's interface for plugin execution providers, written by hand.
//!
//! They are those of API version 24 (ONNX Runtime 1.24, header `onnxruntime_ep_c_api.h`), which
//! `ort-sys` has as opaque types or not at all. Every later version keeps them: it only appends,
//! and looks at `version` before it reads past what that version had. Fields that this adapter
//! has no use for have the type [`Unused`].

use core::ffi::{c_char, c_int, c_void};
use ort_sys::{
    OrtEpDevice, OrtGraph, OrtHardwareDevice, OrtKernelContext, OrtKernelInfo, OrtKeyValuePairs,
    OrtLogger, OrtNode, OrtSessionOptions, OrtStatusPtr,
};

/// The API version that the structures here are of, and that is asked for.
pub const VERSION: u32 = 24;

/// A function that this adapter neither calls nor provides.
pub type Unused = Option<unsafe extern "system" fn()>;

macro_rules! opaque {
    ($($name:ident)*) => {$(
        #[repr(C)]
        pub struct $name {
            _private: [u8; 0],
        }
    )*};
}

opaque! { OrtKernelRegistry OrtKernelDefBuilder OrtKernelDef OrtDataType OrtEpGraphSupportInfo }

/// Makes the kernel of a node.
pub type OrtKernelCreateFunc = unsafe extern "system" fn(
    state: *mut c_void,
    info: *const OrtKernelInfo,
    kernel: *mut *mut OrtKernelImpl,
) -> OrtStatusPtr;

/// What ONNX Runtime calls on a kernel.
#[repr(C)]
pub struct OrtKernelImpl {
    pub version: u32,
    /// ONNX Runtime's own; 0 at first.
    pub flags: u32,
    pub compute:
        unsafe extern "system" fn(*mut OrtKernelImpl, *mut OrtKernelContext) -> OrtStatusPtr,
    pub release: unsafe extern "system" fn(*mut OrtKernelImpl),
    pub pre_pack_weight: Unused,
    pub set_shared_pre_packed_weight: Unused,
}

/// What ONNX Runtime calls on a provider, which is one session's.
#[repr(C)]
pub struct OrtEp {
    pub version: u32,
    pub get_name: unsafe extern "system" fn(*const OrtEp) -> *const c_char,
    pub get_capability: unsafe extern "system" fn(
        *mut OrtEp,
        *const OrtGraph,
        *mut OrtEpGraphSupportInfo,
    ) -> OrtStatusPtr,
    pub compile: Unused,
    pub release_node_compute_infos: Unused,
    pub get_preferred_data_layout: Unused,
    pub should_convert_data_layout_for_op: Unused,
    pub set_dynamic_options: Unused,
    pub on_run_start: Unused,
    pub on_run_end: Unused,
    pub create_allocator: Unused,
    pub create_sync_stream_for_device: Unused,
    pub get_compiled_model_compatibility_info: Unused,
    pub get_kernel_registry:
        unsafe extern "system" fn(*mut OrtEp, *mut *const OrtKernelRegistry) -> OrtStatusPtr,
    /// Absent: they are.
    pub is_concurrent_run_supported: Unused,
}

/// What ONNX Runtime calls on the library as a whole, from registration to its end.
#[repr(C)]
pub struct OrtEpFactory {
    pub version: u32,
    pub get_name: unsafe extern "system" fn(*const OrtEpFactory) -> *const c_char,
    pub get_vendor: unsafe extern "system" fn(*const OrtEpFactory) -> *const c_char,
    pub get_supported_devices: unsafe extern "system" fn(
        *mut OrtEpFactory,
        devices: *const *const OrtHardwareDevice,
        num_devices: usize,
        ep_devices: *mut *mut OrtEpDevice,
        max_ep_devices: usize,
        num_ep_devices: *mut usize,
    ) -> OrtStatusPtr,
    pub create_ep: unsafe extern "system" fn(
        *mut OrtEpFactory,
        devices: *const *const OrtHardwareDevice,
        metadata: *const *const OrtKeyValuePairs,
        num_devices: usize,
        *const OrtSessionOptions,
        *const OrtLogger,
        ep: *mut *mut OrtEp,
    ) -> OrtStatusPtr,
    pub release_ep: unsafe extern "system" fn(*mut OrtEpFactory, *mut OrtEp),
    pub get_vendor_id: unsafe extern "system" fn(*const OrtEpFactory) -> u32,
    pub get_version: unsafe extern "system" fn(*const OrtEpFactory) -> *const c_char,
    pub validate_compiled_model_compatibility_info: Unused,
    pub create_allocator: unsafe extern "system" fn(
        *mut OrtEpFactory,
        memory_info: *const c_void,
        options: *const OrtKeyValuePairs,
        allocator: *mut *mut c_void,
    ) -> OrtStatusPtr,
    pub release_allocator: unsafe extern "system" fn(*mut OrtEpFactory, allocator: *mut c_void),
    pub create_data_transfer:
        unsafe extern "system" fn(*mut OrtEpFactory, transfer: *mut *mut c_void) -> OrtStatusPtr,
    pub is_stream_aware: unsafe extern "system" fn(*const OrtEpFactory) -> bool,
    pub create_sync_stream_for_device: Unused,
    pub get_hardware_device_incompatibility_details: Unused,
    pub create_external_resource_importer_for_device: Unused,
    pub get_num_custom_op_domains: Unused,
    pub get_custom_op_domains: Unused,
}

/// What a provider may call: the first 42 functions, up to the last that this adapter uses.
#[repr(C)]
pub struct OrtEpApi {
    pub create_ep_device: unsafe extern "system" fn(
        *mut OrtEpFactory,
        *const OrtHardwareDevice,
        metadata: *const OrtKeyValuePairs,
        options: *const OrtKeyValuePairs,
        device: *mut *mut OrtEpDevice,
    ) -> OrtStatusPtr,
    pub release_ep_device: Unused,
    pub graph_support_info_add_nodes_to_fuse: Unused,
    pub graph_support_info_add_single_node:
        unsafe extern "system" fn(*mut OrtEpGraphSupportInfo, *const OrtNode) -> OrtStatusPtr,
    pub node_compute_context_node_name: Unused,
    pub ep_device_add_allocator_info: Unused,
    pub memory_info_get_memory_device: Unused,
    pub value_get_memory_device: Unused,
    pub memory_device_are_equal: Unused,
    pub memory_device_get_device_type: Unused,
    pub memory_device_get_memory_type: Unused,
    pub memory_device_get_vendor_id: Unused,
    pub memory_device_get_device_id: Unused,
    pub sync_stream_get_impl: Unused,
    pub sync_stream_get_sync_id: Unused,
    pub get_sync_id_for_last_wait_on_sync_stream: Unused,
    pub create_hardware_device: Unused,
    pub release_hardware_device: Unused,
    pub create_kernel_registry:
        unsafe extern "system" fn(registry: *mut *mut OrtKernelRegistry) -> OrtStatusPtr,
    pub release_kernel_registry: unsafe extern "system" fn(*mut OrtKernelRegistry),
    pub kernel_registry_add_kernel: unsafe extern "system" fn(
        *mut OrtKernelRegistry,
        *const OrtKernelDef,
        OrtKernelCreateFunc,
        state: *mut c_void,
    ) -> OrtStatusPtr,
    pub create_kernel_def_builder:
        unsafe extern "system" fn(builder: *mut *mut OrtKernelDefBuilder) -> OrtStatusPtr,
    pub release_kernel_def_builder: unsafe extern "system" fn(*mut OrtKernelDefBuilder),
    pub kernel_def_builder_set_operator_type:
        unsafe extern "system" fn(*mut OrtKernelDefBuilder, *const c_char) -> OrtStatusPtr,
    pub kernel_def_builder_set_domain:
        unsafe extern "system" fn(*mut OrtKernelDefBuilder, *const c_char) -> OrtStatusPtr,
    pub kernel_def_builder_set_since_version: unsafe extern "system" fn(
        *mut OrtKernelDefBuilder,
        start: c_int,
        end: c_int,
    ) -> OrtStatusPtr,
    pub kernel_def_builder_set_execution_provider:
        unsafe extern "system" fn(*mut OrtKernelDefBuilder, *const c_char) -> OrtStatusPtr,
    pub kernel_def_builder_set_input_mem_type: Unused,
    pub kernel_def_builder_set_output_mem_type: Unused,
    pub kernel_def_builder_add_type_constraint: unsafe extern "system" fn(
        *mut OrtKernelDefBuilder,
        name: *const c_char,
        types: *const *const OrtDataType,
        num_types: usize,
    ) -> OrtStatusPtr,
    pub kernel_def_builder_add_input_output_aliases: Unused,
    pub kernel_def_builder_add_input_output_mutable_aliases: Unused,
    pub kernel_def_builder_build: unsafe extern "system" fn(
        *mut OrtKernelDefBuilder,
        def: *mut *mut OrtKernelDef,
    ) -> OrtStatusPtr,
    pub release_kernel_def: unsafe extern "system" fn(*mut OrtKernelDef),
    pub kernel_def_get_operator_type:
        unsafe extern "system" fn(*const OrtKernelDef) -> *const c_char,
    pub kernel_def_get_domain: unsafe extern "system" fn(*const OrtKernelDef) -> *const c_char,
    pub kernel_def_get_since_version: unsafe extern "system" fn(
        *const OrtKernelDef,
        start: *mut c_int,
        end: *mut c_int,
    ) -> OrtStatusPtr,
    pub kernel_def_get_execution_provider:
        unsafe extern "system" fn(*const OrtKernelDef) -> *const c_char,
    pub kernel_def_get_input_mem_type: Unused,
    pub kernel_def_get_output_mem_type: Unused,
    pub get_tensor_data_type:
        unsafe extern "system" fn(dtype: i32, *mut *const OrtDataType) -> OrtStatusPtr,
    pub graph_support_info_look_up_kernel: unsafe extern "system" fn(
        *mut OrtEpGraphSupportInfo,
        *const OrtNode,
        def: *mut *const OrtKernelDef,
    ) -> OrtStatusPtr,
}

// The header of version 24, counted: one word each function, and one for the version in front.
const _: () = {
    const WORD: usize = size_of::<Unused>();
    assert!(size_of::<OrtEpApi>() == 42 * WORD);
    assert!(core::mem::offset_of!(OrtEpApi, create_kernel_registry) == 18 * WORD);
    assert!(core::mem::offset_of!(OrtEpApi, kernel_def_builder_build) == 32 * WORD);
    assert!(size_of::<OrtEp>() == 15 * WORD);
    assert!(core::mem::offset_of!(OrtEp, get_kernel_registry) == 13 * WORD);
    assert!(size_of::<OrtEpFactory>() == 18 * WORD);
    assert!(core::mem::offset_of!(OrtEpFactory, is_stream_aware) == 12 * WORD);
    assert!(size_of::<OrtKernelImpl>() == 8 + 4 * WORD);
    assert!(core::mem::offset_of!(OrtKernelImpl, compute) == 8);
};
