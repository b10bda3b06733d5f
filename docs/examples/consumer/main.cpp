#include <engine/session/session.hpp>
#include <iostream>

int main(int argc, char** argv) try {
  const auto session = kvproof::Session::open(argc > 1 ? argv[1] : "golden/seed");
  kvproof::Cache cache = session.make_cache({.kind = kvproof::CacheKind::fixed, .capacity = 32});

  kvproof::ForwardInput prefix;
  prefix.input_ids = {{4, 9, 6}};
  session.forward(&cache, prefix);

  kvproof::ForwardInput next;
  next.input_ids = {{7}};
  next.attention_mask = kvproof::Rows{{1, 1, 1, 1}};  // 3 columns in the cache and 1 new
  const kvproof::Logits logits = session.forward(&cache, next);

  std::cout << "columns in the cache: " << cache.length() << "\nlogits:";
  for (const float logit : logits.values) std::cout << ' ' << logit;
  std::cout << '\n';
} catch (const kvproof::Error& error) {
  std::cerr << error.what() << '\n';
  return 1;
}
