// The operation that libsplit computes.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "split.hpp"
#include "describe.hpp"

#include <openvino/core/except.hpp>
#include <openvino/core/parallel.hpp>
#include <openvino/op/constant.hpp>

#include <algorithm>
#include <optional>
#include <string>

namespace libsplit_openvino {
namespace {

void check(libsplit_status status, const libsplit_error &error) {
    OPENVINO_ASSERT(status == LIBSPLIT_STATUS_OK, "libsplit: ", error.message);
}

std::vector<libsplit_tensor> tensors(const std::vector<Described> &described) {
    std::vector<libsplit_tensor> tensors;
    for (const Described &one : described)
        tensors.push_back(one.tensor);
    return tensors;
}

// The CPU plugin makes int32 of all int64, the lengths too; ONNX Split takes int64 alone.
ov::Tensor as_the_document_has_them(const ov::Tensor &lengths) {
    if (lengths.get_element_type() != ov::element::i32)
        return lengths;
    ov::Tensor wide(ov::element::i64, lengths.get_shape());
    std::copy_n(lengths.data<const int32_t>(), lengths.get_size(), wide.data<int64_t>());
    return wide;
}

// The pieces' shapes, as far as they are known.
std::vector<Described> infer(const Described &input, const libsplit_params &params, int64_t count) {
    std::vector<Described> pieces;
    for (int64_t i = 0; i < count; i++)
        pieces.emplace_back(input.tensor.rank);
    auto outputs = tensors(pieces);
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    check(libsplit_infer(&input.tensor, &params, outputs.data(), outputs.size(), &error), error);
    return pieces;
}

// OpenVINO's threads, those that run the model.
int32_t parallel_for(void *, libsplit_task_fn task, void *task_ctx, size_t count) {
    try {
        ov::parallel_for(count, [&](size_t index) { task(task_ctx, index); });
        return 0;
    } catch (...) {
        return 1;
    }
}

void copy(const Described &input, const libsplit_params &params,
          const std::vector<Described> &outputs) {
    auto pieces = tensors(outputs);
    libsplit_executor executor = LIBSPLIT_EXECUTOR_INIT(parallel_for, nullptr);
    executor.max_tasks = static_cast<uint32_t>(parallel_get_max_threads());
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    check(libsplit_copy(&input.tensor, &params, pieces.data(), pieces.size(), &executor, &error),
          error);
}

// A std::string has to be copied by its own operator: libsplit splits pointers to them.
void copy_strings(const ov::Tensor &input, const libsplit_params &params,
                  ov::TensorVector &outputs) {
    const auto *strings = input.data<std::string>();
    std::vector<const std::string *> pointers;
    for (size_t i = 0; i < input.get_size(); i++)
        pointers.push_back(strings + i);
    Described from(input.get_shape(), ov::element::u64);
    from.tensor.data = pointers.data();
    std::vector<std::vector<const std::string *>> copied;
    std::vector<Described> to;
    for (const auto &output : outputs) {
        copied.emplace_back(output.get_size());
        to.emplace_back(output.get_shape(), ov::element::u64);
        to.back().tensor.data = copied.back().data();
    }
    copy(from, params, to);
    for (size_t i = 0; i < outputs.size(); i++)
        for (size_t j = 0; j < copied[i].size(); j++)
            outputs[i].data<std::string>()[j] = *copied[i][j];
}

} // namespace

Split::Split(const ov::OutputVector &inputs, const Rule &rule) : Op(inputs), m_rule(rule) {
    constructor_validate_and_infer_types();
}

libsplit_params Split::params(const libsplit_tensor *lengths) const {
    libsplit_params params = LIBSPLIT_PARAMS_INIT(static_cast<libsplit_op>(m_rule.op),
                                                  static_cast<int32_t>(m_rule.opset));
    params.axis = m_rule.axis;
    params.num_outputs = m_rule.num_outputs;
    params.split = lengths;
    return params;
}

void Split::validate_and_infer_types() {
    auto type = get_input_element_type(0);
    auto shape = get_input_partial_shape(0);
    set_output_size(static_cast<size_t>(m_rule.pieces));
    if (type.is_dynamic() || shape.rank().is_dynamic()) {
        for (size_t i = 0; i < get_output_size(); i++)
            set_output_type(i, type, ov::PartialShape::dynamic());
        return;
    }
    Described input(shape, type);
    ov::Tensor given;
    std::optional<Described> lengths;
    if (auto place = static_cast<size_t>(m_rule.lengths_input)) {
        auto constant = ov::as_type_ptr<ov::op::v0::Constant>(get_input_node_shared_ptr(place));
        if (constant) {
            given = as_the_document_has_them(constant->get_tensor_view());
            lengths.emplace(given);
        } else { // They are known when the model runs.
            lengths.emplace(ov::PartialShape{m_rule.pieces}, ov::element::i64);
        }
    }
    auto pieces = infer(input, params(lengths ? &lengths->tensor : nullptr), m_rule.pieces);
    for (size_t i = 0; i < pieces.size(); i++)
        set_output_type(i, type, pieces[i].extents());
}

bool Split::visit_attributes(ov::AttributeVisitor &visitor) {
    visitor.on_attribute("op", m_rule.op);
    visitor.on_attribute("opset", m_rule.opset);
    visitor.on_attribute("axis", m_rule.axis);
    visitor.on_attribute("num_outputs", m_rule.num_outputs);
    visitor.on_attribute("lengths_input", m_rule.lengths_input);
    visitor.on_attribute("pieces", m_rule.pieces);
    return true;
}

std::shared_ptr<ov::Node> Split::clone_with_new_inputs(const ov::OutputVector &inputs) const {
    return std::make_shared<Split>(inputs, m_rule);
}

bool Split::evaluate(ov::TensorVector &outputs, const ov::TensorVector &inputs) const {
    Described input(inputs[0]);
    ov::Tensor given;
    std::optional<Described> lengths;
    if (m_rule.lengths_input > 0) {
        given = as_the_document_has_them(inputs[static_cast<size_t>(m_rule.lengths_input)]);
        lengths.emplace(given);
    }
    auto rule = params(lengths ? &lengths->tensor : nullptr);
    auto pieces = infer(input, rule, m_rule.pieces);
    for (size_t i = 0; i < pieces.size(); i++) {
        auto shape = pieces[i].extents().to_shape();
        if (outputs[i].get_shape() != shape)
            outputs[i].set_shape(shape);
    }
    if (inputs[0].get_element_type() == ov::element::string) {
        copy_strings(inputs[0], rule, outputs);
        return true;
    }
    std::vector<Described> buffers;
    for (const auto &output : outputs)
        buffers.emplace_back(output);
    copy(input, rule, buffers);
    return true;
}

} // namespace libsplit_openvino
