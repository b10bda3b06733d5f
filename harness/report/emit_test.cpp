#include <boost/test/unit_test.hpp>

#include <set>

#include "engine/base/error.hpp"
#include "harness/report/emit_transformers.hpp"
#include "harness/report/python_text.hpp"

namespace {

namespace kh = kvproof::harness;
using kh::Code;
using kh::FindingKind;

const std::map<std::string, kh::ModelFacts> kFacts{{"main", {.vocab_size = 17, .n_positions = 16, .n_layer = 2, .n_head = 2, .head_dim = 4}}};

kh::TraceFile file_of(std::vector<kh::Call> calls, FindingKind kind, std::optional<Code> code = std::nullopt) {
  kh::TraceFile file;
  file.models["main"] = {R"({"n_embd":8,"n_head":2,"tie_word_embeddings":true})", 7, "", ""};
  file.run.finding = kind;
  file.run.code = code;
  for (kh::Call& call : calls) file.trace.push_back({std::move(call), std::nullopt, std::nullopt, 0});
  return file;
}

std::string script(const kh::TraceFile& file) { return kh::transformers_script({file, "a.trace.json", kFacts, {}}); }

/// The statements of play(), without comments and blank lines.
std::vector<std::string> played(const std::string& text) {
  std::vector<std::string> lines;
  std::size_t at = text.find("def play(attention):\n");
  BOOST_REQUIRE(at != std::string::npos);
  for (at = text.find('\n', at) + 1; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("def ")) break;
    if (!line.empty() && !line.starts_with("    #")) lines.push_back(line.substr(4));
  }
  return lines;
}

bool says(const std::string& text, std::string_view words) { return text.find(words) != std::string::npos; }

void refused(const kh::TraceFile& file, std::string_view words) {
  BOOST_CHECK_EXCEPTION((void)script(file), kvproof::Error, [&](const auto& error) {
    BOOST_TEST_MESSAGE(error.what());
    return says(error.what(), words) && dynamic_cast<const kvproof::DataError*>(&error) == nullptr;
  });
}

const kh::NewCache kDynamic{"a", "dynamic", {}, {}, {}};
const kh::Forward kPrefill{.cache = "a", .input_ids = {{4, 9, 6}}};
const kh::Forward kShortMask{.cache = "a", .input_ids = {{7}}, .attention_mask = kvproof::Rows{{1}}};

BOOST_AUTO_TEST_SUITE(python_text)

BOOST_AUTO_TEST_CASE(any_bytes_make_a_string_of_ascii) {
  BOOST_TEST(kh::python_string("a\"b\\c\n\xC3\xA9") == R"("a\"b\\c\x0a\xc3\xa9")");
}

BOOST_AUTO_TEST_CASE(a_comment_stays_in_its_line_and_a_docstring_open) { BOOST_TEST(kh::python_words("a\nb\"\"\"c\\d") == "a b'''c d"); }

BOOST_AUTO_TEST_CASE(a_document_becomes_a_literal) {
  BOOST_TEST(kh::python_literal(R"({"a": true, "b": [1, 2.5, null], "c": {"d": "e"}})", 0) == R"({"a": True, "b": [1, 2.5, None], "c": {"d": "e"}})");
  BOOST_TEST(kh::python_literal(R"({"a": 1e-05, "b": {}})", 2) == "{\n  \"a\": 1e-05,\n  \"b\": {},\n}");
  BOOST_TEST(kh::python_literal("{}", 4) == "{}");
}

BOOST_AUTO_TEST_CASE(names_stay_apart) {
  std::set<std::string> names;
  for (const char* name : {"a.b", "a-b", "a_b", "a__b", "a_2eb", "a b", "", "\xC3\xA9", "def"}) {
    const std::string made = kh::python_name("cache_", name);
    BOOST_TEST(made.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == std::string::npos, made);
    BOOST_TEST(names.insert(made).second, made);
  }
}

BOOST_AUTO_TEST_SUITE_END()
BOOST_AUTO_TEST_SUITE(emit_transformers)

BOOST_AUTO_TEST_CASE(the_same_file_gives_the_same_bytes) {
  const kh::TraceFile file = file_of({kDynamic, kPrefill, kShortMask}, FindingKind::accepts_misuse, Code::mask_length);
  BOOST_TEST(script(file) == script(file));
  BOOST_TEST(!says(script(file), "kvproof."));  // nothing of ours is imported
}

BOOST_AUTO_TEST_CASE(a_misuse_is_said_in_the_contracts_words_and_ends_the_play) {
  const std::string text = script(file_of({kDynamic, kPrefill, kShortMask, kh::Length{"a"}}, FindingKind::accepts_misuse, Code::mask_length));
  BOOST_TEST(text.starts_with("\"\"\"accepts_misuse mask_length: Transformers carries out a call that it should refuse.\n"));
  BOOST_TEST(says(text, "    # A misuse: mask_length (cache 3, new 1, mask 1, expected 4).\n"));
  const std::vector<std::string> expected{
      "model_main = make_model(MODEL_main, attention, torch.float32)",
      "cache_a = DynamicCache(config=model_main.config)",
      "logits_1 = model_main(input_ids=ids([[4, 9, 6]]), past_key_values=cache_a, use_cache=True).logits",
      "with must_refuse(2, \"accepts_misuse\"):",
      "    model_main(input_ids=ids([[7]]), attention_mask=ids([[1]]), past_key_values=cache_a, use_cache=True).logits",
  };
  BOOST_TEST(played(text) == expected, boost::test_tools::per_element());
  for (const char* unused : {"recompute", "state_of", "import inspect", "import io", "StaticCache", "torch.float64", "ATOL"}) BOOST_TEST(!says(text, unused), unused);
}

BOOST_AUTO_TEST_CASE(wrong_logits_are_held_against_a_recompute_of_the_whole_history) {
  const kh::Forward padded{.cache = "a", .input_ids = {{0, 9}, {4, 9}}, .attention_mask = kvproof::Rows{{0, 1}, {1, 1}}};
  const kh::Forward hides{.cache = "a", .input_ids = {{5}, {5}}, .attention_mask = kvproof::Rows{{0, 1, 1}, {0, 1, 1}}, .logits = "last"};
  const std::vector<std::string> lines = played(script(file_of({kDynamic, padded, hides}, FindingKind::wrong_logits)));
  BOOST_TEST(lines[1] == "exact_main = make_model(MODEL_main, \"eager\", torch.float64, reorder_and_upcast_attn=False)");
  BOOST_TEST(lines[4] == "want, _ = recompute(exact_main, [[0, 9], [4, 9]], [[0, 1], [0, 1]], [[0, 1], [1, 1]])");
  BOOST_TEST(lines[5] == "compare(1, logits_1, want[:, 0:2], [[0, 1], [1, 1]])");
  BOOST_TEST(says(lines[6], "logits_to_keep=1"));
  // Row 1 hid its first column after others had seen it: then each query's sight is said.
  BOOST_TEST(lines[7] == "want, _ = recompute(exact_main, [[0, 9, 5], [4, 9, 5]], [[0, 1, 2], [0, 1, 2]], [[0, 1, 1], [\"1\", \"11\", \"011\"]])");
  BOOST_TEST(lines[8] == "compare(2, logits_2, want[:, 2:3], [[1], [1]])");
}

BOOST_AUTO_TEST_CASE(a_change_is_looked_for_in_every_live_cache_and_in_what_follows) {
  const kh::NewCache small{"b", "static", 3, {}, {}};
  const kh::Forward full{.cache = "b", .input_ids = {{4, 9, 6}}}, more{.cache = "b", .input_ids = {{7}}};
  const std::string text = script(file_of({kDynamic, small, full, more, kh::Length{"b"}}, FindingKind::state_changed, Code::capacity));
  const std::vector<std::string> lines = played(text);
  BOOST_TEST(lines[2] == "cache_b = StaticCache(config=model_main.config, max_cache_len=3)");
  BOOST_TEST(lines[4] == "before = state_of(cache_a=cache_a, cache_b=cache_b)");
  BOOST_TEST(lines[5] == "with must_refuse(3):");
  BOOST_TEST(lines[7] == "must_be_unchanged(3, before, state_of(cache_a=cache_a, cache_b=cache_b))");
  BOOST_TEST(lines[8] == "must_be_length(4, cache_b, 3)");
  BOOST_TEST(says(text, "LEGAL_CALL_RAISES = True"));
}

BOOST_AUTO_TEST_CASE(only_the_calls_of_the_finding_are_checked) {
  const std::vector<kh::Call> calls{kDynamic, kPrefill, kPrefill, kh::Length{"a"}};
  BOOST_TEST(says(script(file_of(calls, FindingKind::wrong_length)), "must_be_length(3, cache_a, 6)"));
  BOOST_TEST(!says(script(file_of(calls, FindingKind::wrong_length)), "compare("));
  BOOST_TEST(!says(script(file_of(calls, FindingKind::wrong_logits)), "must_be_length"));
  BOOST_TEST(says(script(file_of(calls, FindingKind::refuses_valid, Code::other)), "LEGAL_CALL_RAISES = True"));
  BOOST_TEST(says(script(file_of(calls, FindingKind::wrong_logits)), "LEGAL_CALL_RAISES = False"));
}

BOOST_AUTO_TEST_CASE(identical_calls_are_compared_bit_by_bit) {
  kh::Forward masked = kPrefill;
  masked.cache = "b";
  masked.attention_mask = kvproof::Rows{{1, 1, 1}};
  kh::NewCache other = kDynamic;
  other.cache = "b";
  BOOST_TEST(says(script(file_of({kDynamic, kPrefill, other, masked}, FindingKind::not_repeatable)), "must_be_same_bits(3, logits_3, 1, logits_1)"));
}

BOOST_AUTO_TEST_CASE(columns_that_moved_are_followed_by_their_origin) {
  const kh::Forward two{.cache = "a", .input_ids = {{4}, {9}}};
  const std::string text = script(file_of({kDynamic, two, kh::Read{"a", 1}, kh::Gather{"a", {1, 0}}, kh::Read{"a", 1}}, FindingKind::state_changed));
  BOOST_TEST(says(text, "must_be_same_columns(4, read_4, 2, read_2, [((0, 0), (1, 0)), ((1, 0), (0, 0))])"));
}

BOOST_AUTO_TEST_CASE(every_op_has_words) {
  const kh::Generate generate{.kind = "static", .capacity = 8, .input_ids = {{4, 9}}, .max_new_tokens = 3, .eos_token_id = 5};
  const std::string text = script(file_of({kDynamic, kPrefill, kh::Clone{"b", "a"}, kh::Crop{"b", 2}, kh::Gather{"b", {0, 0}}, kh::Save{"b", "s"}, kh::Reset{"b"},
                                           kh::Load{"b", "s"}, kh::Drop{"b"}, generate, kh::Forward{.input_ids = {{4}}, .logits = "none"}},
                                          FindingKind::wrong_ids));
  for (const char* line : {"cache_b = copy.deepcopy(cache_a)", "crop(cache_b, 2)", "gather(cache_b, [0, 0])", "stored_s = store(cache_b)", "cache_b.reset()",
                           "cache_b = restore(stored_s)", "del cache_b", "model_main.transformer(input_ids=ids([[4]]), use_cache=False)",
                           "must_be_greedy(9, ids_9, exact_main, [[4, 9]], [[1, 1]], 5)",
                           "max_new_tokens=3, eos_token_id=5, use_cache=True, past_key_values=StaticCache(config=model_main.config, max_cache_len=8))[:, 2:]"})
    BOOST_TEST(says(text, line), line);
}

BOOST_AUTO_TEST_CASE(what_cannot_be_said_is_refused_in_words) {
  const auto of = [](std::vector<kh::Call> calls) { return file_of(std::move(calls), FindingKind::wrong_logits); };
  kh::TraceFile bare = of({kDynamic});
  bare.run.finding.reset();
  refused(bare, "says nothing of what was found");
  kh::TraceFile poisoned = of({kDynamic});
  poisoned.run.poison = true;
  refused(poisoned, "poisoned");
  kh::TraceFile lanes = of({kDynamic});
  lanes.trace[0].lane = 1;
  refused(lanes, "several threads");
  refused(file_of({kDynamic}, FindingKind::wrong_code, Code::capacity), "no codes");
  refused(file_of({kh::Crop{"a", 0}}, FindingKind::accepts_misuse, Code::unknown_cache), "about the words of a trace");
  refused(of({kh::NewCache{"a", "static_sliding_window", 8, 4, {}}}), "step 0: a static_sliding_window cache");
  refused(file_of({kDynamic, kh::Read{"a", -1}}, FindingKind::accepts_misuse, Code::layer_range), "negative layer");
  refused(file_of({kDynamic, kPrefill}, FindingKind::accepts_misuse, Code::mask_length), "no call of the trace is the misuse");
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
