#include "harness/backends/pipe_message.hpp"

#include <boost/test/unit_test.hpp>

#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>

#include "engine/base/error.hpp"
#include "engine/base/seed.hpp"
#include "harness/backends/pipe_reply.hpp"

namespace {

namespace kh = kvproof::harness;
using Bytes = std::vector<std::byte>;

constexpr std::size_t kMost = 4096;

std::string error_of(const auto& act) {
  try {
    act();
  } catch (const kvproof::DataError& error) {
    return error.what();
  }
  return "";
}

/// A reply with logits [1, 2, 3]; a third cannot be said in F32.
Bytes sample(std::uint64_t id = 5, double first = 0.5) {
  kh::Answer answer;
  answer.length = 4;
  answer.logits = kh::Tensor{{1, 2, 3}, {first, -1, 2, 3, 4, 5}};
  return kh::encode_reply(id, answer);
}

kh::MessageFrame frame(std::size_t most = kMost) { return {most, "a reply"}; }

Bytes length_word(std::uint64_t length) {
  Bytes bytes(8);
  std::memcpy(bytes.data(), &length, 8);
  return bytes;
}

BOOST_AUTO_TEST_SUITE(message_frame)

BOOST_AUTO_TEST_CASE(a_message_that_comes_byte_by_byte_is_whole_at_its_last_byte) {
  const Bytes bytes = sample();
  auto one = frame();
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    BOOST_TEST(!one.whole());
    one.add({&bytes[i], 1});
  }
  BOOST_TEST(one.whole());
  BOOST_TEST(one.surplus() == 0U);
  BOOST_TEST((one.take() == bytes));
  BOOST_TEST(!one.whole());
}

BOOST_AUTO_TEST_CASE(what_follows_a_message_is_the_beginning_of_the_next) {
  Bytes both = sample(1);
  const Bytes second = sample(2);
  both.insert(both.end(), second.begin(), second.end());
  auto one = frame();
  one.add(both);
  BOOST_TEST(one.surplus() == second.size());
  (void)one.take();
  BOOST_TEST(one.whole());
  BOOST_TEST((one.take() == second));
}

BOOST_AUTO_TEST_CASE(a_length_above_the_cap_is_refused_with_its_first_eight_bytes) {
  auto one = frame();
  const auto message = error_of([&] { one.add(length_word(std::uint64_t{1} << 60U)); });
  BOOST_TEST(message.find("a header of 1152921504606846976 bytes, expected at most 4096") != std::string::npos, message);
  auto fits = frame(100), passes = frame(99);
  fits.add(length_word(100));
  BOOST_CHECK_THROW(passes.add(length_word(100)), kvproof::DataError);
}

BOOST_AUTO_TEST_CASE(a_size_above_the_cap_is_refused_with_the_header) {
  const Bytes bytes = sample();
  auto fits = frame(bytes.size()), passes = frame(bytes.size() - 1);
  fits.add(bytes);
  BOOST_TEST(fits.whole());
  const auto message = error_of([&] { passes.add(bytes); });
  BOOST_TEST(message.find("expected at most " + std::to_string(bytes.size() - 1) + " in all") != std::string::npos, message);
}

BOOST_AUTO_TEST_CASE(printed_text_is_recognised) {
  auto one = frame();
  const std::string text = "Loading weights…";
  const auto message = error_of([&] { one.add(std::as_bytes(std::span(text))); });
  BOOST_TEST(message.find("does something print to standard output?") == std::string::npos, message);  // … is not ASCII: no guess
  auto other = frame();
  const std::string plain = "Loading weights\n";
  const auto hint = error_of([&] { other.add(std::as_bytes(std::span(plain))); });
  BOOST_TEST(hint.find("It begins with the text \"Loading weights\": does something print to standard output?") != std::string::npos, hint);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(reply)

kh::Reply decoded(const Bytes& bytes, std::uint64_t id = 5) { return kh::decode_reply(kh::decode_message(bytes, "a reply"), id, "a reply"); }

BOOST_AUTO_TEST_CASE(numbers_come_back_bit_for_bit_narrow_where_that_loses_nothing) {
  const Bytes narrow = sample(), wide = sample(5, 1.0 / 3);
  BOOST_TEST(wide.size() >= narrow.size() + 6 * 4);
  const auto answer = std::get<kh::Answer>(decoded(wide));
  BOOST_TEST((answer.length == 4));
  BOOST_TEST((answer.logits == kh::Tensor{{1, 2, 3}, {1.0 / 3, -1, 2, 3, 4, 5}}));
  BOOST_TEST((std::get<kh::Answer>(decoded(narrow)).logits == kh::Tensor{{1, 2, 3}, {0.5, -1, 2, 3, 4, 5}}));
}

BOOST_AUTO_TEST_CASE(a_nan_and_an_infinity_stay_what_they_are) {
  kh::Answer answer;
  answer.keys = kh::Tensor{{1, 1, 1, 2}, {std::nan(""), -HUGE_VAL}};
  const auto back = std::get<kh::Answer>(decoded(kh::encode_reply(5, answer)));
  BOOST_TEST(std::isnan(back.keys->values[0]));
  BOOST_TEST(back.keys->values[1] == -HUGE_VAL);
}

BOOST_AUTO_TEST_CASE(ids_refusals_and_reasons_come_back) {
  kh::Answer answer;
  answer.ids = kvproof::Rows{{1, 2}, {3, -4}};
  BOOST_TEST((std::get<kh::Answer>(decoded(kh::encode_reply(5, answer))).ids == answer.ids));
  const auto refusal = std::get<kh::Refusal>(decoded(kh::encode_reply(5, kh::Refusal{kh::Code::mask_length, "cache 3, \"new\" 1"})));
  BOOST_TEST((refusal.code == kh::Code::mask_length));
  BOOST_TEST(refusal.message == "cache 3, \"new\" 1");
  BOOST_TEST(std::get<kh::Unsupported>(decoded(kh::encode_reply(5, kh::Unsupported{"no"}))).reason == "no");
}

BOOST_AUTO_TEST_CASE(replies_of_lanes_keep_their_order_and_their_numbers) {
  kh::Answer first, third;
  first.logits = kh::Tensor{{1}, {1}};
  third.logits = kh::Tensor{{1}, {1.0 / 3}};
  const kh::Reply replies[] = {first, kh::Refusal{kh::Code::capacity, "full"}, third};
  const auto message = kh::decode_message(kh::encode_replies(9, replies), "a reply");
  const auto back = kh::decode_replies(message, 9, 3, "a reply");
  BOOST_TEST((std::get<kh::Answer>(back[0]).logits == first.logits));
  BOOST_TEST((std::get<kh::Refusal>(back[1]).code == kh::Code::capacity));
  BOOST_TEST((std::get<kh::Answer>(back[2]).logits == third.logits));
  BOOST_CHECK_THROW((void)kh::decode_replies(message, 9, 2, "a reply"), kvproof::DataError);
}

// Whatever bytes come: a reply or a DataError, nothing else.
BOOST_AUTO_TEST_CASE(broken_bytes_are_an_error_and_never_more) {
  kvproof::Random random(11);
  std::size_t refused = 0;
  for (int round = 0; round < 20'000; ++round) {
    Bytes bytes = sample();
    for (auto changes = random.between(1, 4); changes > 0; --changes) bytes[random.below(bytes.size())] = static_cast<std::byte>(random.below(256));
    if (random.chance(20)) bytes.resize(random.below(bytes.size()));
    try {
      auto one = frame();
      one.add(bytes);
      if (one.whole()) (void)decoded(one.take());
    } catch (const kvproof::DataError&) {
      ++refused;
    }
  }
  BOOST_TEST(refused > 10'000U);
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(hello)

BOOST_AUTO_TEST_CASE(capabilities_come_back) {
  kh::Capabilities all;
  all.kinds = {"dynamic", "static"};
  all.ops = {"new", "forward"};
  all.max_batch = 3;
  all.threads = all.unbounded_window = true;
  const auto back = kh::capabilities_from_json(nlohmann::json(kh::capabilities_to_json(all)), "here");
  BOOST_TEST((back.kinds == all.kinds && back.ops == all.ops && back.max_batch == all.max_batch));
  BOOST_TEST((back.codes && back.threads && !back.exact && back.unbounded_window && back.deterministic && !back.poison));
}

BOOST_AUTO_TEST_CASE(what_is_not_claimed_is_not_there_and_what_we_do_not_know_is_no_error) {
  const auto bytes = kh::encode_message(
      R"({"id":5,"ok":{"protocol":[1,7],"name":"n","version":"2","capabilities":{"kinds":["dynamic"],"ops":["new","sing"],"poison":true,"x":1}}})", {});
  const auto found = kh::decode_hello(kh::decode_message(bytes, "hello"), 5, "hello");
  BOOST_TEST(found.name == "n");
  BOOST_TEST(found.version == "2");
  BOOST_TEST(found.ops.contains("sing"));
  BOOST_TEST(!found.max_batch.has_value());
  BOOST_TEST((found.poison && !found.codes && !found.threads && !found.exact && !found.unbounded_window && !found.deterministic));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
