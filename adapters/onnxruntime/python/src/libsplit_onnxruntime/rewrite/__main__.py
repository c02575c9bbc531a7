"""The command line: reads a model, rewrites and checks it, runs both on request, and writes it."""

from __future__ import annotations

import argparse
import filecmp
import os
import pathlib
import shutil
import sys
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError, EncodeError
from onnx.external_data_helper import ExternalDataInfo, uses_external_data

from . import rewrite
from .graphs import tensors


class Failure(Exception):
    """An error to be printed before the program exits with status 1."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m libsplit_onnxruntime.rewrite",
        description="Rewrites SplitToSequence as Split if the pieces are taken at constant "
        "positions, and reports what happened to each.",
    )
    parser.add_argument("input", type=pathlib.Path, help="the model to read")
    parser.add_argument("output", type=pathlib.Path, help="the model to write; may be the same file")
    parser.add_argument("--run", type=pathlib.Path, metavar="INPUTS.npz",
                        help="run both models on these inputs with onnxruntime, and write the new "
                        "one only if all outputs are identical")
    parser.add_argument("--trust-shapes", action="store_true",
                        help="trust all shapes that the model declares, not only those of its inputs")
    parser.add_argument("--no-check", action="store_true",
                        help="do not run ONNX's checker on the models")
    options = parser.parse_args(arguments)
    try:
        run(options)
    except (Failure, OSError, ValueError, ImportError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def run(options: argparse.Namespace) -> None:
    try:
        model = onnx.load(options.input, load_external_data=False)
    except DecodeError as error:
        raise Failure(f"{options.input} is not an ONNX model: {error}") from error
    if not options.no_check:
        check(options.input, "; use --no-check to rewrite it anyway")
    findings = rewrite(model, str(options.input.parent), trust_shapes=options.trust_shapes)

    copy_external_data(model, options.input.parent, options.output.parent)
    part = options.output.with_name(options.output.name + ".part")
    try:
        part.write_bytes(serialized(model))
        if not options.no_check:
            check(part, " after rewriting, which is a bug: please report it")
        if options.run:
            compare(options.input, part, options.run)
        os.replace(part, options.output)
    finally:
        part.unlink(missing_ok=True)
    for finding in findings:
        print(finding)
    rewritten = sum(finding.rewritten for finding in findings)
    print(f"{options.output}: {rewritten} of {len(findings)} SplitToSequence rewritten")


def serialized(model: onnx.ModelProto) -> bytes:
    try:
        data: bytes = model.SerializeToString()
        return data
    except (EncodeError, ValueError) as error:
        raise Failure(f"the model cannot be written: {error}") from error


def check(path: pathlib.Path, otherwise: str) -> None:
    try:
        onnx.checker.check_model(str(path))
    except onnx.checker.ValidationError as error:
        lacking = without_shape(path)
        if lacking == []:
            return
        where = f"\nwithout a shape: {', '.join(lacking)}" if lacking else ""
        raise Failure(f"ONNX's checker refuses {path}{otherwise}\n{error}{where}") from error


def without_shape(path: pathlib.Path) -> list[str] | None:
    """Returns the graph's inputs and outputs without a shape, which ONNX's checker requires, but runtimes
    do not. The list is empty if that is all that is wrong and shape inference gives all these shapes;
    the result is None if all have a shape.
    """
    model = onnx.load(path, load_external_data=False)
    values = [*model.graph.input, *model.graph.output]
    lacking = [value.name for value in values
               if value.type.HasField("tensor_type")
               and not value.type.tensor_type.HasField("shape")]
    if not lacking:
        return None
    try:
        onnx.checker.check_model(onnx.shape_inference.infer_shapes(model))
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return lacking
    return []


def copy_external_data(
    model: onnx.ModelProto, source: pathlib.Path, target: pathlib.Path
) -> None:
    """Copies the files that the model refers to into the new model's directory."""
    if source.resolve() == target.resolve():
        return
    graphs = [model.graph, *(onnx.GraphProto(node=f.node) for f in model.functions)]
    external = filter(uses_external_data, (tensor for graph in graphs for tensor in tensors(graph)))
    for location in sorted({ExternalDataInfo(tensor).location for tensor in external}):
        if os.path.isabs(location) or ".." in pathlib.PurePath(location).parts:
            raise Failure(f"the external data {location} is outside the model's directory")
        old, new = source / location, target / location
        if new.exists():
            if not filecmp.cmp(old, new):
                raise Failure(f"{new} already exists and differs from {old}: write to another directory")
            continue
        new.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(old, new)


def compare(before: pathlib.Path, after: pathlib.Path, inputs: pathlib.Path) -> None:
    import onnxruntime

    with np.load(inputs) as arrays:
        feeds = dict(arrays)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4  # errors are reported below
    outputs = []
    for path in (before, after):
        try:
            session = onnxruntime.InferenceSession(
                path, options, providers=["CPUExecutionProvider"], enable_fallback=0
            )
            outputs.append(session.run(None, feeds))
        except Exception as error:  # onnxruntime's errors have no common base class
            raise Failure(f"onnxruntime on {path}: {error}") from error
    for output, old, new in zip(session.get_outputs(), *outputs, strict=True):
        if not same(old, new):
            raise Failure(f"output {output.name} differs after rewriting: please report this")
    print(f"both models run: {len(outputs[0])} outputs, all identical")


def same(old: Any, new: Any) -> bool:
    if isinstance(old, list):
        return isinstance(new, list) and len(old) == len(new) and all(map(same, old, new))
    if not isinstance(old, np.ndarray):
        return bool(old == new)
    if old.dtype != new.dtype or old.shape != new.shape:
        return False
    if old.dtype == object:
        return bool(old.tolist() == new.tolist())
    return bool(old.tobytes() == new.tobytes())


if __name__ == "__main__":
    sys.exit(main())
