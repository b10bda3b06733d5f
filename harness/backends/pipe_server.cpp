#include "harness/backends/pipe_server.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "engine/base/error.hpp"
#include "engine/safetensors/json.hpp"
#include "harness/backends/backend_spec.hpp"
#include "harness/backends/pipe_reply.hpp"
#include "harness/trace/fields.hpp"
#include "harness/trace/step_json.hpp"

namespace kvproof::harness {
namespace {

using Json = nlohmann::ordered_json;
using Bytes = std::vector<std::byte>;

constexpr std::int64_t kMajor = 1;
constexpr std::int64_t kMostLanes = 16;

void write_all(int out, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(out, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) throw Error({"standard output", std::strerror(errno), "", ""});
    if (count > 0) bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
}

/// One request, parsed as far as its id and op.
struct Request {
  const nlohmann::json& document;
  std::uint64_t id = 0;
  std::string op;
  std::string where;
};

/// A call and the lane that makes it.
struct LaneStep {
  std::size_t lane = 0;
  Call call;
};

void require_whole(const Reply& reply) {
  if (const auto* broken = std::get_if<Breakdown>(&reply)) throw std::runtime_error(broken->message);
}

/// What the engine throws is no refusal, and no fault of the request: its state is unknown from here on.
auto guarded(const std::string& op, const auto& act) {
  try {
    return act();
  } catch (const std::exception& error) {
    throw std::runtime_error(fmt::format("the engine threw over {}: {}", op, error.what()));
  }
}

class Server {
 public:
  Server(Backend& backend, int in, int out) : backend_(backend), in_(in), out_(out) {}

  void run() {
    MessageFrame frame(BackendLimits{}.most_message_bytes, "a request");
    while (!closed_ && read_whole(frame)) answer(decode_message(frame.take(), "a request"));
  }

 private:
  bool read_whole(MessageFrame& frame) const {
    std::array<std::byte, std::size_t{64} << 10U> bytes;
    while (!frame.whole()) {
      const ssize_t count = ::read(in_, bytes.data(), bytes.size());
      if (count < 0 && errno != EINTR) throw Error({"standard input", std::strerror(errno), "", ""});
      if (count > 0) frame.add({bytes.data(), static_cast<std::size_t>(count)});
      if (count != 0) continue;
      if (frame.received() == 0) return false;
      throw DataError({"standard input", fmt::format("it ends {} bytes into a request", frame.received()), "a whole one", ""});
    }
    return true;
  }

  void answer(const PipeMessage& message) {
    const nlohmann::json document = parse_json(message.document, "a request");
    Fields fields(document, "a request");
    const Request request{document, fields.natural("id"), fields.text("op"), fmt::format("request {}", fields.natural("id"))};
    Bytes reply = reply_to(request);
    if (reply.size() > most_reply_bytes_)
      reply = encode_reply(request.id, Unsupported{fmt::format("the reply takes {} bytes, you read at most {}", reply.size(), most_reply_bytes_)});
    write_all(out_, reply);
  }

  Bytes reply_to(const Request& request) {
    try {
      if (request.op == "hello") return hello(request);
      if (request.op == "open") return open(request);
      if (request.op == "begin") return begin(request);
      if (request.op == "together") return together(request);
      if (request.op == "close") return closed_ = true, encode_ok(request.id, Json::object());
      if (!backend_.capabilities().ops.contains(request.op)) return encode_reply(request.id, Unsupported{fmt::format("unknown op \"{}\"", request.op)});
      const LaneStep step = read_step(request.document, request.where);
      return encode_reply(request.id, guarded(request.op, [&] {
                            Reply reply = backend_.call(step.call, step.lane);
                            require_whole(reply);
                            return reply;
                          }));
    } catch (const DataError& misread) {
      return encode_reply(request.id, Refusal{Code::bad_argument, misread.what()});
    }
  }

  Bytes hello(const Request& request) {
    Fields fields(request.document, request.where);
    const auto protocol = fields.integers("protocol");
    if (protocol.size() != 2 || protocol[0] != kMajor)
      return encode_reply(request.id, Refusal{Code::other, fmt::format("you speak protocol [{}], I speak [{}, 0]", fmt::join(protocol, ", "), kMajor)});
    if (fields.has("limits")) {
      Fields limits(fields.object("limits"), request.where + ": limits");
      if (limits.has("message_bytes")) most_reply_bytes_ = limits.natural("message_bytes");
    }
    const Capabilities& capabilities = backend_.capabilities();
    return encode_ok(request.id, {{"protocol", {kMajor, 0}},
                                  {"name", capabilities.name},
                                  {"version", capabilities.version},
                                  {"capabilities", capabilities_to_json(capabilities)}});
  }

  Bytes open(const Request& request) {
    Fields fields(request.document, request.where);
    const std::string model = fields.text("model"), folder = fields.text("folder");
    try {
      backend_.open(model, folder);
    } catch (const Error& error) {
      return encode_reply(request.id, Refusal{Code::other, error.what()});
    }
    return encode_ok(request.id, Json::object());
  }

  Bytes begin(const Request& request) {
    Fields fields(request.document, request.where);
    RunOptions options;
    if (fields.has("run")) {
      Fields run(fields.object("run"), request.where + ": run");
      options.poison = run.has("poison") && run.flag("poison");
    }
    const std::string name = fields.has("case") ? fields.text("case") : "";
    guarded("begin", [&] { return backend_.begin(name, options), 0; });
    return encode_ok(request.id, Json::object());
  }

  Bytes together(const Request& request) {
    Fields fields(request.document, request.where);
    std::vector<LaneStep> steps;
    for (const auto& step : fields.array("steps")) steps.push_back(read_step(step, fmt::format("{}: step {}", request.where, steps.size())));
    std::vector<LaneCall> calls;
    for (const LaneStep& step : steps) calls.push_back({step.lane, &step.call});
    return encode_replies(request.id, guarded(request.op, [&] {
                            auto replies = backend_.together(calls);
                            for (const Reply& reply : replies) require_whole(reply);
                            return replies;
                          }));
  }

  static LaneStep read_step(const nlohmann::json& document, const std::string& where) {
    Fields fields(document, where);
    const std::int64_t lane = fields.maybe_integer("lane").value_or(0);
    if (lane < 0 || lane >= kMostLanes) throw DataError({where, fmt::format("lane is {}", lane), fmt::format("0 to {}", kMostLanes - 1), ""});
    return {static_cast<std::size_t>(lane), call_from_json(document, where)};
  }

  Backend& backend_;
  int in_, out_;
  std::uint64_t most_reply_bytes_ = BackendLimits{}.most_message_bytes;
  bool closed_ = false;
};

}  // namespace

void serve_pipe(Backend& backend, int in, int out) { Server(backend, in, out).run(); }

}  // namespace kvproof::harness
