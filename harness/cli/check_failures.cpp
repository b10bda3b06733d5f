#include "harness/cli/check_failures.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "harness/backends/backend_spec.hpp"
#include "harness/cli/options.hpp"
#include "harness/cli/program.hpp"
#include "harness/cli/shrinking.hpp"

namespace kvproof::harness {
namespace {

constexpr std::size_t kCrashBudget = 60;  // each smaller trace that breaks the backend down costs one of its restarts

RunHeader header_of(const CheckRequest& request, const CheckedCase& each) {
  RunHeader run;
  run.poison = each.made.options.poison;
  run.law = std::string(each.law->id);
  run.finding = each.judgement.findings.front().kind;
  run.code = each.judgement.findings.front().code;
  if (request.tolerance.source == "command line") {
    run.atol = request.tolerance.atol;
    run.rtol = request.tolerance.rtol;
    run.derived_tolerance = request.tolerance.derived;
  }
  return run;
}

}  // namespace

std::vector<FailingWay> ways_of(const Law& law, const std::vector<CheckedCase>& cases) {
  std::vector<FailingWay> ways;
  for (const CheckedCase& each : cases) {
    if (each.law != &law || !each.played || each.judgement.passed()) continue;
    const FindingClass one = class_of(each.judgement.findings.front());
    auto way = std::ranges::find(ways, one, &FailingWay::one);
    if (way == ways.end()) way = ways.insert(ways.end(), {one, {}});
    way->cases.push_back(&each);
  }
  return ways;
}

Backend& FailureShow::backend_with(const CheckedCase& each) {
  if (!backend_ || each.judgement.findings.front().kind == FindingKind::broke_down) backend_ = request_.make_backend();  // its restarts are counted anew
  for (const auto& [name, model] : each.models) backend_->open(name, models_.folder(model));
  return *backend_;
}

SmallFailure FailureShow::small(const TraceFile& found, const CheckedCase& each) {
  try {
    const Oracles oracles = models_.oracles(each.models);
    const std::size_t budget = each.judgement.findings.front().kind == FindingKind::broke_down ? kCrashBudget : kShrinkBudget;
    return smallest_failure(found, each.judgement, {each.law->judgement, backend_with(each), oracles, request_.tolerance}, budget);
  } catch (const NoBackend&) {
    backend_.reset();
    return {found, each.judgement, 0, false};
  }
}

CaseReport FailureShow::show(const FailingWay& way) {
  const CheckedCase& each = *way.cases.front();
  const SmallFailure smallest = small({models_.sources(each.models), header_of(request_, each), each.made.trace}, each);
  std::filesystem::create_directories(options_.failures);
  const std::filesystem::path path = options_.failures / fmt::format("{}-{}-{}.trace.json", each.law->id, request_.seed, each.index);
  write_trace_file(path, smallest.file);
  CaseReport report{.name = fmt::format("{}/{}", each.law->id, each.index), .backend = options_.backend, .tolerance = request_.tolerance};
  report.judgement = smallest.judgement;
  report.verdict = CaseVerdict::fail;
  report.replay = fmt::format("{} replay {}{}", program(), quoted(path.string()), options_.replay_arguments);
  report.file = path.string();
  report.steps = steps_text(smallest.file.trace);
  report.traces = way.cases.size();
  return report;
}

}  // namespace kvproof::harness
