#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/rows.hpp"
#include "engine/forward/forward.hpp"
#include "engine/session/cache_options.hpp"
#include "engine/session/refused.hpp"

namespace kvproof {

class ModelIdentity;

/// One forward call, as a caller writes it.
struct ForwardInput {
  Rows input_ids;                      ///< [B][T]
  std::optional<Rows> attention_mask;  ///< [B][P+T], 0 or 1; absent = all ones
  std::optional<Rows> position_ids;    ///< [B][T]; absent = P, P+1, … for every row
  bool use_cache = true;               ///< false: answer as if appended, leave the cache as it was
  LogitsWanted logits = LogitsWanted::all;
};

/// Logits [batch, columns, vocab_size], row-major.
struct Logits {
  std::size_t batch = 0, columns = 0, vocab_size = 0;
  std::vector<float> values;
};

/// A history: keys, values, and which columns are hidden. Belongs to the session that made it.
///
/// Owns      everything, its share of the model included; copies are made by clone() only. A moved-from cache may only be
///           destroyed or assigned to.
/// Threads   one cache, one thread.
/// Errors    Refused with the codes named; std::bad_alloc. Either way the cache is as before the call.
class Cache {
 public:
  Cache(Cache&&) noexcept;
  Cache& operator=(Cache&&) noexcept;
  ~Cache();

  [[nodiscard]] std::size_t length() const noexcept;      ///< columns fed, evicted ones included
  [[nodiscard]] std::size_t batch() const noexcept;       ///< 0 while empty
  [[nodiscard]] std::size_t gone() const noexcept;        ///< columns lost to the window
  [[nodiscard]] std::size_t bytes_held() const noexcept;  ///< of keys and values
  [[nodiscard]] const CacheOptions& options() const noexcept;
  [[nodiscard]] Cache clone() const;
  void crop(std::int64_t length);                         ///< crop_range, crop_evicted
  void gather(std::span<const std::int64_t> rows);        ///< row_range
  void reset();
  [[nodiscard]] KvArrays read(std::int64_t layer) const;  ///< layer_range
  void poison(bool on) noexcept;                          ///< fills unused slots with NaN from now on
  [[nodiscard]] KvCache& storage() noexcept;              ///< where keys and values lie; for diagnosis
  [[nodiscard]] std::vector<std::byte> save() const;      ///< a safetensors container (docs/saved_cache.md)

 private:
  friend class Session;
  struct State;
  explicit Cache(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// Greedy generation: each new id is the one with the largest logit, the lowest of those that are equal.
struct GenerateInput {
  std::optional<CacheOptions> cache;   ///< absent = no cache: every step is a full pass
  Rows input_ids;                      ///< [B][T]
  std::optional<Rows> attention_mask;  ///< [B][T]; positions follow from it (positions_from_mask)
  std::int64_t max_new_tokens = 0;
  std::optional<std::int64_t> eos_token_id;
  std::function<void(std::span<const std::int64_t>)> on_token;  ///< called with the ids of each new column [B]
};

/// Changes a plan before it runs, for whoever breaks an engine on purpose: `cache` is null for a full pass. The batch, the number
/// of new columns and which slots exist must stay.
using PlanHook = std::function<void(StepPlan& plan, const KvCache* cache)>;

/// The public face of the engine: checks a call against the contract, plans it, runs it.
///
/// A call that breaks a rule throws Refused with the first code that applies (order of the table in docs/contract.md), before
/// the first write: caches and the caller's arrays are bit for bit as before. std::bad_alloc leaves them so too.
/// Threads   one Session may serve many threads, each with its own caches.
class Session {
 public:
  /// Errors DataError as Weights::open.
  [[nodiscard]] static Session open(const std::filesystem::path& folder);
  explicit Session(std::shared_ptr<const Model> model, PlanHook plan_hook = {});

  [[nodiscard]] const Model& model() const noexcept;
  [[nodiscard]] Cache make_cache(const CacheOptions& options) const;
  /// Loads what Cache::save() wrote. Errors DataError for broken bytes, Refused model_mismatch for another model's cache.
  [[nodiscard]] Cache load(std::vector<std::byte> saved) const;

  /// Feeds T new columns; with cache null a plain full pass.
  Logits forward(Cache* cache, const ForwardInput& input) const;
  /// The same into the caller's memory (logits is resized): a decode step on a static cache allocates nothing.
  void forward_into(Cache* cache, const ForwardInput& input, Logits& logits) const;
  /// The plan forward() would run, without running it.
  [[nodiscard]] StepPlan plan(const Cache* cache, const ForwardInput& input) const;

  /// Greedy token ids [B][n]; after its eos a row is filled with it, and n ends when all rows have ended.
  [[nodiscard]] Rows generate(const GenerateInput& input) const;

 private:
  void check(const Cache* cache, const ForwardInput& input) const;
  void run_full_pass(const ForwardInput& input, Logits& logits) const;
  std::shared_ptr<const ModelIdentity> owner_;  // never null; shared with the caches, which thus keep the model alive
  PlanHook plan_hook_;
};

/// Position ids that skip hidden columns: running sum of the mask minus 1, at least 0; the last `columns` of each row.
///
/// Errors    ShapeError if a row is shorter than `columns`.
[[nodiscard]] Rows positions_from_mask(const Rows& attention_mask, std::size_t columns);

}  // namespace kvproof
