#include "harness/backends/exec_backend.hpp"

#include <fmt/format.h>

#include <csignal>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "harness/backends/child_groups.hpp"
#include "harness/backends/child_process.hpp"
#include "harness/backends/command_line.hpp"
#include "harness/backends/pipe_reply.hpp"

namespace kvproof::harness {
namespace {

using namespace std::chrono_literals;
using Json = nlohmann::ordered_json;

constexpr auto kGrace = 2s;      // for a child that was told to close
constexpr auto kLastWords = 5s;  // for a child that closed its output: an interpreter takes its time to end
constexpr const char* kPage = "Does the command speak the pipe protocol (docs/pipe_protocol.md)?";

/// A message to the child and how to name it.
struct Request {
  std::uint64_t id = 0;
  std::string op;
  std::vector<std::byte> bytes;

  [[nodiscard]] std::string name() const { return fmt::format("{} (request {})", op, id); }
};

void ignore_sigpipe() {
  struct sigaction present {};
  if (::sigaction(SIGPIPE, nullptr, &present) == 0 && present.sa_handler == SIG_DFL) std::signal(SIGPIPE, SIG_IGN);
}

/// Why a child is of no more use, and what it said on its standard error.
struct Broken {
  std::string kind, what, tail;
  [[nodiscard]] Breakdown breakdown() const { return {kind, tail.empty() ? what : fmt::format("{}. {}", what, tail)}; }
};

std::string seconds_text(std::chrono::milliseconds time) { return fmt::format("{:g} s", static_cast<double>(time.count()) / 1000); }

std::string tail_text(const std::string& tail) {
  const auto end = tail.find_last_not_of(" \n\r\t");
  return end == std::string::npos ? "Its standard error is empty" : fmt::format("Its standard error ends with:\n{}", tail.substr(0, end + 1));
}

std::string progress_text(const MessageFrame& frame) {
  if (frame.received() == 0) return "";
  const std::string whole = frame.expected() ? fmt::format("{}", *frame.expected()) : "at least " + std::to_string(frame.received() + 1);
  return fmt::format(", {} of {} bytes into its reply", frame.received(), whole);
}

class ExecBackend : public Backend {
 public:
  ExecBackend(const std::string& command, const BackendLimits& limits) : where_("--backend exec:" + command), limits_(limits) {
    ignore_sigpipe();
    end_children_with_us();
    try {
      words_ = split_command(command);
    } catch (const Error& error) {
      throw NoBackend({"--backend", error.what(), "", ""});
    }
    start_child();
  }

  ~ExecBackend() override {
    try {
      close();
    } catch (const std::exception&) {
      // Nothing to do: the child is killed next.
    }
  }

  [[nodiscard]] const Capabilities& capabilities() const override { return capabilities_; }

  void open(const std::string& model, const std::filesystem::path& folder) override {
    models_.insert_or_assign(model, std::filesystem::absolute(folder));
    if (child_) return open_in_child(model);
    restart();
  }

  void forget(const std::string& model) override { models_.erase(model); }

  void begin(const std::string& name, const RunOptions& options) override {
    const bool fresh = !child_ || fresh_;
    if (!child_) restart();
    fresh_ = false;
    Json run = Json::object();
    if (options.poison && capabilities_.poison) run["poison"] = true;
    const auto broken = tell(request("begin", {{"case", name}, {"run", run}}));
    if (broken && fresh) no_backend(*broken);
    last_broken_ = broken.value_or(Broken{"crashed", "no process is left: it broke down earlier in this case", ""});
  }

  Reply call(const Call& call, std::size_t lane) override {
    const std::uint64_t id = next_id_++;
    const Request request{id, std::string(op_name(call)), encode_call(id, {lane, &call})};
    if (request.bytes.size() > limits_.most_message_bytes) return too_large(request);
    Reply reply = Answer{};
    const auto broken = ask(request, [&](const PipeMessage& message, const std::string& where) { reply = decode_reply(message, id, where); });
    return broken ? broken->breakdown() : reply;
  }

  std::vector<Reply> together(std::span<const LaneCall> calls) override {
    if (!capabilities_.threads) return Backend::together(calls);
    const std::uint64_t id = next_id_++;
    const Request request{id, "together", encode_together(id, calls)};
    if (request.bytes.size() > limits_.most_message_bytes) return std::vector<Reply>(calls.size(), too_large(request));
    std::vector<Reply> replies;
    const auto broken =
        ask(request, [&](const PipeMessage& message, const std::string& where) { replies = decode_replies(message, id, calls.size(), where); });
    return broken ? std::vector<Reply>(calls.size(), broken->breakdown()) : replies;
  }

 private:
  using Understand = std::function<void(const PipeMessage&, const std::string& where)>;

  Request request(const char* op, const Json& fields) {
    const std::uint64_t id = next_id_++;
    return {id, op, encode_request(id, op, fields)};
  }

  [[nodiscard]] Unsupported too_large(const Request& request) const {
    return {fmt::format("{} takes {} bytes, a message holds at most {}", request.name(), request.bytes.size(), limits_.most_message_bytes)};
  }

  [[noreturn]] void no_backend(const Broken& broken) const {
    throw NoBackend({where_, fmt::format("{}. {} {}", broken.what, kPage, broken.tail), "", ""});
  }

  void start_child() {
    try {
      child_.emplace(ChildProcess::start(words_));
    } catch (const Error& error) {
      throw NoBackend({where_, error.what(), "", "Is the command installed, and found in PATH?"});
    }
    fresh_ = true;
    const Request hello = request("hello", {{"protocol", {1, 0}}, {"limits", {{"message_bytes", limits_.most_message_bytes}}}});
    const auto broken = ask(hello, [&](const PipeMessage& message, const std::string& where) { capabilities_ = decode_hello(message, hello.id, where); });
    if (broken) no_backend(*broken);
  }

  void restart() {
    if (restarts_ == limits_.max_restarts)
      throw NoBackend({where_, fmt::format("it broke down {} times", restarts_ + 1), fmt::format("at most {}", limits_.max_restarts),
                       "--max-restarts N allows more."});
    ++restarts_;
    start_child();
    for (const auto& [model, folder] : models_) open_in_child(model);
  }

  void open_in_child(const std::string& model) {
    if (const auto broken = tell(request("open", {{"model", model}, {"folder", models_.at(model).string()}}))) no_backend(*broken);
  }

  void close() {
    if (!child_) return;
    MessageFrame reply(limits_.most_message_bytes, "close");
    const auto deadline = Clock::now() + kGrace;
    const Request bye = request("close", Json::object());
    (void)child_->exchange(bye.bytes, reply, deadline);
    (void)child_->finish(deadline);
  }

  /// A request whose reply says no more than ok; anything else ends the run, for there is no call to blame.
  std::optional<Broken> tell(const Request& request) {
    Reply reply = Answer{};
    auto broken = ask(request, [&](const PipeMessage& message, const std::string& where) { reply = decode_reply(message, request.id, where); });
    if (const auto* refusal = std::get_if<Refusal>(&reply)) no_backend({"", fmt::format("it refused {}: {}", request.name(), refusal->message), ""});
    if (const auto* unsupported = std::get_if<Unsupported>(&reply))
      no_backend({"", fmt::format("it does not support {}: {}", request.name(), unsupported->reason), ""});
    return broken;
  }

  /// Sends one request and lets `understand` take the reply. Whatever goes wrong on the way is a breakdown and ends the child.
  std::optional<Broken> ask(const Request& request, const Understand& understand) {
    if (!child_) return last_broken_;
    const std::string where = "the reply to " + request.name();
    try {
      if (const auto noise = child_->unasked(); !noise.empty())
        throw DataError({fmt::format("before {}", request.name()), fmt::format("{} bytes it was not asked for", noise.size()), "", printed_hint(noise)});
      MessageFrame frame(limits_.most_message_bytes, where);
      const Ending ending = child_->exchange(request.bytes, frame, Clock::now() + limits_.timeout);
      if (ending == Ending::ended) return crashed(request, frame);
      if (ending == Ending::late) return timed_out(request, frame);
      require_nothing_else(frame, where);
      understand(decode_message(frame.take(), where), where);
      return std::nullopt;
    } catch (const DataError& error) {
      return broken("protocol_error", fmt::format("{}{} process was killed", error.what(), error.complaint().next.empty() ? "; the" : " The"));
    }
  }

  void require_nothing_else(const MessageFrame& frame, const std::string& where) const {
    if (!child_->sent()) throw DataError({where, "it came before the request had been read", "", ""});
    if (frame.surplus() != 0) throw DataError({where, fmt::format("{} bytes follow it", frame.surplus()), "one reply to one request", ""});
  }

  Broken crashed(const Request& request, const MessageFrame& frame) {
    const std::string how = child_->finish(Clock::now() + kLastWords);
    return broken("crashed", fmt::format("the process {} while it was asked for {}{}", how.starts_with("did not") ? "closed its standard output, " + how : how,
                                         request.name(), progress_text(frame)));
  }

  Broken timed_out(const Request& request, const MessageFrame& frame) {
    return broken("timed_out", fmt::format("no whole reply to {} within {}{}; the process was killed", request.name(), seconds_text(limits_.timeout),
                                           progress_text(frame)));
  }

  /// Ends the child, if it still runs, and keeps why.
  Broken broken(const char* kind, const std::string& what) {
    (void)child_->finish(Clock::now());
    last_broken_ = {kind, what, tail_text(child_->stderr_tail())};
    child_.reset();
    return last_broken_;
  }

  std::string where_;
  BackendLimits limits_;
  std::vector<std::string> words_;
  std::optional<ChildProcess> child_;
  Capabilities capabilities_;
  std::map<std::string, std::filesystem::path> models_;  // what the next child opens, too
  std::uint64_t next_id_ = 1001;  // not 1: a child that counts its own replies instead of echoing is found out
  std::size_t restarts_ = 0;
  bool fresh_ = false;            // nothing but hello and open has been asked of this child
  Broken last_broken_;            // what a call gets that has no child to go to
};

}  // namespace

std::unique_ptr<Backend> make_exec_backend(const std::string& command, const BackendLimits& limits) {
  return std::make_unique<ExecBackend>(command, limits);
}

}  // namespace kvproof::harness
