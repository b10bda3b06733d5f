#include "harness/backends/exec_backend.hpp"

#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/wait.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <thread>

namespace {

namespace kh = kvproof::harness;
using namespace std::chrono_literals;
using std::chrono::steady_clock;

/// A child that does MODE at its first `length`, or at the op that `arguments` name.
std::string child(const std::string& arguments) { return fmt::format("'{}' {}", KVPROOF_MISBEHAVING_CHILD, arguments); }

kh::BackendLimits limits(std::chrono::milliseconds timeout = 20s) { return {timeout, 3, std::size_t{1} << 20U}; }

std::unique_ptr<kh::Backend> started(const std::string& arguments, const kh::BackendLimits& granted = limits()) {
  auto backend = kh::make_exec_backend(child(arguments), granted);
  backend->open("main", "/some/folder");
  backend->begin("a case", {});
  return backend;
}

const kh::Call kLength = kh::Length{"a"};
const kh::Call kForward = kh::Forward{.cache = "a", .input_ids = {{1}}};

std::string broken_text(const kh::Reply& reply) {
  const auto* broken = std::get_if<kh::Breakdown>(&reply);
  return broken == nullptr ? "no breakdown" : broken->kind + ": " + broken->message;
}

std::string no_backend_text(const auto& act) {
  try {
    act();
  } catch (const kh::NoBackend& error) {
    return error.what();
  }
  return "no error";
}

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::int64_t length_of(kh::Backend& backend) { return std::get<kh::Answer>(backend.call(kLength, 0)).length.value(); }

bool runs_now(int pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text{std::istreambuf_iterator<char>(stat), {}};
  const auto state = text.rfind(") ");
  return state != std::string::npos && text[state + 2] != 'Z';
}

/// True for a process that still runs after a while; a zombie does not.
bool runs(int pid) {
  const auto deadline = steady_clock::now() + 5s;
  while (runs_now(pid) && steady_clock::now() < deadline) std::this_thread::sleep_for(1ms);  // a kill takes its time
  return runs_now(pid);
}

/// Descriptors of ours that every child inherits: the three standard ones, and what our own parent left open.
std::int64_t inherited() {
  std::int64_t count = 0;
  for (int number = 0; number < 1024; ++number) {
    const int flags = ::fcntl(number, F_GETFD);
    count += flags >= 0 && (flags & FD_CLOEXEC) == 0 ? 1 : 0;
  }
  return count;
}

std::ptrdiff_t descriptors() { return std::distance(std::filesystem::directory_iterator("/proc/self/fd"), std::filesystem::directory_iterator()); }

BOOST_AUTO_TEST_SUITE(exec_backend)

struct Misdeed {
  const char* arguments;
  const char* kind;                // of the breakdown
  std::vector<const char*> words;  // the message holds them
};

const Misdeed kMisdeeds[] = {
    {"crash", "crashed", {"was killed by signal 11 (", "asked for length (request 10"}},
    {"exit0", "crashed", {"exited with code 0", "Its standard error is empty"}},
    {"exit3", "crashed", {"exited with code 3", "Its standard error ends with:\ncannot go on"}},
    {"truncated_header", "crashed", {"exited with code 0", "20 of at least 21 bytes into its reply"}},
    {"truncated_blob", "crashed", {"exited with code 0", " bytes into its reply"}},
    {"grandchild", "crashed", {"exited with code 0", "grandchild "}},
    {"shout_and_crash", "crashed", {"was killed by signal 11", "the last line"}},
    {"giant_length", "protocol_error", {"a header of 1152921504606846975 bytes, expected at most 1048576"}},
    {"giant_tensor", "protocol_error", {"4398046511104 data bytes, expected at most 1048576 in all"}},
    {"wrong_id", "protocol_error", {"the reply to length", "it has id 7, expected 10", "the request's"}},
    {"twice", "protocol_error", {"bytes follow it, expected one reply to one request"}},
    {"noise", "protocol_error", {"\"Loading model weights: 100%\"", "does something print to standard output?"}},
    {"two_kinds", "protocol_error", {"it holds ok and error, expected exactly one"}},
    {"no_kind", "protocol_error", {"it holds none, expected exactly one"}},
    {"wrong_type", "protocol_error", {"field \"length\" is \"three\", expected a 64-bit integer"}},
    {"ok_is_true", "protocol_error", {"field \"ok\" is true, expected a JSON object"}},
    {"integer_logits", "protocol_error", {"tensor logits is I64, expected F32"}},
    {"many_rows", "protocol_error", {"tensor ids has shape [1152921504606846976, 0]"}},
    {"not_json", "protocol_error", {"expected one JSON text"}},
};

BOOST_AUTO_TEST_CASE(each_misdeed_is_a_breakdown_in_words) {
  for (const Misdeed& misdeed : kMisdeeds) {
    const auto before = steady_clock::now();
    const auto backend = started(misdeed.arguments);
    const std::string text = broken_text(backend->call(kLength, 0));
    BOOST_TEST(text.starts_with(std::string(misdeed.kind) + ": "), misdeed.arguments << ": " << text);
    for (const char* word : misdeed.words) BOOST_TEST(holds(text, word), misdeed.arguments << ": \"" << word << "\" is not in: " << text);
    BOOST_TEST((steady_clock::now() - before < 10s), misdeed.arguments);
    BOOST_TEST(!holds(text, "no breakdown"));
  }
}

BOOST_AUTO_TEST_CASE(silence_is_timed_out_and_says_how_far_the_reply_came) {
  const std::pair<const char*, const char*> cases[] = {
      {"hang", "timed_out: no whole reply to length (request 1004) within 3 s; the process was killed"},
      {"half_and_hang", "within 3 s, 20 of at least 21 bytes into its reply"},
      {"too_slow", "within 3 s, "},
  };
  for (const auto& [mode, words] : cases) {
    const auto backend = started(mode, limits(3s));
    const std::string text = broken_text(backend->call(kLength, 0));
    BOOST_TEST(holds(text, words), text);
    BOOST_TEST(text.starts_with("timed_out: "), text);
  }
}

BOOST_AUTO_TEST_CASE(closing_the_output_and_staying_is_a_crash) {
  const auto backend = started("close_output");
  const std::string text = broken_text(backend->call(kLength, 0));
  BOOST_TEST(text.starts_with("crashed: the process closed its standard output, did not end and was killed"), text);
}

BOOST_AUTO_TEST_CASE(a_reply_nobody_asked_for_is_seen_before_a_later_request) {
  const auto backend = started("unasked");
  std::string text = "no breakdown";
  for (int calls = 0; calls < 3 && text == "no breakdown"; ++calls) {  // the second reply comes when it comes
    text = broken_text(backend->call(kLength, 0));
    std::this_thread::sleep_for(100ms);
  }
  BOOST_TEST(text.starts_with("protocol_error: "), text);
  BOOST_TEST((holds(text, "bytes it was not asked for") || holds(text, "bytes follow it")), text);
}

BOOST_AUTO_TEST_CASE(a_slow_reply_in_time_is_a_reply) {
  const auto backend = started("slow");
  BOOST_TEST(length_of(*backend) == 1);
}

BOOST_AUTO_TEST_CASE(a_flood_on_standard_error_neither_blocks_nor_piles_up) {
  const auto backend = started("shout");
  BOOST_TEST(length_of(*backend) == 1);
  const auto crashing = started("shout_and_crash");
  BOOST_TEST(broken_text(crashing->call(kLength, 0)).size() < 2500U);
}

kh::Call large_forward() {
  kh::Forward forward{.cache = "a", .input_ids = {std::vector<std::int64_t>(100'000, 7)}};
  return forward;
}

BOOST_AUTO_TEST_CASE(a_child_that_does_not_read_does_not_block_us) {
  const auto backend = started("deaf_later begin", limits(3s));
  BOOST_TEST(broken_text(backend->call(large_forward(), 0)).starts_with("timed_out: no whole reply to forward"));
}

BOOST_AUTO_TEST_CASE(an_answer_before_the_question_was_read_is_no_answer) {
  const auto backend = started("early");
  const std::string text = broken_text(backend->call(large_forward(), 0));
  BOOST_TEST(holds(text, "protocol_error: the reply to forward (request 1004): it came before the request had been read"), text);
}

BOOST_AUTO_TEST_CASE(a_large_request_is_read_whole_by_a_child_that_listens) {
  const auto backend = started("none");
  BOOST_TEST(std::holds_alternative<kh::Answer>(backend->call(large_forward(), 0)));
}

BOOST_AUTO_TEST_CASE(a_request_above_the_cap_is_not_supported_and_costs_no_child) {
  auto granted = limits();
  granted.most_message_bytes = 100'000;
  const auto backend = started("none", granted);
  const auto reply = backend->call(large_forward(), 0);
  BOOST_TEST(holds(std::get<kh::Unsupported>(reply).reason, "a message holds at most 100000"));
  BOOST_TEST(length_of(*backend) == 1);
}

BOOST_AUTO_TEST_CASE(a_nan_is_an_answer_like_any_other) {
  const auto backend = started("nan");
  const auto answer = std::get<kh::Answer>(backend->call(kForward, 0));
  BOOST_TEST((answer.logits->shape == std::vector<std::size_t>{1, 1, 2}));
  BOOST_TEST(answer.logits->values[0] == 0.5);
  BOOST_TEST(std::isnan(answer.logits->values[1]));
}

BOOST_AUTO_TEST_CASE(refusals_and_what_is_not_supported_pass_through) {
  const auto refused = std::get<kh::Refusal>(started("error")->call(kLength, 0));
  BOOST_TEST((refused.code == kh::Code::capacity));
  BOOST_TEST(refused.message == "full");
  const auto strange = std::get<kh::Refusal>(started("unknown_code")->call(kLength, 0));
  BOOST_TEST((strange.code == kh::Code::other));
  BOOST_TEST(strange.message == "unknown code \"too_blue\": no");
  BOOST_TEST(std::get<kh::Unsupported>(started("unsupported")->call(kLength, 0)).reason == "not here");
}

BOOST_AUTO_TEST_CASE(fields_we_do_not_know_are_ignored) { BOOST_TEST(length_of(*started("unknown_fields")) == 3); }

BOOST_AUTO_TEST_CASE(a_grandchild_that_holds_the_pipes_is_killed_with_its_group) {
  const auto backend = started("grandchild");
  const auto before = steady_clock::now();
  const std::string text = broken_text(backend->call(kLength, 0));
  BOOST_TEST((steady_clock::now() - before < 5s));
  const auto at = text.find("grandchild ");
  BOOST_REQUIRE(at != std::string::npos);
  BOOST_TEST(!runs(std::stoi(text.substr(at + 11))));
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(exec_backend_restarts)

BOOST_AUTO_TEST_CASE(the_next_case_gets_a_new_child_with_the_same_models) {
  const auto backend = started("crash length:2");
  backend->open("other", "/another/folder");
  BOOST_TEST(length_of(*backend) == 2);
  BOOST_TEST(broken_text(backend->call(kLength, 0)).starts_with("crashed: "));
  BOOST_TEST(holds(broken_text(backend->call(kLength, 0)), "crashed: "));  // no child, no answer until begin
  backend->begin("the next case", {});
  BOOST_TEST(length_of(*backend) == 2);
}

BOOST_AUTO_TEST_CASE(a_new_child_does_not_hear_of_a_model_that_was_forgotten) {
  const auto backend = started("crash length:2");
  backend->open("other", "/another/folder");
  BOOST_TEST(length_of(*backend) == 2);
  (void)backend->call(kLength, 0);
  backend->forget("other");
  backend->begin("the next case", {});
  BOOST_TEST(length_of(*backend) == 1);
}

BOOST_AUTO_TEST_CASE(a_late_child_is_never_used_again) {
  const auto backend = started("hang", limits(3s));
  BOOST_TEST(broken_text(backend->call(kLength, 0)).starts_with("timed_out: "));
  BOOST_TEST(!std::holds_alternative<kh::Answer>(backend->call(kForward, 0)));
  backend->begin("the next case", {});
  BOOST_TEST(std::holds_alternative<kh::Answer>(backend->call(kForward, 0)));
}

BOOST_AUTO_TEST_CASE(a_child_that_dies_between_cases_costs_the_next_one) {
  const auto backend = started("crash begin:2");
  BOOST_TEST(length_of(*backend) == 1);
  backend->begin("the second case", {});
  const std::string text = broken_text(backend->call(kLength, 0));
  BOOST_TEST(text.starts_with("crashed: the process was killed by signal 11"), text);
  BOOST_TEST(holds(text, "asked for begin"), text);
  backend->begin("the third case", {});
  BOOST_TEST(length_of(*backend) == 1);
}

BOOST_AUTO_TEST_CASE(too_many_restarts_end_the_run) {
  const auto backend = started("crash");
  for (int i = 0; i < 3; ++i) {
    (void)backend->call(kLength, 0);
    backend->begin("again", {});
  }
  (void)backend->call(kLength, 0);
  const auto text = no_backend_text([&] { backend->begin("once too often", {}); });
  BOOST_TEST(holds(text, "it broke down 4 times, expected at most 3. --max-restarts N allows more."), text);
}

BOOST_AUTO_TEST_CASE(a_child_inherits_no_pipe_of_another) {
  const auto first = started("descriptors"), second = started("descriptors");
  BOOST_TEST(length_of(*first) == inherited());
  BOOST_TEST(length_of(*second) == inherited());
}

/// Restarts a child that ends at its first call, and expects our descriptors and children to be what they were.
void restart_often(int restarts) {
  kh::BackendLimits granted = limits();
  granted.max_restarts = static_cast<std::size_t>(restarts);
  const auto backend = started("exit0", granted);
  (void)backend->call(kLength, 0);
  const auto before = descriptors();
  for (int i = 0; i < restarts; ++i) {
    backend->begin("again", {});
    if (!std::holds_alternative<kh::Breakdown>(backend->call(kLength, 0))) BOOST_FAIL("no breakdown");
  }
  BOOST_TEST(descriptors() == before);
  BOOST_TEST(::waitpid(-1, nullptr, WNOHANG) == -1);  // no child of ours is left, dead or alive
}

BOOST_AUTO_TEST_CASE(restarts_leak_no_descriptor_and_leave_no_process) { restart_often(200); }

// A test of its own (slow.restarts): seconds on an idle machine, minutes on one where every wake-up has to wait.
BOOST_AUTO_TEST_CASE(ten_thousand_restarts, *boost::unit_test::disabled()) { restart_often(10'000); }

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(exec_backend_start)

BOOST_AUTO_TEST_CASE(a_command_that_cannot_be_judged_is_no_backend) {
  const std::pair<std::string, const char*> cases[] = {
      {"no-such-command --flag", "cannot start \"no-such-command\": "},
      {"/", "cannot start \"/\": Permission denied"},
      {"", "found no word"},
      {"engine 'open quote", "expected a closing '"},
      {"true", "exited with code 0 while it was asked for hello"},
      {"sh -c 'echo no licence >&2; exit 4'", "no licence"},
      {child("crash hello"), "was killed by signal 11"},
      {child("other_major hello"), "it speaks protocol [2, 0], expected [1, any]"},
      {child("error hello"), "expected ok {protocol, name, version, capabilities}"},
      {child("no_kind hello"), "expected exactly one of ok, error and unsupported"},
      {child("noise hello"), "does something print to standard output?"},
      {child("ok_is_true hello"), "expected a JSON object"},
      {"cat", "it holds none"},
  };
  for (const auto& [command, words] : cases) {
    const auto text = no_backend_text([&] { (void)kh::make_exec_backend(command, limits()); });
    BOOST_TEST(holds(text, words), command << ": " << text);
  }
}

BOOST_AUTO_TEST_CASE(a_command_that_says_nothing_is_no_backend_after_the_time_limit) {
  for (const auto& command : {child("hang hello"), child("deaf"), std::string("sleep 1000")}) {
    const auto text = no_backend_text([&] { (void)kh::make_exec_backend(command, limits(300ms)); });
    BOOST_TEST(holds(text, "no whole reply to hello (request 1001) within 0.3 s"), command << ": " << text);
  }
}

BOOST_AUTO_TEST_CASE(a_model_or_a_first_case_it_cannot_open_is_no_backend) {
  for (const char* arguments : {"error open", "unsupported open", "crash open", "crash begin", "error begin", "no_kind open"}) {
    const auto text = no_backend_text([&] { (void)started(arguments); });
    BOOST_TEST(holds(text, "--backend exec:"), arguments << ": " << text);
  }
}

BOOST_AUTO_TEST_CASE(a_spec_names_it) {
  const auto backend = kh::make_backend("exec:" + child("none"));
  BOOST_TEST(backend->capabilities().name == "misbehaving");
  BOOST_TEST(!backend->capabilities().deterministic);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
