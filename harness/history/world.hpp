#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "harness/contract/call.hpp"
#include "harness/contract/reply.hpp"
#include "harness/history/refusals.hpp"
#include "harness/history/row_history.hpp"

namespace kvproof::harness {

/// What the contract says of one call: it is refused, or it stands for these rows of history.
///
/// forward   rows [B] end with the new columns; the answer's columns are [first, first + columns) of each row.
/// read      rows [B]; the answer's columns are [first, first + columns).
/// generate  rows [B] are the prompt, with positions from the mask.
struct Outcome {
  std::optional<Refusal> refusal;
  std::optional<std::int64_t> length;  ///< of the cache a call speaks of, after the call; absent without such a cache
  std::string model;                   ///< whose numbers rows stand for
  std::vector<RowHistory> rows;
  std::size_t first = 0, columns = 0;
  std::string storage;                 ///< of forward: kind, capacity and window of the cache; empty without one
  std::vector<std::vector<std::uint8_t>> present;  ///< of `read`: [B][P] the mask bits as they are now
};

/// How large a trace may grow: a short file can say "copy" often. Far beyond what any model of this family can use.
inline constexpr std::size_t kLongestHistory = std::size_t{1} << 14U;  ///< columns of one row
inline constexpr std::size_t kMostColumns = std::size_t{1} << 24U;     ///< columns that all calls together make, each row for itself

/// The state behind all caches of one backend (of one lane): names, saved copies, histories. It computes nothing.
///
/// A refused call changes nothing.
class World {
 public:
  explicit World(std::map<std::string, ModelFacts> models) : models_(std::move(models)) {}

  /// Refuses or carries out.
  ///
  /// Errors    DataError, and nothing is changed, for a model the trace's header does not name, and beyond the two limits above.
  Outcome apply(const Call& call);

  [[nodiscard]] const CacheState* find(const std::string& cache) const;
  [[nodiscard]] const std::map<std::string, CacheState>& caches() const noexcept { return caches_; }
  [[nodiscard]] const std::map<std::string, CacheState>& saved() const noexcept { return saved_; }
  [[nodiscard]] const ModelFacts& model(const std::string& name) const;

 private:
  Outcome apply_one(const NewCache& call);
  Outcome apply_one(const Forward& call);
  Outcome apply_one(const Clone& call);
  Outcome apply_one(const Crop& call);
  Outcome apply_one(const Gather& call);
  Outcome apply_one(const Reset& call);
  Outcome apply_one(const Drop& call);
  Outcome apply_one(const Length& call);
  Outcome apply_one(const Read& call);
  Outcome apply_one(const Save& call);
  Outcome apply_one(const Load& call);
  Outcome apply_one(const Generate& call);
  void require_bearable(const Call& call);
  CacheState* live(const std::string& cache);

  std::map<std::string, ModelFacts> models_;
  std::map<std::string, CacheState> caches_, saved_;
  std::size_t made_ = 0;    ///< columns made so far, each row for itself
  std::uint64_t fed_ = 0;  ///< columns fed so far: the origin of the next
};

}  // namespace kvproof::harness
