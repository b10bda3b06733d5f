#include "engine/weights/portable_model.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>

#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "engine/base/error.hpp"
#include "engine/base/seed.hpp"
#include "engine/safetensors/writer.hpp"
#include "engine/weights/config.hpp"
#include "engine/weights/float16.hpp"
#include "engine/weights/tensor_table.hpp"

// docs/portable_generator.md states the same formula for other languages. Every operation here is one IEEE operation in
// double; the project is compiled without contraction, so that a multiplication and an addition are never fused.

namespace kvproof {
namespace {

constexpr double kSqrt3 = 1.7320508075688772;  // a uniform number in (-1, 1) has the standard deviation 1 / sqrt(3)
constexpr std::uint64_t kStep = 0x9e3779b97f4a7c15U;

// How the elements of one tensor follow from their index.
struct Recipe {
  std::uint64_t seed = 0;
  double amplitude = 0;
  double centre = 0;

  [[nodiscard]] float element(std::uint64_t index) const noexcept {
    return static_cast<float>(centre + amplitude * signed_unit(mix64(seed + (index + 1) * kStep)));
  }
};

bool is_norm_weight(const std::string& name) {
  return name.ends_with("ln_1.weight") || name.ends_with("ln_2.weight") || name.ends_with("ln_f.weight");
}

double standard_deviation(const nlohmann::json& config, const std::string& where) {
  const auto at = config.find("initializer_range");
  if (at == config.end()) return 0.02;
  const double value = at->is_number() ? at->get<double>() : -1.0;
  if (!(value > 0 && value <= 1)) throw DataError({where, "initializer_range is " + at->dump(), "a number above 0, at most 1", ""});
  return value;
}

Dtype stored_dtype(const nlohmann::json& config, const std::string& where) {
  for (const char* field : {"dtype", "torch_dtype"}) {
    const auto at = config.find(field);
    if (at == config.end() || at->is_null()) continue;
    if (*at == "float32") return Dtype::f32;
    if (*at == "float16") return Dtype::f16;
    if (*at == "bfloat16") return Dtype::bf16;
    throw DataError({where, fmt::format("{} is {}", field, at->dump()), "\"float32\", \"float16\" or \"bfloat16\"", ""});
  }
  return Dtype::f32;
}

void fill_floats(const Recipe& recipe, std::size_t first, std::span<std::byte> out) {
  for (std::size_t i = 0; i < out.size() / sizeof(float); ++i) {
    const float value = recipe.element(first + i);
    std::memcpy(out.data() + sizeof(float) * i, &value, sizeof(float));
  }
}

void fill_halves(const Recipe& recipe, std::size_t first, std::span<std::byte> out, std::uint16_t (*narrow)(float)) {
  for (std::size_t i = 0; i < out.size() / 2; ++i) {
    const std::uint16_t value = narrow(recipe.element(first + i));
    std::memcpy(out.data() + 2 * i, &value, 2);
  }
}

void fill(const Recipe& recipe, Dtype dtype, std::size_t offset, std::span<std::byte> out) {
  const std::size_t first = offset / dtype_size(dtype);
  if (dtype == Dtype::f32) return fill_floats(recipe, first, out);
  fill_halves(recipe, first, out, dtype == Dtype::f16 ? f16_from_float : bf16_from_float);
}

void make_folder(const std::filesystem::path& folder) {
  std::error_code failure;
  std::filesystem::create_directories(folder, failure);
  if (failure) throw Error({folder.string(), "the folder cannot be made: " + failure.message(), "", ""});
}

std::string config_text(const nlohmann::json& config, const std::string& where) {
  try {
    return config.dump(2) + "\n";
  } catch (const nlohmann::json::type_error&) {  // a document built in memory may hold any bytes
    throw DataError({where, "a string that is not UTF-8", "UTF-8", ""});
  }
}

void write_text(const std::string& text, const std::filesystem::path& path) {
  const auto bytes = std::as_bytes(std::span(text));
  write_file_atomically(path, std::span(&bytes, 1));
}

}  // namespace

void write_portable_model(const nlohmann::json& config, std::uint64_t seed, const std::filesystem::path& folder) {
  const std::string where = "portable model config";
  const Config parsed = parse_config(config, where);
  const double amplitude = kSqrt3 * standard_deviation(config, where);
  const Dtype dtype = stored_dtype(config, where);
  const std::string text = config_text(config, where);

  std::vector<TensorToMake> tensors;
  std::vector<Recipe> recipes;
  for (ExpectedTensor& expected : expected_tensors(parsed)) {
    const std::string name = expected.name == "lm_head.weight" ? expected.name : "transformer." + expected.name;
    recipes.push_back({derived_seed(seed, name), amplitude, is_norm_weight(name) ? 1.0 : 0.0});
    tensors.push_back({name, dtype, std::move(expected.shape)});
  }
  make_folder(folder);
  write_safetensors_in_pieces(folder / "model.safetensors", {{"format", "pt"}}, tensors,
                              [&](std::size_t index, std::size_t offset, std::span<std::byte> out) { fill(recipes[index], dtype, offset, out); });
  write_text(text, folder / "config.json");
}

}  // namespace kvproof
