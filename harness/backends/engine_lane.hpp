#pragma once
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/session/session.hpp"
#include "harness/contract/call.hpp"
#include "harness/contract/reply.hpp"

namespace kvproof::harness {

/// The caches and saved names of one lane of the embedded engine. Names are this adapter's business; everything else is the
/// session's.
///
/// Threads   one lane, one thread; sessions are shared.
class EngineLane {
 public:
  EngineLane(const std::map<std::string, Session>& sessions, bool poison) : sessions_(sessions), poison_(poison) {}

  Reply call(const Call& call);

  /// The engine's own cache of that name, or null.
  [[nodiscard]] Cache* cache(const std::string& name);
  [[nodiscard]] std::vector<std::string> names() const;

 private:
  /// A cache and the session that made it.
  struct Owned {
    const Session* session = nullptr;
    Cache cache;
  };
  struct Saved {
    const Session* session = nullptr;
    std::vector<std::byte> bytes;
  };

  Reply answer(const NewCache& call);
  Reply answer(const Forward& call);
  Reply answer(const Clone& call);
  Reply answer(const Crop& call);
  Reply answer(const Gather& call);
  Reply answer(const Reset& call);
  Reply answer(const Length& call);
  Reply answer(const Save& call);
  Reply answer(const Drop& call);
  Reply answer(const Read& call);
  Reply answer(const Load& call);
  Reply answer(const Generate& call);
  template <typename Act>
  Reply with(const std::string& name, const Act& act);
  Reply keep(const std::string& name, Owned owned);
  Owned* find(const std::string& name);
  const std::map<std::string, Session>& sessions_;
  bool poison_;
  std::map<std::string, Owned> caches_;
  std::map<std::string, Saved> saved_;
};

}  // namespace kvproof::harness
