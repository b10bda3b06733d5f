#include <boost/test/unit_test.hpp>

#include "harness/history/world.hpp"
#include "harness/laws/law_case_fixture.hpp"
#include "harness/laws/removal.hpp"
#include "harness/laws/trace_words.hpp"
#include "harness/trace/trace_file.hpp"

using namespace kvproof::harness;

BOOST_AUTO_TEST_SUITE(removal)

namespace {

std::string text_of(const Trace& trace) { return format_trace_file({.trace = trace}); }

void check(const std::string& before, const Removal& removal, const std::string& after) {
  BOOST_TEST(text_of(without(trace_of(before), removal, small_models())) == text_of(trace_of(after)));
}

std::vector<bool> refusals_of(const Trace& trace, const std::map<std::string, ModelFacts>& models) {
  std::vector<bool> refused;
  for (const StepShape& shape : shapes_of(trace, models)) refused.push_back(shape.refused);
  return refused;
}

}  // namespace

BOOST_AUTO_TEST_CASE(later_masks_lose_the_columns_of_a_step_that_is_gone) {
  check("new a; feed a 123 m=011; feed a 45 m=01110; feed a 6 m=011101", {.steps = {2}}, "new a; feed a 123 m=011; feed a 6 m=0111");
}

BOOST_AUTO_TEST_CASE(later_masks_lose_a_column) {
  check("new a; feed a 123 m=011 p=001; feed a 45 m=01111", {.columns = {{1, 0}}}, "new a; feed a 23 m=11 p=01; feed a 45 m=1111");
  check("new a; feed a 123 m=011; feed a 45 m=01101", {.columns = {{2, 0}}}, "new a; feed a 123 m=011; feed a 5 m=0111");
}

BOOST_AUTO_TEST_CASE(rows_go_from_every_later_call_of_the_cache_and_of_its_copies) {
  check("new a; feed a 1/2/3 m=1/1/1; clone b a; feed b 4/5/6 p=7/8/9; save b s; load c s; feed c 1/2/3; new d; feed d 1/2", {.rows = {{1, 1}}},
        "new a; feed a 1/3 m=1/1; clone b a; feed b 4/6 p=7/9; save b s; load c s; feed c 1/3; new d; feed d 1/2");
}

BOOST_AUTO_TEST_CASE(rows_are_followed_through_a_gather) {
  check("new a; feed a 1/2/3; gather a 210; feed a 4/5/6", {.rows = {{1, 0}}}, "new a; feed a 2/3; gather a 10; feed a 4/5");
  check("new a; feed a 1/2; gather a 111; feed a 4/5/6", {.rows = {{1, 0}}}, "new a; feed a 2; gather a 000; feed a 4/5/6");
  check("new a; feed a 1/2; gather a 110; feed a 4/5/6", {.rows = {{2, 1}}}, "new a; feed a 1/2; gather a 10; feed a 4/6");
}

BOOST_AUTO_TEST_CASE(a_static_cache_keeps_its_number_of_rows_through_a_gather) {
  check("new a static 8; feed a 1/2; gather a 11; feed a 4/5", {.rows = {{1, 0}}}, "new a static 8; feed a 2; gather a 0; feed a 4");
  check("new a static 8; feed a 1/2/3; gather a 001; feed a 4/5/6", {.rows = {{1, 0}}}, "new a static 8; feed a 2/3; gather a 00; feed a 4/6");
}

BOOST_AUTO_TEST_CASE(batches_are_cut_to_size_where_what_changed_them_is_gone) {
  check("new a; feed a 1/2; gather a 0; feed a 3", {.steps = {2}}, "new a; feed a 1/2; feed a 3/3");
  check("new a; feed a 1; reset a; feed a 1/2; feed a 3/4", {.steps = {2}}, "new a; feed a 1; feed a 1; feed a 3");
}

BOOST_AUTO_TEST_CASE(crops_keep_the_columns_they_kept) {
  check("new a; feed a 1234; feed a 56; crop a 5", {.columns = {{1, 1}}}, "new a; feed a 134; feed a 56; crop a 4");
  check("new a; feed a 1234; feed a 56; crop a 5", {.columns = {{2, 1}}}, "new a; feed a 1234; feed a 5; crop a 5");
  check("new a; feed a 1234; crop a 4", {.columns = {{1, 1}}}, "new a; feed a 134; crop a 3");
  check("new a; feed a 1234; crop a 6", {.columns = {{1, 1}}}, "new a; feed a 134; crop a 5");  // two too far, as before
  check("new a; feed a 12; feed a 34; crop a 2; feed a 5", {.steps = {1}}, "new a; feed a 34; crop a 0; feed a 5");
}

BOOST_AUTO_TEST_CASE(a_wrong_shape_stays_as_wrong_as_it_was) {
  check("new a; feed a 123; feed a 4 m=111", {.columns = {{1, 0}}}, "new a; feed a 23; feed a 4 m=11");
  check("new a; feed a 123; feed a 4 m=11111", {.columns = {{1, 0}}}, "new a; feed a 23; feed a 4 m=1111");
  check("new a; feed a 123; feed a 45 m=10", {.columns = {{1, 0}}}, "new a; feed a 23; feed a 45 m=10");  // only the new part
  check("new a; feed a 1/2/3; feed a 4/5", {.rows = {{1, 0}}}, "new a; feed a 2/3; feed a 5");
  check("new a; feed a 1/2; feed a 4/5/6", {.rows = {{1, 0}}}, "new a; feed a 2; feed a 5/6");
  check("new a; feed a 1/2; gather a 2", {.rows = {{1, 0}}}, "new a; feed a 2; gather a 1");
}

BOOST_AUTO_TEST_CASE(what_the_file_says_of_lengths_and_codes_follows) {
  Trace trace = trace_of("new a static 3; feed a 12; feed a 34; length a");
  trace[2].error = Code::capacity;
  trace[3].expect = 2;
  const Trace left = without(trace, {.columns = {{2, 0}}}, small_models());
  BOOST_TEST(!left[2].error.has_value());
  BOOST_TEST(*left[3].expect == 3);
}

BOOST_AUTO_TEST_CASE(prompts_of_generate_lose_rows_and_columns) {
  check("generate 123/456 3 m=011/111", {.columns = {{0, 0}}, .rows = {{0, 1}}}, "generate 23 3 m=11");
}

BOOST_AUTO_TEST_CASE(lanes_are_followed_apart) {
  check("new a; lane1 new a; feed a 12; lane1 feed a 345; lane1 feed a 6 m=1111", {.columns = {{2, 0}}},
        "new a; lane1 new a; feed a 2; lane1 feed a 345; lane1 feed a 6 m=1111");
}

BOOST_AUTO_TEST_CASE(shapes_say_where_rows_begin) {
  const auto shapes = shapes_of(trace_of("new a; feed a 12/34; feed a 5/6; gather a 011; generate 1/2 3; new b static 4; feed b 1/2; gather b 10"), small_models());
  const std::vector<std::size_t> rows{0, 2, 0, 3, 2, 0, 2, 0};
  for (std::size_t i = 0; i < rows.size(); ++i) BOOST_TEST(shapes[i].rows == rows[i]);
  BOOST_TEST(shapes[2].past == 2);
  BOOST_TEST(shapes[2].columns == 1);
}

/// Over the traces of all laws.
BOOST_AUTO_TEST_CASE(nothing_removed_is_nothing_changed) {
  for (const Law& law : laws())
    for (std::size_t index = 0; index < 30; ++index) {
      const MadeCase each = made_case(law, 5, index);
      BOOST_TEST(text_of(without(each.made.trace, {}, each.models)) == text_of(each.made.trace), law.id << " " << index);
    }
}

BOOST_AUTO_TEST_CASE(a_row_or_a_column_less_leaves_every_legal_call_legal) {
  for (const Law& law : laws())
    for (std::size_t index = 0; index < 6; ++index) {
      const MadeCase each = made_case(law, 5, index);
      const auto shapes = shapes_of(each.made.trace, each.models);
      for (std::size_t i = 0; i < shapes.size(); i += 3) {
        std::vector<Removal> removals;
        if (shapes[i].refused) continue;  // without its fault such a call is carried out
        if (shapes[i].rows > 1) removals.push_back({.rows = {{i, shapes[i].rows - 1}}});
        if (shapes[i].columns > 1) removals.push_back({.columns = {{i, 0}}});
        for (const Removal& removal : removals) {
          const auto refused = refusals_of(without(each.made.trace, removal, each.models), each.models);
          for (std::size_t s = 0; s < shapes.size() && (refused[s] || !shapes[s].refused); ++s)  // until what did not fit fits now
            if (!shapes[s].refused) BOOST_TEST(!refused[s], law.id << " " << index << ": step " << s << " after a removal at step " << i);
        }
      }
    }
}

BOOST_AUTO_TEST_SUITE_END()
