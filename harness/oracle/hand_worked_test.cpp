#include <boost/test/unit_test.hpp>

#include <fmt/format.h>

#include <fstream>

#include "engine/safetensors/test_files.hpp"
#include "engine/safetensors/writer.hpp"
#include "harness/oracle/expectation.hpp"
#include "harness/trace/trace_file.hpp"

// The model of docs/hand_worked_model.md, with the numbers worked out there.

namespace {

using namespace kvproof::harness;
using kvproof::Dtype;
using kvproof::Rows;
namespace fs = std::filesystem;

constexpr double kRounded = 1e-10;  // the page gives ten decimals

struct Named {
  const char* name;
  std::vector<std::size_t> shape;
  std::vector<float> values;
};

const std::vector<Named>& tensors() {
  static const std::vector<Named> kTensors = {
      {"wte.weight", {2, 2}, {1, 0.5, -0.5, 1}},
      {"wpe.weight", {3, 2}, {0.5, -0.5, 0.5, 0.5, 1, 0}},
      {"h.0.ln_1.weight", {2}, {2, 1}},
      {"h.0.ln_1.bias", {2}, {0, 0.5}},
      {"h.0.attn.c_attn.weight", {2, 6}, {0.5, 0, 1, -0.5, 0, 1, 0, 0.25, 0, 1, 1, 0}},
      {"h.0.attn.c_attn.bias", {6}, {0.5, 0, 0.25, 0, 0, 1}},
      {"h.0.attn.c_proj.weight", {2, 2}, {1, 0, 0.5, -1}},
      {"h.0.attn.c_proj.bias", {2}, {0.25, -0.25}},
      {"h.0.ln_2.weight", {2}, {1, 2}},
      {"h.0.ln_2.bias", {2}, {0.5, 0}},
      {"h.0.mlp.c_fc.weight", {2, 2}, {1, -0.5, 0.25, 1}},
      {"h.0.mlp.c_fc.bias", {2}, {0, 0.5}},
      {"h.0.mlp.c_proj.weight", {2, 2}, {0.5, 1, -1, 0.25}},
      {"h.0.mlp.c_proj.bias", {2}, {0.125, 0}},
      {"ln_f.weight", {2}, {1, 1.5}},
      {"ln_f.bias", {2}, {0, -0.5}},
  };
  return kTensors;
}

/// The model on disk, and its oracle.
struct HandWorked {
  kvproof::test::ScratchFolder folder{"hand_worked"};
  Oracles oracles;

  HandWorked() {
    std::ofstream(folder / "config.json") << R"({"model_type": "gpt2", "vocab_size": 2, "n_positions": 3, "n_embd": 2, "n_head": 2,
      "n_layer": 1, "n_inner": 2, "layer_norm_epsilon": 1.0, "activation_function": "gelu_new"})";
    std::vector<kvproof::TensorToWrite> list;
    for (const Named& each : tensors()) list.push_back({each.name, Dtype::f32, each.shape, std::as_bytes(std::span(each.values))});
    kvproof::write_safetensors(folder / "model.safetensors", {{"format", "pt"}}, list);
    oracles["main"] = Oracle::open(folder.path());
  }

  std::vector<Expectation> play(const std::vector<Call>& calls) const {
    Trace trace;
    for (const Call& call : calls) trace.push_back({call, std::nullopt, std::nullopt, 0});
    return expect_from_oracle(trace, oracles, false);
  }
};

/// The number as the page prints it.
bool on_the_page(double number) {
  static const std::string kPage = read_text_file(KVPROOF_SOURCE_DIR "/docs/hand_worked_model.md");
  return kPage.find(fmt::format("{:.10f}", number)) != std::string::npos;
}

void check(const Tensor& found, const std::vector<std::size_t>& shape, const std::vector<double>& expected) {
  BOOST_TEST(found.shape == shape, boost::test_tools::per_element());
  BOOST_REQUIRE(found.values.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    BOOST_TEST(std::abs(found.values[i] - expected[i]) <= kRounded, found.values[i] << " is not " << expected[i]);
    BOOST_TEST(on_the_page(expected[i]), expected[i] << " is not on the page");
  }
}

BOOST_FIXTURE_TEST_SUITE(hand_worked_model, HandWorked)

BOOST_AUTO_TEST_CASE(both_columns_in_one_call) {
  const auto steps = play({Forward{.input_ids = {{0, 1}}}});
  check(*steps[0].numbers->logits, {1, 2, 2}, {-0.0180703315, -2.3554373481, -0.1830333916, -1.0357328674});
}

BOOST_AUTO_TEST_CASE(one_column_after_the_other) {
  const auto steps = play({NewCache{"a", "dynamic", {}, {}, {}}, Forward{.cache = "a", .input_ids = {{0}}}, Forward{.cache = "a", .input_ids = {{1}}}});
  check(*steps[1].numbers->logits, {1, 1, 2}, {-0.0180703315, -2.3554373481});
  check(*steps[2].numbers->logits, {1, 1, 2}, {-0.1830333916, -1.0357328674});
}

BOOST_AUTO_TEST_CASE(a_hidden_first_column) {
  const auto steps = play({Forward{.input_ids = {{0, 1}}, .attention_mask = Rows{{0, 1}}, .logits = "last"}});
  check(*steps[0].numbers->logits, {1, 1, 2}, {-0.3280729394, 0.1245835153});
}

BOOST_AUTO_TEST_CASE(a_window_of_one_hides_the_first_column_from_the_second) {
  const auto steps = play({NewCache{"w", "static_sliding_window", 2, 1, {}}, Forward{.cache = "w", .input_ids = {{0, 1}}}});
  check(*steps[1].numbers->logits, {1, 2, 2}, {-0.0180703315, -2.3554373481, -0.3280729394, 0.1245835153});
}

BOOST_AUTO_TEST_CASE(the_second_column_at_the_position_of_the_first) {
  const auto steps = play({Forward{.input_ids = {{0, 1}}, .position_ids = Rows{{0, 0}}, .logits = "last"}});
  check(*steps[0].numbers->logits, {1, 1, 2}, {-0.0746419462, -1.9028644307});
}

BOOST_AUTO_TEST_CASE(keys_and_values) {
  const auto steps = play({NewCache{"a", "dynamic", {}, {}, {}}, Forward{.cache = "a", .input_ids = {{0, 1}}}, Read{"a", 0}});
  check(*steps[2].numbers->keys, {1, 2, 2, 1}, {1.45, -0.95, -0.7, 1.7});
  check(*steps[2].numbers->values, {1, 2, 2, 1}, {-0.1, 1.1, 2.2, -0.2});
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
