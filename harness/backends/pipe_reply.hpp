#pragma once
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <vector>

#include "harness/backends/pipe_message.hpp"
#include "harness/contract/backend.hpp"

namespace kvproof::harness {

// What is said in a message, both ways. The harness encodes requests and decodes replies; `serve` does the opposite.

[[nodiscard]] std::vector<std::byte> encode_request(std::uint64_t id, std::string_view op, const nlohmann::ordered_json& fields);
/// A call as a step of a trace, with its id; `lane` stands beside it when it is not 0.
[[nodiscard]] std::vector<std::byte> encode_call(std::uint64_t id, const LaneCall& call);
[[nodiscard]] std::vector<std::byte> encode_together(std::uint64_t id, std::span<const LaneCall> calls);

/// Floats travel as F32 where that loses nothing, else as F64. Requires: no Breakdown, which only the harness may say.
[[nodiscard]] std::vector<std::byte> encode_reply(std::uint64_t id, const Reply& reply);
[[nodiscard]] std::vector<std::byte> encode_replies(std::uint64_t id, std::span<const Reply> replies);
[[nodiscard]] std::vector<std::byte> encode_ok(std::uint64_t id, const nlohmann::ordered_json& fields);

/// The reply to a call. Errors: DataError naming `where` for another id, none or two of ok, error and unsupported, a wrong type.
[[nodiscard]] Reply decode_reply(const PipeMessage& message, std::uint64_t id, const std::string& where);
/// The replies to `together`, in the order of its steps.
[[nodiscard]] std::vector<Reply> decode_replies(const PipeMessage& message, std::uint64_t id, std::size_t count, const std::string& where);
/// The reply to hello. Errors: DataError, also for a refusal and for another major version.
[[nodiscard]] Capabilities decode_hello(const PipeMessage& message, std::uint64_t id, const std::string& where);

[[nodiscard]] nlohmann::ordered_json capabilities_to_json(const Capabilities& capabilities);
/// What a document does not claim is not there: an absent flag is false. Errors: DataError for a wrong type.
[[nodiscard]] Capabilities capabilities_from_json(const nlohmann::json& document, const std::string& where);

}  // namespace kvproof::harness
