#include <boost/test/unit_test.hpp>
#include <set>

#include "engine/base/seed.hpp"
#include "harness/defects/catalogue.hpp"
#include "harness/laws/probe_models.hpp"
#include "harness/runner/model_folders.hpp"
#include "harness/verdict/judge_case.hpp"

// Each law is real: alone it catches the fault it stands for, and no law is wrong about an engine whose fault did not come into play.

namespace kh = kvproof::harness;

namespace {

/// The probe models, opened once.
class Bench {
 public:
  Bench() {
    std::map<std::string, kh::ModelSource> sources;
    for (const kh::ModelSource& source : kh::probe_models()) sources["probe" + std::to_string(sources.size())] = source;
    folders_.emplace(sources, "");
    for (const auto& [name, folder] : folders_->folders()) {
      paths_.push_back(folder);
      oracles_.push_back(kh::Oracle::open(folder));
    }
  }

  kh::Judgement judge(const kh::Law& law, std::size_t index, kh::Backend& backend) const {
    const std::uint64_t seed = seed_of(law, index);
    const kh::Oracles oracles = open(law, seed, backend);
    const kh::LawCase made = law.generate({kh::facts_of(oracles), backend.capabilities(), seed, index});
    return kh::judge_case({std::string(law.id), made.trace, made.options, law.judgement}, backend, oracles, {});
  }

  /// The first `count` cases of a law, all on the models of its first one, which `backend` has open from then on.
  std::vector<kh::Trace> traces(const kh::Law& law, std::size_t count, kh::Backend& backend) const {
    const auto facts = kh::facts_of(open(law, seed_of(law, 0), backend));
    std::vector<kh::Trace> made;
    made.reserve(count);
    for (std::size_t index = 0; index < count; ++index) made.push_back(law.generate({facts, backend.capabilities(), seed_of(law, index), index}).trace);
    return made;
  }

  double worst_of(const kh::Trace& trace, std::size_t model, kh::Backend& backend) const {
    backend.open("main", paths_[model]);
    return kh::judge_case({"smallest", trace, {}, {.oracle = true}}, backend, {{"main", oracles_[model]}}, {}).numbers.worst;
  }

 private:
  static std::uint64_t seed_of(const kh::Law& law, std::size_t index) { return kvproof::derived_seed(7, std::string(law.id) + std::to_string(index)); }

  kh::Oracles open(const kh::Law& law, std::uint64_t seed, kh::Backend& backend) const {
    kh::Oracles oracles;
    for (const auto& [name, model] : kh::probe_choice(seed, law.models)) {
      backend.open(name, paths_[model]);
      oracles[name] = oracles_[model];
    }
    return oracles;
  }

  std::optional<kh::ModelFolders> folders_;
  std::vector<std::filesystem::path> paths_;
  std::vector<std::shared_ptr<const kh::Oracle>> oracles_;
};

const Bench& bench() {
  static const Bench kBench;
  return kBench;
}

struct Trial {
  kh::Fired fired = std::make_shared<std::atomic<std::size_t>>(0);
  std::unique_ptr<kh::Backend> backend;
  explicit Trial(const kh::KnownFault& fault) : backend(kh::make_engine_backend([this, &fault] { return fault.make(fired); })) {}
};

/// The first case of a law that catches the fault; nothing if none of `cases` does.
std::optional<std::size_t> caught_by(const kh::Law& law, const kh::KnownFault& fault, std::size_t cases) {
  Trial trial(fault);
  for (std::size_t index = 0; index < cases; ++index)
    if (!bench().judge(law, index, *trial.backend).passed()) return index;
  return std::nullopt;
}

/// What lane 1 answers to `own`, while lane 0 is asked `other` in turn.
std::vector<kh::Reply> answers(const kh::Trace& own, const kh::Trace& other, kh::Backend& backend) {
  backend.begin("two lanes", {});
  std::vector<kh::Reply> replies;
  for (std::size_t i = 0; i < own.size(); ++i) {
    for (const auto& [trace, lane] : {std::pair(&other, 0), std::pair(&own, 1)}) {
      if (i >= trace->size()) continue;
      kh::Call call = (*trace)[i].call;  // a copy: one fault writes into its caller's arrays
      kh::Reply reply = backend.call(call, static_cast<std::size_t>(lane));
      if (lane == 1) replies.push_back(std::move(reply));
    }
  }
  return replies;
}

}  // namespace

BOOST_AUTO_TEST_SUITE(law_faults)

BOOST_AUTO_TEST_CASE(every_law_has_a_fault_that_it_stands_for) {
  std::set<std::string_view> covered;
  for (const kh::KnownFault& fault : kh::known_faults())
    for (const std::string_view law : fault.laws) {
      BOOST_TEST((kh::find_law(law) != nullptr), fault.name << " names an unknown law " << law);
      covered.insert(law);
    }
  for (const kh::Law& law : kh::laws()) BOOST_TEST(covered.contains(law.id), law.id << " has no fault");
}

BOOST_AUTO_TEST_CASE(run_alone_each_law_catches_its_fault) {
  for (const kh::KnownFault& fault : kh::known_faults())
    for (const std::string_view id : fault.laws) {
      const auto caught = caught_by(*kh::find_law(id), fault, 80);
      BOOST_TEST(caught.has_value(), id << " does not catch " << fault.name);
    }
}

// The probe models are fit for their work: fp32 noise drowns no numeric defect (docs/tolerances.md, The probe models).
BOOST_AUTO_TEST_CASE(on_every_probe_model_a_numeric_fault_is_four_times_the_bound_on_its_smallest_trace) {
  const kh::Trace smallest = {{kh::NewCache{"a", "dynamic", {}, {}, {}}, {}, {}, 0},
                              {kh::Forward{.cache = "a", .input_ids = {{3, 1, 2}}}, {}, {}, 0},
                              {kh::Forward{.cache = "a", .input_ids = {{5}}}, {}, {}, 0}};
  for (const char* name : {"cache-fp16", "logits-scaled"})
    for (std::size_t model = 0; model < kh::probe_models().size(); ++model) {
      Trial trial(*kh::find_fault(name));
      const double worst = bench().worst_of(smallest, model, *trial.backend);
      BOOST_TEST(worst >= 4.0, name << " on probe model " << model << " reaches only " << worst << " of the bound");
    }
}

BOOST_AUTO_TEST_CASE(a_fault_that_did_not_come_into_play_fails_no_law) {
  std::size_t untouched = 0;
  for (const kh::KnownFault& fault : kh::known_faults()) {
    Trial trial(fault);
    for (const kh::Law& law : kh::laws())
      for (std::size_t index = 0; index < 3; ++index) {
        *trial.fired = 0;
        const kh::Judgement judgement = bench().judge(law, index, *trial.backend);
        if (*trial.fired != 0) continue;
        ++untouched;
        BOOST_TEST(judgement.passed(), law.id << " case " << index << " fails on " << fault.name << ": " << (judgement.passed() ? "" : judgement.findings.front().message));
      }
  }
  BOOST_TEST(untouched > 1000U);
}

// Lanes run on threads of their own, so a memory that two of them shared would be a race in the harness itself.
BOOST_AUTO_TEST_CASE(what_a_fault_remembers_of_one_lane_changes_no_answer_of_another) {
  for (const kh::KnownFault& fault : kh::known_faults()) {
    Trial trial(fault);
    const std::vector<kh::Trace> traces = bench().traces(*kh::find_law(fault.laws.front()), 9, *trial.backend);
    for (std::size_t index = 1; index < traces.size(); ++index) {
      const auto alone = answers(traces[index], {}, *trial.backend);
      BOOST_TEST((answers(traces[index], traces[index - 1], *trial.backend) == alone), fault.name << ", case " << index);
    }
  }
}

BOOST_AUTO_TEST_SUITE_END()
