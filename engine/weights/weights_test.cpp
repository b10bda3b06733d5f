#include "engine/weights/weights.hpp"

#include <boost/test/unit_test.hpp>

#include <algorithm>

#include "engine/safetensors/json.hpp"
#include "engine/weights/test_model.hpp"

namespace {

namespace fs = std::filesystem;
using kvproof::Dtype;
using kvproof::Weights;
using kvproof::test::message_of;
using kvproof::test::ScratchFolder;
using kvproof::test::test_model;
using kvproof::test::TestModel;

constexpr const char* kPrefix = "transformer.";

std::string refusal(const fs::path& folder) {
  return message_of([&] { (void)Weights::open(folder); });
}

// What opening says of a model that was changed.
std::string refusal_of(const TestModel& model, std::string_view folder_name) {
  const ScratchFolder folder(folder_name);
  model.write(folder.path());
  return refusal(folder.path());
}

// "weights FILE @ byte N" of a message must name the place of the tensor's entry; the rest is compared.
void names_place_and(const std::string& message, std::string_view rest) {
  BOOST_TEST(message.starts_with("weights /"), message);
  BOOST_TEST(message.find("model.safetensors @ byte ") != std::string::npos, message);
  const auto colon = message.find(": ");
  BOOST_REQUIRE(colon != std::string::npos);
  BOOST_TEST(message.substr(colon + 2) == rest);
}

BOOST_AUTO_TEST_SUITE(weights)

BOOST_AUTO_TEST_CASE(names_with_and_without_the_prefix_give_the_same_tensors) {
  const ScratchFolder with("prefix"), without("no_prefix");
  test_model(kPrefix, Dtype::f32, false).write(with.path());
  test_model("", Dtype::f32, false).write(without.path());
  const auto a = Weights::open(with.path()), b = Weights::open(without.path());
  for (const char* name : {"wte.weight", "wpe.weight", "h.1.mlp.c_proj.bias", "ln_f.bias", "lm_head.weight"})
    BOOST_TEST(std::ranges::equal(a.tensor(name).bytes, b.tensor(name).bytes));
  BOOST_TEST(a.tensor("wpe.weight").name == "transformer.wpe.weight");
  BOOST_TEST((a.folder() == with.path()));
  BOOST_TEST(a.config_text() == kvproof::test::file_text(with / "config.json"));
}

BOOST_AUTO_TEST_CASE(all_three_dtypes_are_read_exactly) {
  for (const Dtype dtype : {Dtype::f32, Dtype::f16, Dtype::bf16}) {
    const ScratchFolder folder(kvproof::dtype_name(dtype));
    test_model(kPrefix, dtype, true).write(folder.path());
    const auto weights = Weights::open(folder.path());
    const auto floats = kvproof::to_floats(weights.tensor("wpe.weight"));  // tensor number 1, [3, 4]
    const auto doubles = kvproof::to_doubles(weights.tensor("wpe.weight"));
    BOOST_REQUIRE(floats.size() == 12U);
    for (std::size_t i = 0; i < floats.size(); ++i) {
      BOOST_TEST(floats[i] == 0.0625F + static_cast<float>(i) / 64);
      BOOST_TEST(doubles[i] == static_cast<double>(floats[i]));
    }
  }
}

BOOST_AUTO_TEST_CASE(a_tied_head_is_the_embedding_and_an_untied_one_is_its_own) {
  const ScratchFolder tied("tied"), untied("untied");
  test_model(kPrefix, Dtype::f32, true).write(tied.path());
  test_model(kPrefix, Dtype::f32, false).write(untied.path());
  const auto a = Weights::open(tied.path()), b = Weights::open(untied.path());
  BOOST_TEST(&a.tensor("lm_head.weight") == &a.tensor("wte.weight"));
  BOOST_TEST(b.tensor("lm_head.weight").name == "lm_head.weight");
}

BOOST_AUTO_TEST_CASE(a_tied_model_may_carry_its_embedding_twice) {
  auto model = test_model(kPrefix, Dtype::f32, true);
  model.tensors["lm_head.weight"] = model.tensors["transformer.wte.weight"];
  const ScratchFolder folder("tied_twice");
  model.write(folder.path());
  const auto weights = Weights::open(folder.path());
  BOOST_TEST(&weights.tensor("lm_head.weight") == &weights.tensor("wte.weight"));
}

BOOST_AUTO_TEST_CASE(a_tied_model_with_another_head_is_refused) {
  auto model = test_model(kPrefix, Dtype::f32, true);
  model.add("lm_head.weight", Dtype::f32, {5, 4}, 1.0F);
  names_place_and(refusal_of(model, "tied_other"),
                  "tensor lm_head.weight differs from wte.weight while tie_word_embeddings is true, expected the same bytes. "
                  "Set tie_word_embeddings to false to use it, or drop the tensor");
  model.add("lm_head.weight", Dtype::f32, {5, 3}, 1.0F);
  names_place_and(refusal_of(model, "tied_shape"), "tensor lm_head.weight has shape [5, 3], expected [5, 4] (vocab_size x n_embd). Is vocab_size in config.json right?");
}

BOOST_AUTO_TEST_CASE(an_untied_model_without_a_head_is_refused) {
  auto model = test_model(kPrefix, Dtype::f32, false);
  model.tensors.erase("lm_head.weight");
  BOOST_TEST(refusal_of(model, "headless").find("tensor lm_head.weight is missing, expected shape [5, 4] (vocab_size x n_embd). "
                                                "Should tie_word_embeddings in config.json be true?") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(the_mask_buffers_of_old_checkpoints_are_ignored) {
  auto model = test_model("", Dtype::f32, true);
  model.add("h.0.attn.bias", Dtype::f32, {1, 1, 3, 3}, 0);
  model.tensors["h.1.attn.bias"] = {Dtype::u8, {1, 1, 2, 2}, std::vector<std::byte>(4)};
  model.add("h.1.attn.masked_bias", Dtype::f32, {}, -1e4F);
  BOOST_TEST(refusal_of(model, "legacy") == "accepted");
  auto prefixed = test_model(kPrefix, Dtype::f32, true);
  prefixed.add("transformer.h.1.attn.masked_bias", Dtype::f32, {}, -1e4F);
  BOOST_TEST(refusal_of(prefixed, "legacy_prefixed") == "accepted");
}

BOOST_AUTO_TEST_CASE(a_misshapen_tensor_is_named_with_both_shapes) {
  auto model = test_model(kPrefix, Dtype::f32, true);
  model.add("transformer.h.1.attn.c_attn.weight", Dtype::f32, {4, 11}, 0);
  names_place_and(refusal_of(model, "misshapen"),
                  "tensor h.1.attn.c_attn.weight has shape [4, 11], expected [4, 12] (n_embd x 3*n_embd). Is n_embd in config.json right?");
}

BOOST_AUTO_TEST_CASE(a_shape_turned_round_is_refused) {  // Linear keeps [out, in], GPT-2's Conv1D [in, out]
  auto model = test_model(kPrefix, Dtype::f32, true);
  model.add("transformer.h.0.mlp.c_fc.weight", Dtype::f32, {6, 4}, 0);
  names_place_and(refusal_of(model, "turned"), "tensor h.0.mlp.c_fc.weight has shape [6, 4], expected [4, 6] (n_embd x n_inner). Is n_inner in config.json right?");
}

BOOST_AUTO_TEST_CASE(every_tensor_of_the_table_is_required_in_its_shape) {
  const auto whole = test_model(kPrefix, Dtype::f32, false);
  BOOST_REQUIRE(whole.tensors.size() == 2U * 12U + 5U);
  for (const auto& [name, tensor] : whole.tensors) {
    const std::string bare = name.starts_with(kPrefix) ? name.substr(12) : name;
    auto missing = whole;
    missing.tensors.erase(name);
    BOOST_TEST(refusal_of(missing, "missing").find(fmt::format("tensor {} is missing, expected shape [", bare)) != std::string::npos, name);
    auto flat = whole;
    flat.tensors[name].shape.push_back(1);
    BOOST_TEST(refusal_of(flat, "flat").find(fmt::format("tensor {} has shape [", bare)) != std::string::npos, name);
  }
}

BOOST_AUTO_TEST_CASE(an_extra_tensor_is_named_with_its_shape) {
  auto model = test_model(kPrefix, Dtype::f32, true);
  model.add("transformer.h.2.ln_1.weight", Dtype::f32, {4}, 0);
  names_place_and(refusal_of(model, "extra"), "tensor \"h.2.ln_1.weight\" of shape [4], expected no such tensor in a GPT-2 with this config. Is n_layer in config.json right?");
  for (const char* name : {"h.0.crossattention.c_attn.weight", "score.weight", "transformer.lm_head.weight", "h..attn.bias", "h.0.attn.bias2", ""}) {
    auto other = test_model(kPrefix, Dtype::f32, true);
    other.add(name, Dtype::f32, {4}, 0);
    BOOST_TEST(refusal_of(other, "extra_other").find("expected no such tensor") != std::string::npos, name);
  }
}

BOOST_AUTO_TEST_CASE(a_tensor_under_both_its_names_is_refused) {
  auto model = test_model(kPrefix, Dtype::f32, true);
  model.add("ln_f.bias", Dtype::f32, {4}, 0);
  names_place_and(refusal_of(model, "both_names"), "tensor \"ln_f.bias\" a second time, expected it once, with or without transformer.");
}

BOOST_AUTO_TEST_CASE(a_dtype_that_holds_no_weights_is_refused) {
  auto model = test_model(kPrefix, Dtype::f32, true);
  model.tensors["transformer.ln_f.bias"] = {Dtype::f64, {4}, std::vector<std::byte>(32)};
  names_place_and(refusal_of(model, "f64"), "tensor ln_f.bias has dtype F64, expected F32, F16 or BF16");
}

BOOST_AUTO_TEST_CASE(a_tensor_that_is_not_there_is_an_error_not_a_crash) {
  const ScratchFolder folder("lookup");
  test_model(kPrefix, Dtype::f32, true).write(folder.path());
  const auto weights = Weights::open(folder.path());
  for (const char* name : {"", "h.2.ln_1.bias", "transformer.wte.weight", "zzz"}) BOOST_CHECK_THROW((void)weights.tensor(name), kvproof::Error);
}

BOOST_AUTO_TEST_CASE(views_stay_where_they_are_when_weights_move) {
  const ScratchFolder folder("moved");
  test_model(kPrefix, Dtype::f32, true).write(folder.path());
  auto weights = Weights::open(folder.path());
  const auto* view = &weights.tensor("wpe.weight");
  const Weights moved = std::move(weights);
  BOOST_TEST(&moved.tensor("wpe.weight") == view);
}

BOOST_AUTO_TEST_CASE(integers_are_not_taken_for_weights) {
  const std::vector<std::byte> bytes(8);
  BOOST_CHECK_THROW((void)kvproof::to_floats({"t", Dtype::i32, {2}, bytes}), kvproof::Error);
  BOOST_CHECK_THROW((void)kvproof::to_floats({"t", Dtype::f64, {1}, bytes}), kvproof::Error);
  BOOST_CHECK_THROW((void)kvproof::to_doubles({"t", Dtype::u8, {8}, bytes}), kvproof::Error);
  BOOST_TEST(kvproof::to_doubles({"t", Dtype::f64, {1}, bytes}).at(0) == 0.0);
  BOOST_TEST(kvproof::to_floats({"t", Dtype::f16, {0, 4}, {}}).empty());
}

BOOST_AUTO_TEST_CASE(every_golden_folder_opens_and_its_files_know_its_hash) {
  std::size_t files = 0;
  for (const auto& item : fs::recursive_directory_iterator(fs::path(KVPROOF_SOURCE_DIR) / "golden")) {
    if (item.path().filename() != "config.json") continue;
    const auto weights = Weights::open(item.path().parent_path());
    for (const auto& file : fs::directory_iterator(item.path().parent_path())) {
      if (!file.path().string().ends_with(".golden.safetensors")) continue;
      const auto golden = kvproof::SafetensorsFile::open(file.path());
      const auto document = kvproof::parse_json(golden.metadata().at("kvproof"), golden.where());
      BOOST_TEST(document["weights_sha256"].get<std::string>() == weights.sha256());
      ++files;
    }
  }
  BOOST_TEST(files >= 28U);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
