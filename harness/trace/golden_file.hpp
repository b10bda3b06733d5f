#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/safetensors/reader.hpp"
#include "harness/contract/reply.hpp"
#include "harness/trace/step.hpp"

namespace kvproof::harness {

/// What a golden recorded of one step.
///
/// Shapes    logits [B, T or 1, vocab_size] with compared [B, T or 1]; keys and values [B, H, S, D] with compared [B, S].
struct Recorded {
  std::optional<Tensor> logits, keys, values;
  std::vector<std::uint8_t> compared;  ///< 1 = this row counts
  std::optional<Rows> ids;             ///< of `generate`: [B][n]
  bool operator==(const Recorded&) const = default;
};

/// A golden file, version 1.0 (docs/golden_format.md): a trace with recorded answers.
struct GoldenFile {
  std::string where;
  std::string suite;
  std::string weights_sha256;
  std::string config;    ///< the model's config.json
  std::string producer;  ///< a JSON object: who made it, with which versions and precision
  double atol = 0, rtol = 0;
  Trace trace;
  std::map<std::size_t, Recorded> recorded;  ///< by step
};

/// Reads and checks a golden whole: document, steps, and that exactly the tensors its steps call for are there, in shape.
///
/// Errors    DataError with file, step and tensor.
[[nodiscard]] GoldenFile read_golden(const std::filesystem::path& path);
[[nodiscard]] GoldenFile parse_golden(const SafetensorsFile& file);

/// Writes a golden; floats are stored as F32 if that loses nothing, else as F64.
///
/// Errors    ShapeError if a shape and its numbers disagree or a step records nothing; Error if the file cannot be written.
void write_golden(const std::filesystem::path& path, const GoldenFile& golden);

/// The numbers of an F64, F32, F16 or BF16 tensor as they are.
[[nodiscard]] Tensor tensor_of(const TensorView& view);

/// `step.<index>.<what>`
[[nodiscard]] std::string tensor_name(std::size_t step, const char* what);

}  // namespace kvproof::harness
