// The operation that libsplit computes.
//
// SPDX-License-Identifier: MIT OR Apache-2.0

#include "split.hpp"
#include "describe.hpp"

#include <openvino/core/except.hpp>
#include <openvino/core/parallel.hpp>
#include <openvino/op/constant.hpp>
#include <openvino/op/parameter.hpp>
#include <openvino/op/variadic_split.hpp>

#include <algorithm>
#include <numeric>
#include <optional>
#include <string>

namespace libsplit_openvino {
namespace {

// No error yet, for messages in the words of the model that the operator is from.
libsplit_error error_of(const libsplit_params &params) {
    libsplit_error error = LIBSPLIT_ERROR_INIT;
    error.words =
        params.op == LIBSPLIT_OP_ONNX_SPLIT ? LIBSPLIT_WORDS_ONNX : LIBSPLIT_WORDS_OPENVINO;
    return error;
}

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

// The lengths, if OpenVINO can tell them before the model runs; else, no tensor.
ov::Tensor known(const ov::Output<ov::Node> &lengths) {
    if (auto constant = ov::as_type_ptr<ov::op::v0::Constant>(lengths.get_node_shared_ptr()))
        return constant->get_tensor_view();
    // One of OpenVINO's own operators makes it compute what it can of them; the data is of no
    // concern.
    auto data = std::make_shared<ov::op::v0::Parameter>(ov::element::u8, ov::PartialShape{-1});
    auto axis = ov::op::v0::Constant::create(ov::element::i64, {}, {0});
    std::make_shared<ov::op::v1::VariadicSplit>(data, axis, lengths);
    const auto &tensor = lengths.get_tensor();
    return tensor.has_and_set_bound() ? tensor.get_lower_value() : ov::Tensor();
}

// How many outputs there are up to the last that has a name.
int64_t named(const ov::Node &node) {
    auto count = static_cast<int64_t>(node.get_output_size());
    while (count > 0 && node.get_output_tensor(static_cast<size_t>(count - 1)).get_names().empty())
        count--;
    return count;
}

// What is known of a piece's shape if it is not known how many pieces there are.
ov::PartialShape shape_of_any(ov::PartialShape shape, int64_t axis) {
    if (shape.rank().is_dynamic())
        return shape;
    const auto rank = shape.rank().get_length();
    const auto index = axis < 0 ? axis + rank : axis;
    if (index >= 0 && index < rank)
        shape[index] = ov::Dimension::dynamic();
    return shape;
}

// The pieces' shapes, as far as they are known; an error where the split is refused.
libsplit_status try_infer(const Described &input, const libsplit_params &params, int64_t count,
                          std::vector<Described> &pieces, libsplit_error *error) {
    for (int64_t i = 0; i < count; i++)
        pieces.emplace_back(input.tensor.rank);
    auto outputs = tensors(pieces);
    return libsplit_infer(&input.tensor, &params, outputs.data(), outputs.size(), error);
}

std::vector<Described> infer(const Described &input, const libsplit_params &params, int64_t count) {
    std::vector<Described> pieces;
    libsplit_error error = error_of(params);
    check(try_infer(input, params, count, pieces, &error), error);
    return pieces;
}

// The lengths of the pieces of the first extent that can be split, of 'tries' from 'extent' on;
// none if there is none.
std::vector<int64_t> lengths_of(Described &input, const libsplit_params &params, int64_t count,
                                size_t axis, int64_t extent, int64_t step, int64_t tries) {
    for (; tries > 0 && extent >= 0; extent += step, tries--) {
        std::vector<Described> pieces;
        input.shape[axis] = extent;
        if (try_infer(input, params, count, pieces, nullptr) != LIBSPLIT_STATUS_OK)
            continue;
        std::vector<int64_t> lengths;
        for (const Described &piece : pieces)
            lengths.push_back(piece.shape[axis]);
        return lengths;
    }
    return {};
}

// What is known of each piece's extent on the axis, where the input's has bounds: it grows with
// that, except for the last of ONNX's equal parts, which takes what the others leave.
std::vector<ov::Dimension> bounds(const ov::Dimension &extent, Described &input,
                                  const libsplit_params &params, int64_t count, size_t axis,
                                  const std::vector<Described> &pieces) {
    const bool is_bounded = extent.get_max_length() >= 0;
    // One of as many extents as there are parts can be divided by their number.
    const auto low = lengths_of(input, params, count, axis, extent.get_min_length(), 1, count);
    const auto high =
        is_bounded ? lengths_of(input, params, count, axis, extent.get_max_length(), -1, count)
                   : std::vector<int64_t>();
    const bool last_is_rest =
        params.op == LIBSPLIT_OP_ONNX_SPLIT && params.split == nullptr && count > 1;
    std::vector<ov::Dimension> found;
    for (size_t i = 0; i < pieces.size(); i++) {
        if (pieces[i].shape[axis] != LIBSPLIT_DIM_UNKNOWN) {
            found.emplace_back(pieces[i].shape[axis]);
            continue;
        }
        const bool is_rest = last_is_rest && i + 1 == pieces.size();
        const int64_t least = low.empty() || is_rest ? 0 : low[i];
        const int64_t most = high.empty() ? extent.get_max_length() : high[is_rest ? 0 : i];
        // Where no extent within the bounds can be split, the nearest ones outside tell.
        found.emplace_back(most < 0 ? least : (std::min)(least, most),
                           most < 0 ? most : (std::max)(least, most));
    }
    return found;
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
    libsplit_error error = error_of(params);
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

int64_t Split::count() const {
    return m_rule.op == LIBSPLIT_OP_OPENVINO_SPLIT ? m_rule.num_outputs : m_rule.pieces;
}

void Split::validate_and_infer_types() {
    auto type = get_input_element_type(0);
    auto shape = get_input_partial_shape(0);
    set_output_size(static_cast<size_t>(m_rule.pieces));
    if (count() == 0)
        m_rule.num_outputs = named(*this);
    if (type.is_dynamic() || shape.rank().is_dynamic() || count() == 0) {
        for (size_t i = 0; i < get_output_size(); i++)
            set_output_type(i, type, shape_of_any(shape, m_rule.axis));
        return;
    }
    Described input(shape, type);
    ov::Tensor given;
    std::optional<Described> lengths;
    if (auto place = static_cast<size_t>(m_rule.lengths_input)) {
        given = known(input_value(place));
        if (given) {
            given = as_the_document_has_them(given);
            lengths.emplace(given);
        } else { // They are known when the model runs.
            lengths.emplace(ov::PartialShape{m_rule.pieces}, ov::element::i64);
        }
    }
    const auto rule = params(lengths ? &lengths->tensor : nullptr);
    const auto pieces = infer(input, rule, count());
    const auto axis = static_cast<size_t>(m_rule.axis < 0 ? m_rule.axis + shape.rank().get_length()
                                                          : m_rule.axis);
    std::vector<ov::Dimension> on_axis;
    if (shape[axis].is_dynamic())
        on_axis = bounds(shape[axis], input, rule, count(), axis, pieces);
    for (size_t i = 0; i < pieces.size(); i++) {
        // Off the axis, the input's own extents, with their bounds and symbols.
        auto piece = shape;
        piece[axis] = on_axis.empty() ? ov::Dimension(pieces[i].shape[axis]) : on_axis[i];
        set_output_type(i, type, piece);
    }
    for (size_t i = pieces.size(); i < get_output_size(); i++)
        set_output_type(i, type, ov::Shape{0});
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
    auto pieces = infer(input, rule, count());
    for (size_t i = 0; i < outputs.size(); i++) {
        auto shape = i < pieces.size() ? pieces[i].extents().to_shape() : ov::Shape{0};
        if (outputs[i].get_shape() != shape)
            outputs[i].set_shape(shape);
    }
    ov::TensorVector targets(outputs.begin(), outputs.begin() + count());
    if (inputs[0].get_element_type() == ov::element::string) {
        copy_strings(inputs[0], rule, targets);
        return true;
    }
    std::vector<Described> buffers;
    for (const auto &target : targets)
        buffers.emplace_back(target);
    copy(input, rule, buffers);
    return true;
}

bool Split::evaluate_lower(ov::TensorVector &outputs) const {
    return evaluate_bounds(outputs, get_input_tensor(0).get_lower_value());
}

bool Split::evaluate_upper(ov::TensorVector &outputs) const {
    return evaluate_bounds(outputs, get_input_tensor(0).get_upper_value());
}

bool Split::evaluate_bounds(ov::TensorVector &outputs, const ov::Tensor &input) const {
    for (size_t i = 0; i < get_output_size(); i++)
        if (get_output_partial_shape(i).is_dynamic())
            return false;
    ov::TensorVector inputs{input};
    for (size_t i = 1; i < get_input_size(); i++) {
        const auto &tensor = get_input_tensor(i);
        if (!tensor.has_and_set_bound())
            return false;
        inputs.push_back(tensor.get_lower_value());
    }
    return input && evaluate(outputs, inputs);
}

// Splits the places of the symbols.
bool Split::evaluate_symbol(ov::TensorSymbolVector &outputs) const {
    const auto symbols = get_input_tensor(0).get_value_symbol();
    if (symbols.empty() || get_input_partial_shape(0).is_dynamic())
        return false;
    ov::Tensor places(ov::element::u64, get_input_shape(0));
    std::iota(places.data<uint64_t>(), places.data<uint64_t>() + places.get_size(), 0);
    ov::TensorVector pieces;
    for (size_t i = 0; i < get_output_size(); i++)
        pieces.emplace_back(ov::element::u64, ov::Shape{0});
    if (!evaluate_bounds(pieces, places))
        return false;
    for (size_t i = 0; i < pieces.size(); i++) {
        outputs[i].clear();
        for (size_t j = 0; j < pieces[i].get_size(); j++)
            outputs[i].push_back(symbols[pieces[i].data<uint64_t>()[j]]);
    }
    return true;
}

} // namespace libsplit_openvino
