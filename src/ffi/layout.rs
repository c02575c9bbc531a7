//! The layout of the structures in numbers, the same as in `c-tests/abi_layout.c`: the library
//! does not build with another. These are the numbers of 64-bit pointers.
#![cfg(target_pointer_width = "64")]

use super::types::{
    libsplit_dtype, libsplit_error, libsplit_executor, libsplit_op, libsplit_params,
    libsplit_status, libsplit_string, libsplit_tensor,
};
use core::mem::offset_of;

/// Asserts the size of a type, and the offsets of its fields.
macro_rules! layout {
    ($name:ident $size:literal $($field:ident $offset:literal)*) => {
        const _: () = {
            assert!(size_of::<$name>() == $size);
            $(assert!(offset_of!($name, $field) == $offset);)*
        };
    };
}

layout! { libsplit_status 4 }
layout! { libsplit_dtype 4 }
layout! { libsplit_op 4 }
layout! { libsplit_string 16 data 0 size 8 }
layout! { libsplit_tensor 48
data 0 data_bytes 8 shape 16 strides 24 rank 32 capacity 36 dtype 40 bit_offset 44 }
layout! { libsplit_params 48
struct_size 0 op 8 opset 12 axis 16 split 24 num_outputs 32 keepdims 40 flags 44 }
layout! { libsplit_error 272
struct_size 0 status 8 output_index 12 expected 16 actual 24 message 32 }
layout! { libsplit_executor 32
struct_size 0 parallel_for 8 pool 16 max_tasks 24 flags 28 }
