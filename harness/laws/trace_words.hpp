#pragma once
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>

#include "harness/history/refusals.hpp"
#include "harness/trace/step.hpp"

// For the tests of this room only: a trace in words, one call a `;`.
//   new a | new a static 8 | new a sliding 8 4 | new b dynamic @other
//   feed a 12/34      rows of one-letter token ids (0-9, then a = 10 …) ; cache `-` = none
//        m=11/01 p=01/23 last none ro @other
//   clone b a | crop a 2 | gather a 10 | reset a | drop a | length a | read a 0 | save a s | load a s
//   generate 12/34 3 [dynamic | static 8 | sliding 8 4] m=… eos=5 @other
// A word `lane1` in front of a call names its lane.

namespace kvproof::harness {

inline std::int64_t letter(char c) { return c >= 'a' ? c - 'a' + 10 : c - '0'; }

inline Rows rows_in_words(const std::string& text) {
  Rows rows(1);
  for (const char c : text) {
    if (c == '/') rows.emplace_back();
    else rows.back().push_back(letter(c));
  }
  return rows;
}

class TraceWords {
 public:
  explicit TraceWords(const std::string& text) {
    std::istringstream calls(text);
    for (std::string call; std::getline(calls, call, ';');) {
      words_ = std::istringstream(call);
      add();
    }
  }
  [[nodiscard]] Trace take() { return std::move(trace_); }

 private:
  std::string word() {
    std::string text;
    words_ >> text;
    return text;
  }
  std::int64_t number() { return std::stoll(word()); }

  void add() {
    std::string op = word();
    Step step;
    if (op.starts_with("lane")) {
      step.lane = static_cast<std::size_t>(letter(op[4]));
      op = word();
    }
    step.call = call(op);
    trace_.push_back(std::move(step));
  }

  Call call(const std::string& op) {
    if (op == "new") return made();
    if (op == "feed") return fed();
    if (op == "generate") return generated();
    const std::string cache = word();
    if (op == "clone") return Clone{cache, word()};
    if (op == "crop") return Crop{cache, number()};
    if (op == "gather") return Gather{cache, rows_in_words(word()).front()};
    if (op == "reset") return Reset{cache};
    if (op == "drop") return Drop{cache};
    if (op == "length") return Length{cache};
    if (op == "read") return Read{cache, number()};
    if (op == "save") return Save{cache, word()};
    if (op == "load") return Load{cache, word()};
    throw std::invalid_argument("no call " + op);
  }

  template <typename T>
  bool kind(T& made, const std::string& text) {
    if (text == "dynamic") made.kind = "dynamic";
    else if (text == "static" || text == "sliding") {
      made.kind = text == "static" ? "static" : "static_sliding_window";
      made.capacity = number();
      if (text == "sliding") made.window = number();
    } else {
      return false;
    }
    return true;
  }

  Call made() {
    NewCache made{word(), "dynamic", std::nullopt, std::nullopt, std::nullopt};
    for (std::string text; words_ >> text;)
      if (!kind(made, text)) made.model = text.substr(1);
    return made;
  }

  Call fed() {
    Forward fed;
    if (const std::string cache = word(); cache != "-") fed.cache = cache;
    fed.input_ids = rows_in_words(word());
    for (std::string text; words_ >> text;) {
      if (text.starts_with("m=")) fed.attention_mask = rows_in_words(text.substr(2));
      else if (text.starts_with("p=")) fed.position_ids = rows_in_words(text.substr(2));
      else if (text.starts_with("@")) fed.model = text.substr(1);
      else if (text == "ro") fed.use_cache = false;
      else fed.logits = text;
    }
    return fed;
  }

  Call generated() {
    Generate made;
    made.input_ids = rows_in_words(word());
    made.max_new_tokens = number();
    for (std::string text; words_ >> text;) {
      if (text.starts_with("m=")) made.attention_mask = rows_in_words(text.substr(2));
      else if (text.starts_with("eos=")) made.eos_token_id = letter(text[4]);
      else if (text.starts_with("@")) made.model = text.substr(1);
      else if (NewCache cache; kind(cache, text)) {
        made.kind = cache.kind;
        made.capacity = cache.capacity;
        made.window = cache.window;
      } else {
        throw std::invalid_argument("generate: " + text);
      }
    }
    return made;
  }

  std::istringstream words_;
  Trace trace_;
};

inline Trace trace_of(const std::string& text) { return TraceWords(text).take(); }

/// Small models, so that every edge is near: main has 2 heads, 2 layers, 24 positions; other has 3 heads and 8 positions.
inline const std::map<std::string, ModelFacts>& small_models() {
  static const std::map<std::string, ModelFacts> kModels = {
      {"main", {.vocab_size = 20, .n_positions = 24, .n_layer = 2, .n_head = 2, .head_dim = 4}},
      {"other", {.vocab_size = 10, .n_positions = 8, .n_layer = 1, .n_head = 3, .head_dim = 4}}};
  return kModels;
}

}  // namespace kvproof::harness
