#include "engine/weights/portable_model.hpp"

#include <boost/test/unit_test.hpp>

#include <array>
#include <bit>
#include <cstring>

#include <nlohmann/json.hpp>

#include "engine/safetensors/test_files.hpp"
#include "engine/weights/weights.hpp"

namespace {

using kvproof::Weights;
using nlohmann::json;

json tiny() {
  return {{"n_embd", 8}, {"n_head", 2}, {"n_layer", 1}, {"vocab_size", 11}, {"n_positions", 5}, {"tie_word_embeddings", false}, {"initializer_range", 0.125}};
}

template <class Pattern>
std::array<Pattern, 3> first_three(const Weights& weights, std::string_view name) {
  std::array<Pattern, 3> patterns{};
  std::memcpy(patterns.data(), weights.tensor(name).bytes.data(), sizeof patterns);
  return patterns;
}

Weights made(const json& config, std::uint64_t seed, const std::filesystem::path& folder) {
  kvproof::write_portable_model(config, seed, folder);
  return Weights::open(folder);
}

std::string refusal(const json& config, const std::filesystem::path& folder) {
  return kvproof::test::message_of([&] { kvproof::write_portable_model(config, 1, folder); });
}

using Patterns32 = std::array<std::uint32_t, 3>;
using Patterns16 = std::array<std::uint16_t, 3>;

BOOST_AUTO_TEST_SUITE(portable_model)

// The literals come from the Python of docs/portable_generator.md (narrowed by numpy), not from this code.
BOOST_AUTO_TEST_CASE(elements_have_the_bits_that_python_computes) {
  const kvproof::test::ScratchFolder folder("portable_f32");
  const auto seven = made(tiny(), 7, folder.path());
  BOOST_TEST((first_three<std::uint32_t>(seven, "wte.weight") == Patterns32{0x3b449b65, 0x3de706a7, 0xbad16e04}));
  BOOST_TEST((first_three<std::uint32_t>(seven, "h.0.ln_1.weight") == Patterns32{0x3f581726, 0x3f853198, 0x3f4a8224}));
  BOOST_TEST((first_three<std::uint32_t>(seven, "h.0.attn.c_attn.bias") == Patterns32{0x3c4c8f05, 0xbd9bb436, 0x3db35409}));
  BOOST_TEST((first_three<std::uint32_t>(seven, "lm_head.weight") == Patterns32{0x3c24826e, 0x3e14b5c8, 0x3c7a428f}));
  const auto largest = made(tiny(), ~std::uint64_t{0}, folder.path());
  BOOST_TEST((first_three<std::uint32_t>(largest, "wte.weight") == Patterns32{0xbda501e2, 0x3e2c89ab, 0xbda5a5a5}));
  BOOST_TEST((first_three<std::uint32_t>(largest, "h.0.ln_1.weight") == Patterns32{0x3f7dc40f, 0x3f795455, 0x3f642bfe}));
}

BOOST_AUTO_TEST_CASE(half_precision_is_the_float_rounded_once_more) {
  const kvproof::test::ScratchFolder folder("portable_f16");
  json config = tiny();
  config["dtype"] = "float16";
  const auto half = made(config, 7, folder.path());
  BOOST_TEST((half.tensor("wpe.weight").dtype == kvproof::Dtype::f16));
  BOOST_TEST((first_three<std::uint16_t>(half, "wpe.weight") == Patterns16{0x991a, 0xa2f1, 0x324f}));
  BOOST_TEST((first_three<std::uint16_t>(half, "ln_f.weight") == Patterns16{0x3a62, 0x3c85, 0x3aa5}));
  config["dtype"] = nullptr;
  config["torch_dtype"] = "bfloat16";
  const auto brain = made(config, 7, folder.path());
  BOOST_TEST((brain.tensor("wpe.weight").dtype == kvproof::Dtype::bf16));
  BOOST_TEST((first_three<std::uint16_t>(brain, "wpe.weight") == Patterns16{0xbb23, 0xbc5e, 0x3e4a}));
  BOOST_TEST((first_three<std::uint16_t>(brain, "ln_f.weight") == Patterns16{0x3f4c, 0x3f91, 0x3f55}));
}

// `name hex` lines of the page; a ctest shows that its Python prints the same.
BOOST_AUTO_TEST_CASE(the_page_shows_the_bytes_that_are_made) {
  const kvproof::test::ScratchFolder folder("portable_page");
  json config = tiny();
  config.erase("initializer_range");
  const auto weights = made(config, 7, folder.path());
  const std::string page = kvproof::test::file_text(std::filesystem::path(KVPROOF_SOURCE_DIR) / "docs/portable_generator.md");
  for (const char* name : {"wte.weight", "h.0.ln_1.weight", "h.0.mlp.c_fc.bias"}) {
    std::string line = fmt::format("\ntransformer.{} ", name);
    for (const std::byte byte : weights.tensor(name).bytes.first(16)) line += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    BOOST_TEST(page.find(line + "\n") != std::string::npos, line);
  }
}

BOOST_AUTO_TEST_CASE(the_whole_file_is_the_same_on_every_machine) {
  const kvproof::test::ScratchFolder folder("portable_whole");
  BOOST_TEST(made(tiny(), 7, folder.path()).sha256() == "36c48743e5f9780d1b0bd34ec926aa941bc9f1476b49a404bd80da96e97ab3b1");
}

BOOST_AUTO_TEST_CASE(elements_spread_as_the_page_says) {
  const kvproof::test::ScratchFolder folder("portable_spread");
  json config = tiny();
  config["n_embd"] = 128;
  const auto weights = made(config, 3, folder.path());
  const auto values = kvproof::to_doubles(weights.tensor("h.0.mlp.c_fc.weight"));  // [128 * 512]
  double sum = 0, squares = 0, largest = 0;
  for (const double value : values) {
    sum += value;
    squares += value * value;
    largest = std::max(largest, std::abs(value));
  }
  const auto count = static_cast<double>(values.size());
  BOOST_TEST(std::abs(sum / count) < 4 * 0.125 / std::sqrt(count));
  BOOST_TEST(std::abs(std::sqrt(squares / count) - 0.125) < 0.001);
  BOOST_TEST(largest <= 0.125 * std::sqrt(3.0));
  BOOST_TEST(largest > 0.124 * std::sqrt(3.0));
}

BOOST_AUTO_TEST_CASE(pieces_of_a_large_tensor_fit_together) {
  const kvproof::test::ScratchFolder folder("portable_pieces");
  json config = tiny();
  config["vocab_size"] = 50000;  // wte: 1.6 MB, two pieces of 1 MiB
  const auto large = made(config, 7, folder.path());
  const kvproof::test::ScratchFolder other("portable_whole_piece");
  const auto small = made(tiny(), 7, other.path());
  const auto whole = kvproof::to_floats(large.tensor("wte.weight")), start = kvproof::to_floats(small.tensor("wte.weight"));
  BOOST_TEST(std::equal(start.begin(), start.end(), whole.begin()));
  BOOST_TEST((std::bit_cast<std::uint32_t>(whole[262'144]) == 0x3dd60f60U));  // the first element of the second piece, by Python
}

BOOST_AUTO_TEST_CASE(config_json_is_the_given_document_sorted) {
  const kvproof::test::ScratchFolder folder("portable_config");
  json config = tiny();
  config["z"] = {{"b", 1}, {"a", nullptr}};
  kvproof::write_portable_model(config, 7, folder.path());
  BOOST_TEST(kvproof::test::file_text(folder / "config.json") == config.dump(2) + "\n");
}

BOOST_AUTO_TEST_CASE(a_config_that_cannot_be_made_leaves_no_folder) {
  const kvproof::test::ScratchFolder folder("portable_refused");
  const auto refused = [&](const char* field, const json& value) {
    json config = tiny();
    config[field] = value;
    return refusal(config, folder / "model");
  };
  BOOST_TEST(refused("n_head", 3) == "portable model config: n_head is 3, expected a divisor of n_embd, 8");
  BOOST_TEST(refused("dtype", "float64") == "portable model config: dtype is \"float64\", expected \"float32\", \"float16\" or \"bfloat16\"");
  for (const json& value : {json(0), json(-0.5), json(1.5), json("0.02"), json(nullptr), json(std::nan(""))})
    BOOST_TEST(refused("initializer_range", value).find("initializer_range is") != std::string::npos);
  BOOST_TEST(refused("note", "\xff").find("UTF-8") != std::string::npos);
  BOOST_TEST(!std::filesystem::exists(folder / "model"));
}

BOOST_AUTO_TEST_CASE(a_folder_that_cannot_be_made_is_named) {
  const kvproof::test::ScratchFolder folder("portable_nowhere");
  kvproof::test::write_text(folder / "file", "");
  BOOST_TEST(refusal(tiny(), folder / "file/model") == (folder / "file/model").string() + ": the folder cannot be made: Not a directory");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
