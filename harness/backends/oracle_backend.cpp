#include "harness/backends/oracle_backend.hpp"

#include <algorithm>
#include <optional>

#include "harness/oracle/expectation.hpp"

namespace kvproof::harness {
namespace {

class OracleBackend : public Backend {
 public:
  OracleBackend() {
    capabilities_.name = "oracle";
    capabilities_.version = KVPROOF_VERSION;
    capabilities_.kinds = {"dynamic", "static", "static_sliding_window"};
    capabilities_.ops = {"new", "forward", "clone", "crop", "gather", "reset", "drop", "length", "read", "save", "load", "generate"};
    capabilities_.threads = capabilities_.poison = true;  // it has no slots: nothing unused can matter
  }

  [[nodiscard]] const Capabilities& capabilities() const override { return capabilities_; }

  void open(const std::string& model, const std::filesystem::path& folder) override { oracles_[model] = Oracle::open(folder); }

  void forget(const std::string& model) override { oracles_.erase(model); }

  void begin(const std::string&, const RunOptions&) override { lanes_.clear(); }

  Reply call(const Call& call, std::size_t lane) override {
    const Outcome outcome = lanes_.try_emplace(lane, facts_of(oracles_)).first->second.apply(call);
    if (outcome.refusal) return *outcome.refusal;
    Answer answer;
    answer.length = outcome.length;
    if (const auto* generate = std::get_if<Generate>(&call)) answer.ids = greedy(*generate, outcome);
    const auto* read = std::get_if<Read>(&call);
    const auto* forward = std::get_if<Forward>(&call);
    if (read != nullptr || (forward != nullptr && outcome.columns != 0)) fill(answer, call, outcome);
    return answer;
  }

 private:
  void fill(Answer& answer, const Call& call, const Outcome& outcome) const {
    ExpectedNumbers numbers = numbers_of(call, outcome, oracles_);
    answer.logits = std::move(numbers.logits);
    answer.keys = std::move(numbers.keys);
    answer.values = std::move(numbers.values);
  }

  /// Greedy ids of all rows, a full pass per new token.
  [[nodiscard]] Rows greedy(const Generate& call, const Outcome& outcome) const {
    const Oracle& oracle = *oracles_.at(outcome.model);
    std::vector<RowHistory> rows = outcome.rows;
    Rows ids(rows.size());
    const auto ended = [&](const auto& row) { return call.eos_token_id && std::ranges::find(row, *call.eos_token_id) != row.end(); };
    for (std::int64_t n = 0; n < call.max_new_tokens && !std::ranges::all_of(ids, ended); ++n)
      for (std::size_t b = 0; b < rows.size(); ++b) {
        ids[b].push_back(ended(ids[b]) ? *call.eos_token_id : best_next(oracle, rows[b]));
        feed(rows[b], ids[b].back());
      }
    return ids;
  }

  static std::int64_t best_next(const Oracle& oracle, const RowHistory& row) {
    Wanted wanted{std::vector<std::uint8_t>(row.columns.size(), 0), false};
    wanted.logits.back() = 1;
    const auto logits = oracle.truth(row, wanted).logits.back();
    return std::ranges::max_element(logits) - logits.begin();
  }

  static void feed(RowHistory& row, std::int64_t token) {
    std::vector<std::uint8_t> mask = *row.columns.back().mask;
    mask.push_back(1);
    row.columns.push_back({token, row.columns.back().position + 1, std::make_shared<const std::vector<std::uint8_t>>(std::move(mask)), 0});
  }

  Capabilities capabilities_;
  Oracles oracles_;
  std::map<std::size_t, World> lanes_;
};

}  // namespace

std::unique_ptr<Backend> make_oracle_backend() { return std::make_unique<OracleBackend>(); }

}  // namespace kvproof::harness
