// A backend for tests that breaks the pipe protocol on purpose: `misbehaving_child MODE [OP[:N]]` behaves until the N-th request
// with that op (default: the first `length`) and then does what MODE says. It shares no code with the harness, does no
// arithmetic, and starts fast.
#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

std::string g_mode = "none", g_op = "length";
int g_nth = 1;
int g_opened = 0;  // what `length` answers after "opened"

[[noreturn]] void hang() {
  while (true) ::pause();
}

void write_raw(const std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t count = ::write(1, bytes.data() + done, bytes.size() - done);
    if (count <= 0) std::_Exit(99);
    done += static_cast<std::size_t>(count);
  }
}

bool read_raw(char* to, std::size_t size) {
  for (std::size_t done = 0; done < size;) {
    const ssize_t count = ::read(0, to + done, size - done);
    if (count <= 0) return false;
    done += static_cast<std::size_t>(count);
  }
  return true;
}

std::string with_length(const std::string& header) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header;
}

/// A message: the document's quotes are escaped once more, for it is a string inside a JSON header.
std::string message(const std::string& document, const std::string& entry = "", const std::string& data = "") {
  std::string escaped;
  for (const char c : document) escaped += c == '"' ? std::string("\\\"") : std::string(1, c);
  std::string header = "{\"__metadata__\":{\"kvproof\":\"" + escaped + "\"}" + (entry.empty() ? "" : "," + entry) + "}";
  header.append((8 - header.size() % 8) % 8, ' ');
  return with_length(header) + data;
}

struct Request {
  std::uint64_t id = 0;
  std::string op, text;
};

std::string after(const std::string& text, const char* mark, const char* end) {
  const auto at = text.find(mark);
  if (at == std::string::npos) return "";
  const auto start = at + std::strlen(mark);
  return text.substr(start, text.find_first_of(end, start) - start);
}

Request parse(const std::string& text) {
  return {std::strtoull(after(text, "\\\"id\\\":", ",}").c_str(), nullptr, 10), after(text, "\\\"op\\\":\\\"", "\\"), text};
}

bool next_request(Request& request) {
  std::uint64_t length = 0;
  if (!read_raw(reinterpret_cast<char*>(&length), 8)) return false;
  if (g_mode == "early" && length > 65536) {  // takes no more than the beginning
    std::string text(100, '\0');
    if (!read_raw(text.data(), text.size())) return false;
    request = parse(text);
    return true;
  }
  std::string text(length, '\0');
  if (!read_raw(text.data(), length)) return false;
  request = parse(text);
  return true;
}

int open_descriptors() {
  int count = 0;
  DIR* folder = ::opendir("/proc/self/fd");
  while (folder != nullptr && ::readdir(folder) != nullptr) ++count;
  if (folder != nullptr) ::closedir(folder);
  return count - 3;  // ".", ".." and the folder's own
}

std::string hello(int major) {
  return "{\"protocol\":[" + std::to_string(major) +
         ",0],\"name\":\"misbehaving\",\"version\":\"1\",\"capabilities\":{\"kinds\":[\"dynamic\"],"
         "\"ops\":[\"new\",\"forward\",\"length\",\"together\"],\"codes\":true,\"threads\":" + (g_mode == "threads" ? "true" : "false") + "}}";
}

std::string logits_entry(const char* dtype, int bytes) {
  return std::string("\"logits\":{\"dtype\":\"") + dtype + "\",\"shape\":[1,1,2],\"data_offsets\":[0," + std::to_string(bytes) + "]}";
}

std::string ok_text(const Request& request) {
  if (request.op == "hello") return hello(1);
  if (request.op == "length" && g_mode == "descriptors") return "{\"length\":" + std::to_string(open_descriptors()) + "}";
  if (request.op == "length" || request.op == "new") return "{\"length\":" + std::to_string(g_opened) + "}";
  return "{}";
}

std::string good_reply(const Request& request, const std::string& id) {
  const std::string document = "{\"id\":" + id + ",\"ok\":" + ok_text(request) + "}";
  if (request.op != "forward") return message(document);
  const float values[2] = {0.5F, g_mode == "nan" ? __builtin_nanf("") : -1.0F};
  return message(document, logits_entry("F32", 8), std::string(reinterpret_cast<const char*>(values), 8));
}

std::string good_reply(const Request& request) { return good_reply(request, std::to_string(request.id)); }

void crash() {
  const rlimit none{0, 0};
  ::setrlimit(RLIMIT_CORE, &none);
  std::signal(SIGSEGV, SIG_DFL);
  ::raise(SIGSEGV);
}

void slowly(const std::string& bytes, useconds_t pause) {
  for (const char c : bytes) {
    write_raw(std::string(1, c));
    ::usleep(pause);
  }
}

/// A child of ours that keeps all pipes open for a long time.
void leave_grandchild() {
  const pid_t grandchild = ::fork();
  if (grandchild == 0) ::sleep(1000), std::_Exit(0);
  std::fprintf(stderr, "grandchild %d\n", static_cast<int>(grandchild));
}

void shout() {
  const std::string line(99, 'x');
  for (int i = 0; i < 50'000; ++i) std::fprintf(stderr, "%s\n", line.c_str());
  std::fprintf(stderr, "the last line\n");
}

std::string document(const Request& request, const char* rest) { return "{\"id\":" + std::to_string(request.id) + "," + rest + "}"; }

/// Replies that are whole messages and yet wrong.
bool reply_badly(const Request& request) {
  const std::pair<const char*, const char*> documents[] = {
      {"two_kinds", "\"ok\":{},\"error\":{\"code\":\"capacity\",\"message\":\"\"}"},
      {"no_kind", "\"length\":3"},
      {"wrong_type", "\"ok\":{\"length\":\"three\"}"},
      {"ok_is_true", "\"ok\":true"},
      {"error", "\"error\":{\"code\":\"capacity\",\"message\":\"full\"}"},
      {"unknown_code", "\"error\":{\"code\":\"too_blue\",\"message\":\"no\"}"},
      {"unsupported", "\"unsupported\":{\"reason\":\"not here\"}"},
      {"unknown_fields", "\"ok\":{\"length\":3,\"colour\":\"blue\"},\"seconds\":0.5"},
  };
  for (const auto& [mode, text] : documents)
    if (g_mode == mode) return write_raw(message(document(request, text))), true;
  if (g_mode == "other_major") return write_raw(message(document(request, ("\"ok\":" + hello(2)).c_str()))), true;
  if (g_mode == "integer_logits") return write_raw(message(document(request, "\"ok\":{}"), logits_entry("I64", 16), std::string(16, '\0'))), true;
  if (g_mode == "not_json") return write_raw(message("{\"id\":")), true;
  if (g_mode == "many_rows")
    return write_raw(message(document(request, "\"ok\":{}"), "\"ids\":{\"dtype\":\"I64\",\"shape\":[1152921504606846976,0],\"data_offsets\":[0,0]}")), true;
  if (g_mode == "wrong_id") return write_raw(good_reply(request, "7")), true;
  return false;
}

void break_the_pipe(const Request& request) {
  const std::string reply = good_reply(request);
  if (g_mode == "crash") crash();
  if (g_mode == "exit0") std::_Exit(0);
  if (g_mode == "exit3") std::fputs("cannot go on\n", stderr), std::_Exit(3);
  if (g_mode == "hang") hang();
  if (g_mode == "close_output") ::close(1), hang();
  if (g_mode == "truncated_header") write_raw(reply.substr(0, 20)), std::_Exit(0);
  if (g_mode == "truncated_blob") write_raw(reply.substr(0, reply.size() - 2)), std::_Exit(0);
  if (g_mode == "half_and_hang") write_raw(reply.substr(0, 20)), hang();
  if (g_mode == "giant_length") write_raw(std::string("\xff\xff\xff\xff\xff\xff\xff\x0f", 8)), hang();
  if (g_mode == "giant_tensor") write_raw(with_length("{\"logits\":{\"dtype\":\"F32\",\"shape\":[1099511627776],\"data_offsets\":[0,4398046511104]}}")), hang();
  if (g_mode == "noise") write_raw("Loading model weights: 100%\n" + reply);
  if (g_mode == "twice") write_raw(reply + reply);
  if (g_mode == "unasked") write_raw(reply), ::usleep(20'000), write_raw(good_reply(request, std::to_string(request.id + 1)));
  if (g_mode == "slow") slowly(reply, 500);
  if (g_mode == "too_slow") slowly(reply, 100'000);
  if (g_mode == "grandchild") leave_grandchild(), std::_Exit(0);
  if (g_mode == "grandchild_and_reply") leave_grandchild(), write_raw(reply);
  if (g_mode == "shout") shout(), write_raw(reply);
  if (g_mode == "shout_and_crash") shout(), crash();
}

bool is_the_moment(const Request& request) { return request.op == g_op && --g_nth == 0; }

bool writes_itself() {
  for (const char* mode : {"noise", "twice", "unasked", "slow", "too_slow", "grandchild_and_reply", "shout"})
    if (g_mode == mode) return true;
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1) g_mode = argv[1];
  if (argc > 2) g_op = argv[2];
  if (const auto colon = g_op.find(':'); colon != std::string::npos) g_nth = std::atoi(g_op.c_str() + colon + 1), g_op.resize(colon);
  if (g_mode == "deaf") hang();
  Request request;
  while (next_request(request)) {
    if (request.op == "open") ++g_opened;
    const bool now = is_the_moment(request);
    if (now && reply_badly(request)) continue;
    if (now) break_the_pipe(request);
    if (now && g_mode == "deaf_later") write_raw(good_reply(request)), hang();
    if (!(now && writes_itself())) write_raw(good_reply(request));
    if (request.op == "close") return 0;
  }
  return 0;
}
