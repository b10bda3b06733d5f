#pragma once
#include <memory>
#include <string>
#include <vector>

#include "engine/session/session.hpp"

// What the tests of this room share: tiny models made from a seed, calls in few words, and comparisons in which NaN fails.

namespace kvproof::testing {

struct ModelSizes {
  std::size_t n_layer = 2, n_head = 3, n_embd = 12, n_positions = 32, vocab_size = 29;
};

/// A portable model with GPT-2's real settings and weights of standard deviation 0.12.
[[nodiscard]] std::shared_ptr<const Model> make_model(std::uint64_t seed, const ModelSizes& sizes = {});
/// A model whose token embeddings, and so all of its logits, are 0.
[[nodiscard]] std::shared_ptr<const Model> make_flat_model();
/// The session that most tests use; one per program.
[[nodiscard]] const Session& session();

/// The three kinds, with room for 24 columns; the window is wider than any history of these tests.
[[nodiscard]] std::vector<CacheOptions> all_kinds();
[[nodiscard]] CacheOptions fixed(std::int64_t capacity);
[[nodiscard]] CacheOptions sliding(std::int64_t capacity, std::int64_t window);

/// Token ids that differ from column to column and from row to row. [rows][columns]
[[nodiscard]] Rows some_tokens(std::size_t rows, std::size_t columns, std::uint64_t seed = 1);
[[nodiscard]] ForwardInput call(Rows input_ids);
[[nodiscard]] ForwardInput call(Rows input_ids, Rows mask);
[[nodiscard]] ForwardInput call(Rows input_ids, Rows mask, Rows positions);
[[nodiscard]] Rows columns_of(const Rows& rows, std::size_t begin, std::size_t end);

/// The code a call is refused with, or "accepted".
template <class Call>
[[nodiscard]] std::string refusal(Call&& attempt) {
  try {
    attempt();
  } catch (const Refused& refused) {
    return std::string(refusal_code_name(refused.code()));
  }
  return "accepted";
}
/// The text a call is refused with, or "accepted".
template <class Call>
[[nodiscard]] std::string refusal_text(Call&& attempt) {
  try {
    attempt();
  } catch (const Refused& refused) {
    return refused.what();
  }
  return "accepted";
}

/// One row of logits: [vocab].
[[nodiscard]] std::span<const float> row_of(const Logits& logits, std::size_t batch_row, std::size_t column);
/// The worst |a - b| in units of 1e-5 + 1e-4 * |b|; infinite for NaN or unequal sizes. 1 is the bound of the project.
[[nodiscard]] double distance(std::span<const float> a, std::span<const float> b);

}  // namespace kvproof::testing
