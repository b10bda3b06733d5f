#include "harness/backends/engine_backend.hpp"

#include <map>
#include <optional>
#include <thread>

namespace kvproof::harness {
namespace {

class EngineBackend : public Backend {
 public:
  explicit EngineBackend(FaultSource source) : source_(std::move(source)) {
    capabilities_.name = "engine";
    capabilities_.version = KVPROOF_VERSION;
    capabilities_.kinds = {"dynamic", "static", "static_sliding_window"};
    capabilities_.ops = {"new", "forward", "clone", "crop", "gather", "reset", "drop", "length", "read", "save", "load", "generate"};
    capabilities_.threads = capabilities_.poison = true;
  }

  [[nodiscard]] const Capabilities& capabilities() const override { return capabilities_; }

  void open(const std::string& model, const std::filesystem::path& folder) override {
    lanes_.clear();
    sessions_.insert_or_assign(model, Session(Model::open(folder), [this](StepPlan& plan, const KvCache* cache) {
      if (fault_ && fault_->plan) fault_->plan(plan, cache);
    }));
  }

  void forget(const std::string& model) override {
    lanes_.clear();
    sessions_.erase(model);
  }

  void begin(const std::string&, const RunOptions& options) override {
    lanes_.clear();
    poison_ = options.poison;
    if (source_) fault_ = source_();
  }

  Reply call(const Call& call, std::size_t lane) override { return pass_on(lane, call); }

  std::vector<Reply> together(std::span<const LaneCall> calls) override {
    for (const LaneCall& each : calls) (void)lane_of(each.lane);  // the map does not change while the threads run
    std::vector<Reply> replies(calls.size());
    std::vector<std::thread> threads;
    threads.reserve(calls.size());
    for (std::size_t i = 0; i < calls.size(); ++i)
      threads.emplace_back([&, i] { replies[i] = guarded(calls[i].lane, *calls[i].call); });
    for (std::thread& thread : threads) thread.join();
    return replies;
  }

 private:
  struct Lane {
    EngineLane engine;
    LaneFault fault;  ///< empty: none
  };

  Reply pass_on(std::size_t number, const Call& call) {
    auto& [lane, fault] = lane_of(number);
    return fault ? fault(lane, call) : lane.call(call);
  }

  Reply guarded(std::size_t number, const Call& call) {
    try {
      return pass_on(number, call);
    } catch (const std::exception& error) {
      return Breakdown{"backend_threw", error.what()};
    }
  }

  Lane& lane_of(std::size_t number) {
    if (const auto found = lanes_.find(number); found != lanes_.end()) return found->second;
    return lanes_.emplace(number, Lane{EngineLane(sessions_, poison_), fault_ && fault_->lane ? fault_->lane(number) : LaneFault{}}).first->second;
  }

  FaultSource source_;
  std::optional<Fault> fault_;
  Capabilities capabilities_;
  std::map<std::string, Session> sessions_;
  std::map<std::size_t, Lane> lanes_;
  bool poison_ = false;
};

}  // namespace

std::unique_ptr<Backend> make_engine_backend(FaultSource fault) { return std::make_unique<EngineBackend>(std::move(fault)); }

}  // namespace kvproof::harness
