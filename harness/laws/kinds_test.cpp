#include <algorithm>
#include <boost/test/unit_test.hpp>
#include <set>

#include "harness/laws/law_case_fixture.hpp"

using namespace kvproof::harness;

// A law uses another kind of cache where a backend lacks the one it would have taken, so that it is judged all the same. A law
// that is about a kind does not: its traces need that kind, and are reported as not covered.

BOOST_AUTO_TEST_SUITE(kinds)

namespace {

constexpr std::size_t kCases = 80;  // a law

Capabilities only(std::set<std::string> kinds) {
  Capabilities some = everything();
  some.kinds = std::move(kinds);
  return some;
}

std::set<std::string> kinds_of(const Trace& trace) {
  std::set<std::string> kinds;
  for (const Step& step : trace)
    if (const auto* made = std::get_if<NewCache>(&step.call)) kinds.insert(made->kind);
  return kinds;
}

}  // namespace

BOOST_AUTO_TEST_CASE(every_law_makes_traces_for_a_backend_of_one_kind) {
  for (const char* kind : {"dynamic", "static", "static_sliding_window"})
    for (const Law& law : laws())
      for (std::size_t index = 0; index < kCases; ++index) BOOST_TEST(!made_case(law, 1, index, only({kind})).made.trace.empty(), law.id);
}

BOOST_AUTO_TEST_CASE(a_law_about_a_kind_needs_it) {
  const Capabilities dynamic = only({"dynamic"});
  for (const Law& law : laws()) {
    const bool window = law.id.starts_with("window.");
    if (!window && law.id != "cache.static") continue;
    for (std::size_t index = 0; index < kCases; ++index)
      BOOST_TEST(kinds_of(made_case(law, 1, index, dynamic).made.trace).contains(window ? "static_sliding_window" : "static"), law.id);
  }
}

BOOST_AUTO_TEST_CASE(the_law_about_reading_needs_read) {
  Capabilities no_read = everything();
  no_read.ops.erase("read");
  const auto reads = [](const Step& step) { return std::holds_alternative<Read>(step.call); };
  for (std::size_t index = 0; index < kCases; ++index)
    BOOST_TEST(std::ranges::any_of(made_case(*find_law("numerics.kv"), 1, index, no_read).made.trace, reads));
}

BOOST_AUTO_TEST_CASE(other_laws_make_do_with_the_kinds_there_are) {
  const Law& law = *find_law("padding.left");
  for (std::size_t index = 0; index < kCases; ++index)
    BOOST_TEST((kinds_of(made_case(law, 1, index, only({"dynamic"})).made.trace) == std::set<std::string>{"dynamic"}));
}

BOOST_AUTO_TEST_SUITE_END()
