"""shrink as a process: what it writes fails again, in the same way, and nothing of it can go."""

import hashlib
import json
import unittest

from cli_case import CliCase

FAULT = "fault:causal-top-left"  # of a chunk behind a warm cache, each query sees only as many keys as it has place in the chunk

STEPS = [
    {"op": "new", "cache": "a", "kind": "static", "capacity": 12},
    {"op": "new", "cache": "b", "kind": "dynamic"},
    {"op": "forward", "cache": "b", "input_ids": [[1, 2]]},
    {"op": "forward", "cache": "a", "input_ids": [[0, 9, 6], [4, 9, 6]], "attention_mask": [[0, 1, 1], [1, 1, 1]]},
    {"op": "forward", "cache": "a", "input_ids": [[7, 8, 3], [7, 1, 2]], "attention_mask": [[0, 1, 1, 1, 1, 1], [1, 1, 1, 1, 1, 1]]},
    {"op": "length", "cache": "a", "expect": 6},
    {"op": "drop", "cache": "b"},
]


class Shrink(CliCase):
    def shrunk(self, path):
        return json.loads(path.read_text())["trace"]

    def test_a_failing_trace_becomes_small_and_fails_again(self):
        self.write_trace(STEPS, "long.trace.json")
        run = self.expect(1, "shrink", self.folder / "long.trace.json", "--backend", FAULT, out=["of 7 steps are left", "no step, row or token can go", "FAIL"])
        small = self.folder / "long.min.trace.json"
        trace = self.shrunk(small)
        self.assertEqual([step["op"] for step in trace], ["new", "forward", "forward"])
        self.assertEqual([len(step["input_ids"]) for step in trace[1:]], [1, 1])
        self.assertIn(f"replay {small} --backend {FAULT}", run.last)
        again = self.expect(1, "replay", small, "--backend", FAULT)
        self.assertIn("wrong_logits", again.out)
        self.expect(0, "replay", small)
        for step in trace:  # the report shows each step on a line of its own
            self.assertIn(json.dumps(step, separators=(",", ":")), run.out)

    def test_without_any_of_its_steps_the_small_trace_passes(self):
        self.write_trace(STEPS, "long.trace.json")
        self.expect(1, "shrink", self.folder / "long.trace.json", "--backend", FAULT, "--out", self.folder / "small.trace.json")
        trace = self.shrunk(self.folder / "small.trace.json")
        for left_out in range(len(trace)):
            less = self.write_trace(trace[:left_out] + trace[left_out + 1 :], "less.trace.json")
            self.assertNotIn("wrong_logits", self.run_kvproof("replay", less, "--backend", FAULT).out)

    def test_the_same_file_gives_the_same_bytes(self):
        self.write_trace(STEPS, "long.trace.json")
        texts = []
        for name in ("one", "two"):
            self.expect(1, "shrink", self.folder / "long.trace.json", "--backend", FAULT, "--out", self.folder / name)
            texts.append((self.folder / name).read_bytes())
        self.assertEqual(texts[0], texts[1])

    def test_a_trace_that_passes_has_no_verdict_and_writes_nothing(self):
        self.write_trace(STEPS, "long.trace.json")
        self.expect_complaint(2, "shrink", self.folder / "long.trace.json", says=["passes", "a trace that fails"])
        self.assertEqual([file.name for file in self.folder.iterdir()], ["long.trace.json"])

    def test_a_budget_that_ends_is_said(self):
        self.write_trace(STEPS, "long.trace.json")
        self.expect(1, "shrink", self.folder / "long.trace.json", "--backend", FAULT, "--budget", 1, out="the budget ended")

    def test_the_folder_of_a_model_is_found_from_another_place(self):
        source = {"folder": "model", "weights_sha256": hashlib.sha256((self.model_of("seed") / "model.safetensors").read_bytes()).hexdigest()}
        trace = self.write_trace(STEPS[:1] + STEPS[3:6], "long.trace.json", models={"main": source})
        (self.folder / "elsewhere").mkdir()
        small = self.folder / "elsewhere" / "small.trace.json"
        self.expect(1, "shrink", trace, "--backend", FAULT, "--out", small)
        self.expect(1, "replay", small, "--backend", FAULT)

    def test_wrong_calls_are_usage_and_wrong_files_are_data(self):
        self.expect_complaint(64, "shrink", says="0 trace files")
        self.expect_complaint(64, "shrink", "a", "b", says="2 trace files")
        self.expect_complaint(64, "shrink", "a", "--budget", "0", says="--budget is 0")
        (self.folder / "broken.trace.json").write_text("{")
        self.expect_complaint(3, "shrink", self.folder / "broken.trace.json")


if __name__ == "__main__":
    unittest.main()
