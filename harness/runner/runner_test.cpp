#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "engine/base/error.hpp"
#include "harness/runner/coverage.hpp"
#include "harness/runner/model_folders.hpp"
#include "harness/runner/play.hpp"

namespace {

namespace kh = kvproof::harness;

kh::Step step(kh::Call call, std::size_t lane = 0) { return {std::move(call), std::nullopt, std::nullopt, lane}; }

std::int64_t length_of(const kh::Observation& seen) { return std::get<kh::Answer>(seen.reply.value()).length.value(); }

/// Writes down what it is asked; breaks down over `crop` in the way it was told.
class Recorder : public kh::Backend {
 public:
  enum class On { crop_refuses, crop_throws, crop_throws_an_int, crop_breaks_down, together_throws, together_forgets };
  explicit Recorder(On on = On::crop_refuses) : on_(on) {}

  const kh::Capabilities& capabilities() const override { return capabilities_; }
  void open(const std::string&, const std::filesystem::path&) override {}
  void begin(const std::string& name, const kh::RunOptions& options) override {
    log.push_back("begin " + name + (options.poison ? " poisoned" : ""));
    asked_ = 0;
  }
  kh::Reply call(const kh::Call& call, std::size_t lane) override {
    log.push_back(std::string(kh::op_name(call)) + " in lane " + std::to_string(lane));
    kh::Answer answer;
    answer.length = asked_++;
    if (!std::holds_alternative<kh::Crop>(call)) return answer;
    if (on_ == On::crop_throws) throw std::runtime_error("thrown");
    if (on_ == On::crop_throws_an_int) throw 7;
    if (on_ == On::crop_breaks_down) return kh::Breakdown{"crashed", "signal 11"};
    return kh::Refusal{kh::Code::crop_range, "no"};
  }
  std::vector<kh::Reply> together(std::span<const kh::LaneCall> calls) override {
    rounds.push_back(calls.size());
    if (on_ == On::together_throws) throw std::runtime_error("both lost");
    std::vector<kh::Reply> replies = Backend::together(calls);
    if (on_ == On::together_forgets) replies.pop_back();
    return replies;
  }

  std::vector<std::string> log;
  std::vector<std::size_t> rounds;

 private:
  On on_;
  kh::Capabilities capabilities_;
  std::int64_t asked_ = 0;
};

kh::Trace with_a_crop_in_the_middle() { return {step(kh::Length{"a"}), step(kh::Crop{"a", 1}), step(kh::Length{"a"})}; }

BOOST_AUTO_TEST_SUITE(play)

BOOST_AUTO_TEST_CASE(every_step_is_asked_in_order_from_an_empty_backend) {
  Recorder backend;
  const auto seen = kh::play(backend, with_a_crop_in_the_middle(), "case 1", {true});
  BOOST_TEST((backend.log == std::vector<std::string>{"begin case 1 poisoned", "length in lane 0", "crop in lane 0", "length in lane 0"}));
  BOOST_REQUIRE(seen.size() == 3U);
  BOOST_TEST(length_of(seen[0]) == 0);
  BOOST_TEST(std::holds_alternative<kh::Refusal>(*seen[1].reply));
  BOOST_TEST(length_of(seen[2]) == 2);
  BOOST_TEST(backend.rounds.empty());
}

BOOST_AUTO_TEST_CASE(an_exception_is_an_observation_and_ends_the_case) {
  for (const auto& [on, message] : {std::pair{Recorder::On::crop_throws, "thrown"}, {Recorder::On::crop_throws_an_int, "something that is no std::exception"}}) {
    Recorder backend(on);
    const auto seen = kh::play(backend, with_a_crop_in_the_middle(), "", {});
    BOOST_TEST(std::get<kh::Breakdown>(seen[1].reply.value()).kind == "backend_threw");
    BOOST_TEST(std::get<kh::Breakdown>(seen[1].reply.value()).message == message);
    BOOST_TEST(!seen[2].reply);
  }
}

BOOST_AUTO_TEST_CASE(a_breakdown_ends_the_case) {
  Recorder backend(Recorder::On::crop_breaks_down);
  const auto seen = kh::play(backend, with_a_crop_in_the_middle(), "", {});
  BOOST_TEST(std::get<kh::Breakdown>(seen[1].reply.value()).kind == "crashed");
  BOOST_TEST(!seen[2].reply);
}

BOOST_AUTO_TEST_CASE(the_next_steps_of_all_lanes_start_together_and_a_finished_lane_leaves) {
  Recorder backend;
  const kh::Trace trace{step(kh::Length{"a"}, 1), step(kh::Length{"a"}, 1), step(kh::Length{"a"}), step(kh::Reset{"a"}, 1), step(kh::Reset{"a"}), step(kh::Drop{"a"}, 5)};
  const auto seen = kh::play(backend, trace, "", {});
  BOOST_TEST((backend.rounds == std::vector<std::size_t>{3, 2, 1}));
  BOOST_TEST((backend.log == std::vector<std::string>{"begin ", "length in lane 0", "length in lane 1", "drop in lane 5", "reset in lane 0", "length in lane 1", "reset in lane 1"}));
  for (const auto& reply : seen) BOOST_TEST(reply.reply.has_value());
  BOOST_TEST(length_of(seen[2]) == 0);  // each answer lies at the place of its own step
  BOOST_TEST(length_of(seen[0]) == 1);
  BOOST_TEST(length_of(seen[5]) == 2);
  BOOST_TEST(length_of(seen[3]) == 5);
}

BOOST_AUTO_TEST_CASE(a_round_that_breaks_down_is_the_last) {
  const kh::Trace trace{step(kh::Length{"a"}), step(kh::Length{"a"}, 1), step(kh::Length{"a"})};
  Recorder throws(Recorder::On::together_throws);
  const auto seen = kh::play(throws, trace, "", {});
  BOOST_TEST(std::get<kh::Breakdown>(seen[0].reply.value()).message == "both lost");
  BOOST_TEST(std::get<kh::Breakdown>(seen[1].reply.value()).message == "both lost");
  BOOST_TEST(!seen[2].reply);

  Recorder forgets(Recorder::On::together_forgets);
  BOOST_TEST(std::get<kh::Breakdown>(kh::play(forgets, trace, "", {})[0].reply.value()).kind == "protocol_error");
}

BOOST_AUTO_TEST_CASE(an_empty_trace_is_played_and_seen_as_empty) {
  Recorder backend;
  BOOST_TEST(kh::play(backend, {}, "", {}).empty());
  BOOST_TEST(backend.log.size() == 1U);
}

BOOST_AUTO_TEST_SUITE_END()

kh::Capabilities everything() {
  kh::Capabilities capabilities;
  capabilities.kinds = {"dynamic", "static", "static_sliding_window"};
  capabilities.ops = {"new", "forward", "clone", "crop", "gather", "reset", "drop", "length", "read", "save", "load", "generate"};
  capabilities.threads = capabilities.poison = true;
  return capabilities;
}

std::string missing(const kh::Capabilities& capabilities, kh::Step only, std::optional<kh::Code> refused = std::nullopt, bool poison = false) {
  kh::Outcome outcome;
  if (refused) outcome.refusal = kh::Refusal{*refused, ""};
  return kh::not_covered(capabilities, {std::move(only)}, {outcome}, {poison}).value_or("");
}

BOOST_AUTO_TEST_SUITE(not_covered)

BOOST_AUTO_TEST_CASE(a_backend_that_can_do_all_is_asked_all) {
  BOOST_TEST(missing(everything(), step(kh::Read{"a", 0}, 3), kh::Code::crop_evicted, true) == "");
  BOOST_TEST(kh::not_covered({}, {}, {}, {}).value_or("") == "");
}

BOOST_AUTO_TEST_CASE(each_op_that_is_not_there_is_named) {
  for (const auto& call : {kh::Call{kh::Save{}}, kh::Call{kh::Read{}}, kh::Call{kh::Generate{}}, kh::Call{kh::Forward{}}}) {
    kh::Capabilities capabilities = everything();
    capabilities.ops.erase(std::string(kh::op_name(call)));
    BOOST_TEST(missing(capabilities, step(call)) == "op " + std::string(kh::op_name(call)));
  }
}

BOOST_AUTO_TEST_CASE(a_kind_that_is_not_there_is_named_and_one_that_nobody_has_is_asked) {
  kh::Capabilities capabilities = everything();
  capabilities.kinds = {"dynamic"};
  BOOST_TEST(missing(capabilities, step(kh::NewCache{.cache = "a", .kind = "static"})) == "kind static");
  BOOST_TEST(missing(capabilities, step(kh::Generate{.kind = "static_sliding_window"})) == "kind static_sliding_window");
  BOOST_TEST(missing(capabilities, step(kh::NewCache{.cache = "a", .kind = "dynamic"})) == "");
  BOOST_TEST(missing(capabilities, step(kh::NewCache{.cache = "a", .kind = "elastic"})) == "");  // must be refused
  BOOST_TEST(missing(capabilities, step(kh::Generate{})) == "");
}

BOOST_AUTO_TEST_CASE(a_batch_above_the_limit_is_not_asked) {
  kh::Capabilities capabilities = everything();
  capabilities.max_batch = 1;
  BOOST_TEST(missing(capabilities, step(kh::Forward{.input_ids = {{1}}})) == "");
  BOOST_TEST(missing(capabilities, step(kh::Forward{.input_ids = {{1}, {2}}})) == "batch above 1");
  BOOST_TEST(missing(capabilities, step(kh::Gather{"a", {0, 0}})) == "batch above 1");
  BOOST_TEST(missing(capabilities, step(kh::Generate{.input_ids = {{1}, {2}}})) == "batch above 1");
}

BOOST_AUTO_TEST_CASE(lanes_want_threads_and_poison_wants_poison) {
  kh::Capabilities capabilities = everything();
  capabilities.threads = capabilities.poison = false;
  BOOST_TEST(missing(capabilities, step(kh::Length{"a"}, 1)) == "threads");
  BOOST_TEST(missing(capabilities, step(kh::Length{"a"})) == "");
  BOOST_TEST(missing(capabilities, step(kh::Length{"a"}), std::nullopt, true) == "poison");
}

BOOST_AUTO_TEST_CASE(a_window_that_keeps_every_column_is_not_blamed_for_crop_evicted) {
  kh::Capabilities capabilities = everything();
  capabilities.unbounded_window = true;
  BOOST_TEST(missing(capabilities, step(kh::Crop{"a", 1}), kh::Code::crop_evicted).find("crop_evicted") == 0U);
  BOOST_TEST(missing(capabilities, step(kh::Crop{"a", 1}), kh::Code::crop_range) == "");
}

BOOST_AUTO_TEST_SUITE_END()

constexpr const char* kConfig = R"({"model_type": "gpt2", "n_embd": 4, "n_head": 2, "n_layer": 1, "n_positions": 8, "vocab_size": 7, "activation_function": "gelu_new"})";

BOOST_AUTO_TEST_SUITE(model_folders)

BOOST_AUTO_TEST_CASE(generated_models_live_as_long_as_the_object) {
  std::filesystem::path one, two;
  {
    const kh::ModelFolders models({{"main", {.config = kConfig, .seed = 1}}, {"other", {.config = kConfig, .seed = 2}}}, "");
    one = models.folders().at("main");
    two = models.folders().at("other");
    BOOST_TEST(one != two);
    BOOST_TEST(std::filesystem::exists(one / "model.safetensors"));
    BOOST_TEST(std::filesystem::exists(two / "config.json"));
  }
  BOOST_TEST(!std::filesystem::exists(one.parent_path()));
}

BOOST_AUTO_TEST_CASE(a_folder_is_found_beside_the_trace_and_its_weights_are_checked) {
  const std::filesystem::path golden = KVPROOF_SOURCE_DIR "/golden";
  const std::string sha256 = "2ec177b0be486a375841c8a68a30469e5f3ee86330899758d3201c3b319a27d9";
  const kh::ModelFolders models({{"main", {.folder = "seed", .weights_sha256 = sha256}}}, golden);
  BOOST_TEST(models.folders().at("main") == golden / "seed");
  BOOST_CHECK_EXCEPTION(kh::ModelFolders({{"main", {.folder = "legacy", .weights_sha256 = sha256}}}, golden), kvproof::DataError,
                        [&](const auto& e) { return std::string(e.what()).find("expected " + sha256 + ". These are other weights") != std::string::npos; });
  BOOST_CHECK_THROW(kh::ModelFolders({{"main", {.folder = "nowhere", .weights_sha256 = sha256}}}, golden), kvproof::Error);
}

BOOST_AUTO_TEST_CASE(a_temporary_folder_is_made_on_first_use_and_goes_with_its_object) {
  std::filesystem::path path;
  {
    kh::TemporaryFolder folder;
    path = folder.path();
    BOOST_TEST(folder.path() == path);
    std::ofstream(path / "file") << "x";
  }
  BOOST_TEST(!std::filesystem::exists(path));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
