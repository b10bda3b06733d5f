#pragma once
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/seed.hpp"
#include "harness/history/world.hpp"
#include "harness/laws/law.hpp"

namespace kvproof::harness {

/// Whose positions a feed gives.
enum class Positions { absent, from_mask, random };

/// How new columns are fed; what is not said is drawn.
struct Feed {
  std::optional<Rows> mask = std::nullopt;          ///< [B][T] bits of the new columns; absent = all ones
  Positions positions = Positions::absent;
  std::string logits = "all";
  bool use_cache = true;
  bool say_mask = false;                            ///< write the mask out even where absent would do
};

/// Writes a law's trace step by step and always knows, from history/, what the caches hold: so every step is meant.
///
/// After each refused call, and after each write while several caches live, all live caches are probed: `read` of a layer, and a
/// forward on a clone, every row. It is the strong guarantee about contents, not only about lengths.
class TraceBuilder {
 public:
  explicit TraceBuilder(const LawContext& context);

  Random random;  ///< the case's own stream; never two draws among the arguments of one call: their order is the compiler's own

  [[nodiscard]] std::size_t index() const noexcept { return context_.index; }
  [[nodiscard]] const ModelFacts& model(const std::string& name = "main") const { return world_.model(name); }
  [[nodiscard]] const CacheState& state(const std::string& cache) const { return *world_.find(cache); }
  [[nodiscard]] bool can(const char* op) const { return context_.capabilities.ops.contains(op); }
  [[nodiscard]] std::size_t most_rows() const;  ///< largest batch to use

  /// A kind the backend has: `wanted` if it has it, else any.
  [[nodiscard]] std::string kind(const std::string& wanted) const;
  /// Walks dynamic, static, sliding by the case's number.
  [[nodiscard]] std::string any_kind() const;

  std::vector<std::int64_t> tokens(std::size_t count, const std::string& model = "main");
  Rows tokens(std::size_t rows, std::size_t columns, const std::string& model = "main");

  /// Adds a step and plays it on the history. Returns its outcome.
  Outcome add(const Call& call, std::size_t lane = 0);
  /// New caches are named c0, c1, …; a static one gets `capacity`, a sliding one also `window`.
  std::string make(const std::string& kind, std::size_t capacity, std::size_t window = 4, const std::string& model = "main");
  /// Feeds new columns behind what the cache holds; the mask says again what is hidden.
  Outcome feed(const std::string& cache, const Rows& input_ids, const Feed& feed = {});
  /// The forward that feed() would add.
  [[nodiscard]] Forward forward_call(const std::string& cache, const Rows& input_ids, const Feed& feed = {});
  std::string clone(const std::string& cache);
  void crop(const std::string& cache, std::size_t length) { add(Crop{cache, static_cast<std::int64_t>(length)}); }
  void length(const std::string& cache);
  void read_all(const std::string& cache);  ///< every layer, if the backend has `read`
  void full_pass(const Rows& input_ids, const Feed& feed = {});
  void drop(const std::string& cache);      ///< if the backend has `drop`
  /// Feeds `input_ids` [B][n] cut into chunks of these sizes; a mask [B][n] is cut with it.
  void feed_in_chunks(const std::string& cache, const Rows& input_ids, const std::vector<std::size_t>& chunks, const Feed& feed = {});
  /// A random cutting of n into chunks of at most `most`.
  std::vector<std::size_t> cut(std::size_t n, std::size_t most);
  std::size_t batch() { return 1 + random.below(most_rows()); }
  std::size_t size(std::size_t low, std::size_t high) { return static_cast<std::size_t>(random.between(static_cast<std::int64_t>(low), static_cast<std::int64_t>(high))); }

  /// Reads a layer of each live cache and feeds a clone of each: every row of what they hold shows.
  void probe_all();

  [[nodiscard]] LawCase finish(bool poison = false);

 private:
  void add_probes(const Call& call, const Outcome& outcome);
  void probe(const std::string& cache);

  const LawContext& context_;
  World world_;
  Trace trace_;
  std::set<std::string> elsewhere_;  ///< caches of other lanes: lane 0 does not know them
  std::size_t made_ = 0;
  bool probing_ = false;
};

/// Columns [from, from + count) of each row.
[[nodiscard]] Rows columns_of(const Rows& rows, std::size_t from, std::size_t count);

/// Mask bits of a row of `columns` with the first `pads` hidden.
[[nodiscard]] std::vector<std::int64_t> left_padded(std::size_t pads, std::size_t columns);
[[nodiscard]] std::vector<std::int64_t> right_padded(std::size_t pads, std::size_t columns);

}  // namespace kvproof::harness
