#include <boost/test/unit_test.hpp>
#include <cstdlib>

#include "harness/laws/law_case_fixture.hpp"
#include "harness/laws/shrink.hpp"
#include "harness/laws/situations.hpp"
#include "harness/laws/trace_words.hpp"

using namespace kvproof::harness;

BOOST_AUTO_TEST_SUITE(shrinking)

namespace {

std::string text_of(const Trace& trace) { return format_trace_file({.trace = trace}); }

TraceFile file_of(const std::string& words) { return {.models = {{"main", {"{}"}}}, .trace = trace_of(words)}; }

bool any_step(const Trace& trace, const auto& holds) { return std::ranges::any_of(trace, [&](const Step& step) { return holds(step.call); }); }

StillFails contains(const auto& holds) {
  return [holds](const TraceFile& file) { return any_step(file.trace, holds); };
}

StillFails has(Situation situation, const std::map<std::string, ModelFacts>& models) {
  return [situation, &models](const TraceFile& file) {
    return situations_of(file.trace, models, {file.run.poison}).test(static_cast<std::size_t>(situation));
  };
}

/// The first case of any law that shows a situation.
std::optional<MadeCase> case_with(Situation situation) {
  for (std::size_t index = 0; index < 80; ++index)
    for (const Law& law : laws()) {
      MadeCase each = made_case(law, 3, index);
      if (situations_of(each.made.trace, each.models, each.made.options).test(static_cast<std::size_t>(situation))) return each;
    }
  return std::nullopt;
}

}  // namespace

BOOST_AUTO_TEST_CASE(only_the_step_that_matters_is_left) {
  const auto is_crop = [](const Call& call) { return std::holds_alternative<Crop>(call); };
  const Shrunk shrunk = shrink(file_of("new a; feed a 123; clone b a; crop b 1; feed a 4; drop b; feed a 5"), small_models(), contains(is_crop));
  BOOST_TEST(text_of(shrunk.file.trace) == text_of(trace_of("crop b 0")));  // nothing is left that it could keep
  BOOST_TEST(shrunk.minimal);
}

BOOST_AUTO_TEST_CASE(steps_that_only_fail_together_both_stay) {
  const StillFails both = [](const TraceFile& file) {
    return any_step(file.trace, [](const Call& call) { return std::holds_alternative<Save>(call); }) &&
           any_step(file.trace, [](const Call& call) { return std::holds_alternative<Load>(call); });
  };
  const Shrunk shrunk = shrink(file_of("new a; save a s; feed a 123; feed a 4; feed a 5; load a s; feed a 6"), small_models(), both);
  BOOST_TEST(text_of(shrunk.file.trace) == text_of(trace_of("save a s; load a s")));
}

BOOST_AUTO_TEST_CASE(rows_columns_values_and_the_header_become_simple) {
  TraceFile file = file_of("new a sliding 9 5; feed a 123/456/789 m=011/111/110 p=012/345/678 last; feed a 25/67/89 m=01111/11111/11011");
  file.run.poison = true;
  file.models["other"] = {"{}"};
  const StillFails fails = [](const TraceFile& each) {  // a call of two columns where some row holds token 6 or more
    return any_step(each.trace, [](const Call& call) {
      const auto* forward = std::get_if<Forward>(&call);
      return forward != nullptr && !forward->input_ids.empty() && forward->input_ids.front().size() >= 2 &&
             std::ranges::any_of(forward->input_ids, [](const auto& row) { return *std::ranges::max_element(row) >= 6; });
    });
  };
  const Shrunk shrunk = shrink(file, small_models(), fails);
  BOOST_TEST(shrunk.file.trace.size() == 1U);
  const auto& forward = std::get<Forward>(shrunk.file.trace.front().call);
  BOOST_TEST(forward.input_ids.size() == 1U);
  BOOST_TEST(forward.input_ids.front().size() == 2U);
  BOOST_TEST(*std::ranges::min_element(forward.input_ids.front()) == 0);
  BOOST_TEST(!forward.attention_mask.has_value());
  BOOST_TEST(!forward.position_ids.has_value());
  BOOST_TEST(forward.logits == "all");
  BOOST_TEST(!shrunk.file.run.poison);
  BOOST_TEST(shrunk.file.models.size() == 1U);
}

BOOST_AUTO_TEST_CASE(capacities_windows_and_new_tokens_come_down_to_what_is_needed) {
  const StillFails fails = [](const TraceFile& file) {
    return any_step(file.trace, [](const Call& call) {
      const auto* made = std::get_if<NewCache>(&call);
      return made != nullptr && made->window.value_or(0) >= 3 && made->capacity.value_or(0) >= 5;
    }) && any_step(file.trace, [](const Call& call) {
      const auto* made = std::get_if<Generate>(&call);
      return made != nullptr && made->max_new_tokens >= 4;
    });
  };
  const Shrunk shrunk = shrink(file_of("new a sliding 19 17; generate 123/456 9 static 20 eos=3"), small_models(), fails);
  BOOST_TEST(text_of(shrunk.file.trace) == text_of(trace_of("new a sliding 5 3; generate 0 4")));
}

/// With one model or one lane less a call may be accepted that was refused, and a length is another from there on.
BOOST_AUTO_TEST_CASE(what_the_file_says_of_lengths_and_codes_follows_the_header) {
  TraceFile file = file_of("new a; feed a 12; feed a 3; length a");
  file.models["other"] = {"{}"};
  std::get<Forward>(file.trace[2].call).model = "other";
  file.trace[2].error = Code::model_mismatch;
  file.trace[3].expect = 2;
  const StillFails fails = [](const TraceFile& each) {
    const auto* first = each.trace.size() == 4 ? std::get_if<Forward>(&each.trace[1].call) : nullptr;
    return first != nullptr && !first->input_ids.empty() && first->input_ids.front().size() == 2;
  };
  const Shrunk shrunk = shrink(file, small_models(), fails);
  BOOST_TEST(!std::get<Forward>(shrunk.file.trace[2].call).model.has_value());
  BOOST_TEST(!shrunk.file.trace[2].error.has_value());
  BOOST_TEST((shrunk.file.trace[3].expect == 3));
}

BOOST_AUTO_TEST_CASE(the_same_question_is_never_asked_twice_and_the_answer_is_always_the_same) {
  const MadeCase each = made_case(*find_law("numerics.oracle"), 3, 1);
  TraceFile file{.models = {{"main", {"{}"}}}, .trace = each.made.trace};
  std::set<std::string> asked;
  const StillFails fails = [&](const TraceFile& candidate) {
    BOOST_TEST(asked.insert(format_trace_file(candidate)).second);
    return has(Situation::append_many, each.models)(candidate);
  };
  const Shrunk first = shrink(file, each.models, fails);
  asked.clear();
  const Shrunk second = shrink(file, each.models, fails);
  BOOST_TEST(format_trace_file(first.file) == format_trace_file(second.file));
  BOOST_TEST(first.asked == second.asked);
}

BOOST_AUTO_TEST_CASE(the_budget_is_kept_and_what_is_left_still_fails) {
  const MadeCase each = made_case(*find_law("isolation.clone"), 3, 0);
  const StillFails fails = has(Situation::third_step_after_clone, each.models);
  for (const std::size_t budget : {0U, 1U, 7U, 20U}) {
    const Shrunk shrunk = shrink({.models = {{"main", {"{}"}}}, .trace = each.made.trace}, each.models, fails, budget);
    BOOST_TEST(shrunk.asked <= budget);
    BOOST_TEST(!shrunk.minimal);
    BOOST_TEST(fails(shrunk.file));
  }
}

/// KVPROOF_SHOW_SHRUNK=1 prints what is left for each situation.
BOOST_AUTO_TEST_CASE(for_every_situation_no_step_row_or_token_can_go) {
  for (std::size_t s = 0; s < kSituationCount; ++s) {
    const auto situation = static_cast<Situation>(s);
    const auto each = case_with(situation);
    BOOST_REQUIRE_MESSAGE(each, situation_name(situation));
    const StillFails fails = has(situation, each->models);
    TraceFile file{.models = {{"main", {"{}"}}, {"other", {"{}"}}}, .run = {.poison = each->made.options.poison}, .trace = each->made.trace};
    const Shrunk shrunk = shrink(file, each->models, fails);
    BOOST_TEST(shrunk.minimal, situation_name(situation));
    BOOST_TEST(fails(shrunk.file), situation_name(situation));
    for (const Trace& smaller : single_removals(shrunk.file.trace, each->models)) {
      TraceFile candidate = shrunk.file;
      candidate.trace = smaller;
      BOOST_TEST(!fails(candidate), situation_name(situation) << " is still there in\n" << text_of(smaller));
    }
    if (std::getenv("KVPROOF_SHOW_SHRUNK") != nullptr)
      fmt::print("{}: {} steps of {}, asked {}\n{}\n", situation_name(situation), shrunk.file.trace.size(), file.trace.size(), shrunk.asked, text_of(shrunk.file.trace));
  }
}

BOOST_AUTO_TEST_SUITE_END()
