#include "harness/cli/trace_on_trial.hpp"

#include "harness/cli/judging.hpp"
#include "harness/cli/shrinking.hpp"

namespace kvproof::harness {

Oracles open_oracles(const ModelFolders& models) {
  Oracles oracles;
  for (const auto& [name, folder] : models.folders()) oracles[name] = Oracle::open(folder);
  return oracles;
}

TraceOnTrial::TraceOnTrial(std::string file_path, Backend& backend, const OptionValues& values) : TraceOnTrial(Read{}, std::move(file_path), backend, values) {
  for (const auto& [name, folder] : models.folders()) backend.open(name, folder);  // all are forgotten, should one not open
}

TraceOnTrial::TraceOnTrial(Read, std::string file_path, Backend& backend, const OptionValues& values)
    : path(std::move(file_path)),
      file(read_trace_file(path)),
      models(file.models, std::filesystem::path(path).parent_path()),
      oracles(open_oracles(models)),
      tolerance(tolerance_from(values, tolerance_of(file.run))),
      trial{judgement_of(file, path), backend, oracles, tolerance} {}

TraceOnTrial::~TraceOnTrial() {
  for (const auto& [name, folder] : models.folders()) trial.backend.forget(name);
}

}  // namespace kvproof::harness
