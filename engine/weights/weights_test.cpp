#include "engine/weights/weights.hpp"

#include <boost/test/unit_test.hpp>

#include <nlohmann/json.hpp>

#include "engine/base/error.hpp"
#include "engine/weights/portable_model.hpp"

namespace {

namespace fs = std::filesystem;

BOOST_AUTO_TEST_SUITE(weights)

BOOST_AUTO_TEST_CASE(a_portable_model_opens_and_its_head_is_its_embedding) {
  const fs::path folder = fs::temp_directory_path() / "kvproof_weights_test_portable";
  const auto config = nlohmann::json::object({{"n_embd", 8}, {"n_head", 2}, {"n_layer", 1}, {"vocab_size", 11}, {"n_positions", 5}});
  kvproof::write_portable_model(config, 7, folder);
  const auto opened = kvproof::Weights::open(folder);
  BOOST_TEST(opened.config().n_inner == 32U);
  BOOST_TEST(&opened.tensor("lm_head.weight") == &opened.tensor("wte.weight"));
  BOOST_TEST(opened.sha256().size() == 64U);
  fs::remove_all(folder);
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
