#include "harness/backends/pipe_server.hpp"

#include <boost/test/unit_test.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <future>
#include <nlohmann/json.hpp>

#include "engine/base/error.hpp"
#include "engine/base/seed.hpp"
#include "harness/backends/engine_backend.hpp"
#include "harness/backends/exec_backend.hpp"
#include "harness/backends/file_descriptor.hpp"
#include "harness/backends/pipe_message.hpp"

namespace {

namespace kh = kvproof::harness;
using nlohmann::json;

const std::string kModel = std::string(KVPROOF_SOURCE_DIR) + "/golden/lively";

/// A server on a thread of its own, and our ends of its pipes. It has opened `main`.
class Served {
 public:
  explicit Served(kh::Backend& backend) {
    std::array<int, 2> to{}, from{};
    BOOST_REQUIRE((::pipe2(to.data(), O_CLOEXEC) == 0 && ::pipe2(from.data(), O_CLOEXEC) == 0));
    in_ = kh::FileDescriptor(to[1]);
    out_ = kh::FileDescriptor(from[0]);
    done_ = std::async(std::launch::async, [&backend, to, from] {
      const kh::FileDescriptor in(to[0]), out(from[1]);
      kh::serve_pipe(backend, in.number(), out.number());
    });
  }

  void send(const std::string& document) { send(kh::encode_message(document, {})); }
  void send(const std::vector<std::byte>& bytes) { BOOST_REQUIRE(::write(in_.number(), bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())); }

  json receive() {
    while (!frame_.whole()) {
      std::array<std::byte, 4096> bytes;
      const ssize_t count = ::read(out_.number(), bytes.data(), bytes.size());
      if (count <= 0) return nullptr;
      frame_.add({bytes.data(), static_cast<std::size_t>(count)});
    }
    return json::parse(kh::decode_message(frame_.take(), "a reply").document);
  }

  json ask(const std::string& document) {
    send(document);
    return receive();
  }

  void hang_up() { in_.close(); }
  void wait() { done_.get(); }  // rethrows

 private:
  std::future<void> done_;  // first, for it waits for the server, which waits for `in_` to close
  kh::FileDescriptor in_, out_;
  kh::MessageFrame frame_{std::size_t{1} << 20U, "a reply"};
};

/// Refuses to be used in one of three ways.
class Throwing : public kh::Backend {
 public:
  Throwing() { capabilities_.ops = {"length", "drop"}; }
  [[nodiscard]] const kh::Capabilities& capabilities() const override { return capabilities_; }
  void open(const std::string&, const std::filesystem::path&) override { throw kvproof::DataError({"model", "is not there", "", ""}); }
  void begin(const std::string&, const kh::RunOptions&) override {}
  kh::Reply call(const kh::Call& call, std::size_t) override {
    if (std::holds_alternative<kh::Drop>(call)) return kh::Breakdown{"crashed", "gone"};
    throw std::out_of_range("vector::at");
  }

 private:
  kh::Capabilities capabilities_;
};

struct OpenedEngine {
  std::unique_ptr<kh::Backend> backend = kh::make_engine_backend();
  Served served{*backend};
  OpenedEngine() {
    served.ask(R"({"id":1,"op":"hello","protocol":[1,0]})");
    served.ask(R"({"id":2,"op":"open","model":"main","folder":")" + kModel + "\"}");
    served.ask(R"({"id":3,"op":"begin","case":"x","run":{}})");
  }
};

BOOST_AUTO_TEST_SUITE(pipe_server)

BOOST_FIXTURE_TEST_CASE(the_id_comes_back_and_unknown_fields_are_ignored, OpenedEngine) {
  const json reply = served.ask(R"({"id":18446744073709551615,"op":"new","cache":"a","kind":"dynamic","colour":"blue"})");
  BOOST_TEST(reply.dump() == R"({"id":18446744073709551615,"ok":{"length":0}})");
}

BOOST_FIXTURE_TEST_CASE(fields_that_are_missing_or_of_a_wrong_type_are_bad_arguments, OpenedEngine) {
  const char* const fields[] = {
      R"("op":"new","cache":7,"kind":"dynamic")",
      R"("op":"new","kind":"dynamic")",
      R"("op":"new","cache":"a","kind":"static","capacity":"4")",
      R"("op":"new","cache":"a","kind":"static","capacity":4.0)",
      R"("op":"forward","input_ids":[1,2])",
      R"("op":"forward","input_ids":[[1,"2"]])",
      R"("op":"forward","input_ids":[[1]],"use_cache":1)",
      R"("op":"forward","input_ids":[[1]],"attention_mask":[[1.5]])",
      R"("op":"crop","cache":"a","length":1e300)",
      R"("op":"crop","cache":"a","length":9223372036854775808)",
      R"("op":"forward","input_ids":[[1]],"lane":99)",
      R"("op":"together","steps":[{"op":"sing"}])",
      R"("op":"together")",
      R"("op":"open","model":"main")",
      R"("op":"hello","protocol":"1.0")",
  };
  for (const char* each : fields) {
    const json reply = served.ask(fmt::format("{{\"id\":4,{}}}", each));
    BOOST_TEST(reply.at("error").at("code") == "bad_argument", each << ": " << reply.dump());
    BOOST_TEST(!reply.at("error").at("message").get<std::string>().empty(), each);
  }
}

BOOST_FIXTURE_TEST_CASE(ragged_and_empty_lists_reach_the_engine, OpenedEngine) {
  BOOST_TEST(served.ask(R"({"id":4,"op":"forward","input_ids":[[1],[1,2]]})").at("error").at("code") == "batch_mismatch");
  BOOST_TEST(served.ask(R"({"id":5,"op":"forward","input_ids":[]})").at("error").at("code") == "empty_input");
}

BOOST_FIXTURE_TEST_CASE(an_unknown_op_is_unsupported, OpenedEngine) {
  const json reply = served.ask(R"({"id":4,"op":"sing"})");
  BOOST_TEST(reply.at("unsupported").at("reason") == "unknown op \"sing\"");
}

BOOST_FIXTURE_TEST_CASE(another_major_version_is_refused_in_words, OpenedEngine) {
  const json reply = served.ask(R"({"id":4,"op":"hello","protocol":[2,0]})");
  BOOST_TEST(reply.at("error").at("message") == "you speak protocol [2, 0], I speak [1, 0]");
}

BOOST_FIXTURE_TEST_CASE(a_reply_above_the_readers_limit_is_unsupported, OpenedEngine) {
  served.ask(R"({"id":4,"op":"hello","protocol":[1,3],"limits":{"message_bytes":400}})");
  const json reply = served.ask(R"({"id":5,"op":"forward","input_ids":[[1,2,3,4]]})");
  BOOST_TEST(reply.at("unsupported").at("reason").get<std::string>().find("you read at most 400") != std::string::npos, reply.dump());
  BOOST_TEST(served.ask(R"({"id":6,"op":"new","cache":"a","kind":"dynamic"})").contains("ok"));
}

BOOST_FIXTURE_TEST_CASE(close_and_the_end_of_the_input_end_it_quietly, OpenedEngine) {
  BOOST_TEST(served.ask(R"({"id":4,"op":"close"})").contains("ok"));
  served.wait();
  Served second(*backend);
  second.hang_up();
  second.wait();
}

BOOST_FIXTURE_TEST_CASE(two_requests_in_one_breath_are_two_replies, OpenedEngine) {
  auto both = kh::encode_message(R"({"id":4,"op":"new","cache":"a","kind":"dynamic"})", {});
  const auto second = kh::encode_message(R"({"id":5,"op":"length","cache":"a"})", {});
  both.insert(both.end(), second.begin(), second.end());
  served.send(both);
  BOOST_TEST(served.receive().at("id") == 4);
  BOOST_TEST(served.receive().at("id") == 5);
}

/// The text with the page's model folder made absolute.
std::string here(std::string text) {
  const std::string page_folder = "golden/lively";
  if (const auto at = text.find(page_folder); at != std::string::npos) text.replace(at, page_folder.size(), kModel);
  return text;
}

BOOST_AUTO_TEST_CASE(the_page_s_conversation_goes_as_it_stands_there) {
  std::ifstream page(std::string(KVPROOF_SOURCE_DIR) + "/docs/pipe_protocol.md");
  const auto engine = kh::make_engine_backend();
  Served served(*engine);
  json reply;
  std::size_t replies = 0;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("> {")) reply = served.ask(here(line.substr(2)));
    if (!line.starts_with("< {")) continue;
    BOOST_TEST(reply == json::parse(line.substr(2)), line << "\nbut it said " << reply.dump());
    ++replies;
  }
  BOOST_TEST(replies == 9U);
}

BOOST_AUTO_TEST_CASE(input_that_is_no_message_ends_it_with_the_reason) {
  const auto engine = kh::make_engine_backend();
  for (const char* text : {"GET / HTTP/1.1\r\n\r\n", "{\"id\":1}", "\x03\0\0"}) {
    Served served(*engine);
    const auto bytes = std::as_bytes(std::span(std::string_view(text, text[0] == '\x03' ? 3 : std::string_view(text).size())));
    served.send(std::vector<std::byte>(bytes.begin(), bytes.end()));
    served.hang_up();
    BOOST_CHECK_THROW(served.wait(), kvproof::DataError);
  }
  for (const char* document : {"[]", "{\"op\":\"hello\"}", "{\"id\":-1,\"op\":\"hello\"}", "{\"id\":1,\"op\":7}", "{\"id\":1,\"id\":2,\"op\":\"close\"}", "{"}) {
    Served served(*engine);
    served.send(document);
    BOOST_CHECK_THROW(served.wait(), kvproof::DataError);
  }
}

BOOST_AUTO_TEST_CASE(an_engine_that_throws_or_breaks_down_ends_it_for_only_the_harness_may_say_so) {
  Throwing throwing;
  for (const auto& [op, words] : {std::pair("length", "the engine threw over length: vector::at"), std::pair("drop", "the engine threw over drop: gone")}) {
    Served served(throwing);
    served.send(fmt::format(R"({{"id":1,"op":"{}","cache":"a"}})", op));
    BOOST_CHECK_EXCEPTION(served.wait(), std::runtime_error, [&](const std::runtime_error& error) { return error.what() == std::string(words); });
  }
}

BOOST_AUTO_TEST_CASE(a_model_that_cannot_be_opened_is_refused_in_words) {
  Throwing throwing;
  Served served(throwing);
  const json reply = served.ask(R"({"id":1,"op":"open","model":"main","folder":"/"})");
  BOOST_TEST(reply.at("error").at("message").get<std::string>().starts_with("model: is not there"), reply.dump());
}

BOOST_AUTO_TEST_SUITE_END()

BOOST_AUTO_TEST_SUITE(engine_behind_a_pipe)

/// Calls on two caches, some of them refused.
kh::Call random_call(kvproof::Random& random) {
  const std::string cache = random.chance(50) ? "a" : "b";
  switch (random.below(8)) {
    case 0: return kh::NewCache{cache, random.chance(50) ? "dynamic" : "static", random.chance(50) ? std::optional<std::int64_t>(9) : std::nullopt};
    case 1: return kh::Drop{cache};
    case 2: return kh::Crop{cache, random.between(0, 5)};
    case 3: return kh::Read{cache, random.between(0, 1)};
    case 4: return kh::Generate{.input_ids = {{1, 2}}, .max_new_tokens = random.between(1, 4)};
    default: break;
  }
  kh::Forward forward{.cache = cache};
  forward.input_ids.resize(random.chance(80) ? 2 : 1);
  for (auto& row : forward.input_ids) row = {random.between(0, 9), random.between(0, 9)};
  return forward;
}

struct BothWays {
  std::unique_ptr<kh::Backend> inside = kh::make_engine_backend(), piped = kh::make_exec_backend("'" KVPROOF_ENGINE_CHILD "'", {});
  BothWays() {
    for (kh::Backend* each : {inside.get(), piped.get()}) {
      each->open("main", kModel);
      each->begin("x", {});
    }
  }
};

BOOST_FIXTURE_TEST_CASE(it_claims_what_it_claims_in_process, BothWays) {
  const kh::Capabilities &a = inside->capabilities(), &b = piped->capabilities();
  BOOST_TEST((a.name == b.name && a.version == b.version && a.kinds == b.kinds && a.ops == b.ops && a.max_batch == b.max_batch));
  BOOST_TEST((a.codes == b.codes && a.threads == b.threads && a.exact == b.exact && a.unbounded_window == b.unbounded_window));
  BOOST_TEST((a.deterministic == b.deterministic && a.poison == b.poison));
}

BOOST_FIXTURE_TEST_CASE(every_answer_and_refusal_has_the_same_bits, BothWays) {
  kvproof::Random random(5);
  std::size_t answers = 0;
  for (int i = 0; i < 2000; ++i) {
    const kh::Call call = random_call(random);
    const kh::Reply a = inside->call(call, 0), b = piped->call(call, 0);
    BOOST_TEST_REQUIRE((a == b), "call " << i << ": " << kh::op_name(call));
    answers += std::holds_alternative<kh::Answer>(a) ? 1 : 0;
  }
  BOOST_TEST(answers > 500U);
}

BOOST_FIXTURE_TEST_CASE(lanes_go_together_and_keep_apart, BothWays) {
  const kh::Call made = kh::NewCache{"a", "dynamic"}, short_call = kh::Forward{.cache = "a", .input_ids = {{1}}},
                 long_call = kh::Forward{.cache = "a", .input_ids = {{1, 2, 3}}};
  for (kh::Backend* each : {inside.get(), piped.get()}) (void)each->together(std::array{kh::LaneCall{0, &made}, kh::LaneCall{2, &made}});
  const std::array calls{kh::LaneCall{2, &long_call}, kh::LaneCall{0, &short_call}};
  const auto a = inside->together(calls), b = piped->together(calls);
  BOOST_REQUIRE((a.size() == 2 && b.size() == 2));
  BOOST_TEST((a == b));
  BOOST_TEST((std::get<kh::Answer>(b[0]).length == 3 && std::get<kh::Answer>(b[1]).length == 1));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
