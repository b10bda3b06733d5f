#pragma once
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>

#include "harness/contract/backend.hpp"
#include "harness/history/refusals.hpp"
#include "harness/trace/step.hpp"

namespace kvproof::harness {

/// What a law's generator may know: the models' sizes, what the backend can do, and the seed of this case.
struct LawContext {
  const std::map<std::string, ModelFacts>& models;  ///< always `main`; some laws also want `other`
  const Capabilities& capabilities;
  std::uint64_t seed = 0;
  std::size_t index = 0;  ///< number of the case: generators walk their edges by it, so that few cases reach all of them
};

/// Which judgements a law's traces get besides refusals, lengths and shapes, which every trace gets.
struct LawJudgement {
  bool oracle = false;    ///< every number is close to the oracle's
  bool same = false;      ///< columns that mean the same have the same logits, and one column's K and V never change: no oracle
  bool repeat = false;    ///< identical calls on identical states give the same bits
  bool differ = false;    ///< columns that differ in their positions alone have different logits
};

/// One case of a law.
struct LawCase {
  Trace trace;
  RunOptions options;
};

/// A law of the contract: a generator of traces with its own judgement.
///
/// Source    docs/contract.md, Laws: `id` is stable and stands in reports and trace files.
struct Law {
  std::string_view id;
  std::string_view statement;
  LawJudgement judgement;
  LawCase (*generate)(const LawContext& context);
  std::string_view models = "main";  ///< "main", or "main other"
};

/// All laws, in the order of the contract's table.
[[nodiscard]] std::span<const Law> laws();

/// The law of that id, or null.
[[nodiscard]] const Law* find_law(std::string_view id);

}  // namespace kvproof::harness
