#include <boost/test/unit_test.hpp>
#include <fstream>
#include <set>

#include "harness/laws/situations.hpp"
#include "harness/laws/trace_words.hpp"

using namespace kvproof::harness;

BOOST_AUTO_TEST_SUITE(situations)

namespace {

/// A trace that has a situation, and one that just misses it.
struct Pair {
  const char* name;
  std::string has, misses;
  bool poison = false;  ///< of both
};

const std::string kTen = "0000000000";        // ten columns of token 0
const std::string kTwenty = kTen + kTen;      // n_positions is 24, of model other 8
const std::string kMade = "new a; ";
const std::string kWarm = "new a; feed a 12; ";
const std::string kSliding = "new a sliding 3 3; ";
const std::string kBatch = "new a; feed a 12/34; ";

const std::vector<Pair>& columns_and_padding() {
  static const std::vector<Pair> kPairs = {
      {"append_one", kWarm + "feed a 3", "new a; feed a 3; feed a 45"},
      {"append_many", kWarm + "feed a 34", "new a; feed a 34; feed a 5"},
      {"more_than_20_keys", kMade + "feed a 0" + kTwenty, kMade + "feed a 0" + kTwenty + " m=0" + "1111111111" + "1111111111"},
      {"longer_than_n_positions", kMade + "feed a " + kTwenty + "; feed a 00000 p=01234", kMade + "feed a " + kTwenty + "; feed a 0000"},
      {"batch_equals_heads", kMade + "feed a 1/2", "feed - 1/2"},
      {"batch_differs_from_heads", kMade + "feed a 1/2/3", kMade + "feed a 1/2"},
      {"logits_last", kMade + "feed a 12 last", kMade + "feed a 1 last"},
      {"logits_none", kMade + "feed a 12 none; feed a 3", kMade + "feed a 12 none; length a"},
      {"mask_absent_warm", kWarm + "feed a 3", kMade + "feed a 3; feed a 4 m=11"},
      {"mask_of_ones_warm", kWarm + "feed a 3 m=111", kWarm + "feed a 3 m=101"},
      {"positions_explicit", kWarm + "feed a 3 p=4", kWarm + "feed a 3 p=2"},
      {"positions_not_rising", kWarm + "feed a 34 p=55", kWarm + "feed a 34 p=57"},
      {"position_last", kWarm + "feed a 3 p=n", kWarm + "feed a 3 p=m"},
      {"left_padding", kMade + "feed a 123 m=011", kMade + "feed a 123 m=110"},
      {"right_padding", kMade + "feed a 123 m=110", kMade + "feed a 123 m=000"},
      {"interior_padding", kMade + "feed a 123 m=101", kMade + "feed a 123 m=011"},
      {"ragged_batch", kMade + "feed a 12/34 m=01/11", kMade + "feed a 12/34 m=01/10"},
      {"warm_behind_padding", kMade + "feed a 12 m=01; feed a 3 m=011", kWarm + "feed a 34 m=1101"},
      {"hidden_past", kWarm + "feed a 3 m=011; feed a 4 m=0111", kWarm + "feed a 3 m=011; crop a 2"},
      {"hidden_past_read_only", kWarm + "feed a 3 m=011 ro; feed a 4", kWarm + "feed a 3 m=111 ro; feed a 4"},
      {"pad_id_visible", kMade + "feed a 11 m=01", kMade + "feed a 12 m=01"},
      {"neighbours_changed", "feed - 12/34; feed - 12/35", "feed - 12/34; feed - 12/34"},
  };
  return kPairs;
}

const std::vector<Pair>& copies_and_crops() {
  static const std::vector<Pair> kPairs = {
      {"third_step_after_clone", kWarm + "clone b a; feed b 3; feed a 4; feed b 5", kWarm + "clone b a; feed b 3; feed a 4; feed a 5"},
      {"clone_of_clone", kWarm + "clone b a; clone c b; feed c 3", kWarm + "clone b a; clone c a; feed c 3"},
      {"relative_dropped", kWarm + "clone b a; drop a; feed b 3", kWarm + "new b; feed b 1; drop a; feed b 3"},
      {"relative_cropped", kWarm + "clone b a; crop a 1; feed b 3", kWarm + "clone b a; crop a 2; feed b 3"},
      {"relative_reset", kWarm + "clone b a; reset a; read b 0", kWarm + "clone b a; reset a; read a 0"},
      {"crop_to_zero", kWarm + "crop a 0; feed a 3", kMade + "crop a 0; feed a 3"},
      {"crop_to_one", kWarm + "crop a 1; feed a 3", kWarm + "crop a 1; read a 0"},
      {"crop_to_last_but_one", kMade + "feed a 123; crop a 2; feed a 3", kMade + "feed a 123; crop a 1; feed a 3"},
      {"crop_to_all", kWarm + "crop a 2; feed a 3", kWarm + "crop a 1; feed a 3"},
      {"crop_before_last_append", kWarm + "feed a 34; crop a 1; feed a 5", kWarm + "feed a 34; crop a 2; feed a 5"},
      {"crop_last_append", kWarm + "feed a 34; crop a 2; feed a 5", kWarm + "feed a 34; crop a 3; feed a 5"},
      {"crop_inside_last_append", kWarm + "feed a 34; crop a 3; feed a 5", kWarm + "feed a 3; crop a 3; feed a 5"},
      {"crop_across_padding", kMade + "feed a 123 m=001; crop a 1; feed a 4 m=01", kMade + "feed a 123 m=001; crop a 2; feed a 4 m=001"},
      {"crop_keeps_padding", kMade + "feed a 123 m=011; crop a 2; feed a 4 m=011", kMade + "feed a 123 m=110; crop a 2; feed a 4"},
      {"crop_after_wrap", kSliding + "feed a 12345; crop a 4; feed a 6", kSliding + "feed a 123; crop a 2; feed a 4"},
  };
  return kPairs;
}

const std::vector<Pair>& edges_and_gathers() {
  static const std::vector<Pair> kPairs = {
      {"capacity_minus_one", "new a static 3; feed a 12", "new a static 3; feed a 1"},
      {"capacity_exact", "new a static 3; feed a 123", "new a static 3; feed a 12"},
      {"capacity_plus_one", "new a static 3; feed a 1; feed a 123; feed a 2", "new a static 3; feed a 1; feed a 1234; feed a 2"},
      {"context_minus_one", kMade + "feed a " + kTwenty + "000", kMade + "feed a " + kTwenty + "00"},
      {"context_exact", kMade + "feed a " + kTwenty + "0000", kMade + "feed a " + kTwenty + "; feed a 0000 p=0123"},
      {"context_plus_one", kMade + "feed a 0; feed a " + kTwenty + "0000; feed a 0", kMade + "feed a 0; feed a " + kTwenty + "00000; feed a 0"},
      {"window_minus_one", kSliding + "feed a 12", kSliding + "feed a 123"},
      {"window_exact", kSliding + "feed a 123", kSliding + "feed a 1234"},
      {"window_plus_one", kSliding + "feed a 1234", kSliding + "feed a 12345"},
      {"gather_identity", kBatch + "gather a 01; feed a 1/2", kBatch + "gather a 10; feed a 1/2"},
      {"gather_swap", kBatch + "gather a 10; feed a 1/2", kBatch + "gather a 01; feed a 1/2"},
      {"gather_repeat", kBatch + "gather a 11; feed a 1/2", kBatch + "gather a 10; feed a 1/2"},
      {"gather_fewer", kBatch + "gather a 1; feed a 1", kBatch + "gather a 11; feed a 1/2"},
      {"gather_more", kBatch + "gather a 101; feed a 1/2/3", kBatch + "gather a 11; feed a 1/2"},
      {"gather_between_chunks", kBatch + "gather a 10; feed a 12/34", kBatch + "gather a 10; feed a 1/3"},
      {"gather_padded", kMade + "feed a 12/34 m=01/11; gather a 10; feed a 1/2 m=111/011", kMade + "feed a 12/34 m=01/01; gather a 10; feed a 1/2 m=011/011"},
      {"gather_batch_equals_heads", kBatch + "gather a 10; feed a 1/2", kMade + "feed a 1/2/3; gather a 102; feed a 1/2/3"},
  };
  return kPairs;
}

const std::vector<Pair>& reuse_and_neighbours() {
  static const std::vector<Pair> kPairs = {
      {"reset_reused", kWarm + "reset a; feed a 1", kMade + "reset a; feed a 1"},
      {"drop_reused", kWarm + "drop a; new a; feed a 1", kWarm + "drop a; new b; feed b 1"},
      {"reused_with_other_batch", kWarm + "reset a; feed a 1/2", kWarm + "reset a; feed a 1"},
      {"reused_after_padding", kMade + "feed a 12 m=01; reset a; feed a 1", kMade + "feed a 12 m=01; reset a; feed a 1 m=1"},
      {"interleaved_equal", kWarm + "new b; feed b 3; feed a 4", kWarm + "new b; feed a 4; feed b 3"},
      {"interleaved_different", kWarm + "new b static 9; feed b 3; feed a 4", kWarm + "clone b a; feed b 3; feed a 4"},
      {"two_models", kWarm + "new b @other; feed b 3; feed a 4", kWarm + "new b; feed b 3; feed a 4"},
      {"lanes_together", "new a; lane1 new a; feed a 1; lane1 feed a 2; feed a 1; lane1 feed a 2", "new a; lane1 new a; feed a 1; lane1 feed a 2; feed a 1"},
  };
  return kPairs;
}

const std::vector<Pair>& windows() {
  static const std::vector<Pair> kPairs = {
      {"poisoned_slots", "new a static 4; feed a 12; feed a 3", "new a static 3; feed a 12; feed a 3", true},
      {"shorter_chunk_at_wrap", kSliding + "feed a 12; feed a 34", kSliding + "feed a 12; feed a 3"},
      {"equal_chunk_at_wrap", kSliding + "feed a 1; feed a 234", kSliding + "feed a 123"},
      {"longer_chunk_at_wrap", kSliding + "feed a 1; feed a 2345", kSliding + "feed a 2345"},
      {"shorter_chunk_after_wrap", kSliding + "feed a 1234; feed a 56", kSliding + "feed a 123; feed a 45"},
      {"equal_chunk_after_wrap", kSliding + "feed a 1234; feed a 567", kSliding + "feed a 123; feed a 456"},
      {"longer_chunk_after_wrap", kSliding + "feed a 1234; feed a 5678", kSliding + "feed a 123; feed a 4567"},
      {"prefill_longer_than_window", kSliding + "feed a 1234", kSliding + "feed a 123"},
      {"window_wider_than_history", kSliding + "feed a 1; feed a 2", kSliding + "feed a 1; feed a 23"},
      {"window_above_capacity", "new a sliding 3 4; feed a 1234", "new a sliding 4 4; feed a 12345"},
      {"hidden_in_window", kSliding + "feed a 1234 m=1101", kSliding + "feed a 1234 m=0111"},
      {"hidden_left_window", kSliding + "feed a 1234 m=0111", kSliding + "feed a 1234 m=1011"},
      {"load_over_used", kWarm + "save a s; load a s; feed a 1", kWarm + "save a s; reset a; load a s; feed a 1"},
      {"load_makes_cache", kWarm + "save a s; load b s; feed b 1", kWarm + "save a s; load a s; feed a 1"},
      {"save_overwrites", kWarm + "save a s; save a s; load a s; feed a 1", kWarm + "save a s; save a t; load a s; feed a 1"},
  };
  return kPairs;
}

const std::vector<Pair>& the_rest() {
  static const std::vector<Pair> kPairs = {
      {"read_only_warm", kWarm + "feed a 3 ro; read a 0", kWarm + "feed a 3 ro; length a"},
      {"read_only_empty", kMade + "feed a 3 ro; feed a 3", kMade + "feed a 3 ro; read a 0"},
      {"full_pass_beside_caches", kWarm + "feed - 1; feed a 3", kMade + "feed - 1; feed a 3"},
      {"read_empty", kMade + "read a 0", kWarm + "read a 0"},
      {"read_after_wrap", kSliding + "feed a 1234; read a 0", kSliding + "feed a 123; read a 0"},
      {"default_after_crop", kWarm + "crop a 1; feed a 3", kWarm + "crop a 1; feed a 3 p=1"},
      {"default_after_gather", kWarm + "gather a 00; feed a 3/4", kWarm + "gather a 00; feed a 3/4 p=2/2"},
      {"default_after_clone", kWarm + "clone b a; feed b 3", kWarm + "clone b a; feed a 3"},
      {"default_after_reset", kWarm + "reset a; feed a 3", kWarm + "reset a; feed a 3 p=0; feed a 4"},
      {"default_after_load", kWarm + "save a s; load a s; feed a 3", kMade + "save a s; load a s; feed a 3"},
      {"generate_no_cache", "generate 12 3", "generate 12 3 dynamic"},
      {"generate_dynamic", "generate 12 3 dynamic", "generate 12 3"},
      {"generate_static", "generate 12 3 static 4", "generate 12 3 static 3"},
      {"generate_sliding", "generate 12 3 sliding 4 2", "generate 12 3 static 4"},
      {"generate_padded", "generate 12 3 m=01", "generate 12 3 m=11"},
      {"generate_eos", "generate 12 3 eos=5", "generate 12 3"},
  };
  return kPairs;
}

/// Each code, on a cache that is asked afterwards; beside it the call that is just legal.
const std::vector<Pair>& refusals() {
  static const std::vector<Pair> kPairs = {
      {"refused_unknown_cache", kWarm + "crop b 0; feed a 1", kWarm + "crop a 0; feed a 1"},
      {"refused_model_mismatch", kWarm + "feed a 1 @other; feed a 1", kWarm + "feed a 1 @main; feed a 1"},
      {"refused_cache_exists", kWarm + "new a; feed a 1", kWarm + "new b; feed a 1"},
      {"refused_name_unknown", kWarm + "load a s; feed a 1", kWarm + "save a s; load a s; feed a 1"},
      {"refused_bad_argument", kWarm + "feed a 1 some; feed a 1", kWarm + "feed a 1 none; feed a 1"},
      {"refused_layer_range", kWarm + "read a 2; feed a 1", kWarm + "read a 1; feed a 1"},
      {"refused_empty_input", kWarm + "feed a /; feed a 1", kWarm + "feed a 1; feed a 1"},
      {"refused_batch_mismatch", kWarm + "feed a 1/2; feed a 1", kWarm + "feed a 1; feed a 1"},
      {"refused_token_range", kWarm + "feed a k; feed a 1", kWarm + "feed a j; feed a 1"},
      {"refused_mask_length", kWarm + "feed a 1 m=11; feed a 1", kWarm + "feed a 1 m=111; feed a 1"},
      {"refused_mask_value", kWarm + "feed a 1 m=112; feed a 1", kWarm + "feed a 1 m=111; feed a 1"},
      {"refused_mask_revival", kMade + "feed a 12 m=01; feed a 1; read a 0", kMade + "feed a 12 m=01; feed a 1 m=011; read a 0"},
      {"refused_position_shape", kWarm + "feed a 1 p=12; feed a 1", kWarm + "feed a 1 p=1; feed a 1"},
      {"refused_position_range", kWarm + "feed a 1 p=o; feed a 1", kWarm + "feed a 1 p=n; feed a 1"},
      {"refused_context_length", kMade + "feed a " + kTwenty + "; feed a 00000; read a 0", kMade + "feed a " + kTwenty + "; feed a 0000; read a 0"},
      {"refused_capacity", "new a static 3; feed a 12; feed a 34; feed a 1", "new a static 4; feed a 12; feed a 34; read a 0"},
      {"refused_crop_range", kWarm + "crop a 3; feed a 1", kWarm + "crop a 2; feed a 1"},
      {"refused_crop_evicted", kSliding + "feed a 12345; crop a 3; feed a 1", kSliding + "feed a 12345; crop a 4; feed a 1"},
      {"refused_row_range", kWarm + "gather a 1; feed a 1", kWarm + "gather a 0; feed a 1"},
  };
  return kPairs;
}

std::vector<Pair> all_pairs() {
  std::vector<Pair> all;
  for (const auto* part : {&columns_and_padding(), &copies_and_crops(), &edges_and_gathers(), &reuse_and_neighbours(), &windows(), &the_rest(), &refusals()})
    all.insert(all.end(), part->begin(), part->end());
  return all;
}

/// The names of the situations of a trace in words.
std::set<std::string> names_of(const std::string& words, bool poison) {
  const Situations situations = situations_of(trace_of(words), small_models(), {poison});
  std::set<std::string> names;
  for (std::size_t s = 0; s < kSituationCount; ++s)
    if (situations[s]) names.emplace(situation_name(static_cast<Situation>(s)));
  return names;
}

}  // namespace

BOOST_AUTO_TEST_CASE(each_situation_is_seen_where_it_is_and_not_where_it_just_is_not) {
  for (const Pair& pair : all_pairs()) {
    BOOST_TEST(names_of(pair.has, pair.poison).contains(pair.name), pair.name << " is not seen in " << pair.has);
    BOOST_TEST(!names_of(pair.misses, pair.poison).contains(pair.name), pair.name << " is seen in " << pair.misses);
  }
  BOOST_TEST(!names_of(windows().front().has, false).contains("poisoned_slots"));
}

BOOST_AUTO_TEST_CASE(each_situation_has_its_pair_a_name_of_its_own_and_words) {
  std::set<std::string_view> names, words, tested;
  for (std::size_t s = 0; s < kSituationCount; ++s) {
    names.insert(situation_name(static_cast<Situation>(s)));
    words.insert(situation_words(static_cast<Situation>(s)));
  }
  for (const Pair& pair : all_pairs()) tested.insert(pair.name);
  BOOST_TEST(names.size() == kSituationCount);
  BOOST_TEST(words.size() == kSituationCount);
  BOOST_TEST(tested == names, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(the_page_lists_every_situation_in_order) {
  std::ifstream page(KVPROOF_SOURCE_DIR "/docs/coverage.md");
  std::vector<std::string> listed, wanted;
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("| `")) listed.push_back(line);
  for (std::size_t s = 0; s < kSituationCount; ++s) {
    const auto situation = static_cast<Situation>(s);
    wanted.push_back("| `" + std::string(situation_name(situation)) + "` | " + std::string(situation_words(situation)) + " |");
  }
  BOOST_TEST(listed == wanted, boost::test_tools::per_element());
}

BOOST_AUTO_TEST_CASE(what_nothing_is_asked_behind_is_no_situation) {
  const std::set<std::string> names = names_of(kBatch + "gather a 10; crop a 1; reset a; crop b 0", false);
  for (const char* name : {"gather_swap", "crop_to_one", "reset_reused", "refused_unknown_cache"}) BOOST_TEST(!names.contains(name), name);
}

BOOST_AUTO_TEST_CASE(a_probe_on_a_clone_shows_what_waits) {
  BOOST_TEST(names_of(kBatch + "gather a 10; clone b a; feed b 1/2", false).contains("gather_swap"));
  BOOST_TEST(names_of(kWarm + "crop a 1; save a s; load b s; feed b 1", false).contains("crop_to_one"));
}

BOOST_AUTO_TEST_CASE(lanes_know_nothing_of_each_other) {
  const std::set<std::string> names = names_of("new a; feed a 1; lane1 new b; lane1 feed b 2; feed a 3", false);
  BOOST_TEST(!names.contains("interleaved_equal"));
}

BOOST_AUTO_TEST_SUITE_END()
