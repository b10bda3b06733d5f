#include <boost/test/unit_test.hpp>

#include <openssl/evp.h>

#include "engine/weights/test_model.hpp"
#include "engine/weights/weights.hpp"

namespace {

namespace fs = std::filesystem;
using kvproof::Dtype;
using kvproof::Weights;
using kvproof::test::ScratchFolder;
using kvproof::test::write_text;
using nlohmann::json;

std::string refusal(const fs::path& folder) {
  return kvproof::test::message_of([&] { (void)Weights::open(folder); });
}

std::string refusal_with_map(const fs::path& folder, const json& map) {
  write_text(folder / "model.safetensors.index.json", json{{"metadata", {{"total_size", 1}}}, {"weight_map", map}}.dump());
  return refusal(folder);
}

bool in_first(const std::string& name) { return name < "transformer.h.1"; }

// A model in two shards; returns its weight_map.
json write_shards(const fs::path& folder) {
  const auto model = kvproof::test::test_model("transformer.", Dtype::f32, false);
  write_text(folder / "config.json", model.config.dump());
  model.write_shard(folder / "model-00001-of-00002.safetensors", in_first);
  model.write_shard(folder / "model-00002-of-00002.safetensors", [](const std::string& name) { return !in_first(name); });
  json map = json::object();
  for (const auto& [name, tensor] : model.tensors) map[name] = in_first(name) ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
  write_text(folder / "model.safetensors.index.json", json{{"weight_map", map}}.dump());
  return map;
}

std::string sha256_hex(const std::string& text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  BOOST_REQUIRE(EVP_Digest(text.data(), text.size(), digest, &length, EVP_sha256(), nullptr) == 1);
  std::string hex;
  for (unsigned i = 0; i < length; ++i) hex += fmt::format("{:02x}", digest[i]);
  return hex;
}

BOOST_AUTO_TEST_SUITE(folder)

BOOST_AUTO_TEST_CASE(a_model_in_shards_gives_the_same_tensors_as_in_one_file) {
  const ScratchFolder shards("shards"), whole("unsharded");
  write_shards(shards.path());
  kvproof::test::test_model("transformer.", Dtype::f32, false).write(whole.path());
  const auto a = Weights::open(shards.path()), b = Weights::open(whole.path());
  for (const char* name : {"wte.weight", "h.0.mlp.c_fc.weight", "h.1.mlp.c_fc.weight", "lm_head.weight"})
    BOOST_TEST(kvproof::to_floats(a.tensor(name)) == kvproof::to_floats(b.tensor(name)), boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_hash_of_a_file_is_that_of_its_bytes) {
  const ScratchFolder folder("hash");
  kvproof::test::test_model("", Dtype::f16, true).write(folder.path());
  BOOST_TEST(Weights::open(folder.path()).sha256() == sha256_hex(kvproof::test::file_text(folder / "model.safetensors")));
  BOOST_TEST(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

BOOST_AUTO_TEST_CASE(the_hash_of_shards_is_that_of_all_their_bytes_in_order_of_their_names) {
  const ScratchFolder folder("hash_shards");
  write_shards(folder.path());
  const std::string bytes = kvproof::test::file_text(folder / "model-00001-of-00002.safetensors") +
                            kvproof::test::file_text(folder / "model-00002-of-00002.safetensors");
  BOOST_TEST(Weights::open(folder.path()).sha256() == sha256_hex(bytes));
}

BOOST_AUTO_TEST_CASE(one_file_wins_over_an_index) {
  const ScratchFolder folder("both");
  kvproof::test::test_model("", Dtype::f32, true).write(folder.path());
  write_text(folder / "model.safetensors.index.json", "broken");
  BOOST_TEST(refusal(folder.path()) == "accepted");
}

BOOST_AUTO_TEST_CASE(a_tensor_in_another_shard_than_the_index_says_is_refused) {
  const ScratchFolder folder("wrong_shard");
  auto map = write_shards(folder.path());
  map["lm_head.weight"] = "model-00002-of-00002.safetensors";  // it lies in the first
  const std::string message = refusal_with_map(folder.path(), map);
  BOOST_TEST(message.find("model-00001-of-00002.safetensors @ byte ") != std::string::npos, message);
  BOOST_TEST(message.find("tensor \"lm_head.weight\", expected it in shard \"model-00002-of-00002.safetensors\"") != std::string::npos, message);
}

BOOST_AUTO_TEST_CASE(a_tensor_the_index_does_not_know_is_refused) {
  const ScratchFolder folder("unknown_tensor");
  auto map = write_shards(folder.path());
  map.erase("transformer.wte.weight");
  BOOST_TEST(refusal_with_map(folder.path(), map).find("tensor \"transformer.wte.weight\", expected only tensors of the index's weight_map") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_tensor_that_is_in_no_shard_is_refused) {
  const ScratchFolder folder("in_no_shard");
  auto map = write_shards(folder.path());
  map["score.weight"] = "model-00002-of-00002.safetensors";
  BOOST_TEST(refusal_with_map(folder.path(), map) ==
             (folder / "model.safetensors.index.json").string() +
                 ": tensor \"score.weight\" is in none of the shards, expected it in shard \"model-00002-of-00002.safetensors\"");
}

BOOST_AUTO_TEST_CASE(a_missing_shard_is_named) {
  const ScratchFolder folder("missing_shard");
  write_shards(folder.path());
  fs::remove(folder / "model-00002-of-00002.safetensors");
  BOOST_TEST(refusal(folder.path()) == (folder / "model-00002-of-00002.safetensors").string() + ": cannot be opened: No such file or directory");
}

BOOST_AUTO_TEST_CASE(a_shard_outside_the_folder_is_refused_before_it_is_opened) {
  const ScratchFolder folder("escape");
  const auto map = write_shards(folder.path());
  for (const std::string name : {"../model.safetensors", "/etc/passwd", "a/b", "..", ".", "", "a\\b"}) {
    auto changed = map;
    changed["transformer.wte.weight"] = name;
    BOOST_TEST(refusal_with_map(folder.path(), changed).find("expected a file name without a folder") != std::string::npos, name);
  }
}

BOOST_AUTO_TEST_CASE(an_index_that_is_none_is_refused) {
  const ScratchFolder folder("no_index");
  write_shards(folder.path());
  for (const char* text : {"[]", "{}", R"({"weight_map": []})", R"({"weight_map": null})"}) {
    write_text(folder / "model.safetensors.index.json", text);
    BOOST_TEST(refusal(folder.path()).find("an index without a weight_map") != std::string::npos, text);
  }
  BOOST_TEST(refusal_with_map(folder.path(), json::object()).find("an empty weight_map") != std::string::npos);
  BOOST_TEST(refusal_with_map(folder.path(), {{"a", 7}}).find("weight_map of \"a\" is not a string") != std::string::npos);
  write_text(folder / "model.safetensors.index.json", R"({"weight_map": {"a": "x", "a": "y"}})");
  BOOST_TEST(refusal(folder.path()).find("key \"a\" a second time") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_folder_without_weights_says_what_it_wants) {
  const ScratchFolder folder("empty");
  BOOST_TEST(refusal(folder.path()) == (folder / "config.json").string() + ": cannot be opened: No such file or directory");
  write_text(folder / "config.json", "{}");
  BOOST_TEST(refusal(folder.path()) == folder.path().string() + ": no weights, expected model.safetensors or model.safetensors.index.json");
  write_text(folder / "pytorch_model.bin", "");
  BOOST_TEST(refusal(folder.path()).find("only pytorch_model.bin, expected model.safetensors") != std::string::npos);
  BOOST_TEST(refusal(folder / "none").find("cannot be opened: No such file or directory") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_broken_config_names_file_and_byte) {
  const ScratchFolder folder("broken_config");
  kvproof::test::test_model("", Dtype::f32, true).write(folder.path());
  write_text(folder / "config.json", "{\"n_embd\": 4,}");
  BOOST_TEST(refusal(folder.path()).find((folder / "config.json").string() + " @ byte 13: ") == 0U);
  write_text(folder / "config.json", R"({"n_embd": 4, "n_embd": 4})");
  BOOST_TEST(refusal(folder.path()).find("key \"n_embd\" a second time") != std::string::npos);
}

BOOST_AUTO_TEST_CASE(a_shard_may_be_a_link) {  // as in the cache of the hub
  const ScratchFolder folder("link"), store("link_store");
  kvproof::test::test_model("", Dtype::f32, true).write(store.path());
  fs::create_symlink(store / "model.safetensors", folder / "model.safetensors");
  fs::create_symlink(store / "config.json", folder / "config.json");
  BOOST_TEST(refusal(folder.path()) == "accepted");
}

BOOST_AUTO_TEST_CASE(weights_cut_anywhere_are_refused_as_data) {
  const ScratchFolder folder("cut");
  kvproof::test::test_model("", Dtype::bf16, true).write(folder.path());
  const std::string whole = kvproof::test::file_text(folder / "model.safetensors");
  for (std::size_t length = 0; length < whole.size(); length += length < 16 ? 1 : 37) {
    write_text(folder / "model.safetensors", std::string_view(whole).substr(0, length));
    BOOST_CHECK_THROW((void)Weights::open(folder.path()), kvproof::DataError);
  }
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
