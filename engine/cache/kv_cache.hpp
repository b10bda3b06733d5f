#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace kvproof {

enum class CacheKind { dynamic, fixed, sliding_window };  ///< `dynamic`, `static`, `static_sliding_window` outside C++

/// The sizes of one model's keys and values.
struct KvShape {
  std::size_t n_layer = 0;
  std::size_t n_head = 0;
  std::size_t head_dim = 0;
  bool operator==(const KvShape&) const = default;
};

/// K and V of a chunk where the products left them: row b, column t, head h starts at `keys + b*row_stride + t*column_stride + h*head_dim`.
struct KvChunk {
  const float* keys = nullptr;
  const float* values = nullptr;
  std::size_t row_stride = 0;
  std::size_t column_stride = 0;
};

/// K and V of one layer where they are stored: row b, head h, slot s starts at `keys + b*row_stride + h*head_stride + s*head_dim`.
struct KvView {
  const float* keys = nullptr;
  const float* values = nullptr;
  std::size_t row_stride = 0;
  std::size_t head_stride = 0;
};

/// New column `t` of a chunk goes to `slot`.
struct SlotWrite {
  std::size_t t = 0;
  std::size_t slot = 0;
};

/// A copy of what one layer holds: [batch, n_head, columns, head_dim], oldest column first.
struct KvArrays {
  std::vector<float> keys, values;
  std::size_t batch = 0, columns = 0;
};

/// Storage for keys and values: [n_layer][K, V][batch, n_head, slots, head_dim] in one allocation. It moves numbers and knows
/// how many columns it holds; it checks no call and decides no visibility (that is the session's and the plan's work).
///
/// A step is: reserve (may throw, changes nothing that can be seen), update for each layer, advance.
/// Owns      its storage; clone() shares nothing.
/// Threads   one cache, one thread.
class KvCache {
 public:
  virtual ~KvCache() = default;
  KvCache& operator=(const KvCache&) = delete;

  [[nodiscard]] virtual CacheKind kind() const noexcept = 0;
  [[nodiscard]] virtual std::optional<std::size_t> capacity() const noexcept = 0;  ///< what `new` was given
  [[nodiscard]] virtual std::optional<std::size_t> window() const noexcept = 0;    ///< what `new` was given
  /// min(window, capacity) of a sliding cache: a query sees itself and the W - 1 columns before it.
  [[nodiscard]] virtual std::optional<std::size_t> window_in_force() const noexcept = 0;
  [[nodiscard]] virtual std::size_t slot(std::size_t column) const noexcept = 0;   ///< where a column lies
  [[nodiscard]] virtual std::unique_ptr<KvCache> clone() const = 0;

  [[nodiscard]] const KvShape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::size_t batch() const noexcept { return batch_; }    ///< 0 while empty
  [[nodiscard]] std::size_t length() const noexcept { return length_; }  ///< columns fed, evicted ones included
  [[nodiscard]] std::size_t gone() const noexcept { return gone_; }      ///< columns [0, gone) are evicted
  [[nodiscard]] std::size_t bytes_held() const noexcept;
  [[nodiscard]] KvView view(std::size_t layer) const noexcept;
  [[nodiscard]] KvArrays read(std::size_t layer) const;                  ///< columns gone .. length-1

  /// Makes room for `batch` rows of length() + new_columns columns. Strong guarantee; contents stay.
  ///
  /// Requires  batch == batch() unless the cache is empty; a static cache's capacity is not passed.
  /// Errors    Error if the size overflows or passes the machine's memory, std::bad_alloc.
  void reserve(std::size_t batch, std::size_t new_columns);
  /// Copies a chunk of `batch` rows into its slots. Not visible through length() before advance().
  void update(std::size_t layer, const KvChunk& chunk, std::size_t batch, std::span<const SlotWrite> writes) noexcept;
  /// The step is done: the cache now holds `new_length` columns of `batch` rows.
  void advance(std::size_t batch, std::size_t new_length) noexcept;

  void crop(std::size_t length) noexcept;               ///< keeps the first `length` columns; 0 empties
  void gather(std::span<const std::size_t> rows);       ///< row i becomes old row rows[i]; strong guarantee
  void reset() noexcept;                                ///< empty, as new
  /// Fills an empty cache with what read() gave of each layer: columns gone .. length-1. Strong guarantee.
  ///
  /// Errors    ShapeError if the arrays do not have these shapes or this kind of cache cannot hold such a history.
  void restore(std::span<const KvArrays> layers, std::size_t length, std::size_t gone);
  /// While on, every slot that holds no column is kept filled with NaN: a read of one shows.
  void poison(bool on) noexcept;
  [[nodiscard]] bool poisoned() const noexcept { return poisoned_; }

 protected:
  explicit KvCache(const KvShape& shape) noexcept : shape_(shape) {}
  KvCache(const KvCache& other);
  /// How many slots `columns` columns need if there are `held` already; `held` if they do.
  [[nodiscard]] virtual std::size_t slots_for(std::size_t columns, std::size_t held) const noexcept = 0;

 private:
  struct FreeAligned {
    void operator()(float* data) const noexcept;
  };
  /// The allocation: [n_layer][K, V][batch, n_head, slots, head_dim], aligned to 64 bytes.
  struct Storage {
    std::unique_ptr<float[], FreeAligned> data;
    std::size_t batch = 0, slots = 0;
  };

  [[nodiscard]] Storage allocate(std::size_t batch, std::size_t slots) const;
  [[nodiscard]] std::size_t floats(const Storage& storage) const noexcept;
  template <class RowOf>
  void copy_rows(const Storage& from, Storage& to, RowOf row_of) const noexcept;
  void check_restorable(std::span<const KvArrays> layers, std::size_t length, std::size_t gone) const;
  void write_all(std::size_t layer, const KvArrays& arrays, std::size_t gone) noexcept;
  void poison_empty_slots() noexcept;

  KvShape shape_;
  Storage storage_;
  std::size_t batch_ = 0, length_ = 0, gone_ = 0;
  bool poisoned_ = false;
};

/// Grows geometrically: appending n columns one by one copies O(n) columns in all.
[[nodiscard]] std::unique_ptr<KvCache> make_dynamic_cache(const KvShape& shape);
/// One allocation when the batch size becomes known; slot = column.
[[nodiscard]] std::unique_ptr<KvCache> make_static_cache(const KvShape& shape, std::size_t capacity);
/// A ring of min(window, capacity) slots; slot = column modulo that. O(1) a token.
[[nodiscard]] std::unique_ptr<KvCache> make_static_sliding_window_cache(const KvShape& shape, std::size_t capacity, std::size_t window);

}  // namespace kvproof
