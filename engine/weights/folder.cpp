#include "engine/weights/folder.hpp"

#include <fmt/format.h>

#include <map>

#include <nlohmann/json.hpp>

#include "engine/base/error.hpp"
#include "engine/safetensors/file_bytes.hpp"
#include "engine/safetensors/json.hpp"
#include "engine/safetensors/text.hpp"

namespace kvproof {
namespace {

namespace fs = std::filesystem;

using WeightMap = std::map<std::string, std::string>;  // tensor name -> shard name

// A shard is a file of the folder itself: an index must not make us open anything else.
bool names_a_file_here(const std::string& shard) {
  return !shard.empty() && shard != "." && shard != ".." && shard.find_first_of(std::string_view("/\\\0", 3)) == std::string::npos;
}

WeightMap read_index(const fs::path& path) {
  const nlohmann::json document = parse_json(read_text(path), path.string());
  const auto refuse = [&](std::string found, std::string expected) {
    throw DataError({path.string(), std::move(found), std::move(expected), ""});
  };
  if (!document.is_object() || !document.contains("weight_map") || !document["weight_map"].is_object())
    refuse("an index without a weight_map", "an object with weight_map: tensor name to shard name");
  WeightMap map;
  for (const auto& [tensor, shard] : document["weight_map"].items()) {
    if (!shard.is_string()) refuse(fmt::format("weight_map of {} is not a string", shown(tensor)), "a shard's file name");
    const auto& name = shard.get_ref<const std::string&>();
    if (!names_a_file_here(name)) refuse(fmt::format("shard {} of tensor {}", shown(name), shown(tensor)), "a file name without a folder");
    map.emplace(tensor, name);
  }
  if (map.empty()) refuse("an empty weight_map", "at least one tensor");
  return map;
}

// Every tensor of the shard must be the index's, and of this shard.
void check_shard(const SafetensorsFile& file, const std::string& shard, WeightMap& unseen, const WeightMap& map) {
  for (const TensorView& tensor : file.tensors()) {
    const auto said = map.find(tensor.name);
    if (said == map.end() || said->second != shard)
      throw DataError({fmt::format("weights {} @ byte {}", file.where(), tensor.header_at), "tensor " + shown(tensor.name),
                       said == map.end() ? "only tensors of the index's weight_map" : "it in shard " + shown(said->second), ""});
    unseen.erase(tensor.name);
  }
}

std::vector<SafetensorsFile> open_shards(const fs::path& folder, const fs::path& index) {
  const WeightMap map = read_index(index);
  std::map<std::string, int> shards;
  for (const auto& [tensor, shard] : map) shards.emplace(shard, 0);
  WeightMap unseen = map;
  std::vector<SafetensorsFile> files;
  for (const auto& [shard, unused] : shards) {
    files.push_back(SafetensorsFile::open(folder / shard));
    check_shard(files.back(), shard, unseen, map);
  }
  if (!unseen.empty())
    throw DataError({index.string(), fmt::format("tensor {} is in none of the shards", shown(unseen.begin()->first)),
                     "it in shard " + shown(unseen.begin()->second), ""});
  return files;
}

}  // namespace

std::string read_text(const fs::path& path) {
  constexpr std::size_t kLongest = std::size_t{64} << 20U;
  const FileBytes file = FileBytes::map(path);
  const auto bytes = file.bytes();
  if (bytes.size() > kLongest)
    throw Error({path.string(), fmt::format("a text of {} bytes", bytes.size()), fmt::format("at most {}", kLongest), ""});
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<SafetensorsFile> open_weight_files(const fs::path& folder) {
  const fs::path whole = folder / "model.safetensors", index = folder / "model.safetensors.index.json";
  std::error_code ignored;
  if (fs::exists(whole, ignored)) {
    std::vector<SafetensorsFile> files;
    files.push_back(SafetensorsFile::open(whole));
    return files;
  }
  if (fs::exists(index, ignored)) return open_shards(folder, index);
  const bool pickled = fs::exists(folder / "pytorch_model.bin", ignored);
  throw Error({folder.string(), pickled ? "only pytorch_model.bin" : "no weights", "model.safetensors or model.safetensors.index.json",
               pickled ? "Load it with Transformers and save it again with save_pretrained(…, safe_serialization=True)" : ""});
}

}  // namespace kvproof
