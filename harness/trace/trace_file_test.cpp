#include "harness/trace/trace_file.hpp"

#include <boost/test/unit_test.hpp>

#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <source_location>

#include "engine/base/error.hpp"
#include "engine/safetensors/test_files.hpp"

namespace {

namespace kh = kvproof::harness;
namespace fs = std::filesystem;

kh::TraceFile example() {
  kh::TraceFile file;
  file.models["main"] = {R"({"n_embd":8,"n_head":2})", 7, "", ""};
  file.models["big"] = {"", 0, "models/big", "ab12"};
  file.run = {true, "window.band", 1e-6, 0.0, true, kh::FindingKind::state_changed, kh::Code::capacity};
  file.trace.push_back({kh::NewCache{"a", "static", 9, std::nullopt, std::nullopt}, std::nullopt, std::nullopt, 0});
  file.trace.push_back({kh::NewCache{"b", "dynamic", std::nullopt, std::nullopt, "big"}, std::nullopt, std::nullopt, 1});
  file.trace.push_back({kh::Forward{.cache = "a", .input_ids = {{4, 9, 6}}}, kh::Code::capacity, std::nullopt, 0});
  file.trace.push_back({kh::Length{"a"}, std::nullopt, 0, 0});
  return file;
}

constexpr const char* kText = R"({"format": "kvproof-trace", "version": [1, 0], "models": {"main": {"folder": "m", "weights_sha256": "00"}},
  "run": {}, "trace": [{"op": "new", "cache": "a", "kind": "dynamic"}]})";

std::string changed(std::string_view from, std::string_view to) {
  std::string text = kText;
  const std::size_t at = text.find(from);
  BOOST_REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

std::string complaint(const std::string& text) {
  try {
    (void)kh::parse_trace_file(text, "t");
    return "";
  } catch (const kvproof::DataError& error) {
    return error.what();
  }
}

/// The complaint holds `words`. A failure names the line of the caller.
void refuses(const std::string& text, std::string_view words, std::source_location at = std::source_location::current()) {
  const std::string message = complaint(text);
  BOOST_CHECK_MESSAGE(message.find(words) != std::string::npos, at.line() << ": \"" << message << "\" does not say " << words);
}

void accepts(const std::string& text, std::source_location at = std::source_location::current()) {
  const std::string message = complaint(text);
  BOOST_CHECK_MESSAGE(message.empty(), at.line() << ": " << message);
}

BOOST_AUTO_TEST_SUITE(trace_file)

BOOST_AUTO_TEST_CASE(a_trace_file_survives_a_round_trip) {
  const std::string text = kh::format_trace_file(example());
  BOOST_TEST((kh::parse_trace_file(text, "t") == example()));
  BOOST_TEST(kh::format_trace_file(kh::parse_trace_file(text, "t")) == text);
}

BOOST_AUTO_TEST_CASE(one_step_stands_on_a_line) {
  const std::string text = kh::format_trace_file(example());
  BOOST_TEST(std::count(text.begin(), text.end(), '\n') == 4 + static_cast<long>(example().trace.size()) + 1);  // format, models, run, trace; steps; ]}
}

BOOST_AUTO_TEST_CASE(a_file_on_disk_is_read_back) {
  const kvproof::test::ScratchFolder folder("trace_file");
  kh::write_trace_file(folder / "a.trace.json", example());
  BOOST_TEST((kh::read_trace_file(folder / "a.trace.json") == example()));
}

BOOST_AUTO_TEST_CASE(an_empty_trace_and_an_absent_run_are_fine) {
  kh::TraceFile file = example();
  file.trace.clear();
  file.run = {};
  BOOST_TEST((kh::parse_trace_file(kh::format_trace_file(file), "t") == file));
  accepts(changed(R"("run": {}, )", ""));
}

BOOST_AUTO_TEST_CASE(a_seed_uses_all_64_bits_and_is_never_negative) {
  kh::TraceFile file = example();
  file.models["main"].seed = std::numeric_limits<std::uint64_t>::max();
  const std::string text = kh::format_trace_file(file);
  BOOST_TEST(text.find("18446744073709551615") != std::string::npos);
  BOOST_TEST((kh::parse_trace_file(text, "t") == file));
  refuses(changed(R"("folder": "m", "weights_sha256": "00")", R"("config": {}, "seed": -1)"), "expected an integer from 0 to 2^64 - 1");
}

// TR03
BOOST_AUTO_TEST_CASE(another_format_or_major_version_is_refused_and_a_minor_one_is_not) {
  refuses(changed("kvproof-trace", "kvproof-golden"), "format is \"kvproof-golden\", expected \"kvproof-trace\"");
  refuses(changed("[1, 0]", "[2, 0]"), "version is [2,0], expected [1, 0]");
  refuses(changed("[1, 0]", "[1]"), "version is [1]");
  refuses(changed("[1, 0]", "1"), "field \"version\" is 1");
  accepts(changed("[1, 0]", "[1, 7]"));
}

// TR14
BOOST_AUTO_TEST_CASE(a_model_that_the_header_does_not_name_makes_the_file_invalid) {
  refuses(changed("\"dynamic\"", R"("dynamic", "model": "second")"), "t: step 0: model \"second\", expected a model of the header's \"models\"");
  refuses(changed("\"main\"", "\"other\""), "t: step 0: model \"main\"");
}

// TR05
BOOST_AUTO_TEST_CASE(a_model_is_a_config_with_a_seed_or_a_folder_with_a_hash) {
  const char* folder = R"("folder": "m", "weights_sha256": "00")";
  refuses(changed(folder, R"("config": {})"), "model \"main\": field \"seed\" is missing");
  refuses(changed(folder, R"("config": {}, "seed": 1.5)"), "field \"seed\" is 1.5");
  refuses(changed(folder, R"("config": "gpt2", "seed": 1)"), "expected a JSON object");
  refuses(changed(folder, R"("folder": "m")"), "field \"weights_sha256\" is missing");
  refuses(changed(folder, R"("config": {}, "seed": 1, "folder": "m")"), "unknown field \"folder\"");
  refuses(changed(folder, ""), "field \"folder\" is missing");
}

// TR04
BOOST_AUTO_TEST_CASE(unknown_fields_of_the_header_are_refused) {
  refuses(changed("\"run\": {}", R"("run": {"poisson": true})"), "t: run: unknown field \"poisson\"");
  refuses(changed("\"run\": {}", R"("run": {}, "runs": 3)"), "unknown field \"runs\"");
  refuses(changed("\"run\": {}", R"("run": {"finding": "wrong_logit"})"), "t: run: finding is \"wrong_logit\", expected a finding of");
  refuses(changed("\"run\": {}", R"("run": {"code": "mask"})"), "t: run: code is \"mask\", expected a code of");
  refuses(changed("\"run\": {}", R"("run": [])"), "field \"run\" is [], expected a JSON object");
  refuses(changed("\"models\"", "\"model\""), "field \"models\" is missing");
}

// TR06
BOOST_AUTO_TEST_CASE(a_bound_below_zero_is_refused) {
  refuses(changed("\"run\": {}", R"("run": {"atol": -1e-5})"), "t: run: atol is -1e-05, expected a number >= 0");
  refuses(changed("\"run\": {}", R"("run": {"rtol": "1"})"), "expected a number");
}

// TR02
BOOST_AUTO_TEST_CASE(text_that_is_no_trace_file_is_refused_at_every_cut) {
  const std::string text = kText;
  for (std::size_t length = 0; length < text.size(); ++length) BOOST_TEST(complaint(text.substr(0, length)) != "", length);
  BOOST_TEST(complaint(text + "x") != "");
  refuses(changed("\"cache\": \"a\"", R"("cache": "a", "cache": "b")"), "a second time");
}

// TR01
BOOST_AUTO_TEST_CASE(a_file_that_cannot_be_read_is_named_with_the_reason) {
  BOOST_CHECK_EXCEPTION((void)kh::read_trace_file("no/such.trace.json"), kvproof::Error, [](const auto& error) {
    return error.what() == std::string_view("no/such.trace.json: cannot be read: No such file or directory"); });
  BOOST_CHECK_EXCEPTION((void)kh::read_text_file(fs::temp_directory_path()), kvproof::Error, [](const auto& error) {
    return std::string_view(error.what()).find("Is a directory") != std::string_view::npos; });
}

// TR01
BOOST_AUTO_TEST_CASE(a_text_without_end_is_refused) { BOOST_CHECK_THROW((void)kh::read_text_file("/dev/zero"), kvproof::DataError); }

BOOST_AUTO_TEST_CASE(the_model_of_a_call_is_main_only_where_no_cache_says_otherwise) {
  using Maybe = std::optional<std::string>;
  BOOST_TEST((kh::model_of(kh::NewCache{"a", "dynamic", {}, {}, {}}) == Maybe("main")));
  BOOST_TEST((kh::model_of(kh::NewCache{"a", "dynamic", {}, {}, "m"}) == Maybe("m")));
  BOOST_TEST((kh::model_of(kh::Forward{.cache = std::nullopt, .input_ids = {{1}}}) == Maybe("main")));
  BOOST_TEST((kh::model_of(kh::Forward{.cache = "a", .input_ids = {{1}}}) == Maybe()));
  BOOST_TEST((kh::model_of(kh::Forward{.cache = "a", .input_ids = {{1}}, .model = "m"}) == Maybe("m")));
  BOOST_TEST((kh::model_of(kh::Generate{.input_ids = {{1}}, .max_new_tokens = 1}) == Maybe("main")));
  BOOST_TEST((kh::model_of(kh::Crop{"a", 1}) == Maybe()));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
