#include <boost/test/unit_test.hpp>

#include <functional>

#include "harness/verdict/judge_case.hpp"

namespace {

namespace kh = kvproof::harness;
using kh::Code;
using kh::FindingKind;

const kh::Oracles& oracles() {
  static const kh::Oracles kOracles{{"main", kh::Oracle::open(KVPROOF_SOURCE_DIR "/golden/seed")}};
  return kOracles;
}

/// Answers what the oracle expects of the history it keeps itself, bent by a test; it never judges.
class Bent : public kh::Backend {
 public:
  using Bend = std::function<kh::Reply(const kh::Call&, const kh::World&, kh::Reply)>;
  explicit Bent(Bend bend) : bend_(std::move(bend)), world_(kh::facts_of(oracles())) {
    capabilities_.name = "bent";
    capabilities_.kinds = {"dynamic", "static"};
    capabilities_.ops = {"new", "forward", "length", "crop", "reset"};
    capabilities_.codes = false;
  }
  const kh::Capabilities& capabilities() const override { return capabilities_; }
  void open(const std::string&, const std::filesystem::path&) override {}
  void begin(const std::string&, const kh::RunOptions&) override { world_ = kh::World(kh::facts_of(oracles())); }
  kh::Reply call(const kh::Call& call, std::size_t) override {
    const kh::World before = world_;
    const kh::Outcome outcome = world_.apply(call);
    kh::Reply reply = outcome.refusal ? kh::Reply(kh::Refusal{Code::other, "no"}) : kh::Reply(answer(call, outcome));
    return bend_(call, before, std::move(reply));
  }
  kh::World& world() { return world_; }

 private:
  static kh::Answer answer(const kh::Call& call, const kh::Outcome& outcome) {
    kh::Answer answer;
    answer.length = outcome.length;
    if (std::holds_alternative<kh::Forward>(call)) answer.logits = kh::numbers_of(call, outcome, oracles()).logits;
    return answer;
  }
  Bend bend_;
  kh::World world_;
  kh::Capabilities capabilities_;
};

kh::Trace trace_of(std::vector<kh::Call> calls) {
  kh::Trace trace;
  for (kh::Call& call : calls) trace.push_back({std::move(call), std::nullopt, std::nullopt, 0});
  return trace;
}

kh::Judgement judged(const kh::Trace& trace, kh::Backend& backend) {
  return kh::judge_case({"a case", trace, {}, kh::kEveryJudgement}, backend, oracles(), {});
}

const kh::Forward kPrefill{.cache = "a", .input_ids = {{4, 9, 6}}};
const kh::Forward kShortMask{.cache = "a", .input_ids = {{7}}, .attention_mask = kvproof::Rows{{1}}};
const kh::Forward kOneMore{.cache = "a", .input_ids = {{7}}};

BOOST_AUTO_TEST_SUITE(judge_case)

BOOST_AUTO_TEST_CASE(an_honest_backend_passes) {
  Bent honest([](const kh::Call&, const kh::World&, kh::Reply reply) { return reply; });
  const kh::Judgement judgement = judged(trace_of({kh::NewCache{"a", "dynamic", {}, {}, {}}, kPrefill, kShortMask, kOneMore, kh::Length{"a"}}), honest);
  BOOST_TEST(judgement.passed());
  BOOST_TEST(judgement.checks == 5U);
}

BOOST_AUTO_TEST_CASE(what_follows_an_accepted_misuse_is_not_judged) {
  // It carries the short mask out and appends: its history is another one from there on.
  Bent lax([&](const kh::Call& call, const kh::World&, kh::Reply reply) -> kh::Reply {
    if (call != kh::Call(kShortMask)) return reply;
    (void)lax.world().apply(kOneMore);
    return kh::Answer{};
  });
  const kh::Judgement judgement = judged(trace_of({kh::NewCache{"a", "dynamic", {}, {}, {}}, kPrefill, kShortMask, kOneMore, kh::Length{"a"}}), lax);
  BOOST_REQUIRE(judgement.findings.size() == 1U);
  BOOST_TEST(kh::class_text(kh::class_of(judgement.findings.front())) == "accepts_misuse mask_length");
  BOOST_TEST(judgement.checks == 3U);
}

BOOST_AUTO_TEST_CASE(what_follows_a_refused_legal_call_is_not_judged) {
  Bent stubborn([&](const kh::Call& call, const kh::World& before, kh::Reply reply) -> kh::Reply {
    if (call != kh::Call(kOneMore)) return reply;
    stubborn.world() = before;
    return kh::Refusal{Code::other, "not today"};
  });
  const kh::Judgement judgement = judged(trace_of({kh::NewCache{"a", "dynamic", {}, {}, {}}, kPrefill, kOneMore, kh::Length{"a"}}), stubborn);
  BOOST_REQUIRE(judgement.findings.size() == 1U);
  BOOST_TEST(kh::class_text(kh::class_of(judgement.findings.front())) == "refuses_valid other");
}

BOOST_AUTO_TEST_CASE(a_change_behind_a_refused_call_is_laid_to_it) {
  // It refuses, but has appended.
  Bent leaky([&](const kh::Call& call, const kh::World&, kh::Reply reply) -> kh::Reply {
    if (call == kh::Call(kShortMask)) (void)leaky.world().apply(kOneMore);
    return reply;
  });
  const kh::Judgement judgement = judged(trace_of({kh::NewCache{"a", "dynamic", {}, {}, {}}, kPrefill, kShortMask, kh::Length{"a"}}), leaky);
  BOOST_REQUIRE(!judgement.passed());
  BOOST_TEST(kh::class_text(kh::class_of(judgement.findings.front())) == "state_changed mask_length");
  BOOST_TEST(judgement.findings.front().step == 3U);
  BOOST_TEST(judgement.findings.front().message == "changed by the call that was refused at step 2 (mask_length): length 4, expected 3");
}

BOOST_AUTO_TEST_CASE(what_comes_after_the_change_has_no_say) {
  // Behind the change it cannot go on, with or without it.
  Bent leaky([&](const kh::Call& call, const kh::World&, kh::Reply reply) -> kh::Reply {
    if (call == kh::Call(kShortMask)) (void)leaky.world().apply(kOneMore);
    return std::holds_alternative<kh::Reset>(call) ? kh::Unsupported{"no reset"} : std::move(reply);
  });
  const kh::Judgement judgement = judged(trace_of({kh::NewCache{"a", "dynamic", {}, {}, {}}, kPrefill, kShortMask, kh::Length{"a"}, kh::Reset{"a"}}), leaky);
  BOOST_REQUIRE(!judgement.passed());
  BOOST_TEST(kh::class_text(kh::class_of(judgement.findings.front())) == "state_changed mask_length");
}

BOOST_AUTO_TEST_CASE(what_follows_a_call_that_was_not_carried_out_is_compared_with_nothing) {
  // After the reset that did not happen the prefill is fed to a cache that holds columns: other logits than those of an empty one.
  Bent unable([&](const kh::Call& call, const kh::World& before, kh::Reply reply) -> kh::Reply {
    if (!std::holds_alternative<kh::Reset>(call)) return reply;
    unable.world() = before;
    return kh::Unsupported{"no reset"};
  });
  const kh::Judgement judgement = judged(trace_of({kh::NewCache{"a", "dynamic", {}, {}, {}}, kPrefill, kh::Reset{"a"}, kPrefill}), unable);
  BOOST_TEST(judgement.passed());
  BOOST_TEST(judgement.not_covered.value_or("") == "step 2: no reset");
}

BOOST_AUTO_TEST_CASE(what_is_wrong_anyway_is_not_laid_to_a_refused_call) {
  Bent miscounting([](const kh::Call& call, const kh::World&, kh::Reply reply) -> kh::Reply {
    if (std::holds_alternative<kh::Length>(call)) std::get<kh::Answer>(reply).length = 17;
    return reply;
  });
  const kh::Judgement judgement = judged(trace_of({kh::NewCache{"a", "dynamic", {}, {}, {}}, kPrefill, kShortMask, kh::Length{"a"}}), miscounting);
  BOOST_REQUIRE(!judgement.passed());
  BOOST_TEST(kh::class_text(kh::class_of(judgement.findings.front())) == "wrong_length");
}

BOOST_AUTO_TEST_CASE(other_codes_are_no_finding_without_the_capability) {
  Bent liar([](const kh::Call&, const kh::World&, kh::Reply reply) -> kh::Reply {
    if (auto* refusal = std::get_if<kh::Refusal>(&reply)) refusal->code = Code::capacity;
    return reply;
  });
  BOOST_TEST(judged(trace_of({kh::NewCache{"a", "dynamic", {}, {}, {}}, kPrefill, kShortMask}), liar).passed());
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
