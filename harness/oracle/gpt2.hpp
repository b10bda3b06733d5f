#pragma once
#include <cstddef>
#include <span>
#include <vector>

#include "engine/weights/weights.hpp"
#include "harness/history/row_history.hpp"

namespace kvproof::harness {

/// A GPT-2 as the oracle reads it: the weights exactly, as float, whatever the file's dtype.
struct OracleModel {
  struct Linear {
    std::span<const float> weight, bias;  // [in, out], [out]
  };
  struct Norm {
    std::span<const float> weight, bias;  // [n_embd]
  };
  struct Block {
    Norm ln_1;
    Linear attn_qkv, attn_proj;
    Norm ln_2;
    Linear mlp_fc, mlp_proj;
  };

  explicit OracleModel(const Weights& weights);  ///< borrows F32 tensors: `weights` must outlive it
  OracleModel(const OracleModel&) = delete;
  OracleModel& operator=(const OracleModel&) = delete;

  Config config;
  std::span<const float> wte, wpe, lm_head;  // [vocab_size, n_embd], [n_positions, n_embd], [vocab_size, n_embd]
  std::vector<Block> blocks;
  Norm ln_f;

 private:
  std::span<const float> floats(const Weights& weights, const std::string& name);
  std::vector<std::vector<float>> widened_;
};

/// What a full pass is asked for.
struct Wanted {
  std::vector<std::uint8_t> logits;  ///< [n] 1 = logits of this column
  bool keys_values = false;
};

/// The numbers of one row's history.
template <typename Real>
struct Pass {
  std::vector<std::vector<Real>> logits;        ///< [n][vocab_size]; empty where not wanted
  std::vector<std::vector<Real>> keys, values;  ///< [n_layer][n * n_embd]; empty if not wanted
};

/// GPT-2 from the formulas of Radford et al. 2019 and the config's fields, over all columns of a history at once: no cache.
///
/// Numerics  every sum in index order, in Real: double is the truth, float is the yardstick of fp32 noise.
///           A hidden query that sees nothing gets attention output 0; its logits are not compared.
/// Cost      n * (12 n_layer n_embd^2 + vocab_size n_embd) products.
template <typename Real>
[[nodiscard]] Pass<Real> full_pass(const OracleModel& model, const RowHistory& history, const Wanted& wanted);

}  // namespace kvproof::harness
