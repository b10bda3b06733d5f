#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <thread>
#include <unordered_set>

#include "harness/cli/backend_options.hpp"
#include "harness/cli/check_run.hpp"
#include "harness/cli/commands.hpp"
#include "harness/report/text.hpp"
#include "harness/trace/trace_file.hpp"

namespace kvproof::harness {
namespace {

namespace po = boost::program_options;

/// `*` stands for any run of characters.
bool matches(std::string_view pattern, std::string_view text) {
  if (pattern.empty()) return text.empty();
  if (pattern.front() != '*') return !text.empty() && pattern.front() == text.front() && matches(pattern.substr(1), text.substr(1));
  for (std::size_t skip = 0; skip <= text.size(); ++skip)
    if (matches(pattern.substr(1), text.substr(skip))) return true;
  return false;
}

std::vector<std::string> words(const OptionValues& values, const char* name) {
  return values.count(name) != 0 ? values[name].as<std::vector<std::string>>() : std::vector<std::string>{};
}

bool any_matches(const std::vector<std::string>& patterns, std::string_view id) {
  return std::ranges::any_of(patterns, [&](const std::string& pattern) { return matches(pattern, id); });
}

/// A pattern that matches no law would silently test nothing.
void require_matches(const std::vector<std::string>& patterns) {
  for (const std::string& pattern : patterns)
    if (std::ranges::none_of(laws(), [&](const Law& law) { return matches(pattern, law.id); }))
      throw Error({"kvproof check", fmt::format("\"{}\" matches no law", pattern), "", "See kvproof check --list"});
}

std::vector<const Law*> selected_laws(const OptionValues& values) {
  const auto only = words(values, "only"), skip = words(values, "skip");
  require_matches(only);
  require_matches(skip);
  std::vector<const Law*> selected;
  for (const Law& law : laws())
    if ((only.empty() || any_matches(only, law.id)) && !any_matches(skip, law.id)) selected.push_back(&law);
  if (selected.empty()) throw Error({"kvproof check", "no law is selected", "at least one", "See kvproof check --list"});
  return selected;
}

std::size_t whole(const OptionValues& values, const char* name) {
  const std::int64_t value = parse_integer(values[name].as<std::string>(), std::string("--") + name);
  if (value < 1 || value > 1'000'000) throw UsageError({"kvproof check", fmt::format("--{} is {}", name, value), "1 to 1000000", ""});
  return static_cast<std::size_t>(value);
}

void print_summary(const CheckRequest& request, const std::vector<CheckedCase>& cases) {
  std::unordered_set<std::uint64_t> all;
  std::size_t traces = 0, failed = 0;
  for (const Law* law : request.laws) {
    std::unordered_set<std::uint64_t> rows;
    std::size_t played = 0, missing = 0, wrong = 0;
    double worst = 0, seconds = 0;
    const CheckedCase* first = nullptr;
    for (const CheckedCase& each : cases) {
      if (each.law != law || !each.played) continue;
      ++played;
      if (each.judgement.not_covered) ++missing;
      if (!each.judgement.passed()) {
        ++wrong;
        if (first == nullptr) first = &each;
      }
      worst = std::max(worst, each.judgement.numbers.worst);
      seconds += each.seconds;
      rows.insert(each.judgement.row_hashes.begin(), each.judgement.row_hashes.end());
    }
    all.insert(rows.begin(), rows.end());
    traces += played;
    failed += wrong;
    std::cout << fmt::format("{:<24} {:>5} {:>7} {:>9.3g} {:>6.2f}s {}{}\n", law->id, played, rows.size(), worst, seconds, wrong != 0 ? "FAIL" : "ok", missing != 0 ? fmt::format(" ({} not covered)", missing) : "");
    if (first != nullptr) {
      const Finding& finding = first->judgement.findings.front();
      std::cout << fmt::format("   {} of {}; case {}: {} at step {}: {}\n", wrong, played, first->index, finding_name(finding.kind), finding.step, finding.message);
    }
  }
  std::cout << fmt::format("{} traces, {} distinct rows, {} failed\n", traces, all.size(), failed);
}

}  // namespace

ExitCode run_check(const Arguments& arguments) {
  OptionTable table("options");
  add_backend_options(table);
  table.add_options()("model", po::value<std::string>(), "judge on this model folder instead of the probe models")(
      "only", po::value<std::vector<std::string>>(), "laws to check, with *")("skip", po::value<std::vector<std::string>>(), "laws to leave out, with *")(
      "seed", po::value<std::string>()->default_value("1"), "seed of all cases")("traces", po::value<std::string>()->default_value("80"), "cases per law")(
      "jobs,j", po::value<std::string>(), "workers (default: the processors)")("list", "name the laws and stop")("fail-fast", "stop at the first failure");
  add_tolerance_options(table);
  const auto values = parse_options({"check", "", "[--backend SPEC]"}, table, arguments);
  if (!values) return kExpected;
  if (values->count("list") != 0) {
    for (const Law& law : laws()) std::cout << fmt::format("{:<24} {}\n", law.id, law.statement);
    return kExpected;
  }
  CheckRequest request;
  request.make_backend = [&] { return backend_from(*values); };
  request.laws = selected_laws(*values);
  request.seed = static_cast<std::uint64_t>(parse_integer((*values)["seed"].as<std::string>(), "--seed"));
  request.traces = whole(*values, "traces");
  request.jobs = values->count("jobs") != 0 ? whole(*values, "jobs") : std::max(1U, std::thread::hardware_concurrency());
  request.fail_fast = values->count("fail-fast") != 0;
  if (values->count("model") != 0) request.model = (*values)["model"].as<std::string>();
  request.tolerance = tolerance_from(*values, {});
  const CheckModels models(request);
  const std::vector<CheckedCase> cases = run_check(request, models);
  print_summary(request, cases);
  const bool failed = std::ranges::any_of(cases, [](const CheckedCase& each) { return !each.judgement.passed(); });
  return failed ? kViolations : kExpected;
}

}  // namespace kvproof::harness
