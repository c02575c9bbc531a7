"""7 into 3 with every operator and version, as the library splits it."""

import sys

from cases import Case
from runners import c

OPERATORS = [
    ("ONNX Split", "Split", [1, 2, 11, 13, 18]),
    ("ONNX SplitToSequence", "SplitToSequence", [11, 24]),
    ("OpenVINO VariadicSplit", "openvino.VariadicSplit", [1]),
    ("OpenVINO Split", "openvino.Split", [1])]


def asked(op, version):
    """Yields what 7 into 3 can mean: how to request it, and the case."""
    case = dict(op=op, opset=version, dtype="float32", input_shape=[7], axis=0)
    if op == "Split" and version < 18:
        yield "3 outputs, no lengths", dict(case, n_outputs=3)
    if op == "Split" and version >= 18 or op == "openvino.Split":
        yield f"{'num_outputs' if op == 'Split' else 'num_splits'} 3", dict(case, num_outputs=3)
    if op == "SplitToSequence":
        yield "the scalar 3: pieces of 3", dict(case, split=3)
        yield "no lengths: pieces of 1", dict(case)
        return
    if op != "openvino.Split":
        yield "lengths 3, 3, 1", dict(case, split=[3, 3, 1], n_outputs=3)
    if op == "openvino.VariadicSplit":
        yield "lengths 3, 2, -1", dict(case, split=[3, 2, -1], n_outputs=3)


def table():
    lines = ["| Operator | Version | Asked for | Result |", "| --- | --- | --- | --- |"]
    for title, op, versions in OPERATORS:
        for version in versions:
            for how, fields in asked(op, version):
                try:
                    shapes = c.run(Case(name="", **fields))["shapes"]
                    gives = ", ".join(str(shape[0]) for shape in shapes)
                except c.Failure as failure:
                    gives = f"error: {failure}"
                lines.append(f"| {title} | {version} | {how} | {gives} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(table())
