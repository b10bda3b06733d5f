#pragma once
#include <optional>
#include <vector>

#include "harness/history/world.hpp"
#include "harness/oracle/oracle.hpp"
#include "harness/trace/golden_file.hpp"
#include "harness/trace/step.hpp"

namespace kvproof::harness {

/// Numbers an answer must come close to.
///
/// Tensors of a shape but without values ask for the shape alone, and for finite numbers.
/// Shapes    logits [B, T or 1, vocab_size] with compared [B, T or 1]; keys, values [B, H, S, D] with compared [B, S].
struct ExpectedNumbers {
  std::optional<Tensor> logits, keys, values;
  std::vector<std::uint8_t> compared;
  /// |float - double| of the oracle's own loops, element by element; only if it was asked for.
  std::optional<Tensor> logits_noise, keys_noise, values_noise;
};

/// What a correct engine answers to one step.
struct Expectation {
  Outcome outcome;                     ///< refusal, length, histories
  std::optional<ExpectedNumbers> numbers;
  std::optional<Rows> recorded_ids;    ///< of `generate`, from a golden; judged by the oracle's ties
};

/// Refusals, lengths and histories of all steps; lanes have caches and names of their own. No number is computed.
///
/// Errors    DataError if a recorded `error` or `expect` disagrees with the contract: then the file is invalid.
[[nodiscard]] std::vector<Outcome> outcomes_of(const Trace& trace, const std::map<std::string, ModelFacts>& models, const std::string& where,
                                               bool absent_error_means_accepted);

/// The outcomes of expectations, without their numbers.
[[nodiscard]] std::vector<Outcome> outcomes_of(const std::vector<Expectation>& expectations);

/// How the oracle goes about a trace. Both give the same bits: a column never changes after it was fed.
enum class Recompute {
  once_per_final_history,  ///< each distinct final history of a row once, then slices of it
  at_every_step,           ///< everything anew for each step: the definition, several times dearer
};

/// Expectations of shapes alone, for laws that need no oracle.
[[nodiscard]] std::vector<Expectation> expect_shapes(const Trace& trace, const std::map<std::string, ModelFacts>& models);

/// Expectations from the oracle.
[[nodiscard]] std::vector<Expectation> expect_from_oracle(const Trace& trace, const Oracles& oracles, bool with_noise,
                                                          Recompute recompute = Recompute::once_per_final_history);

/// The numbers of one forward or read on its own.
[[nodiscard]] ExpectedNumbers numbers_of(const Call& call, const Outcome& outcome, const Oracles& oracles);

/// Expectations from what a golden recorded.
///
/// Errors    DataError if a shape is not what the contract makes of the trace, or a row counts of which the contract says nothing.
[[nodiscard]] std::vector<Expectation> expect_from_golden(const GoldenFile& golden, const ModelFacts& model);

/// The noise of a golden's or a trace's numbers, for `--tolerance derived`.
void add_noise(std::vector<Expectation>& expectations, const Trace& trace, const Oracles& oracles);

}  // namespace kvproof::harness
