"""The shape inference of the onnx package, on models whose lengths are constants."""

import onnx

from cases import NotThere
from runners import models


def version():
    return onnx.__version__


def run(case):
    models.onnx_only(case)
    if case.op == "Split" and case.opset < 1 or case.opset < 2:
        raise NotThere("Split-1 and older have no inference")
    model = models.model(case, "constant")
    inferred = onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True,
                                                 data_prop=True)
    if case.op == "SplitToSequence":
        element = inferred.graph.output[0].type.sequence_type.elem_type.tensor_type
        return {"element": extents(element)}
    found = {output.name: extents(output.type.tensor_type) for output in inferred.graph.output}
    return {"shapes": [found.get(f"y{i}") for i in range(case.n_outputs)]}


def extents(tensor):
    if not tensor.HasField("shape"):
        return None
    return [d.dim_value if d.HasField("dim_value") else None for d in tensor.shape.dim]
