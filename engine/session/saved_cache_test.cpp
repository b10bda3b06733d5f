#include "engine/session/saved_cache.hpp"

#include <boost/test/unit_test.hpp>
#include <functional>
#include <nlohmann/json.hpp>

#include "engine/base/seed.hpp"
#include "engine/safetensors/reader.hpp"
#include "engine/safetensors/writer.hpp"
#include "engine/session/test_support.hpp"

using namespace kvproof;
using namespace kvproof::testing;

namespace {

using Bytes = std::vector<std::byte>;

std::vector<CacheOptions> kinds() {
  std::vector<CacheOptions> kinds = all_kinds();
  kinds.push_back(sliding(4, 3));
  kinds.push_back(sliding(5, 1));
  return kinds;
}

Cache used(const CacheOptions& options) {
  Cache cache = session().make_cache(options);
  session().forward(&cache, call(some_tokens(2, 5), {{0, 1, 1, 1, 1}, {1, 1, 0, 1, 1}}));
  return cache;
}

// What happens to a container: "loaded", "refused <code>" or the DataError's text.
std::string loading(const Bytes& bytes) {
  try {
    (void)session().load(bytes);
    return "loaded";
  } catch (const Refused& refused) {
    return "refused " + std::string(refusal_code_name(refused.code()));
  } catch (const DataError& error) {
    return error.what();
  }
}

// The container of a used cache with its document and tensors changed.
class Forgery {
 public:
  explicit Forgery(const CacheOptions& options) : file_(SafetensorsFile::from_bytes(used(options).save(), "original")) {
    document = nlohmann::json::parse(file_.metadata().at("kvproof"));
    for (const TensorView& tensor : file_.tensors()) tensors.push_back({tensor.name, tensor.dtype, tensor.shape, tensor.bytes});
  }
  [[nodiscard]] std::string load() const { return loading(encode_safetensors({{"kvproof", document.dump()}}, tensors)); }
  TensorToWrite& tensor(std::string_view name) {
    return *std::ranges::find(tensors, name, [](const TensorToWrite& t) { return std::string_view(t.name); });
  }

  nlohmann::json document;
  std::vector<TensorToWrite> tensors;

 private:
  SafetensorsFile file_;
};

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

}  // namespace

BOOST_AUTO_TEST_SUITE(saved_cache)

BOOST_AUTO_TEST_CASE(a_loaded_cache_is_the_saved_one_bit_for_bit_and_goes_on_like_it) {
  for (const auto& options : kinds()) {
    Cache cache = used(options);
    Cache loaded = session().load(cache.save());
    BOOST_TEST((loaded.save() == cache.save()));
    BOOST_TEST(loaded.length() == 5U);
    BOOST_TEST(loaded.gone() == cache.gone());
    BOOST_TEST(loaded.batch() == 2U);
    BOOST_TEST((loaded.options().kind == options.kind));
    BOOST_TEST((loaded.options().capacity == options.capacity && loaded.options().window == options.window));
    const ForwardInput step = call({{7, 8}, {9, 1}}, {{0, 1, 1, 1, 1, 1, 1}, {1, 1, 0, 1, 1, 1, 1}});
    BOOST_TEST(refusal([&] { session().forward(&loaded, call({{7, 8}, {9, 1}})); }) == "mask_revival");
    BOOST_TEST((session().forward(&loaded, step).values == session().forward(&cache, step).values));
    BOOST_TEST((loaded.save() == cache.save()));
  }
}

BOOST_AUTO_TEST_CASE(a_saved_cache_survives_everything_done_to_the_live_one) {
  for (const auto& options : kinds()) {
    Cache cache = used(options);
    const Cache kept = cache.clone();
    const Bytes saved = cache.save();
    session().forward(&cache, call({{7}, {8}}, {{0, 0, 1, 1, 1, 1}, {1, 1, 0, 1, 1, 1}}));
    cache.reset();
    BOOST_TEST((session().load(saved).save() == kept.save()));
  }
}

BOOST_AUTO_TEST_CASE(an_empty_cache_is_saved_and_loaded_empty) {
  for (const auto& options : kinds()) {
    Cache loaded = session().load(session().make_cache(options).save());
    BOOST_TEST(loaded.length() == 0U);
    BOOST_TEST(loaded.batch() == 0U);
    BOOST_TEST(refusal([&] { session().forward(&loaded, call(some_tokens(3, 2))); }) == "accepted");
  }
}

BOOST_AUTO_TEST_CASE(a_ring_that_was_cropped_to_what_it_has_lost_travels_too) {
  Cache cache = session().make_cache(sliding(5, 1));
  session().forward(&cache, call(some_tokens(2, 6)));
  cache.crop(3);
  BOOST_TEST(cache.gone() == 3U);
  Cache loaded = session().load(cache.save());
  BOOST_TEST(loaded.length() == 3U);
  BOOST_TEST(loaded.gone() == 3U);
  BOOST_TEST((session().forward(&loaded, call({{1}, {2}})).values == session().forward(&cache, call({{1}, {2}})).values));
  Cache wide = session().make_cache(sliding(4, 4));
  session().forward(&wide, call(some_tokens(1, 10)));
  wide.crop(9);
  BOOST_TEST((session().load(wide.save()).save() == wide.save()));
}

BOOST_AUTO_TEST_CASE(another_model_is_refused_as_model_mismatch_and_an_equal_one_is_not) {
  const Bytes saved = used({}).save();
  const Session twin(make_model(11)), stranger(make_model(12));
  BOOST_TEST(refusal([&] { (void)twin.load(saved); }) == "accepted");
  BOOST_TEST(refusal([&] { (void)stranger.load(saved); }) == "model_mismatch");
  const Session longer(make_model(11, {2, 3, 12, 33, 29}));
  BOOST_TEST(refusal([&] { (void)longer.load(saved); }) == "model_mismatch");
}

BOOST_AUTO_TEST_CASE(wrong_fields_of_the_document_are_named) {
  struct Case {
    CacheOptions options;
    const char* field;
    const char* value;  // JSON
    const char* text;
  };
  const CacheOptions dynamic, whole = fixed(8), ring = sliding(4, 3);
  for (const Case& wrong : std::vector<Case>{
           {dynamic, "format", "\"kvproof-golden\"", "`format` is \"kvproof-golden\", expected kvproof-cache"},
           {dynamic, "version", "[2,0]", "`version` is [2,0]"},
           {dynamic, "version", "1", "`version` is 1"},
           {dynamic, "kind", "\"ring\"", "`kind` is \"ring\""},
           {dynamic, "kind", "3", "`kind` is 3"},
           {dynamic, "kind", "\"static\"", "needs a capacity"},
           {dynamic, "capacity", "4", "a dynamic cache has no capacity"},
           {whole, "capacity", "0", "needs a capacity of at least 1"},
           {whole, "capacity", "-8", "`capacity` is -8"},
           {whole, "capacity", "8.5", "`capacity` is 8.5"},
           {whole, "capacity", "4", "length 5 and capacity 4"},
           {whole, "capacity", "9223372036854775808", "`capacity` is 9223372036854775808"},
           {dynamic, "window", "4", "only a sliding cache has a window"},
           {dynamic, "batch", "0", "batch 0 and length 5"},
           {dynamic, "batch", "3", "tensor mask is U8 [2, 5], expected U8 [3, 5]"},
           {dynamic, "length", "6", "tensor mask is U8 [2, 5], expected U8 [2, 6]"},
           {dynamic, "length", "\"5\"", "`length` is \"5\""},
           {dynamic, "gone", "1", "gone 1 with length 5"},
           {ring, "gone", "1", "gone 1 with length 5"},
           {ring, "gone", "4", "gone 4 with length 5"},
           {ring, "gone", "3", "expected F32 [2, 3, 2, 4]"},
           {dynamic, "model", "7", "`model` is 7"},
           {dynamic, "model", "{}", "refused model_mismatch"},
           {dynamic, "surplus", "1", "10 fields"},
       }) {
    Forgery forgery(wrong.options);
    forgery.document[wrong.field] = nlohmann::json::parse(wrong.value);
    const std::string text = forgery.load();
    BOOST_TEST_CONTEXT(text) BOOST_TEST(contains(text, wrong.text));
  }
  BOOST_TEST(Forgery({}).load() == "loaded");
}

BOOST_AUTO_TEST_CASE(a_missing_field_is_named) {
  for (const char* name : {"format", "version", "model", "kind", "capacity", "window", "batch", "length", "gone"}) {
    Forgery forgery({});
    forgery.document.erase(name);
    const std::string text = forgery.load();
    BOOST_TEST((contains(text, "no field `" + std::string(name)) || contains(text, "8 fields")));
  }
}

BOOST_AUTO_TEST_CASE(a_capacity_that_no_machine_has_is_corrupt_data) {
  Forgery forgery(fixed(8));
  forgery.document["capacity"] = std::int64_t{1} << 50;
  BOOST_TEST(contains(forgery.load(), "capacity 1125899906842624 cannot be allocated: "));
}

BOOST_AUTO_TEST_CASE(wrong_tensors_are_named) {
  const Bytes twos(10, std::byte{2});
  using Change = std::function<void(Forgery&)>;
  for (const auto& [change, expected] : std::vector<std::pair<Change, const char*>>{
           {[&](Forgery& f) { f.tensor("mask").bytes = twos; }, "mask element 0 is 2, expected 0 or 1"},
           {[](Forgery& f) { std::erase_if(f.tensors, [](const auto& tensor) { return tensor.name == "layer.1.keys"; }); }, "4 tensors, expected 5"},
           {[](Forgery& f) { f.tensor("layer.1.keys").name = "layer.2.keys"; }, "no tensor layer.1.keys"},
           {[&](Forgery& f) { f.tensors.push_back({"more", Dtype::u8, {10}, twos}); }, "6 tensors, expected 5"},
           {[](Forgery& f) { f.tensor("layer.0.values").shape = {3, 2, 5, 4}; }, "tensor layer.0.values is F32 [3, 2, 5, 4], expected F32 [2, 3, 5, 4]"},
           {[](Forgery& f) { f.tensor("layer.0.values").dtype = Dtype::i32; }, "tensor layer.0.values is I32"},
       }) {
    Forgery forgery({});
    change(forgery);
    const std::string text = forgery.load();
    BOOST_TEST_CONTEXT(text) BOOST_TEST(contains(text, expected));
  }
}

BOOST_AUTO_TEST_CASE(a_container_cut_at_any_byte_is_an_error) {
  const Bytes saved = used(sliding(4, 3)).save();
  for (std::size_t size = 0; size < saved.size(); ++size)
    BOOST_TEST(loading(Bytes(saved.begin(), saved.begin() + static_cast<std::ptrdiff_t>(size))) != "loaded");
}

BOOST_AUTO_TEST_CASE(flipped_bytes_never_crash_and_never_give_an_impossible_cache) {
  const Bytes saved = used(sliding(4, 3)).save();
  Random random(7);
  std::size_t rejected = 0;
  for (int i = 0; i < 3000; ++i) {
    Bytes flipped = saved;
    const std::size_t header = std::min<std::size_t>(saved.size(), 1400);
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n) flipped[random.below(header)] = static_cast<std::byte>(random.below(256));
    try {
      Cache cache = session().load(flipped);
      BOOST_TEST(cache.length() - cache.gone() <= 3U);
    } catch (const Error&) {
      ++rejected;
    }
  }
  BOOST_TEST(rejected > 1000U);
}

BOOST_AUTO_TEST_SUITE_END()
