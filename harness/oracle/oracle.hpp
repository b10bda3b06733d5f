#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "harness/history/refusals.hpp"
#include "harness/oracle/gpt2.hpp"

namespace kvproof::harness {

/// The truth about one model folder.
///
/// Threads   immutable: any number of threads.
/// Errors    DataError as Weights::open.
class Oracle {
 public:
  [[nodiscard]] static std::shared_ptr<const Oracle> open(const std::filesystem::path& folder);

  [[nodiscard]] const Weights& weights() const noexcept { return weights_; }
  [[nodiscard]] ModelFacts facts() const noexcept;
  [[nodiscard]] Pass<double> truth(const RowHistory& history, const Wanted& wanted) const { return full_pass<double>(model_, history, wanted); }
  /// The same loops in float: how far plain fp32 strays from the truth on this history, whatever the engine does.
  [[nodiscard]] Pass<float> in_float(const RowHistory& history, const Wanted& wanted) const { return full_pass<float>(model_, history, wanted); }

 private:
  explicit Oracle(Weights weights);
  Weights weights_;
  OracleModel model_;
};

/// The models of a trace, by name.
using Oracles = std::map<std::string, std::shared_ptr<const Oracle>>;

[[nodiscard]] std::map<std::string, ModelFacts> facts_of(const Oracles& oracles);

}  // namespace kvproof::harness
