"""Every status, provoked by a wrong call, with its message and the remedy."""

import ctypes
import pathlib
import re

from runners import c
from runners.structures import PARALLEL_FOR, Executor

HEADER = pathlib.Path(__file__).resolve().parents[2] / "include/libsplit.h"


class Call:
    """Split-18 of a float32 [2, 6] into two halves on axis 1, for a mistake to spoil."""

    def __init__(self, shape=(2, 6), dtype="float32", split=None, split_dtype="int64"):
        size = 4 * 2**20 if max(shape) > 6 else 64
        self.memory = (ctypes.c_uint8 * size)()
        self.buffers = [(ctypes.c_uint8 * size)() for _ in range(2)]
        self.input = c.tensor(dtype, shape, self.memory)
        self.params = c.Params(struct_size=ctypes.sizeof(c.Params), op=1, opset=18, axis=1,
                               num_outputs=2, keepdims=1)
        if split is not None:
            values = (ctypes.c_int64 * len(split))(*split)
            self.lengths = c.tensor(split_dtype, [len(split)], values)
            self.params.split, self.params.num_outputs = ctypes.pointer(self.lengths), 0
        self.outputs = (c.Tensor * 2)()
        self.shapes = [(ctypes.c_int64 * 4)() for _ in self.outputs]
        self.strides = [(ctypes.c_int64 * 4)() for _ in self.outputs]
        for output, extents, steps in zip(self.outputs, self.shapes, self.strides):
            output.shape, output.strides, output.capacity = extents, steps, 4
        self.count, self.executor = 2, None

    def run(self, function):
        head = [ctypes.byref(self.input), ctypes.byref(self.params)]
        if function == "count":
            c.call("count", *head, ctypes.byref(ctypes.c_size_t()))
        if function == "copy":
            self.run("infer")
            for output, buffer in zip(self.outputs, self.buffers):
                output.data = output.data or ctypes.addressof(buffer)
            self.late(self)
            c.call("copy", *head, self.outputs, self.count, self.executor)
        elif function != "count":
            c.call(function, *head, self.outputs, self.count)

    late = staticmethod(lambda call: None)


def spoilt(function="infer", late=None, **fields):
    """Makes a wrong call by setting fields of its input (input_...), parameters, or arguments of Call."""
    def provoke():
        takes = {name: fields[name] for name in ("shape", "dtype", "split") if name in fields}
        call = Call(**takes)
        for name, value in fields.items():
            if name.startswith("input_"):
                setattr(call.input, name.removeprefix("input_"), value)
            elif name not in takes:
                setattr(call.params, name, value)
        if late:
            call.late = late
        call.run(function)
    return provoke


def null():
    call = Call()
    c.call("count", ctypes.byref(call.input), ctypes.byref(call.params), None)


def misaligned():
    call = Call()
    odd = ctypes.c_void_p(ctypes.addressof(call.params) + 1)
    c.call("infer", ctypes.byref(call.input), odd, call.outputs, 2)


def too_few():
    call = Call()
    call.count = 1
    call.run("infer")


def no_room():
    call = Call()
    call.outputs[0].capacity = 1
    call.run("infer")


def no_strides():
    call = Call()
    call.outputs[0].strides = None
    call.run("view")


def lazy(call):
    """An executor that gives up."""
    call.kept = PARALLEL_FOR(lambda *arguments: 1)
    call.executor = ctypes.byref(Executor(ctypes.sizeof(Executor), call.kept, None, 4, 0))


def no_plan():
    call = Call()
    zeros = (ctypes.c_uint64 * 512)()
    addresses = (ctypes.c_void_p * 2)(*[ctypes.addressof(b) for b in call.buffers])
    c.call("plan_view", zeros, call.memory, addresses, 2)


def over_input(call):
    call.outputs[1].data = ctypes.addressof(call.memory) + 4


def between_elements():
    """An output between the 4-bit elements of an input with strides."""
    call = Call(shape=(2, 2), dtype="uint4")
    call.params.op, call.params.opset, call.params.axis = 4, 1, 0
    call.input.strides = (ctypes.c_int64 * 2)(8, 1)
    call.outputs[0].data = ctypes.addressof(call.memory) + 2
    call.run("copy")


def other_shape(call):
    call.shapes[1][1] = 2


def unknown():
    call = Call()
    call.params.op, call.params.num_outputs = 2, 0
    call.input = c.tensor("float32", [2, None])
    call.run("count")


STATUSES = {
    "NULL": (null, "A required pointer is NULL: pass it."),
    "ALIGNMENT": (misaligned, "Structures, shapes and strides must be aligned as their types "
                  "require. Data needs no alignment."),
    "STRUCT_SIZE": (spoilt(struct_size=4), "Start from `LIBSPLIT_PARAMS_INIT`, "
                    "`LIBSPLIT_ERROR_INIT` or `LIBSPLIT_EXECUTOR_INIT`."),
    "OPERATOR": (spoilt(op=9), "One of the `LIBSPLIT_OP_` numbers."),
    "OPSET": (spoilt(opset=0), "The model's opset import, or 1 for OpenVINO."),
    "FLAGS": (spoilt(flags=64), "Remove the flag, or use the library that knows it."),
    "DTYPE": (spoilt(dtype="bfloat16", opset=11), "Use the operator version that the message "
              "names; VariadicSplit takes every type."),
    "RANK": (spoilt(input_rank=0), "A tensor without axes cannot be split: give it an axis of "
             "extent 1. At most 64 axes are allowed."),
    "AXIS": (spoilt(axis=2), "From -rank to rank-1."),
    "SHAPE": (spoilt(shape=(2, -5)), "Extents are 0 or more; -1 (unknown) is allowed only when "
              "inferring shapes or counting outputs."),
    "SPLIT": (spoilt(num_outputs=0), "Pass what the operator expects: lengths or a number of "
              "parts, a list or a scalar, of a type that it allows."),
    "SPLIT_SIZES": (spoilt(split=[2, 3]), "Make the lengths add up, or use VariadicSplit with -1 "
                    "for the rest; if a part would be negative, see "
                    "`LIBSPLIT_FLAG_CLAMP_UNEVEN`."),
    "NUM_OUTPUTS": (too_few, "Pass as many descriptors as `libsplit_count` returns."),
    "CAPACITY": (no_room, "Provide room for as many extents as the input has axes; that is "
                 "always enough."),
    "STRIDES": (no_strides, "Provide an array for the strides of each view; in outputs of a "
                "copy, no two elements may share an address."),
    "BIT_OFFSET": (spoilt("view", input_bit_offset=4), "It must be 0, except for 4-bit and 2-bit "
                   "elements."),
    "DATA_BYTES": (spoilt("view", input_data_bytes=8), "The buffer is smaller than what the shape "
                   "and strides reach; 0 means that its size is not stated."),
    "OVERFLOW": (spoilt(shape=(2**40, 2**40)), "Sizes and addresses must fit in 63 bits."),
    "OVERLAP": (spoilt("copy", over_input), "Outputs must not overlap the input or one another."),
    "NOT_SHOWN_APART": (between_elements, "The output may overlap something: give it other memory, or, if "
                        "that is another output, copy it in a call of its own."),
    "OUTPUT": (spoilt("copy", other_shape), "The output's shape is not what the operator returns: "
               "let `libsplit_infer` fill it in."),
    "COUNT_UNKNOWN": (unknown, "The number of pieces "
                "depends on an extent that is not known yet: call again when it is."),
    "EXECUTOR": (spoilt("copy", lazy, shape=(2, 500000)), "Your `parallel_for` returned something "
                 "other than 0, or returned before all tasks had run. The outputs are undefined."),
    "PLAN": (no_plan, "A plan must be made by `libsplit_plan_init` of the same library, in as many "
             "bytes as `libsplit_plan_size` returns."),
    "INTERNAL": (None, "A bug in libsplit: please report it."),
}


def said(name, provoke):
    try:
        provoke()
    except c.Failure as failure:
        assert failure.status_name == name, (name, failure.status_name, str(failure))
        return f"“{failure}”"
    raise SystemExit(f"{name} was not provoked")


def table():
    declared = set(re.findall(r"define LIBSPLIT_STATUS_ERROR_(\w+)", HEADER.read_text()))
    assert declared <= set(STATUSES), f"no remedy for: {declared - set(STATUSES)}"
    lines = ["| Status | Message, for example | What to do |", "| --- | --- | --- |"]
    for name, (provoke, remedy) in STATUSES.items():
        if name not in declared:
            continue
        message = said(name, provoke) if provoke else "–"
        lines.append(f"| `{name}` | {message} | {remedy} |")
    return "\n".join(lines) + "\n"
