#include <boost/test/unit_test.hpp>

#include <algorithm>
#include <set>

#include "harness/oracle/golden_suites.hpp"

// The oracle against what Transformers computed. It shares no line with Transformers, so that agreement to 1e-9 on every file
// says that both are right; and a fault planted in the oracle's positions, mask, window or activation turns the files red.

namespace {

using namespace kvproof::harness;

constexpr double kBound = 1e-9;  // both sides compute in double; measured 7e-15

/// Adds columns to a row: what a greedy loop feeds after the prompt.
void extend(RowHistory& row, const std::vector<std::int64_t>& ids) {
  for (std::size_t i = 0; i + 1 < ids.size(); ++i) {
    auto mask = std::make_shared<std::vector<std::uint8_t>>(*row.columns.back().mask);
    mask->push_back(1);
    row.columns.push_back({ids[i], row.columns.back().position + 1, std::move(mask)});
  }
}

/// How far below the oracle's best logit the recorded ids of one row lie, at most; ids after an eos are not judged.
double worst_gap(const Suite& suite, RowHistory row, const std::vector<std::int64_t>& ids, std::optional<std::int64_t> eos) {
  const std::size_t prompt = row.columns.size();
  extend(row, ids);
  const auto pass = suite.oracle->truth(row, {std::vector<std::uint8_t>(row.columns.size(), 1), false});
  double worst = 0;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto& logits = pass.logits[prompt - 1 + i];
    worst = std::max(worst, *std::ranges::max_element(logits) - logits[static_cast<std::size_t>(ids[i])]);
    if (ids[i] == eos) break;
  }
  return worst;
}

BOOST_AUTO_TEST_SUITE(golden_replay)

BOOST_AUTO_TEST_CASE(there_are_goldens_of_many_kinds) {
  std::set<std::string> ops, codes;
  for (const Suite& suite : all_suites())
    for (const Step& step : suite.golden.trace) {
      ops.emplace(op_name(step.call));
      if (step.error) codes.emplace(code_name(*step.error));
    }
  BOOST_TEST(all_suites().size() >= 54U);
  BOOST_TEST(ops.size() == std::variant_size_v<Call>);
  BOOST_TEST(codes.size() >= kCodeCount - 1);  // model_mismatch needs a second model, which a golden does not have
}

BOOST_AUTO_TEST_CASE(the_weights_are_those_the_goldens_were_made_with) {
  for (const Suite& suite : all_suites()) BOOST_TEST(suite.oracle->weights().sha256() == suite.golden.weights_sha256, suite.golden.where);
}

BOOST_AUTO_TEST_CASE(every_golden_is_met) {
  Distance all;
  for (const Suite& suite : all_suites()) {
    const auto want = expect_from_golden(suite.golden, suite.oracle->facts());
    const auto got = expect_from_oracle(suite.golden.trace, {{"main", suite.oracle}}, false);
    Distance file;
    for (std::size_t step = 0; step < want.size(); ++step) {
      if (!want[step].numbers) continue;
      BOOST_REQUIRE(got[step].numbers.has_value());
      const auto compare = [&](const std::optional<Tensor>& recorded, const std::optional<Tensor>& computed) {
        BOOST_REQUIRE(recorded.has_value() == computed.has_value());
        if (recorded) file.add(distance(*recorded, *computed, want[step].numbers->compared, suite.golden));
      };
      compare(want[step].numbers->logits, got[step].numbers->logits);
      compare(want[step].numbers->keys, got[step].numbers->keys);
      compare(want[step].numbers->values, got[step].numbers->values);
    }
    if (suite.in_double()) BOOST_TEST(file.absolute <= kBound, suite.golden.where << " is off by " << file.absolute);
    BOOST_TEST(file.in_bounds <= 1.0, suite.golden.where);
    if (suite.in_double()) all.add(file);
  }
  BOOST_TEST_MESSAGE(all_suites().size() << " files, " << all.rows << " rows, worst difference in double " << all.absolute);
  BOOST_TEST(all.rows > 2'000U);
}

BOOST_AUTO_TEST_CASE(the_rows_that_count_are_those_of_the_contract) {
  for (const Suite& suite : all_suites()) {
    const auto want = expect_from_golden(suite.golden, suite.oracle->facts());
    const auto got = expect_from_oracle(suite.golden.trace, {{"main", suite.oracle}}, false);
    for (std::size_t step = 0; step < want.size(); ++step)
      if (want[step].numbers) BOOST_TEST((want[step].numbers->compared == got[step].numbers->compared), suite.golden.where << " step " << step);
  }
}

BOOST_AUTO_TEST_CASE(plain_float_stays_within_three_tenths_of_every_files_tolerance) {
  double worst = 0;
  for (const Suite& suite : all_suites()) {
    const auto steps = expect_from_oracle(suite.golden.trace, {{"main", suite.oracle}}, true);
    double file = 0;
    for (const Expectation& step : steps) {
      if (!step.numbers) continue;
      for (const auto& [want, noise] : {std::pair(&step.numbers->logits, &step.numbers->logits_noise), std::pair(&step.numbers->keys, &step.numbers->keys_noise),
                                        std::pair(&step.numbers->values, &step.numbers->values_noise)})
        for (std::size_t i = 0; *want && i < (*want)->values.size(); ++i)
          file = std::max(file, (*noise)->values[i] / (suite.golden.atol + suite.golden.rtol * std::abs((*want)->values[i])));
    }
    BOOST_TEST(file <= 0.3, suite.golden.where << ": " << file);
    worst = std::max(worst, file);
  }
  BOOST_TEST_MESSAGE("float loops: at most " << worst << " of the tolerance");
}

BOOST_AUTO_TEST_CASE(every_generated_id_is_the_oracles_best) {
  std::size_t ids = 0;
  for (const Suite& suite : all_suites()) {
    const auto expectations = expect_from_golden(suite.golden, suite.oracle->facts());
    for (std::size_t step = 0; step < expectations.size(); ++step) {
      const auto* call = std::get_if<Generate>(&suite.golden.trace[step].call);
      if (call == nullptr || !expectations[step].recorded_ids) continue;
      for (std::size_t b = 0; b < call->input_ids.size(); ++b) {
        const auto& row = expectations[step].recorded_ids->at(b);
        BOOST_TEST(worst_gap(suite, expectations[step].outcome.rows[b], row, call->eos_token_id) <= kBound, suite.golden.where << " step " << step);
        ids += row.size();
      }
    }
  }
  BOOST_TEST(ids > 100U);
}

BOOST_AUTO_TEST_SUITE_END()

/// A fault of the oracle: what it makes of a history or a config, and which queries can show it.
struct Fault {
  const char* name;
  void (*history)(RowHistory&, const kvproof::Config&);
  void (*config)(kvproof::Config&);
  bool (*shows)(const RowHistory&, std::size_t q, const kvproof::Config&);  ///< in the logits of column q
  bool small_on_small_weights;  ///< too small for the file's own tolerance where weights are as small as in seed/ (0.02)
};

void keep(RowHistory& /*row*/, const kvproof::Config& /*config*/) {}
void keep(kvproof::Config& /*config*/) {}

bool always(const RowHistory& /*row*/, std::size_t /*q*/, const kvproof::Config& /*config*/) { return true; }

bool in_window(const RowHistory& row, std::size_t q, std::size_t c) { return !row.window || q - c < *row.window; }

bool something_hidden(const RowHistory& row, std::size_t q, const kvproof::Config& /*config*/) {
  for (std::size_t c = 0; c < q; ++c)
    if (in_window(row, q, c) && !row.visible(q, c)) return true;
  return false;
}

bool just_outside_the_window(const RowHistory& row, std::size_t q, const kvproof::Config& /*config*/) {
  return row.window && q >= *row.window && (*row.columns[q].mask)[q - *row.window] != 0;
}

void shift_positions(RowHistory& row, const kvproof::Config& config) {
  for (Column& column : row.columns) column.position = (column.position + 1) % static_cast<std::int64_t>(config.n_positions);
}

void ignore_mask(RowHistory& row, const kvproof::Config& /*config*/) {
  for (Column& column : row.columns) column.mask = std::make_shared<const std::vector<std::uint8_t>>(column.mask->size(), 1);
}

void widen_window(RowHistory& row, const kvproof::Config& /*config*/) {
  if (row.window) ++*row.window;
}

const Fault kFaults[] = {
    {"positions off by one", shift_positions, keep, always, false},
    {"mask ignored", ignore_mask, keep, something_hidden, false},
    {"window one too wide", widen_window, keep, just_outside_the_window, false},
    {"window ignored", [](RowHistory& row, const kvproof::Config&) { row.window.reset(); }, keep, just_outside_the_window, false},
    {"GELU by erf instead of tanh", keep, [](kvproof::Config& config) { config.activation_function = kvproof::Activation::gelu_erf; },
     [](const RowHistory&, std::size_t, const kvproof::Config& config) { return config.activation_function == kvproof::Activation::gelu_tanh; }, true},
};

/// The farthest that a faulty oracle strays from a golden on the logits that can show the fault; no rows = none can.
Distance strayed(const Suite& suite, const Fault& fault) {
  OracleModel model(suite.oracle->weights());
  fault.config(model.config);
  const kvproof::Config& config = suite.oracle->weights().config();
  Distance found;
  const auto expectations = expect_from_golden(suite.golden, suite.oracle->facts());
  for (const Expectation& expectation : expectations) {
    if (!expectation.numbers || !expectation.numbers->logits) continue;
    const Outcome& outcome = expectation.outcome;
    const Tensor& want = *expectation.numbers->logits;
    for (std::size_t b = 0; b < outcome.rows.size(); ++b) {
      RowHistory wrong = outcome.rows[b];
      fault.history(wrong, config);
      const auto pass = full_pass<double>(model, wrong, {std::vector<std::uint8_t>(wrong.columns.size(), 1), false});
      for (std::size_t t = 0; t < outcome.columns; ++t) {
        const std::size_t index = b * outcome.columns + t, q = outcome.first + t;
        if (expectation.numbers->compared[index] == 0 || !fault.shows(outcome.rows[b], q, config)) continue;
        ++found.rows;
        for (std::size_t v = 0; v < config.vocab_size; ++v)
          found.add(want.values[index * config.vocab_size + v], pass.logits[q][v], suite.golden.atol, suite.golden.rtol);
      }
    }
  }
  return found;
}

BOOST_AUTO_TEST_SUITE(planted_faults)

BOOST_AUTO_TEST_CASE(without_a_fault_this_comparison_finds_nothing) {
  for (const Suite& suite : all_suites())
    if (suite.in_double()) BOOST_TEST(strayed(suite, {"none", keep, keep, always, false}).absolute <= kBound, suite.golden.where);
}

BOOST_AUTO_TEST_CASE(each_fault_turns_every_golden_red_that_can_show_it) {
  for (const Fault& fault : kFaults) {
    std::size_t files = 0;
    double nearest = std::numeric_limits<double>::infinity(), nearest_in_bounds = nearest;
    for (const Suite& suite : all_suites()) {
      if (!suite.in_double()) continue;
      const Distance found = strayed(suite, fault);
      if (found.rows == 0) continue;
      ++files;
      BOOST_TEST(found.absolute > 10 * kBound, fault.name << " passes " << suite.golden.where);
      nearest = std::min(nearest, found.absolute);
      if (fault.small_on_small_weights && suite.golden.suite.starts_with("seed")) continue;
      BOOST_TEST(found.in_bounds > 10.0, fault.name << " passes " << suite.golden.where << ": " << found.in_bounds);
      nearest_in_bounds = std::min(nearest_in_bounds, found.in_bounds);
    }
    BOOST_TEST_MESSAGE(fault.name << ": " << files << " files, nearest " << nearest << ", " << nearest_in_bounds << " bounds");
    BOOST_TEST(files >= 5U);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
