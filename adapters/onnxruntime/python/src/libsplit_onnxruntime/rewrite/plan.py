"""Decides whether Split can replace a SplitToSequence, and with which lengths."""

from __future__ import annotations

from dataclasses import dataclass

from onnx import GraphProto, NodeProto

from .graphs import attribute, is_op, uses, subgraphs
from .scope import Scope

_MOST_PIECES = 10_000


class LeftAlone(Exception):
    """The reason why it cannot."""


@dataclass
class Plan:
    axis: int
    lengths: list[int]
    keeps_axis: bool
    takers: dict[int, int | None]  # a node that takes a piece: its position; SequenceLength: None

    def __str__(self) -> str:
        pieces = ", ".join(map(str, self.lengths[:8])) + ", ..." * (len(self.lengths) > 8)
        squeezed = "" if self.keeps_axis else ", and Squeeze"
        return f"Split of axis {self.axis} into {pieces}{squeezed}"


def make_plan(node: NodeProto, graph: GraphProto, scope: Scope) -> Plan:
    axis: int = attribute(node, "axis", 0)
    shape = scope.shape(node.input[0])
    if shape is not None and not -len(shape) <= axis < len(shape):
        raise LeftAlone(f"a tensor of rank {len(shape)} has no axis {axis}")
    extent = None if shape is None else shape[axis]
    keeps_axis = attribute(node, "keepdims", 1) != 0

    if len(node.input) < 2 or not node.input[1]:
        lengths = _in_steps(1, axis, extent)
    elif (split := scope.constant(node.input[1])) is None:
        raise LeftAlone(f"the lengths, {node.input[1]}, are not constant")
    elif split.ndim == 0:
        if not keeps_axis:
            raise LeftAlone("it has a scalar as lengths, and keepdims=0: according to ONNX the pieces "
                            "keep the axis, but ONNX Runtime drops it")
        lengths = _in_steps(int(split), axis, extent)
    else:
        lengths = _listed(split.tolist(), axis, extent)
        keeps_axis = True
    return Plan(axis, lengths, keeps_axis, _takers(node, graph, scope, len(lengths)))


def _in_steps(step: int, axis: int, extent: int | None) -> list[int]:
    if step < 1:
        raise LeftAlone(f"the length of its pieces is {step}, but must be positive")
    if extent is None:
        raise LeftAlone(f"the extent of axis {axis} is not known, so the number of pieces is not either")
    _check_number(-(-extent // step))
    return [min(step, extent - start) for start in range(0, extent, step)]


def _listed(lengths: list[int], axis: int, extent: int | None) -> list[int]:
    if not all(isinstance(length, int) and length >= 0 for length in lengths):
        raise LeftAlone(f"the lengths {lengths} are not a list of numbers that are at least 0")
    if extent is not None and sum(lengths) != extent:
        raise LeftAlone(f"the lengths add up to {sum(lengths)}, but axis {axis} has extent {extent}")
    _check_number(len(lengths))
    return lengths


def _check_number(pieces: int) -> None:
    if not 1 <= pieces <= _MOST_PIECES:
        raise LeftAlone(f"there are {pieces} pieces: only 1 to {_MOST_PIECES} are rewritten")


def _takers(node: NodeProto, graph: GraphProto, scope: Scope, pieces: int) -> dict[int, int | None]:
    sequence = node.output[0]
    if sequence in (value.name for value in graph.output):
        raise LeftAlone("the sequence is an output of the graph")
    takers: dict[int, int | None] = {}
    for index, user in enumerate(graph.node):
        if any(sequence in uses(body) for body in subgraphs(user)):
            raise LeftAlone(f"a body of {_title(user)} uses the sequence")
        if sequence in user.input:
            takers[index] = _position(user, scope, pieces)
    if not takers:
        raise LeftAlone("its pieces are not used")
    return takers


def _position(user: NodeProto, scope: Scope, pieces: int) -> int | None:
    if is_op(user, "SequenceLength"):
        return None
    if not is_op(user, "SequenceAt"):
        raise LeftAlone(f"{_title(user)} uses the whole sequence")
    constant = scope.constant(user.input[1])
    if constant is None or constant.size != 1 or constant.dtype.kind not in "iu":
        raise LeftAlone(f"the position of {_title(user)}, {user.input[1]}, is not constant")
    position = int(constant.item())
    if not -pieces <= position < pieces:
        raise LeftAlone(f"{_title(user)} takes piece {position} of {pieces}")
    return position % pieces


def _title(node: NodeProto) -> str:
    return f"{node.op_type} {node.name or ', '.join(node.output)}"
