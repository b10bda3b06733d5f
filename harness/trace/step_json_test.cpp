#include "harness/trace/step_json.hpp"

#include <boost/test/unit_test.hpp>

#include <nlohmann/json.hpp>
#include <set>

#include "engine/base/error.hpp"
#include "engine/safetensors/text.hpp"

namespace {

namespace kh = kvproof::harness;
using Json = nlohmann::json;

const Json& valid_steps() {
  static const Json kSteps = Json::parse(R"([
    {"op": "new", "cache": "a", "kind": "static_sliding_window", "capacity": 9, "window": 4, "model": "other"},
    {"op": "new", "cache": "a", "kind": "dynamic"},
    {"op": "forward", "cache": "a", "input_ids": [[4, 9], [6, -1]], "attention_mask": [[1, 1], [0, 2]], "position_ids": [[0, 1], [0, 0]],
     "use_cache": false, "logits": "last", "model": "main"},
    {"op": "forward", "cache": null, "input_ids": [[], [9223372036854775807]]},
    {"op": "clone", "cache": "b", "from": "a"},
    {"op": "crop", "cache": "a", "length": -9223372036854775808},
    {"op": "gather", "cache": "a", "rows": [1, 1, -3]},
    {"op": "reset", "cache": "a"},
    {"op": "drop", "cache": "a"},
    {"op": "length", "cache": "a", "expect": 3},
    {"op": "read", "cache": "a", "layer": 1},
    {"op": "save", "cache": "a", "to": "s"},
    {"op": "load", "cache": "a", "from": "s"},
    {"op": "generate", "kind": "static", "capacity": 7, "window": 2, "input_ids": [[1]], "attention_mask": [[1]], "max_new_tokens": 5,
     "eos_token_id": 0, "model": "main"},
    {"op": "generate", "input_ids": [[1]], "max_new_tokens": 5}
  ])");
  return kSteps;
}

/// The complaint about a step, or "" if it is read.
std::string complaint(const Json& step) {
  try {
    (void)kh::step_from_json(step, "t.json: step 3");
    return "";
  } catch (const kvproof::DataError& error) {
    return error.what();
  }
}

Json with(Json step, const char* field, Json value) {
  step[field] = std::move(value);
  return step;
}

Json without(Json step, const std::string& field) {
  step.erase(field);
  return step;
}

const Json kForward = {{"op", "forward"}, {"cache", "a"}, {"input_ids", {{1}}}};

BOOST_AUTO_TEST_SUITE(step_json)

BOOST_AUTO_TEST_CASE(every_op_with_every_field_survives_a_round_trip) {
  std::set<std::string_view> ops;
  for (const Json& document : valid_steps()) {
    const kh::Step step = kh::step_from_json(document, "step");
    ops.insert(kh::op_name(step.call));
    const auto written = kh::step_to_json(step);
    BOOST_TEST(Json(written) == document);
    BOOST_TEST((kh::step_from_json(Json::parse(written.dump()), "again") == step));
    BOOST_TEST(written.begin().key() == "op");
  }
  BOOST_TEST(ops.size() == std::variant_size_v<kh::Call>);
}

BOOST_AUTO_TEST_CASE(error_and_lane_stand_beside_any_op) {
  for (const Json& document : valid_steps()) {
    const Json marked = with(with(document, "error", "capacity"), "lane", 15);
    const kh::Step step = kh::step_from_json(marked, "step");
    BOOST_TEST((step.error == kh::Code::capacity));
    BOOST_TEST(step.lane == 15U);
    BOOST_TEST(Json(kh::step_to_json(step)) == marked);
  }
}

BOOST_AUTO_TEST_CASE(defaults_are_left_out_and_read_back) {
  const Json spelled = with(with(with(kForward, "use_cache", true), "logits", "all"), "lane", 0);
  const kh::Step step = kh::step_from_json(spelled, "step");
  BOOST_TEST((step == kh::step_from_json(kForward, "step")));
  BOOST_TEST(Json(kh::step_to_json(step)) == kForward);
}

BOOST_AUTO_TEST_CASE(null_is_the_same_as_absent) {
  for (const char* field : {"attention_mask", "position_ids", "use_cache", "logits", "model", "error", "lane"})
    BOOST_TEST((kh::step_from_json(with(kForward, field, nullptr), "step") == kh::step_from_json(kForward, "step")), field);
  BOOST_TEST((kh::step_from_json(without(kForward, "cache"), "step") == kh::step_from_json(with(kForward, "cache", nullptr), "step")));
}

// TR10
BOOST_AUTO_TEST_CASE(a_field_that_no_op_knows_is_refused_by_name) {
  for (const Json& document : valid_steps())
    BOOST_TEST(complaint(with(document, "position_id", {{0}})) == "t.json: step 3: unknown field \"position_id\". Is it misspelt?");
}

// TR10
BOOST_AUTO_TEST_CASE(a_field_of_another_op_is_refused) {
  BOOST_TEST(complaint(with(kForward, "expect", 3)).find("unknown field \"expect\"") != std::string::npos);
  BOOST_TEST(complaint({{"op", "reset"}, {"cache", "a"}, {"length", 3}}).find("unknown field \"length\"") != std::string::npos);
  BOOST_TEST(complaint({{"op", "new"}, {"cache", "a"}, {"kind", "static"}, {"use_cache", true}}).find("use_cache") != std::string::npos);
}

// TR09
BOOST_AUTO_TEST_CASE(a_missing_field_is_named_for_every_op) {
  const std::set<std::string> optional = {"model", "capacity", "window", "attention_mask", "position_ids", "use_cache", "logits", "expect",
                                          "eos_token_id"};
  std::size_t tried = 0;
  for (const Json& document : valid_steps())
    for (const auto& [field, value] : document.items()) {
      const std::string op = document["op"];
      if (optional.contains(field) || (op == "generate" && field == "kind") || (op == "forward" && field == "cache")) {
        BOOST_TEST(complaint(without(document, field)) == "");
        continue;
      }
      BOOST_TEST(complaint(without(document, field)) == "t.json: step 3: field \"" + field + "\" is missing");
      ++tried;
    }
  BOOST_TEST(tried > 30U);
}

// TR11
BOOST_AUTO_TEST_CASE(a_wrong_type_is_refused_in_every_field_of_every_op) {
  const std::vector<Json> wrong = {"text", 1.0, 1, true, Json::array({1}), Json::array({Json::array({1})}), Json::object(), Json::array({"x"}),
                                   Json::array({Json::array({1.5})})};
  for (const Json& document : valid_steps())
    for (const auto& [field, value] : document.items())
      for (const Json& other : wrong) {
        if (field == "op" || field == "logits" || value.is_null() || other.type() == value.type() || (other.is_number_integer() && value.is_number_integer())) continue;
        BOOST_TEST(complaint(with(document, field.c_str(), other)).find("field \"" + field + "\" is ") != std::string::npos,
                   document.dump() << " accepted " << field << " " << other.dump());
      }
}

// TR11
BOOST_AUTO_TEST_CASE(lists_of_the_wrong_depth_or_of_fractions_are_refused) {
  for (const Json& bad : {Json::array({1}), Json::array({Json::array({1.0})}), Json::array({Json::array({true})}), Json::array({nullptr}),
                          Json::array({Json::array({Json::array({1})})}), Json::array({Json::array({9223372036854775808ULL})})})
    BOOST_TEST(complaint(with(kForward, "input_ids", bad)).find("expected a list of lists of 64-bit integers") != std::string::npos, bad.dump());
  BOOST_TEST(complaint({{"op", "gather"}, {"cache", "a"}, {"rows", {{1}}}}).find("expected a list of 64-bit integers") != std::string::npos);
}

// TR11
BOOST_AUTO_TEST_CASE(an_integer_beyond_64_bits_is_refused) {
  const Json big = Json::parse(R"({"op": "crop", "cache": "a", "length": 9223372036854775808})");
  BOOST_TEST(complaint(big) == "t.json: step 3: field \"length\" is 9223372036854775808, expected a 64-bit integer");
  const Json huge = Json::parse(R"({"op": "crop", "cache": "a", "length": 99999999999999999999999})");
  BOOST_TEST(complaint(huge).find("expected a 64-bit integer") != std::string::npos);
}

// TR08, TR12, TR13
BOOST_AUTO_TEST_CASE(unknown_ops_codes_and_lanes_are_refused) {
  BOOST_TEST(complaint({{"op", "forwards"}}) == "t.json: step 3: unknown op \"forwards\", expected an op of docs/contract.md");
  BOOST_TEST(complaint(with(kForward, "error", "mask")) == "t.json: step 3: unknown error code \"mask\", expected a code of docs/contract.md");
  BOOST_TEST(complaint(with(kForward, "error", "other")).find("unknown error code \"other\"") != std::string::npos);
  BOOST_TEST(complaint(with(kForward, "lane", -1)) == "t.json: step 3: lane is -1, expected 0 to 15");
  BOOST_TEST(complaint(with(kForward, "lane", 16)) == "t.json: step 3: lane is 16, expected 0 to 15");
}

// TR07
BOOST_AUTO_TEST_CASE(something_else_than_an_object_is_refused) {
  for (const Json& other : {Json("new"), Json(3), Json::array(), Json(nullptr)})
    BOOST_TEST(complaint(other).find("expected a JSON object") != std::string::npos, other.dump());
  BOOST_CHECK_THROW((void)kh::trace_from_json(Json::object(), "t"), kvproof::DataError);
}

BOOST_AUTO_TEST_CASE(a_long_value_is_cut_in_the_message) {
  const std::string message = complaint(with(kForward, "input_ids", std::string(10'000, 'x')));
  BOOST_TEST(message.size() < 200U);
  for (const char* field : {"op", "error", "kind"}) BOOST_TEST(complaint(with(kForward, field, std::string(10'000, 'x'))).size() < 250U, field);
  BOOST_TEST(complaint(with(kForward, std::string(10'000, 'x').c_str(), 1)).size() < 250U);
}

BOOST_AUTO_TEST_CASE(a_message_stays_utf8_wherever_it_is_cut) {
  for (std::size_t before = 50; before < 64; ++before) {
    std::string text(before, 'x');
    for (int i = 0; i < 40; ++i) text += "\u20ac";
    for (const char* field : {"input_ids", "op", "error"})
      BOOST_TEST(!kvproof::first_broken_utf8(complaint(with(kForward, field, text))).has_value(), field << " " << before);
  }
}

BOOST_AUTO_TEST_CASE(control_characters_of_a_file_reach_no_terminal) {
  BOOST_TEST(complaint(with(kForward, "op", "\x1b[2J")) == "t.json: step 3: unknown op \"\\x1b[2J\", expected an op of docs/contract.md");
}

BOOST_AUTO_TEST_CASE(a_step_of_a_trace_is_named_by_its_index) {
  const Json trace = {kForward, kForward, {{"op", "crop"}, {"cache", "a"}}};
  BOOST_CHECK_EXCEPTION((void)kh::trace_from_json(trace, "x.json"), kvproof::DataError, [](const auto& error) {
    return error.what() == std::string_view("x.json: step 2: field \"length\" is missing"); });
}

BOOST_AUTO_TEST_CASE(a_call_of_the_pipe_ignores_fields_it_does_not_know) {
  const Json message = with(with(kForward, "id", 7), "future", {{"a", 1}});
  BOOST_TEST((kh::call_from_json(message, "pipe") == kh::step_from_json(kForward, "step").call));
  BOOST_CHECK_THROW((void)kh::call_from_json(with(message, "input_ids", "no"), "pipe"), kvproof::DataError);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
