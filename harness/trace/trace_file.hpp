#pragma once
#include <cstdint>
#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "harness/contract/finding_kind.hpp"
#include "harness/trace/step.hpp"

namespace kvproof::harness {

/// Where the weights of a trace come from: the portable generator, or a folder with known bytes.
struct ModelSource {
  std::string config;  ///< a config.json document, if generated
  std::uint64_t seed = 0;
  std::string folder;  ///< if not generated; relative to the trace file
  std::string weights_sha256;
  [[nodiscard]] bool generated() const noexcept { return !config.empty(); }
  bool operator==(const ModelSource&) const = default;
};

/// What the runner and the judge were told; absent = the default.
struct RunHeader {
  bool poison = false;
  std::optional<std::string> law;    ///< judged by this law's own judgement
  std::optional<double> atol, rtol;
  bool derived_tolerance = false;
  std::optional<FindingKind> finding; ///< what is wrong with the engine that the trace was kept for; it tells nobody how to play or judge
  std::optional<Code> code;           ///< the refusal the finding is about
  bool operator==(const RunHeader&) const = default;
};

/// A `*.trace.json` file, version 1.0.
struct TraceFile {
  std::map<std::string, ModelSource> models;
  RunHeader run;
  Trace trace;
  bool operator==(const TraceFile&) const = default;
};

/// Errors DataError for text that is no trace file, another major version, a model that is not in the header.
[[nodiscard]] TraceFile parse_trace_file(std::string_view text, const std::string& where);
[[nodiscard]] TraceFile read_trace_file(const std::filesystem::path& path);

/// The file's text, one step a line.
[[nodiscard]] std::string format_trace_file(const TraceFile& file);
void write_trace_file(const std::filesystem::path& path, const TraceFile& file);

/// The models a trace names, `main` included if a call speaks of no other.
[[nodiscard]] std::optional<std::string> model_of(const Call& call);

/// Reads a whole text file. Errors: Error with the system's reason; DataError above 64 MiB.
[[nodiscard]] std::string read_text_file(const std::filesystem::path& path);

}  // namespace kvproof::harness
