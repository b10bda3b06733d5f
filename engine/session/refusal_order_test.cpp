#include <boost/test/unit_test.hpp>
#include <functional>

#include "engine/session/test_support.hpp"

// A call that breaks several rules is refused with the first code of the table. Each Breaker adds one fault to a legal call;
// every pair of neighbours and every tail of the table is tried. position_range and context_length cannot meet (positions are
// given or they are not), nor can any two codes of crop, gather and read.

using namespace kvproof;
using namespace kvproof::testing;

namespace {

struct Breaker {
  std::string code;
  std::function<void(ForwardInput&)> apply;
};

Rows& positions_of(ForwardInput& input) {
  if (!input.position_ids) input.position_ids = Rows(2, std::vector<std::int64_t>(input.input_ids[0].size(), 0));
  return *input.position_ids;
}

const std::vector<Breaker>& breakers() {
  static const std::vector<Breaker> all{
      {"bad_argument", [](ForwardInput& in) { in.logits = static_cast<LogitsWanted>(7); }},
      {"empty_input", [](ForwardInput& in) { for (auto& row : in.input_ids) row.clear(); }},
      {"batch_mismatch", [](ForwardInput& in) { in.attention_mask->push_back({1}); }},
      {"token_range", [](ForwardInput& in) { for (auto& row : in.input_ids) for (auto& id : row) id = -1; }},
      {"mask_length", [](ForwardInput& in) { (*in.attention_mask)[1].pop_back(); }},
      {"mask_value", [](ForwardInput& in) { (*in.attention_mask)[1][2] = 2; }},
      {"mask_revival", [](ForwardInput& in) { (*in.attention_mask)[0][0] = 1; }},
      {"position_shape", [](ForwardInput& in) { positions_of(in)[1] = {0, 1, 2}; }},
      {"position_range", [](ForwardInput& in) { positions_of(in)[0].back() = 4; }},
  };
  return all;
}

// n_positions 4, a static cache of capacity 4 that holds 3 columns, column 0 of row 0 hidden.
struct Fixture {
  Session small{make_model(3, {1, 2, 4, 4, 9})};
  Session other{make_model(4, {1, 2, 4, 4, 9})};
  Cache cache{small.make_cache(fixed(4))};
  Fixture() { small.forward(&cache, call({{0, 1, 2}, {3, 4, 5}}, {{0, 1, 1}, {1, 1, 1}})); }

  // Two new columns: past the capacity, and past the default positions unless a breaker gives positions.
  [[nodiscard]] ForwardInput too_long() const { return call({{6, 7}, {8, 0}}, {{0, 1, 1, 1, 1}, {1, 1, 1, 1, 1}}); }
  std::string code_of(const ForwardInput& input) {
    return refusal([&] { small.forward(&cache, input); });
  }
};

}  // namespace

BOOST_FIXTURE_TEST_SUITE(refusal_order, Fixture)

BOOST_AUTO_TEST_CASE(each_code_comes_before_its_neighbour) {
  for (std::size_t i = 0; i + 1 < breakers().size(); ++i) {
    ForwardInput input = call({{6}, {8}}, {{0, 1, 1, 1}, {1, 1, 1, 1}});
    breakers()[i + 1].apply(input);
    BOOST_TEST_CONTEXT(breakers()[i + 1].code << " alone") BOOST_TEST(code_of(input) == breakers()[i + 1].code);
    breakers()[i].apply(input);
    BOOST_TEST_CONTEXT(breakers()[i].code << " and " << breakers()[i + 1].code) BOOST_TEST(code_of(input) == breakers()[i].code);
  }
}

BOOST_AUTO_TEST_CASE(the_first_of_all_later_codes_applies) {
  ForwardInput input = too_long();
  for (std::size_t i = breakers().size(); i-- > 0;) {
    breakers()[i].apply(input);
    BOOST_TEST_CONTEXT(breakers()[i].code << " and all after it") BOOST_TEST(code_of(input) == breakers()[i].code);
  }
  BOOST_TEST(refusal([&] { other.forward(&cache, input); }) == "model_mismatch");
}

BOOST_AUTO_TEST_CASE(model_mismatch_comes_before_bad_argument) {
  ForwardInput input = too_long();
  breakers()[0].apply(input);
  BOOST_TEST(refusal([&] { other.forward(&cache, input); }) == "model_mismatch");
}

BOOST_AUTO_TEST_CASE(position_range_and_context_length_come_before_capacity) {
  BOOST_TEST(code_of(too_long()) == "context_length");
  ForwardInput input = too_long();
  input.position_ids = Rows{{0, 1}, {0, -1}};
  BOOST_TEST(code_of(input) == "position_range");
  input.position_ids = Rows{{0, 1}, {0, 1}};
  BOOST_TEST(code_of(input) == "capacity");
}

BOOST_AUTO_TEST_CASE(a_later_row_with_an_earlier_code_comes_first) {
  BOOST_TEST(code_of(call({{6}, {8}}, {{0, 1, 1, 2}, {1, 1, 1}})) == "mask_length");
  BOOST_TEST(code_of(call({{6}, {8}}, {{1, 1, 1, 1}, {1, 1, 1, 2}})) == "mask_value");
}

BOOST_AUTO_TEST_CASE(generate_follows_the_same_order) {
  const auto code = [&](const GenerateInput& input) { return refusal([&] { (void)small.generate(input); }); };
  GenerateInput input;  // capacity 2 and four positions for 1 + 5 - 1 columns
  input.cache = fixed(2);
  input.input_ids = {{1}, {2}};
  input.max_new_tokens = 5;
  BOOST_TEST(code(input) == "context_length");
  input.max_new_tokens = 4;
  BOOST_TEST(code(input) == "capacity");
  input.max_new_tokens = 5;
  input.attention_mask = Rows{{1}, {0}};
  BOOST_TEST(code(input) == "mask_value");
  input.attention_mask = Rows{{2}, {1, 1}};
  BOOST_TEST(code(input) == "mask_length");
  input.input_ids = {{9}, {2}};
  BOOST_TEST(code(input) == "token_range");
  input.attention_mask = Rows{{1}};
  BOOST_TEST(code(input) == "batch_mismatch");
  input.input_ids = {{}, {}};
  BOOST_TEST(code(input) == "empty_input");
  input.max_new_tokens = 0;
  BOOST_TEST(code(input) == "bad_argument");
  input.max_new_tokens = 5;
  input.cache = CacheOptions{CacheKind::dynamic, 4, {}};
  BOOST_TEST(code(input) == "bad_argument");
}

BOOST_AUTO_TEST_SUITE_END()
