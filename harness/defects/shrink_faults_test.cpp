#include <boost/test/unit_test.hpp>
#include <set>

#include "engine/base/seed.hpp"
#include "harness/defects/catalogue.hpp"
#include "harness/laws/probe_models.hpp"
#include "harness/runner/model_folders.hpp"
#include "harness/verdict/shrink_case.hpp"

// What is shown of a failure of the real engine is small, and nothing of it can go.

namespace kh = kvproof::harness;

namespace {

/// A fault in the engine, and the first case of a law that catches it.
class Caught {
 public:
  Caught(const kh::KnownFault& fault, const kh::Law& law)
      : law_(law), backend_(kh::make_engine_backend([&fault] { return fault.make(std::make_shared<std::atomic<std::size_t>>(0)); })) {
    for (std::size_t index = 0; index < 80 && found_.passed(); ++index) open_and_play(index);
  }

  [[nodiscard]] kh::Trial trial() const { return {law_.judgement, *backend_, oracles_, tolerance_}; }
  [[nodiscard]] const kh::TraceFile& file() const { return file_; }
  [[nodiscard]] const kh::Judgement& found() const { return found_; }
  [[nodiscard]] std::map<std::string, kh::ModelFacts> facts() const { return kh::facts_of(oracles_); }
  /// Whether a trace still fails in the way that was found.
  [[nodiscard]] bool fails(const kh::TraceFile& file) const {
    const kh::Judgement judgement = kh::judge_file(file, "again", trial());
    return !judgement.passed() && judgement.findings.front().kind == found_.findings.front().kind;
  }

 private:
  void open_and_play(std::size_t index) {
    const std::uint64_t seed = kvproof::derived_seed(7, std::string(law_.id) + std::to_string(index));
    file_.models.clear();
    oracles_.clear();
    for (const auto& [name, model] : kh::probe_choice(seed, law_.models)) file_.models[name] = kh::probe_models()[model];
    folders_.emplace(file_.models, "");
    for (const auto& [name, folder] : folders_->folders()) {
      backend_->open(name, folder);
      oracles_[name] = kh::Oracle::open(folder);
    }
    const kh::LawCase made = law_.generate({facts(), backend_->capabilities(), seed, index});
    file_.trace = made.trace;
    file_.run.poison = made.options.poison;
    file_.run.law = std::string(law_.id);
    found_ = kh::judge_file(file_, "first", trial());
  }

  const kh::Law& law_;
  std::unique_ptr<kh::Backend> backend_;
  kh::TraceFile file_;
  std::optional<kh::ModelFolders> folders_;
  kh::Oracles oracles_;
  kh::Tolerance tolerance_;
  kh::Judgement found_;
};

}  // namespace

BOOST_AUTO_TEST_SUITE(shrink_faults)

BOOST_AUTO_TEST_CASE(of_every_faults_smallest_trace_no_step_row_or_token_can_go) {
  std::size_t longest = 0;
  for (const kh::KnownFault& fault : kh::known_faults()) {
    const Caught caught(fault, *kh::find_law(fault.laws.front()));
    BOOST_REQUIRE_MESSAGE(!caught.found().passed(), fault.name << " is not caught by " << fault.laws.front());
    const kh::SmallFailure small = kh::smallest_failure(caught.file(), caught.found(), caught.trial());
    BOOST_TEST(small.minimal, fault.name << " took more than the budget");
    BOOST_TEST(caught.fails(small.file), fault.name);
    longest = std::max(longest, small.file.trace.size());
    for (kh::Trace& smaller : kh::single_removals(small.file.trace, caught.facts())) {
      kh::TraceFile file = small.file;
      file.trace = std::move(smaller);
      BOOST_TEST((file.trace.empty() || !caught.fails(file)), fault.name << " still fails without a part:\n" << kh::format_trace_file(file));
    }
    BOOST_TEST_MESSAGE(fault.name << ": " << small.file.trace.size() << " steps of " << caught.file().trace.size() << ", " << small.asked << " plays");
  }
  BOOST_TEST(longest <= 12U);
}

BOOST_AUTO_TEST_SUITE_END()
