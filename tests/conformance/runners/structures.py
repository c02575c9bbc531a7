"""The structures of libsplit.h, for ctypes."""

from ctypes import CFUNCTYPE, POINTER, Structure, c_char, c_char_p, c_int32, c_int64, c_size_t, \
    c_uint32, c_void_p


class Tensor(Structure):
    _fields_ = [("data", c_void_p), ("data_bytes", c_size_t), ("shape", POINTER(c_int64)),
                ("strides", POINTER(c_int64)), ("rank", c_int32), ("capacity", c_int32),
                ("dtype", c_int32), ("bit_offset", c_uint32)]


class Params(Structure):
    _fields_ = [("struct_size", c_size_t), ("op", c_int32), ("opset", c_int32), ("axis", c_int64),
                ("split", POINTER(Tensor)), ("num_outputs", c_int64), ("keepdims", c_int32),
                ("flags", c_uint32)]


class Error(Structure):
    _fields_ = [("struct_size", c_size_t), ("status", c_int32), ("output_index", c_int32),
                ("expected", c_int64), ("actual", c_int64), ("words", c_uint32),
                ("reserved", c_uint32), ("message", c_char * 240)]


class String(Structure):
    _fields_ = [("data", c_char_p), ("size", c_size_t)]


PARALLEL_FOR = CFUNCTYPE(c_int32, c_void_p, c_void_p, c_void_p, c_size_t)


class Executor(Structure):
    _fields_ = [("struct_size", c_size_t), ("parallel_for", PARALLEL_FOR), ("pool", c_void_p),
                ("max_tasks", c_uint32), ("flags", c_uint32)]
