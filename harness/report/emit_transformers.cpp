#include "harness/report/emit_transformers.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "engine/base/error.hpp"
#include "harness/laws/law.hpp"
#include "harness/oracle/expectation.hpp"
#include "harness/report/emit_steps.hpp"
#include "harness/report/python_text.hpp"
#include "harness/report/transformers_prelude.hpp"
#include "harness/verdict/finding.hpp"

namespace kvproof::harness {
namespace {

[[noreturn]] void cannot(const EmitRequest& request, const std::string& why, const std::string& next = "") {
  throw Error({request.name, why, "", next});
}

void require_sayable(const EmitRequest& request) {
  const RunHeader& run = request.file.run;
  if (!run.finding) cannot(request, "the file says nothing of what was found", "kvproof check and kvproof shrink write \"finding\" into its \"run\".");
  if (run.poison) cannot(request, "unused slots are poisoned in this run, which Transformers cannot be told");
  if (*run.finding == FindingKind::wrong_code) cannot(request, "Transformers has no codes to be wrong");
  if (run.code && concerns_trace_words(*run.code)) cannot(request, fmt::format("{} is about the words of a trace, not about Transformers", code_name(*run.code)));
  if (std::ranges::any_of(request.file.trace, [](const Step& step) { return step.lane != 0; })) cannot(request, "the trace plays on several threads");
}

std::string what_happens(const EmitRequest& request) {
  switch (*request.file.run.finding) {
    case FindingKind::accepts_misuse: return "carries out a call that it should refuse";
    case FindingKind::refuses_valid: return "refuses a call that is legal";
    case FindingKind::state_changed:
      return request.file.run.code ? "changes a cache in a call that it refuses" : "changes keys and values that should only move";
    case FindingKind::wrong_length: return "gives a cache another length than its history has";
    case FindingKind::not_repeatable: return "answers the same call on the same state with other bits";
    case FindingKind::broke_down: return "breaks down over a call";
    case FindingKind::wrong_kv: return "holds wrong keys or values";
    case FindingKind::wrong_ids: return "generates ids that are not greedy";
    case FindingKind::non_finite: return "answers with NaN or infinity";
    case FindingKind::wrong_shape: return "answers in a wrong shape";
    case FindingKind::wrong_code:
    case FindingKind::wrong_logits: break;
  }
  return "answers with wrong logits";
}

std::string docstring(const EmitRequest& request) {
  const RunHeader& run = request.file.run;
  const Law* law = run.law ? find_law(*run.law) : nullptr;
  std::string text = fmt::format("\"\"\"{}: Transformers {}.\n\n", class_text({*run.finding, run.code}), what_happens(request));
  if (law != nullptr) text += fmt::format("The law, {}: {}.\n", law->id, python_words(law->statement));
  text += fmt::format("Written by kvproof replay --emit transformers {}; it needs torch, transformers and numpy:\n\n", python_words(request.name));
  return text + "    python THIS_FILE [--attention eager|sdpa]\n\nThe last line says SHOWN (exit code 0) or NOT SHOWN (exit code 1).\n\"\"\"\n";
}

/// Only what the script uses.
std::string imports_text(const std::string& script) {
  const auto used = [&](const char* word) { return script.find(word) != std::string::npos; };
  std::string text = "import argparse\n";
  for (const char* module : {"contextlib", "copy", "inspect", "io"})
    if (used(fmt::format("{}.", module).c_str())) text += fmt::format("import {}\n", module);
  text += "import os\nimport sys\nimport traceback\n\nos.environ[\"HF_HUB_OFFLINE\"] = \"1\"  # nothing is fetched\n";
  if (used("np.")) text += "import numpy as np\n";
  text += "import torch\nimport transformers\nfrom transformers import ";
  if (used("DynamicCache")) text += "DynamicCache, ";
  text += "GenerationConfig, GPT2Config, GPT2LMHeadModel";
  if (used("StaticCache")) text += ", StaticCache";
  text += "\n";
  return used("DynamicLayer") ? text + "from transformers.cache_utils import DynamicLayer, StaticLayer\n" : text;
}

std::string source_text(const ModelSource& model) {
  if (!model.generated()) return fmt::format("{{\"folder\": {}}}", python_string(model.folder));
  return fmt::format("{{\"seed\": {}, \"config\": {}}}", model.seed, python_literal(model.config, 4));
}

std::string constants_text(const EmitRequest& request, const EmittedSteps& steps) {
  std::string text = "\n\n";
  for (const auto& [name, model] : request.file.models) text += fmt::format("{} = {}\n", python_name("MODEL_", name), source_text(model));
  if (steps.recomputes) text += fmt::format("ATOL, RTOL = {:g}, {:g}  # how close float32 must come to float64\n", request.tolerance.atol, request.tolerance.rtol);
  const FindingKind kind = *request.file.run.finding;
  const bool code = request.file.run.code.has_value();  // behind a call that changed something, a legal one may not go any more
  const bool raises = kind == FindingKind::refuses_valid || (kind == FindingKind::broke_down && !code) || (kind == FindingKind::state_changed && code);
  return text + fmt::format("LEGAL_CALL_RAISES = {}  # what is to be shown\n", raises ? "True" : "False");
}

std::string play_text(const EmitRequest& request, const EmittedSteps& steps) {
  std::string text = "\n\ndef play(attention):\n";
  for (const auto& [name, model] : request.file.models) {
    const char* maker = model.generated() ? "make_model" : "load_model";
    const std::string source = python_name("MODEL_", name);
    text += fmt::format("    {} = {}({}, attention, torch.float32)\n", python_name("model_", name), maker, source);
    if (steps.recomputes) text += fmt::format("    {} = {}({}, \"eager\", torch.float64, reorder_and_upcast_attn=False)\n", python_name("exact_", name), maker, source);
  }
  for (const std::string& line : steps.lines) text += line.empty() ? "\n" : "    " + line + "\n";
  return text;
}

bool any_model(const EmitRequest& request, bool generated) {
  return std::ranges::any_of(request.file.models, [&](const auto& model) { return model.second.generated() == generated; });
}

}  // namespace

std::string transformers_script(const EmitRequest& request) {
  require_sayable(request);
  const std::vector<Outcome> outcomes = outcomes_of(request.file.trace, request.models, request.name, false);
  const EmittedSteps steps = emit_steps(request, outcomes);
  std::string text = constants_text(request, steps);
  text += kPythonVerdict;
  if (any_model(request, true)) text += kPythonGenerated;
  if (any_model(request, false)) text += kPythonFolder;
  for (const std::string_view part : steps.prelude) text += part;
  text += play_text(request, steps);
  text += kPythonMain;
  return docstring(request) + imports_text(text) + text;
}

}  // namespace kvproof::harness
