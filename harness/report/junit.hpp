#pragma once
#include <span>
#include <string>

#include "harness/report/known_list.hpp"
#include "harness/report/law_report.hpp"

namespace kvproof::harness {

/// The report for build servers: a testsuite for each family of laws (`window`), a testcase for each law.
///
/// A suite's properties say seed, backend, tolerance and worst error, and of each law its traces, rows, worst error and what was not
/// covered. A law that was not played is skipped, one that judged nothing is an error, a failing one a failure whose text is that of
/// the failing cases with their replay commands. Text from a backend that no XML may hold is replaced by U+FFFD.
///
/// A law that fails only as a list of known failures says is skipped with the reasons; the list itself is a suite of its own, which
/// fails if an entry has no place in it any more.
///
/// Source    harness/report/junit.xsd: what build servers read, in its strict form; the tests hold every report against it.
[[nodiscard]] std::string junit_xml(const CheckRun& run, std::span<const LawReport> laws, const ListReport* list = nullptr);

/// `text` as XML may hold it: valid UTF-8 without control characters other than tab and newline.
[[nodiscard]] std::string xml_text(const std::string& text);

}  // namespace kvproof::harness
