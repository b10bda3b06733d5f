#include "engine/weights/weights.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cstring>

#include <nlohmann/json.hpp>
#include <optional>

#include "engine/base/error.hpp"
#include "engine/safetensors/json.hpp"
#include "engine/safetensors/text.hpp"
#include "engine/weights/float16.hpp"
#include "engine/weights/folder.hpp"
#include "engine/weights/tensor_table.hpp"

namespace kvproof {
namespace {

// A tensor of a file, with the file for messages.
struct Found {
  const TensorView* view = nullptr;
  const SafetensorsFile* file = nullptr;

  [[nodiscard]] std::string where() const { return fmt::format("weights {} @ byte {}", file->where(), view->header_at); }
};

using FoundByName = std::map<std::string, Found, std::less<>>;

std::string_view canonical(std::string_view name) {
  constexpr std::string_view kPrefix = "transformer.";
  const bool prefixed = name.starts_with(kPrefix) && name != "transformer.lm_head.weight";
  return prefixed ? name.substr(kPrefix.size()) : name;
}

// Old checkpoints carry the causal mask as a buffer; Transformers drops it as well.
bool is_legacy_buffer(std::string_view name) {
  if (!name.starts_with("h.")) return false;
  const std::size_t digits = name.find_first_not_of("0123456789", 2);
  if (digits == 2 || digits == std::string_view::npos) return false;
  const std::string_view rest = name.substr(digits);
  return rest == ".attn.bias" || rest == ".attn.masked_bias";
}

FoundByName collect(const std::vector<SafetensorsFile>& files) {
  FoundByName found;
  for (const SafetensorsFile& file : files)
    for (const TensorView& view : file.tensors()) {
      const Found here{&view, &file};
      const std::string name(canonical(view.name));
      if (is_legacy_buffer(name)) continue;
      if (!found.emplace(name, here).second)
        throw DataError({here.where(), fmt::format("tensor {} a second time", shown(name)), "it once, with or without transformer.", ""});
    }
  return found;
}

std::string question(std::string_view formula) {
  return fmt::format("Is {} in config.json right?", formula.find("n_inner") != std::string_view::npos       ? "n_inner"
                                                    : formula.find("vocab_size") != std::string_view::npos  ? "vocab_size"
                                                    : formula.find("n_positions") != std::string_view::npos ? "n_positions"
                                                                                                            : "n_embd");
}

void check_tensor(const Found& found, const ExpectedTensor& expected) {
  const TensorView& view = *found.view;
  if (view.shape != expected.shape)
    throw DataError({found.where(), fmt::format("tensor {} has shape [{}]", expected.name, fmt::join(view.shape, ", ")),
                     fmt::format("[{}] ({})", fmt::join(expected.shape, ", "), expected.formula), question(expected.formula)});
  if (view.dtype != Dtype::f32 && view.dtype != Dtype::f16 && view.dtype != Dtype::bf16)
    throw DataError({found.where(), fmt::format("tensor {} has dtype {}", expected.name, dtype_name(view.dtype)), "F32, F16 or BF16", ""});
}

const Found& require(const FoundByName& found, const ExpectedTensor& expected, const std::filesystem::path& folder) {
  const auto at = found.find(expected.name);
  if (at == found.end())
    throw DataError({fmt::format("weights {}", folder.string()),
                     fmt::format("tensor {} is missing", expected.name),
                     fmt::format("shape [{}] ({})", fmt::join(expected.shape, ", "), expected.formula),
                     expected.name == "lm_head.weight" ? "Should tie_word_embeddings in config.json be true?" : ""});
  check_tensor(at->second, expected);
  return at->second;
}

// Transformers 4 lets a tied config overrule another lm_head.weight, Transformers 5 the file overrule the config: a folder
// that means two models is refused.
void check_tied_head(FoundByName& found, const Config& config) {
  const auto head = found.find("lm_head.weight");
  if (!config.tie_word_embeddings || head == found.end()) return;
  const Found here = head->second;
  check_tensor(here, {"lm_head.weight", {config.vocab_size, config.n_embd}, "vocab_size x n_embd"});
  const TensorView& wte = *found.find("wte.weight")->second.view;
  if (here.view->dtype != wte.dtype || !std::ranges::equal(here.view->bytes, wte.bytes))
    throw DataError({here.where(), "tensor lm_head.weight differs from wte.weight while tie_word_embeddings is true", "the same bytes",
                     "Set tie_word_embeddings to false to use it, or drop the tensor"});
  found.erase(head);
}

[[noreturn]] void refuse_extra(const std::string& name, const Found& found) {
  throw DataError({found.where(), fmt::format("tensor {} of shape [{}]", shown(name), fmt::join(found.view->shape, ", ")),
                   "no such tensor in a GPT-2 with this config", "Is n_layer in config.json right?"});
}

struct CloseDigest {
  void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};

void require_digest(bool worked) {
  if (!worked) throw Error({"SHA-256", "OpenSSL refuses to compute it", "", ""});
}

template <class Number>
std::vector<Number> converted(const TensorView& tensor, float (*convert)(std::uint16_t)) {
  std::vector<Number> values(tensor.bytes.size() / 2);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, tensor.bytes.data() + 2 * i, 2);
    values[i] = convert(bits);
  }
  return values;
}

template <class Number, class Stored>
std::vector<Number> widened(const TensorView& tensor) {
  std::vector<Number> values(tensor.bytes.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored value = 0;
    std::memcpy(&value, tensor.bytes.data() + sizeof(Stored) * i, sizeof(Stored));
    values[i] = value;
  }
  return values;
}

template <class Number>
std::vector<Number> elements(const TensorView& tensor, std::string_view expected) {
  if (tensor.dtype == Dtype::f32) return widened<Number, float>(tensor);
  if (tensor.dtype == Dtype::f16) return converted<Number>(tensor, float_from_f16);
  if (tensor.dtype == Dtype::bf16) return converted<Number>(tensor, float_from_bf16);
  throw Error({"tensor " + shown(tensor.name), fmt::format("dtype {}", dtype_name(tensor.dtype)), std::string(expected), ""});
}

}  // namespace

Weights Weights::open(const std::filesystem::path& folder) {
  Weights weights;
  weights.folder_ = folder;
  const auto config_path = folder / "config.json";
  weights.config_text_ = read_text(config_path);
  weights.config_ = parse_config(parse_json(weights.config_text_, config_path.string()), config_path.string());
  weights.files_ = open_weight_files(folder);

  FoundByName found = collect(weights.files_);
  for (const ExpectedTensor& expected : expected_tensors(weights.config_))
    weights.tensors_.emplace_back(expected.name, require(found, expected, folder).view);
  check_tied_head(found, weights.config_);
  for (const auto& [name, view] : weights.tensors_) found.erase(name);
  if (!found.empty()) refuse_extra(found.begin()->first, found.begin()->second);
  if (weights.config_.tie_word_embeddings) weights.tensors_.emplace_back("lm_head.weight", weights.tensors_.front().second);
  std::ranges::sort(weights.tensors_);
  return weights;
}

const TensorView& Weights::tensor(std::string_view name) const {
  const auto at = std::ranges::lower_bound(tensors_, name, {}, [](const auto& entry) { return std::string_view(entry.first); });
  if (at == tensors_.end() || at->first != name) throw Error({"weights " + folder_.string(), "no tensor " + shown(name), "", ""});
  return *at->second;
}

std::string Weights::sha256() const {
  const std::unique_ptr<EVP_MD_CTX, CloseDigest> context(EVP_MD_CTX_new());
  require_digest(context != nullptr && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1);
  for (const SafetensorsFile& file : files_)
    require_digest(EVP_DigestUpdate(context.get(), file.bytes().data(), file.bytes().size()) == 1);
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  require_digest(EVP_DigestFinal_ex(context.get(), digest.data(), &length) == 1);
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + length, ""));
}

std::vector<float> to_floats(const TensorView& tensor) { return elements<float>(tensor, "F32, F16 or BF16"); }

std::vector<double> to_doubles(const TensorView& tensor) {
  if (tensor.dtype == Dtype::f64) return widened<double, double>(tensor);
  return elements<double>(tensor, "F64, F32, F16 or BF16");
}

}  // namespace kvproof
