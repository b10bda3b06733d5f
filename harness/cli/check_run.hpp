#pragma once
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "harness/laws/law.hpp"
#include "harness/laws/situations.hpp"
#include "harness/report/case_report.hpp"
#include <memory>

#include "harness/trace/trace_file.hpp"

namespace kvproof::harness {

/// A trace longer than this many weights' worth of products is not played: it would take minutes on a real checkpoint.
inline constexpr double kMostWork = 1.2e10;

/// What `kvproof check` was asked to do.
struct CheckRequest {
  std::function<std::unique_ptr<Backend>()> make_backend;  ///< each worker has its own
  std::vector<const Law*> laws;
  std::uint64_t seed = 1;
  std::size_t traces = 80;                          ///< per law
  std::optional<double> seconds;                    ///< as many traces as fit, instead
  std::size_t jobs = 1;
  bool fail_fast = false;
  bool coverage = false;
  std::optional<std::filesystem::path> model;       ///< judged instead of the probe models
  Tolerance tolerance;
};

/// One case of a law, played and judged.
struct CheckedCase {
  const Law* law = nullptr;
  std::size_t index = 0;
  LawCase made;
  std::map<std::string, std::size_t> models;        ///< name -> number of the probe model
  Judgement judgement;
  Situations situations;                            ///< if coverage was asked for
  double seconds = 0;
  bool played = false;
};

/// All cases of a check, in the order of laws and indices, and who was judged.
struct CheckedRun {
  std::vector<CheckedCase> cases;
  std::string engine;  ///< the backend's own name and version
};

/// The seed of a case: a hash of the global seed and the case's name.
[[nodiscard]] std::uint64_t case_seed(std::uint64_t seed, const Law& law, std::size_t index);

/// The models that cases are played on: the probe models, or the folder of the request.
class CheckModels {
 public:
  explicit CheckModels(const CheckRequest& request);
  CheckModels(const CheckModels&) = delete;
  CheckModels& operator=(const CheckModels&) = delete;
  ~CheckModels();

  [[nodiscard]] std::map<std::string, std::size_t> choose(const Law& law, std::uint64_t seed) const;
  [[nodiscard]] Oracles oracles(const std::map<std::string, std::size_t>& choice) const;
  [[nodiscard]] const std::filesystem::path& folder(std::size_t model) const;
  /// How a trace file's header names them.
  [[nodiscard]] std::map<std::string, ModelSource> sources(const std::map<std::string, std::size_t>& choice) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// `transformers 5.18.0 eager`: what a list of known failures matches.
[[nodiscard]] std::string identity_of(const Capabilities& capabilities);

/// Makes, plays and judges the cases of all laws. The result is in the order of laws and indices, whatever `jobs`.
///
/// Threads   `jobs` workers with a backend each; oracles and models are shared.
/// Errors    NoBackend; everything a backend does wrong is in the judgements.
[[nodiscard]] CheckedRun run_check(const CheckRequest& request, const CheckModels& models);

}  // namespace kvproof::harness
