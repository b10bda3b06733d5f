#include "harness/trace/golden_file.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <source_location>

#include "engine/base/error.hpp"
#include "engine/safetensors/test_files.hpp"
#include "engine/safetensors/writer.hpp"

namespace {

namespace kh = kvproof::harness;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using kvproof::Dtype;

/// A golden in the making: a document and tensors that a test may spoil.
struct Draft {
  std::map<std::string, std::string> metadata;  // "kvproof" is put in from `document` unless `bare`
  Json document;
  struct Entry {
    Dtype dtype;
    std::vector<std::size_t> shape;
    std::vector<std::byte> bytes;
  };
  std::map<std::string, Entry> tensors;

  template <typename T>
  void put(const std::string& name, Dtype dtype, std::vector<std::size_t> shape, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    tensors[name] = {dtype, std::move(shape), {bytes.begin(), bytes.end()}};
  }

  [[nodiscard]] std::vector<std::byte> bytes() const {
    auto all = metadata;
    all.emplace("kvproof", document.dump());
    std::vector<kvproof::TensorToWrite> list;
    for (const auto& [name, entry] : tensors) list.push_back({name, entry.dtype, entry.shape, entry.bytes});
    return kvproof::encode_safetensors(all, list);
  }
};

kh::GoldenFile parse(std::vector<std::byte> bytes) {
  return kh::parse_golden(kvproof::SafetensorsFile::from_bytes(std::move(bytes), "g"));
}

/// A forward of one row and two columns, a refused call, a read and a generation, on a model with 3 tokens.
Draft draft() {
  Draft d;
  d.document = Json::parse(R"({"format": "kvproof-golden", "version": [1, 0], "suite": "small", "weights_sha256": "00",
    "config": {"vocab_size": 3, "n_embd": 2, "n_head": 2, "n_layer": 1, "n_positions": 8}, "producer": {"name": "by hand"},
    "tolerance": {"atol": 1e-5, "rtol": 0}, "trace": [
      {"op": "new", "cache": "a", "kind": "dynamic"},
      {"op": "forward", "cache": "a", "input_ids": [[0, 2]]},
      {"op": "forward", "cache": "a", "input_ids": [[7]], "error": "token_range"},
      {"op": "forward", "cache": "a", "input_ids": [[1]], "logits": "none"},
      {"op": "read", "cache": "a", "layer": 0},
      {"op": "generate", "input_ids": [[0]], "max_new_tokens": 3}]})");
  d.put<double>("step.1.logits", Dtype::f64, {1, 2, 3}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6});
  d.put<std::uint8_t>("step.1.compared", Dtype::u8, {1, 2}, {1, 0});
  d.put<float>("step.4.keys", Dtype::f32, {1, 2, 3, 1}, {1, 2, 3, 4, 5, 6});
  d.put<float>("step.4.values", Dtype::f32, {1, 2, 3, 1}, {6, 5, 4, 3, 2, 1});
  d.put<std::uint8_t>("step.4.compared", Dtype::u8, {1, 3}, {1, 1, 0});
  d.put<std::int64_t>("step.5.ids", Dtype::i64, {1, 2}, {2, 1});
  return d;
}

std::string complaint(const Draft& d) {
  try {
    (void)parse(d.bytes());
    return "";
  } catch (const kvproof::DataError& error) {
    return error.what();
  }
}

/// The complaint holds `words`. A failure names the line of the caller.
void refuses(const Draft& d, std::string_view words, std::source_location at = std::source_location::current()) {
  const std::string message = complaint(d);
  BOOST_CHECK_MESSAGE(message.find(words) != std::string::npos, at.line() << ": \"" << message << "\" does not say " << words);
}

void accepts(const Draft& d, std::source_location at = std::source_location::current()) {
  const std::string message = complaint(d);
  BOOST_CHECK_MESSAGE(message.empty(), at.line() << ": " << message);
}

BOOST_AUTO_TEST_SUITE(golden_file)

BOOST_AUTO_TEST_CASE(a_golden_is_read_whole) {
  const kh::GoldenFile golden = parse(draft().bytes());
  BOOST_TEST(golden.suite == "small");
  BOOST_TEST(golden.trace.size() == 6U);
  BOOST_TEST(golden.recorded.size() == 3U);
  BOOST_TEST(golden.recorded.at(1).logits->values[5] == 0.6);
  BOOST_TEST(golden.recorded.at(1).compared == (std::vector<std::uint8_t>{1, 0}), boost::test_tools::per_element());
  BOOST_TEST(golden.recorded.at(4).keys->values[1] == 2.0);
  BOOST_TEST((golden.recorded.at(5).ids == kvproof::Rows{{2, 1}}));
}

// GF01
BOOST_AUTO_TEST_CASE(a_file_cut_at_any_byte_is_refused) {
  const std::vector<std::byte> whole = draft().bytes();
  for (std::size_t length = 0; length < whole.size(); ++length)
    BOOST_CHECK_THROW((void)parse({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)}), kvproof::DataError);
  auto longer = whole;
  longer.push_back(std::byte{0});
  BOOST_CHECK_THROW((void)parse(longer), kvproof::DataError);
}

BOOST_AUTO_TEST_CASE(a_file_with_any_byte_changed_is_read_or_refused_and_nothing_else) {
  const std::vector<std::byte> whole = draft().bytes();
  std::size_t refused = 0;
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const unsigned flip : {0x01U, 0x10U, 0x80U}) {
      auto spoilt = whole;
      spoilt[at] ^= static_cast<std::byte>(flip);
      try {
        (void)parse(std::move(spoilt));
      } catch (const kvproof::DataError&) {
        ++refused;
      }
    }
  BOOST_TEST(refused > whole.size());
}

// GF02
BOOST_AUTO_TEST_CASE(the_metadata_holds_exactly_one_key) {
  Draft d = draft();
  d.metadata["format"] = "pt";
  refuses(d, "g: __metadata__ has 2 keys, expected exactly one, \"kvproof\"");
  const auto bytes = kvproof::encode_safetensors({{"format", "pt"}}, {});
  BOOST_CHECK_THROW((void)parse(bytes), kvproof::DataError);
  BOOST_CHECK_THROW((void)parse(kvproof::encode_safetensors({}, {})), kvproof::DataError);
}

// GF03
BOOST_AUTO_TEST_CASE(another_format_or_major_version_is_refused_and_a_minor_one_is_not) {
  Draft d = draft();
  d.document["version"] = {2, 0};
  refuses(d, "version is [2, 0], expected [1, 0]");
  d.document["version"] = {1, 4};
  accepts(d);
  d.document["format"] = "kvproof-trace";
  refuses(d, "format is \"kvproof-trace\", expected \"kvproof-golden\"");
}

// GF07
BOOST_AUTO_TEST_CASE(unknown_keys_of_the_document_are_ignored_but_not_of_a_step) {
  Draft d = draft();
  d.document["note"] = "kept by another tool";
  d.document["tolerance"]["reason"] = "because";
  accepts(d);
  d.document["trace"][1]["note"] = "x";
  refuses(d, "g: step 1: unknown field \"note\"");
}

// GF04
BOOST_AUTO_TEST_CASE(each_key_of_the_document_is_called_for) {
  for (const char* key : {"format", "version", "suite", "weights_sha256", "config", "producer", "tolerance", "trace"}) {
    Draft d = draft();
    d.document.erase(key);
    refuses(d, std::string("field \"") + key + "\" is missing");
  }
}

// GF05
BOOST_AUTO_TEST_CASE(a_tolerance_is_two_numbers_not_below_zero_and_not_both_zero) {
  Draft d = draft();
  d.document["tolerance"] = {{"atol", 0.0}, {"rtol", 0.0}};
  refuses(d, "g: tolerance: atol 0 and rtol 0");
  d.document["tolerance"] = {{"atol", -1.0}, {"rtol", 2.0}};
  refuses(d, "two numbers >= 0");
  d.document["tolerance"] = {{"atol", "1e-5"}, {"rtol", 0}};
  refuses(d, "field \"atol\" is \"1e-5\", expected a number");
}

// GF06
BOOST_AUTO_TEST_CASE(a_config_that_cannot_be_honoured_is_refused) {
  Draft d = draft();
  d.document["config"]["n_head"] = 3;
  refuses(d, "g: config");
  d = draft();
  d.document["config"]["model_type"] = "llama";
  refuses(d, "llama");
}

// GF08
BOOST_AUTO_TEST_CASE(each_missing_tensor_is_named) {
  for (const auto& [name, entry] : draft().tensors) {
    Draft d = draft();
    d.tensors.erase(name);
    refuses(d, "g: tensor " + name + " is missing");
  }
}

// GF09
BOOST_AUTO_TEST_CASE(a_tensor_that_no_step_calls_for_is_refused) {
  for (const char* name : {"step.0.logits", "step.2.logits", "step.3.logits", "step.1.keys", "step.01.logits", "step.6.logits", "logits"}) {
    Draft d = draft();
    d.put<float>(name, Dtype::f32, {1}, {1});
    refuses(d, std::string("g: tensor \"") + name + "\" belongs to no step");
  }
}

// GF11
BOOST_AUTO_TEST_CASE(a_wrong_shape_is_shown_beside_the_right_one) {
  Draft d = draft();
  d.tensors["step.1.logits"].shape = {2, 1, 3};
  refuses(d, "tensor step.1.logits has shape [2, 1, 3], expected [1, 2, 3]");
  d = draft();
  d.tensors["step.1.compared"].shape = {2};
  refuses(d, "tensor step.1.compared has shape [2], expected [1, 2]");
  d = draft();
  d.tensors["step.4.values"].shape = {1, 1, 3, 2};
  refuses(d, "tensor step.4.values has shape [1, 1, 3, 2], expected [1, 2, 3, 1]");
  d = draft();
  d.tensors["step.4.keys"].shape = {6};
  refuses(d, "tensor step.4.keys has shape [6]");
  d = draft();
  d.tensors["step.5.ids"].shape = {2, 1};
  refuses(d, "tensor step.5.ids has shape [2, 1], expected [1, 1]");
}

// GF11
BOOST_AUTO_TEST_CASE(logits_last_has_one_column) {
  Draft d = draft();
  d.document["trace"][1]["logits"] = "last";
  refuses(d, "tensor step.1.logits has shape [1, 2, 3], expected [1, 1, 3]");
}

// GF10
BOOST_AUTO_TEST_CASE(a_wrong_dtype_is_refused) {
  Draft d = draft();
  d.put<std::uint16_t>("step.1.logits", Dtype::f16, {1, 2, 3}, std::vector<std::uint16_t>(6));
  refuses(d, "tensor step.1.logits is F16, expected F32 or F64");
  d = draft();
  d.put<std::int64_t>("step.1.compared", Dtype::i64, {1, 2}, {1, 1});
  refuses(d, "tensor step.1.compared is I64, expected U8");
  d = draft();
  d.put<float>("step.5.ids", Dtype::f32, {1, 2}, {1, 1});
  refuses(d, "tensor step.5.ids is F32, expected I64");
}

// GF12
BOOST_AUTO_TEST_CASE(a_flag_is_0_or_1) {
  Draft d = draft();
  d.put<std::uint8_t>("step.1.compared", Dtype::u8, {1, 2}, {1, 2});
  refuses(d, "tensor step.1.compared has a value above 1, expected 0 or 1");
}

// GF13
BOOST_AUTO_TEST_CASE(a_row_that_counts_holds_finite_numbers) {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  Draft d = draft();
  d.put<double>("step.1.logits", Dtype::f64, {1, 2, 3}, {0, 0, 0, nan, inf, 0});
  accepts(d);  // row 0 column 1 does not count
  d.put<double>("step.1.logits", Dtype::f64, {1, 2, 3}, {0, 0, nan, 0, 0, 0});
  refuses(d, "tensor step.1.logits holds nan in a row that counts, expected finite numbers");
  d = draft();
  const float big = std::numeric_limits<float>::infinity();
  d.put<float>("step.4.values", Dtype::f32, {1, 2, 3, 1}, {0, 0, big, 0, 0, big});
  accepts(d);
  d.put<float>("step.4.values", Dtype::f32, {1, 2, 3, 1}, {0, 0, 0, 0, big, 0});
  refuses(d, "tensor step.4.values holds inf");
}

// GF14
BOOST_AUTO_TEST_CASE(generated_ids_are_tokens_and_at_most_as_many_as_asked_for) {
  Draft d = draft();
  d.put<std::int64_t>("step.5.ids", Dtype::i64, {1, 2}, {2, 3});
  refuses(d, "tensor step.5.ids holds id 3, expected 0 to 2");
  d.put<std::int64_t>("step.5.ids", Dtype::i64, {1, 4}, {0, 0, 0, 0});
  refuses(d, "tensor step.5.ids has 4 ids a row, expected 1 to 3");
  d.put<std::int64_t>("step.5.ids", Dtype::i64, {1, 0}, {});
  refuses(d, "tensor step.5.ids has 0 ids a row");
}

BOOST_AUTO_TEST_CASE(no_memory_is_taken_on_the_word_of_a_shape) {
  Draft d = draft();
  d.document["trace"][5] = {{"op", "generate"}, {"input_ids", Json::array()}, {"max_new_tokens", std::numeric_limits<std::int64_t>::max()}};
  d.put<std::int64_t>("step.5.ids", Dtype::i64, {0, std::size_t{1} << 60U}, {});
  accepts(d);  // no rows: empty_input is found when the trace is played
  d.document["trace"][4] = {{"op", "read"}, {"cache", "a"}, {"layer", 0}};
  for (const char* name : {"step.4.keys", "step.4.values"}) d.put<float>(name, Dtype::f32, {0, std::size_t{1} << 60U, 0, 9}, {});
  d.put<std::uint8_t>("step.4.compared", Dtype::u8, {0, 0}, {});
  accepts(d);
}

BOOST_AUTO_TEST_SUITE_END()

/// The bits of all numbers, so that NaN equals itself and -0 differs from 0.
std::vector<std::uint64_t> bits(const kh::Tensor& tensor) {
  std::vector<std::uint64_t> all(tensor.values.size());
  std::memcpy(all.data(), tensor.values.data(), all.size() * sizeof(std::uint64_t));
  return all;
}

struct WrittenFile {
  kvproof::test::ScratchFolder folder{"golden_writer"};
  fs::path path = folder / "a.golden.safetensors";
};

BOOST_FIXTURE_TEST_SUITE(golden_writer, WrittenFile)

BOOST_AUTO_TEST_CASE(what_is_written_is_read_back_bit_for_bit) {
  kh::GoldenFile golden = parse(draft().bytes());
  golden.recorded[1].logits->values = {0.1, -0.0, 5e-324, -std::numeric_limits<double>::infinity(), std::nan(""), 1e300};
  kh::write_golden(path, golden);
  const kh::GoldenFile again = kh::read_golden(path);
  BOOST_TEST((again.trace == golden.trace));
  BOOST_TEST(again.suite == golden.suite);
  BOOST_TEST(again.weights_sha256 == golden.weights_sha256);
  BOOST_TEST(again.config == golden.config);
  BOOST_TEST(again.producer == golden.producer);
  BOOST_TEST(again.atol == golden.atol);
  BOOST_TEST(again.rtol == golden.rtol);
  BOOST_TEST(bits(*again.recorded.at(1).logits) == bits(*golden.recorded.at(1).logits), boost::test_tools::per_element());
  BOOST_TEST((again.recorded.at(4) == golden.recorded.at(4)));
  BOOST_TEST((again.recorded.at(5) == golden.recorded.at(5)));
}

BOOST_AUTO_TEST_CASE(the_same_golden_gives_the_same_bytes) {
  const kh::GoldenFile golden = parse(draft().bytes());
  kh::write_golden(path, golden);
  const auto first = kvproof::SafetensorsFile::open(path);
  const std::vector<std::byte> bytes(first.bytes().begin(), first.bytes().end());
  kh::write_golden(path, kh::read_golden(path));
  const auto second = kvproof::SafetensorsFile::open(path);
  BOOST_TEST((std::ranges::equal(bytes, second.bytes())));
}

BOOST_AUTO_TEST_CASE(numbers_that_fit_are_stored_as_f32) {
  kh::write_golden(path, parse(draft().bytes()));
  const auto file = kvproof::SafetensorsFile::open(path);
  BOOST_TEST((file.find("step.4.keys")->dtype == Dtype::f32));
  BOOST_TEST((file.find("step.1.logits")->dtype == Dtype::f64));
}

BOOST_AUTO_TEST_CASE(a_golden_that_contradicts_itself_is_not_written) {
  kh::GoldenFile golden = parse(draft().bytes());
  golden.recorded[1].compared.pop_back();
  BOOST_CHECK_THROW(kh::write_golden(path, golden), kvproof::ShapeError);
  golden = parse(draft().bytes());
  golden.recorded[5].ids = kvproof::Rows{{1, 2}, {1}};
  BOOST_CHECK_THROW(kh::write_golden(path, golden), kvproof::ShapeError);
  golden.recorded[5] = {};
  BOOST_CHECK_THROW(kh::write_golden(path, golden), kvproof::ShapeError);
  BOOST_TEST(!fs::exists(path));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
