// What core.add_extension() finds: which nodes of a model libsplit is to compute.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "describe.hpp"
#include "split.hpp"

#include <openvino/core/attribute_visitor.hpp>
#include <openvino/core/op_extension.hpp>
#include <openvino/frontend/onnx/extension/conversion.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/split.hpp>
#include <openvino/op/variadic_split.hpp>

#include <algorithm>
#include <optional>
#include <string>

namespace libsplit_openvino {
namespace {

std::optional<int64_t> constant_axis(const ov::Output<ov::Node> &axis) {
    auto constant = ov::as_type_ptr<ov::op::v0::Constant>(axis.get_node_shared_ptr());
    if (!constant || ov::shape_size(constant->get_shape()) != 1)
        return std::nullopt;
    return constant->cast_vector<int64_t>()[0];
}

// How many lengths there are, known or not.
std::optional<int64_t> count(const ov::Output<ov::Node> &lengths) {
    const auto &shape = lengths.get_partial_shape();
    if (shape.is_dynamic() || shape.size() != 1)
        return std::nullopt;
    return shape[0].get_length();
}

// An operator of an IR, by its own name: this is asked before OpenVINO's is. The node keeps all of
// the operator's inputs, for the reader goes through them. Where an axis or a number of outputs is
// computed by the model, the operator stays OpenVINO's.
class FromIR : public ov::BaseOpExtension {
  public:
    using Create = ov::OutputVector (*)(const ov::OutputVector &, ov::AttributeVisitor &);
    FromIR(const char *name, Create create) : m_type(name, "opset1"), m_create(create) {}

    const ov::DiscreteTypeInfo &get_type_info() const override { return m_type; }
    ov::OutputVector create(const ov::OutputVector &inputs,
                            ov::AttributeVisitor &visitor) const override {
        return m_create(inputs, visitor);
    }
    std::vector<ov::Extension::Ptr> get_attached_extensions() const override { return {}; }

  private:
    ov::DiscreteTypeInfo m_type;
    Create m_create;
};

ov::OutputVector variadic_split(const ov::OutputVector &inputs, ov::AttributeVisitor &) {
    auto axis = constant_axis(inputs.at(1));
    auto pieces = count(inputs.at(2));
    if (!axis || !pieces)
        return std::make_shared<ov::op::v1::VariadicSplit>(inputs[0], inputs[1], inputs[2])
            ->outputs();
    Rule rule{LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT, 1, *axis, 0, 2, *pieces};
    return std::make_shared<Split>(inputs, rule)->outputs();
}

ov::OutputVector split(const ov::OutputVector &inputs, ov::AttributeVisitor &visitor) {
    int64_t parts = 0;
    visitor.on_attribute("num_splits", parts);
    auto axis = constant_axis(inputs.at(1));
    if (!axis)
        return std::make_shared<ov::op::v1::Split>(inputs[0], inputs[1], parts)->outputs();
    Rule rule{LIBSPLIT_OP_OPENVINO_SPLIT, 1, *axis, parts, 0, parts};
    return std::make_shared<Split>(inputs, rule)->outputs();
}

// An empty name in a model means that an input is absent. OpenVINO represents it by a node that its
// headers do not declare.
bool is_absent(const ov::Output<ov::Node> &input) {
    return std::string("NullNode") == input.get_node()->get_type_info().name;
}

// Whether ONNX Split has an element type. OpenVINO also splits the others, such as those of 4 bits.
bool has_type(ov::element::Type type) {
    if (type.is_dynamic())
        return true;
    libsplit_params params = LIBSPLIT_PARAMS_INIT(LIBSPLIT_OP_ONNX_SPLIT, 18);
    params.num_outputs = 1;
    Described input(ov::PartialShape{1}, type);
    Described piece(1);
    return libsplit_infer(&input.tensor, &params, &piece.tensor, 1, nullptr) !=
           LIBSPLIT_STATUS_ERROR_DTYPE;
}

// How many outputs a node can have that makes equal parts of an axis. A node may be given more than
// the model's has.
int64_t most_outputs(const ov::PartialShape &shape, int64_t axis) {
    constexpr int64_t MOST = 256;
    if (shape.rank().is_dynamic())
        return MOST;
    const auto rank = shape.rank().get_length();
    const auto index = axis < 0 ? axis + rank : axis;
    if (index < 0 || index >= rank || shape[index].is_dynamic())
        return MOST;
    return std::clamp<int64_t>(shape[index].get_length(), 1, MOST);
}

// ONNX Split. OpenVINO tells an extension neither the model's opset nor how many outputs the node
// has; lengths and num_outputs mean the same in every version that has them. With neither, there
// are as many equal parts as outputs, which Split counts when they have names.
ov::OutputVector onnx_split(const ov::frontend::NodeContext &node) {
    Rule rule{LIBSPLIT_OP_ONNX_SPLIT,
              18,
              node.get_attribute<int64_t>("axis", 0),
              node.get_attribute<int64_t>("num_outputs", 0),
              0,
              0};
    ov::OutputVector inputs{node.get_input(0)};
    auto attribute = node.get_attribute<std::vector<int64_t>>("split", {});
    if (node.get_input_size() > 1 && !is_absent(node.get_input(1)))
        inputs.push_back(node.get_input(1));
    else if (!attribute.empty())
        inputs.push_back(
            ov::op::v0::Constant::create(ov::element::i64, {attribute.size()}, attribute));

    rule.lengths_input = inputs.size() > 1 ? 1 : 0;
    auto pieces = inputs.size() > 1 ? count(inputs[1]) : std::nullopt;
    rule.pieces = pieces.value_or(rule.num_outputs);
    if (rule.pieces <= 0) {
        rule.op = LIBSPLIT_OP_OPENVINO_SPLIT;
        rule.opset = 1;
        rule.pieces = most_outputs(inputs[0].get_partial_shape(), rule.axis);
        return std::make_shared<Split>(inputs, rule)->outputs();
    }
    if (!has_type(inputs[0].get_element_type())) {
        rule.op =
            inputs.size() > 1 ? LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT : LIBSPLIT_OP_OPENVINO_SPLIT;
        rule.opset = 1;
    }
    return std::make_shared<Split>(inputs, rule)->outputs();
}

} // namespace
} // namespace libsplit_openvino

using namespace libsplit_openvino;
OPENVINO_CREATE_EXTENSIONS(std::vector<ov::Extension::Ptr>({
    std::make_shared<ov::OpExtension<Split>>(), // of an IR that was saved with it
    std::make_shared<FromIR>("VariadicSplit", variadic_split),
    std::make_shared<FromIR>("Split", split),
    std::make_shared<ov::frontend::onnx::ConversionExtension>("Split", onnx_split),
}))
