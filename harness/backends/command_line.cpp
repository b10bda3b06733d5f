#include "harness/backends/command_line.hpp"

#include <fmt/format.h>

#include "engine/base/error.hpp"

namespace kvproof::harness {
namespace {

class Splitter {
 public:
  explicit Splitter(std::string_view command) : command_(command) {}

  std::vector<std::string> words() {
    while (at_ < command_.size()) take(command_[at_++]);
    end_word();
    if (words_.empty()) fail("no word", "a command and its arguments");
    return std::move(words_);
  }

 private:
  void take(char c) {
    if (c == ' ' || c == '\t' || c == '\n') return end_word();
    in_word_ = true;  // '' is a word too
    if (c == '\'') return single_quoted();
    if (c == '"') return double_quoted();
    word_ += c == '\\' ? next("a character behind the last backslash") : c;
  }

  void single_quoted() {
    for (char c = next("a closing '"); c != '\''; c = next("a closing '")) word_ += c;
  }

  // Between double quotes a backslash keeps its own meaning only before " \ $ and `, as in a shell.
  void double_quoted() {
    for (char c = next("a closing \""); c != '"'; c = next("a closing \"")) {
      if (c == '\\' && at_ < command_.size() && std::string_view("\"\\$`").find(command_[at_]) != std::string_view::npos) c = command_[at_++];
      word_ += c;
    }
  }

  char next(const char* expected) {
    if (at_ == command_.size()) fail("its end", expected);
    return command_[at_++];
  }

  void end_word() {
    if (in_word_) words_.push_back(std::move(word_));
    word_.clear();
    in_word_ = false;
  }

  [[noreturn]] void fail(const char* found, const char* expected) const {
    throw Error({fmt::format("command \"{}\"", command_), fmt::format("found {}", found), expected, ""});
  }

  std::string_view command_;
  std::size_t at_ = 0;
  bool in_word_ = false;
  std::string word_;
  std::vector<std::string> words_;
};

}  // namespace

std::vector<std::string> split_command(std::string_view command) { return Splitter(command).words(); }

}  // namespace kvproof::harness
