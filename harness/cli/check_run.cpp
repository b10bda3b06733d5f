#include "harness/cli/check_run.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <iostream>
#include <mutex>
#include <thread>
#include <tuple>

#include "engine/base/seed.hpp"
#include "harness/backends/backend_spec.hpp"
#include "harness/laws/probe_models.hpp"
#include "harness/runner/model_folders.hpp"
#include "harness/verdict/judge_case.hpp"

namespace kvproof::harness {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kRowsOnAModel = 2;  // a row of a real checkpoint costs the oracle a tenth of a second a column

double since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

/// A line that overwrites itself, on terminals only.
class Progress {
 public:
  explicit Progress(std::size_t total) : total_(total), shown_(isatty(STDERR_FILENO) == 1) {}
  ~Progress() {
    if (shown_) std::cerr << "\r\033[K" << std::flush;
  }
  void tick(std::size_t done, std::string_view law) {
    if (shown_ && done % 16 == 0) std::cerr << fmt::format("\r\033[K{} of {} traces: {}", done, total_, law) << std::flush;
  }

 private:
  std::size_t total_;
  bool shown_;
};

/// What the workers share: the next case to take, and when to stop.
class Queue {
 public:
  Queue(const CheckRequest& request, std::vector<CheckedCase>& cases, Clock::time_point start)
      : request_(request), cases_(cases), order_(cases.size()), progress_(cases.size()), start_(start) {
    for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = i;
    // Cases of one model follow each other: a backend opens a model once per run of them. With a time limit all laws advance together.
    if (request.seconds) std::ranges::sort(order_, {}, [&](std::size_t i) { return std::pair(cases[i].index, i); });
    else std::ranges::sort(order_, [&](std::size_t a, std::size_t b) { return std::tie(cases[a].models, a) < std::tie(cases[b].models, b); });
  }

  CheckedCase* take() {
    const std::lock_guard lock(mutex_);
    if (next_ == order_.size() || stopped_ || (request_.seconds && since(start_) > *request_.seconds)) return nullptr;
    progress_.tick(next_, cases_[order_[next_]].law->id);
    return &cases_[order_[next_++]];
  }

  void done(const CheckedCase& each) {
    if (request_.fail_fast && !each.judgement.passed()) stopped_ = true;
  }

  void failed(std::exception_ptr error) {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (!error_) error_ = std::move(error);
  }

  void met(const Capabilities& capabilities) {
    const std::lock_guard lock(mutex_);
    if (engine_.empty()) engine_ = identity_of(capabilities);
  }

  [[nodiscard]] const std::string& engine() const noexcept { return engine_; }

  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  const CheckRequest& request_;
  std::vector<CheckedCase>& cases_;
  std::vector<std::size_t> order_;
  Progress progress_;
  std::mutex mutex_;
  std::size_t next_ = 0;
  std::atomic<bool> stopped_ = false;
  std::exception_ptr error_;
  Clock::time_point start_;
  std::string engine_;
};

/// One worker: a backend of its own, with the models of the case at hand open.
class Worker {
 public:
  Worker(const CheckRequest& request, const CheckModels& models) : request_(request), models_(models), backend_(request.make_backend()) {}

  [[nodiscard]] const Capabilities& capabilities() const { return backend_->capabilities(); }

  void play(CheckedCase& each) {
    const auto start = Clock::now();
    open(each.models);
    const std::uint64_t seed = case_seed(request_.seed, *each.law, each.index);
    const auto facts = facts_of(oracles_);
    Capabilities capabilities = backend_->capabilities();
    if (request_.model) capabilities.max_batch = std::min(capabilities.max_batch.value_or(kRowsOnAModel), kRowsOnAModel);
    each.made = each.law->generate({facts, capabilities, seed, each.index});
    if (work_of(each.made.trace) > kMostWork) each.judgement.not_covered = "too long for a model of this size";
    else judge(each, facts);
    each.seconds = since(start);
    each.played = true;
    if (each.judgement.passed()) each.made = {};  // only a failing trace is shown again
  }

 private:
  void judge(CheckedCase& each, const std::map<std::string, ModelFacts>& facts) {
    const std::string name = fmt::format("{}/{}", each.law->id, each.index);
    each.judgement = judge_case({name, each.made.trace, each.made.options, each.law->judgement}, *backend_, oracles_, request_.tolerance);
    if (request_.coverage && !each.judgement.not_covered) each.situations = situations_of(each.made.trace, facts, each.made.options);
  }

  /// Columns fed times the weights they meet.
  [[nodiscard]] double work_of(const Trace& trace) const {
    double columns = 0;
    for (const Step& step : trace)
      if (const auto* forward = std::get_if<Forward>(&step.call))
        for (const auto& row : forward->input_ids) columns += static_cast<double>(row.size());
    const Config& c = oracles_.at("main")->weights().config();
    return columns * static_cast<double>(c.n_layer * c.n_embd * (4 * c.n_embd + 2 * c.n_inner) + c.vocab_size * c.n_embd);
  }

  void open(const std::map<std::string, std::size_t>& choice) {
    for (const auto& [name, model] : choice) {
      const auto known = open_.find(name);
      if (known != open_.end() && known->second == model) continue;
      backend_->open(name, models_.folder(model));
      open_[name] = model;
    }
    oracles_ = models_.oracles(choice);
  }

  const CheckRequest& request_;
  const CheckModels& models_;
  std::unique_ptr<Backend> backend_;
  std::map<std::string, std::size_t> open_;
  Oracles oracles_;
};

void work(const CheckRequest& request, const CheckModels& models, Queue& queue) {
  try {
    Worker worker(request, models);
    queue.met(worker.capabilities());
    while (CheckedCase* each = queue.take()) {
      worker.play(*each);
      queue.done(*each);
    }
  } catch (...) {
    queue.failed(std::current_exception());
  }
}

}  // namespace

/// Number 0 .. n-1: the probe models; with a folder of the user's, number 0 is that folder and the probe models follow.
struct CheckModels::State {
  std::map<std::string, ModelSource> named;
  std::optional<ModelFolders> generated;
  std::vector<std::filesystem::path> folders;
  std::vector<ModelSource> sources;
  std::vector<std::shared_ptr<const Oracle>> oracles;
  bool own_model = false;
};

CheckModels::CheckModels(const CheckRequest& request) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.own_model = request.model.has_value();
  if (request.model) {
    state.folders.push_back(*request.model);
    state.oracles.push_back(Oracle::open(*request.model));
    state.sources.push_back({"", 0, std::filesystem::absolute(*request.model).string(), state.oracles.back()->weights().sha256()});
  }
  for (const ModelSource& source : probe_models()) state.named[fmt::format("probe{}", state.named.size())] = source;
  state.generated.emplace(state.named, "");
  for (const auto& [name, folder] : state.generated->folders()) {
    state.folders.push_back(folder);
    state.sources.push_back(state.named.at(name));
    state.oracles.push_back(Oracle::open(folder));
  }
}

CheckModels::~CheckModels() = default;

std::map<std::string, std::size_t> CheckModels::choose(const Law& law, std::uint64_t seed) const {
  auto choice = probe_choice(seed, law.models);
  if (!state_->own_model) return choice;
  for (auto& [name, model] : choice) model = name == "main" ? 0 : model + 1;
  return choice;
}

Oracles CheckModels::oracles(const std::map<std::string, std::size_t>& choice) const {
  Oracles oracles;
  for (const auto& [name, model] : choice) oracles[name] = state_->oracles[model];
  return oracles;
}

const std::filesystem::path& CheckModels::folder(std::size_t model) const { return state_->folders[model]; }

std::map<std::string, ModelSource> CheckModels::sources(const std::map<std::string, std::size_t>& choice) const {
  std::map<std::string, ModelSource> sources;
  for (const auto& [name, model] : choice) sources[name] = state_->sources[model];
  return sources;
}

std::uint64_t case_seed(std::uint64_t seed, const Law& law, std::size_t index) { return derived_seed(seed, fmt::format("{}/{}", law.id, index)); }

namespace {

/// Cases first .. first + count - 1 of each law.
std::vector<CheckedCase> cases_of(const CheckRequest& request, const CheckModels& models, std::size_t first, std::size_t count) {
  std::vector<CheckedCase> cases;
  for (const Law* law : request.laws)
    for (std::size_t index = first; index < first + count; ++index) {
      CheckedCase each;
      each.law = law;
      each.index = index;
      each.models = models.choose(*law, case_seed(request.seed, *law, index));
      cases.push_back(std::move(each));
    }
  return cases;
}

bool any_failed(const std::vector<CheckedCase>& cases) {
  return std::ranges::any_of(cases, [](const CheckedCase& each) { return !each.judgement.passed(); });
}

/// Returns who was judged.
std::string run_cases(const CheckRequest& request, const CheckModels& models, std::vector<CheckedCase>& cases, Clock::time_point start) {
  Queue queue(request, cases, start);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < request.jobs; ++i) threads.emplace_back(work, std::cref(request), std::cref(models), std::ref(queue));
  for (std::thread& thread : threads) thread.join();
  queue.rethrow();
  return queue.engine();
}

}  // namespace

std::string identity_of(const Capabilities& capabilities) {
  return capabilities.version.empty() ? capabilities.name : fmt::format("{} {}", capabilities.name, capabilities.version);
}

CheckedRun run_check(const CheckRequest& request, const CheckModels& models) {
  const auto start = Clock::now();
  CheckedRun run;
  for (std::size_t first = 0; first == 0 || (request.seconds && since(start) < *request.seconds); first += request.traces) {
    std::vector<CheckedCase> cases = cases_of(request, models, first, request.traces);
    run.engine = run_cases(request, models, cases, start);
    std::ranges::move(cases, std::back_inserter(run.cases));
    if (!request.seconds || (request.fail_fast && any_failed(run.cases))) break;
  }
  return run;
}

}  // namespace kvproof::harness
