"""check as a process: selection, verdicts, the same report whatever -j, failures that replay."""

import json
import re
import subprocess
import xml.etree.ElementTree
from pathlib import Path

from cli_case import CliCase


class Check(CliCase):
    def laws(self):
        return [line.split()[0] for line in self.expect(0, "check", "--list").out.splitlines()]

    def check(self, code, *arguments, **says):
        return self.expect(code, "check", "--failures", self.folder / "failures", *arguments, **says)

    def test_every_law_run_alone_passes_on_the_engine(self):
        laws = self.laws()
        self.assertEqual(len(laws), 45)
        for law in laws:
            run = self.check(0, "--only", law, "--traces", 6, "--seed", 5)
            self.assertRegex(run.last, r"^PASS engine: 1 law, 6 traces")

    def test_the_report_is_the_same_bytes_whatever_the_jobs(self):
        runs = [self.check(0, "--traces", 5, "--seed", 9, "-j", jobs).out for jobs in (1, 2, 5)]
        self.assertEqual(runs[0], runs[1])
        self.assertEqual(runs[0], runs[2])
        self.assertNotEqual(runs[0], self.check(0, "--traces", 5, "--seed", 10).out)

    def test_every_situation_is_reached(self):
        out = self.check(0, "--coverage").out
        self.assertNotIn("never:", out)
        self.assertRegex(out, r"(\d+) of \1 situations reached")
        rows, worst = re.search(r"(\d+) distinct rows compared, worst (\S+) of the bound", out).groups()
        self.assertGreaterEqual(int(rows), 100_000)
        self.assertLessEqual(float(worst), 0.3)  # fp32 noise leaves room: nothing cries wolf on the probe models

    def test_what_selects_nothing_has_no_verdict(self):
        self.check(2, "--only", "mask.nothing", err='"mask.nothing" matches no law')
        self.check(2, "--skip", "wind0w.*", err='"wind0w.*" matches no law')
        self.check(2, "--only", "mask.*", "--skip", "*", err="no law is selected")

    def test_a_dead_backend_has_no_verdict(self):
        self.check(2, "--backend", "exec:/nonexistent/engine", err="engine")
        self.check(2, "--backend", "exec:true", err="exec:true")
        self.check(2, "--backend", "fault:none-such", err="names no fault")

    def test_wrong_options_are_usage(self):
        for arguments in [("--traces", "0"), ("--traces", "many"), ("--report", "html"), ("--tolerance", "wide"), ("--seed", "x"), ("--jobs", "0")]:
            self.check(64, *arguments)

    def test_a_failure_is_small_and_its_last_line_replays_it(self):
        run = self.check(1, "--backend", "fault:causal-top-left", "--only", "mask.causal_append", "--traces", 3)
        self.assertIn("FAIL mask.causal_append/0: wrong_logits at step 2", run.out)
        again = subprocess.run(run.last, shell=True, text=True, check=False, capture_output=True)
        self.assertEqual(again.returncode, 1, again)
        self.assertIn("wrong_logits at step 2", again.stdout)
        path = re.search(r"replay (\S+\.trace\.json)", run.last).group(1)
        trace = json.loads(Path(path).read_text())
        self.assertEqual([step["op"] for step in trace["trace"]], ["new", "forward", "forward"])
        self.assertEqual(trace["run"]["law"], "mask.causal_append")

    def test_reports_for_programs(self):
        lines = self.check(0, "--only", "window.*", "--traces", 3, "--report", "jsonl").out.splitlines()
        self.assertEqual([json.loads(line)["law"] for line in lines], [law for law in self.laws() if law.startswith("window.")])
        for line in self.check(0, "--traces", 2, "--report", "jsonl").out.splitlines():
            self.assertGreater(json.loads(line)["rows"], 0, f"a law that compares no row: {line}")
        junit = self.folder / "report.xml"
        run = self.check(1, "--backend", "fault:window-minus-one", "--only", "window.*", "--traces", 3, "--report", f"junit={junit}")
        self.assertIn("FAIL fault:window-minus-one", run.out)
        root = xml.etree.ElementTree.parse(junit).getroot()
        self.assertGreaterEqual(len(root.findall(".//failure")), 1)

    def test_a_time_limit_ends_the_run(self):
        self.check(0, "--seconds", 1, "--only", "mask.*", out="PASS engine: 8 laws")

    def test_fail_fast_stops(self):
        run = self.check(1, "--fail-fast", "-j", 1, "--backend", "fault:logits-scaled", "--traces", 50)
        traces = int(re.search(r", (\d+) traces", [line for line in run.out.splitlines() if line.startswith("FAIL fault:")][0]).group(1))
        self.assertLess(traces, 50)

    def test_a_model_folder_is_judged(self):
        folder = self.folder / "model"
        self.expect(0, "model", "make", "--seed", 3, "--out", folder)
        run = self.check(0, "--model", folder, "--traces", 2, out="PASS engine: 45 laws")
        self.assertRegex(run.err, r"model took \d+ s and at most \d+\.\d GB of memory")
