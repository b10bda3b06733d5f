#include <boost/test/unit_test.hpp>

#include <set>

#include "harness/contract/backend.hpp"
#include "harness/contract/finding_kind.hpp"
#include "harness/contract/refusal_code.hpp"

namespace {

namespace kh = kvproof::harness;

BOOST_AUTO_TEST_SUITE(refusal_code)

BOOST_AUTO_TEST_CASE(every_code_has_a_name_of_its_own_that_leads_back_to_it) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i <= kh::kCodeCount; ++i) {
    const auto code = static_cast<kh::Code>(i);
    BOOST_TEST(names.insert(kh::code_name(code)).second);
    BOOST_TEST((kh::code_from_name(kh::code_name(code)) == code));
  }
  BOOST_TEST(kh::code_name(kh::Code::other) == "other");
}

BOOST_AUTO_TEST_CASE(the_codes_stand_in_the_order_of_the_contract) {
  const char* const order[] = {"unknown_cache", "model_mismatch", "cache_exists",   "name_unknown",   "bad_argument", "layer_range", "empty_input",
                               "batch_mismatch", "token_range",   "mask_length",    "mask_value",     "mask_revival", "position_shape",
                               "position_range", "context_length", "capacity",      "crop_range",     "crop_evicted", "row_range"};
  BOOST_TEST(std::size(order) == kh::kCodeCount);
  for (std::size_t i = 0; i < std::size(order); ++i) BOOST_TEST(kh::code_name(static_cast<kh::Code>(i)) == order[i]);
}

BOOST_AUTO_TEST_CASE(an_unknown_name_is_no_code) {
  for (const char* name : {"", "mask", "Mask_length", "mask_length ", "others"}) BOOST_TEST((kh::code_from_name(name) == std::nullopt), name);
}

BOOST_AUTO_TEST_CASE(four_codes_concern_the_words_of_a_trace_alone) {
  std::set<std::string_view> found;
  for (std::size_t i = 0; i <= kh::kCodeCount; ++i)
    if (kh::concerns_trace_words(static_cast<kh::Code>(i))) found.insert(kh::code_name(static_cast<kh::Code>(i)));
  BOOST_TEST((found == std::set<std::string_view>{"unknown_cache", "cache_exists", "name_unknown", "bad_argument"}));
}

BOOST_AUTO_TEST_CASE(every_finding_has_a_name_of_its_own_and_is_found_by_it) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kh::kFindingKindCount; ++i) {
    const auto kind = static_cast<kh::FindingKind>(i);
    BOOST_TEST(names.insert(kh::finding_name(kind)).second);
    BOOST_TEST((kh::finding_from_name(kh::finding_name(kind)) == kind));
  }
  BOOST_TEST((kh::finding_name(kh::FindingKind::broke_down) == "broke_down"));  // the last one
  for (const char* name : {"", "wrong", "Wrong_logits", "wrong_logits "}) BOOST_TEST((kh::finding_from_name(name) == std::nullopt), name);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(call)

BOOST_AUTO_TEST_CASE(every_op_has_its_name) {
  const std::pair<kh::Call, std::string_view> ops[] = {
      {kh::NewCache{}, "new"}, {kh::Forward{}, "forward"}, {kh::Clone{}, "clone"}, {kh::Crop{}, "crop"}, {kh::Gather{}, "gather"},
      {kh::Reset{}, "reset"},  {kh::Drop{}, "drop"},       {kh::Length{}, "length"}, {kh::Read{}, "read"}, {kh::Save{}, "save"},
      {kh::Load{}, "load"},    {kh::Generate{}, "generate"}};
  BOOST_TEST(std::size(ops) == std::variant_size_v<kh::Call>);
  for (const auto& [call, name] : ops) BOOST_TEST(kh::op_name(call) == name);
}

BOOST_AUTO_TEST_CASE(a_call_names_the_cache_it_makes_or_speaks_of) {
  BOOST_TEST((kh::cache_of(kh::Clone{"new", "old"}) == "new"));
  BOOST_TEST((kh::cache_of(kh::Load{"new", "name"}) == "new"));
  BOOST_TEST((kh::cache_of(kh::Save{"a", "name"}) == "a"));
  BOOST_TEST((kh::cache_of(kh::Forward{.cache = "a"}) == "a"));
  BOOST_TEST((kh::cache_of(kh::Forward{}) == std::nullopt));
  BOOST_TEST((kh::cache_of(kh::Generate{}) == std::nullopt));
}

BOOST_AUTO_TEST_SUITE_END()

/// Answers each call with the lane and the number of calls before it.
class CountingBackend : public kh::Backend {
 public:
  [[nodiscard]] const kh::Capabilities& capabilities() const override { return capabilities_; }
  void open(const std::string& /*model*/, const std::filesystem::path& /*folder*/) override {}
  void begin(const std::string& /*name*/, const kh::RunOptions& /*options*/) override {}
  [[nodiscard]] kh::Reply call(const kh::Call& call, std::size_t lane) override {
    kh::Answer answer;
    answer.length = static_cast<std::int64_t>(lane * 100 + calls_++);
    if (std::holds_alternative<kh::Crop>(call)) return kh::Refusal{kh::Code::crop_range, "no"};
    return answer;
  }

 private:
  kh::Capabilities capabilities_;
  std::size_t calls_ = 0;
};

BOOST_AUTO_TEST_SUITE(backend)

BOOST_AUTO_TEST_CASE(together_answers_in_the_order_of_the_calls) {
  CountingBackend backend;
  const kh::Call length = kh::Length{"a"}, crop = kh::Crop{"a", 1};
  const kh::LaneCall calls[] = {{3, &length}, {1, &crop}, {2, &length}};
  const auto replies = backend.together(calls);
  BOOST_REQUIRE(replies.size() == 3U);
  BOOST_TEST((std::get<kh::Answer>(replies[0]).length == 300));
  BOOST_TEST((std::get<kh::Refusal>(replies[1]).code == kh::Code::crop_range));
  BOOST_TEST((std::get<kh::Answer>(replies[2]).length == 202));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
