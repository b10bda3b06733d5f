#pragma once
#include <string>

#include "harness/cli/options.hpp"
#include "harness/runner/model_folders.hpp"
#include "harness/verdict/shrink_case.hpp"

namespace kvproof::harness {

/// The oracles of a trace file's models.
[[nodiscard]] Oracles open_oracles(const ModelFolders& models);

/// A trace file ready to be judged: its models on disk and open in the backend for as long as this lives, its law and tolerance
/// found.
///
/// Errors    DataError as read_trace_file, ModelFolders and Oracle::open, and for a law that nobody knows; UsageError for a tolerance.
struct TraceOnTrial {
  TraceOnTrial(std::string file_path, Backend& backend, const OptionValues& values);
  TraceOnTrial(const TraceOnTrial&) = delete;
  TraceOnTrial& operator=(const TraceOnTrial&) = delete;
  ~TraceOnTrial();

  std::string path;
  TraceFile file;
  ModelFolders models;
  Oracles oracles;
  Tolerance tolerance;  ///< command line over file over default
  Trial trial;

 private:
  struct Read {};
  TraceOnTrial(Read, std::string file_path, Backend& backend, const OptionValues& values);  ///< opens nothing yet
};

}  // namespace kvproof::harness
