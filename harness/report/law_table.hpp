#pragma once
#include <span>
#include <string>

#include "harness/report/law_report.hpp"

namespace kvproof::harness {

/// A line a law: law, traces, distinct rows compared, worst error in units of the bound, verdict, not covered; columns aligned,
/// a heading above. What was not covered stands with its commonest reason. No times: the same seed gives the same bytes.
[[nodiscard]] std::string law_table_text(std::span<const LawReport> laws);

/// One JSON object on one line (docs/reports.md): the table's line and the failing cases with all their findings.
[[nodiscard]] std::string law_jsonl(const CheckRun& run, const LawReport& law);

}  // namespace kvproof::harness
