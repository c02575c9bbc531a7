// The operation that libsplit computes.
//
// SPDX-License-Identifier: MIT OR Apache-2.0
#pragma once

#include <libsplit.h>

#include <openvino/op/op.hpp>

namespace libsplit_openvino {

// A libsplit_params without its lengths; which input has these, 0 = none; how many outputs the node
// has. A Split of OpenVINO's without num_outputs makes as many parts as outputs have names.
struct Rule {
    int64_t op = LIBSPLIT_OP_OPENVINO_VARIADIC_SPLIT;
    int64_t opset = 1;
    int64_t axis = 0;
    int64_t num_outputs = 0;
    int64_t lengths_input = 0;
    int64_t pieces = 0;
};

// Splits its first input. An input that is neither that nor the lengths is not looked at.
class Split : public ov::op::Op {
  public:
    // The name is nobody else's: OpenVINO's passes take a node of a known name for their own.
    OPENVINO_OP("LibsplitSplit", "extension")

    Split() = default;
    Split(const ov::OutputVector &inputs, const Rule &rule);

    void validate_and_infer_types() override;
    bool visit_attributes(ov::AttributeVisitor &visitor) override;
    std::shared_ptr<ov::Node> clone_with_new_inputs(const ov::OutputVector &inputs) const override;
    bool has_evaluate() const override { return true; }
    bool evaluate(ov::TensorVector &outputs, const ov::TensorVector &inputs) const override;
    // What is known of the values before the model runs, such as those of a shape: bounds, and
    // which of them are the same.
    bool evaluate_lower(ov::TensorVector &outputs) const override;
    bool evaluate_upper(ov::TensorVector &outputs) const override;
    bool evaluate_symbol(ov::TensorSymbolVector &outputs) const override;

  private:
    bool evaluate_bounds(ov::TensorVector &outputs, const ov::Tensor &input) const;
    libsplit_params params(const libsplit_tensor *lengths) const;
    // How many of the outputs are pieces: the first ones.
    int64_t count() const;

    Rule m_rule;
};

} // namespace libsplit_openvino
