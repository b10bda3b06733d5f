"""replay --emit transformers as a process. What the scripts show is tested where Transformers is (adapters/transformers); here, that they are
Python, the same bytes each time, and make the weights that kvproof makes."""

import ast
import importlib.util
import json
import re
import unittest

from cli_case import CONFIG, EVERY_OP, CliCase

HAS_NUMPY = importlib.util.find_spec("numpy") is not None


class Emit(CliCase):
    def emit(self, path, code=0, **says):
        return self.expect(code, "replay", "--emit", "transformers", path, **says).out

    def finding(self, steps, name="a.trace.json", models=None, **run):
        return self.write_trace(steps, name, run={"finding": "wrong_logits"} | run, models=models)

    def test_every_way_of_failing_of_some_faults_becomes_python(self):
        kinds = set()
        faults = {"mask-short-accepted": "mask.refused", "refused-call-appends": "isolation.refusal", "pad-mask-lost": "padding.*", "greedy-wrong-id": "generate.*",
                  "read-v-from-k": "numerics.kv", "drifts": "numerics.repeatable", "crop-zero-noop": "cache.crop", "clone-shares": "isolation.clone*"}
        for fault, laws in faults.items():
            self.expect(1, "check", "--backend", f"fault:{fault}", "--only", laws, "--traces", 20, "--failures", self.folder / "failures")
        for path in sorted((self.folder / "failures").iterdir()):
            run = json.loads(path.read_text())["run"]
            done = self.run_kvproof("replay", "--emit", "transformers", path)
            if done.code == 0:
                kinds.add(run["finding"])
                ast.parse(done.out)
                self.assertEqual(done.out, self.emit(path))
                self.assertIn(f'"""{run["finding"]}', done.out)
            else:
                self.assertEqual([done.code, done.out], [2, ""], done)
                self.assertRegex(done.err, "codes|poison|window", done)
        self.assertLessEqual({"accepts_misuse", "state_changed", "wrong_logits", "wrong_ids", "wrong_kv", "not_repeatable", "wrong_length"}, kinds)

    def test_nothing_of_ours_is_imported(self):
        tree = ast.parse(self.emit(self.finding([step for step in EVERY_OP if step.get("cache") != "w"])))
        imported = {name.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for name in node.names}
        imported |= {node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
        self.assertLessEqual(imported, {"argparse", "contextlib", "copy", "inspect", "io", "os", "sys", "traceback", "numpy", "torch", "transformers"})

    def test_a_folder_is_named_as_it_lies_from_here(self):
        folder = self.model_of("seed")
        info = self.expect(0, "model", "info", folder).out
        sha = re.search(r"[0-9a-f]{64}", info).group(0)
        steps = [{"op": "forward", "cache": None, "input_ids": [[4]]}]
        out = self.emit(self.finding(steps, models={"main": {"folder": "model", "weights_sha256": sha}}))
        self.assertIn(f'MODEL_main = {{"folder": "{folder}"}}', out)
        self.assertIn("load_model(MODEL_main, attention, torch.float32)", out)

    def test_what_cannot_be_said_is_no_verdict(self):
        self.emit(self.write_trace(EVERY_OP), 2, err="says nothing of what was found")
        self.emit(self.finding(EVERY_OP), 2, err="a static_sliding_window cache")
        self.emit(self.folder / "none.trace.json", 2, err="none.trace.json")
        self.emit(self.finding([{"op": "forwards"}]), 3, err="forwards")
        self.expect(64, "replay", "--emit", "pytorch", self.finding(EVERY_OP), err="--emit")
        self.expect(64, "replay", "--emit", "transformers", self.finding(EVERY_OP), self.finding(EVERY_OP, "b.trace.json"), err="2 trace files")

    def test_a_misuse_is_said_in_the_contracts_words(self):
        steps = [{"op": "new", "cache": "a", "kind": "dynamic"}, {"op": "forward", "cache": "a", "input_ids": [[4, 9, 6]]},
                 {"op": "forward", "cache": "a", "input_ids": [[7]], "attention_mask": [[1]]}]
        out = self.emit(self.finding(steps, finding="accepts_misuse", code="mask_length"))
        self.assertIn("# A misuse: mask_length (cache 3, new 1, mask 1, expected 4).", out)

    @unittest.skipUnless(HAS_NUMPY, "numpy is not installed")
    def test_the_weights_are_the_bits_that_kvproof_makes(self):
        import numpy

        for dtype in (None, "bfloat16"):
            config = CONFIG | ({"dtype": dtype} if dtype else {})
            folder = self.folder / f"model-{dtype}"
            (self.folder / "config.json").write_text(json.dumps(config))
            self.expect(0, "model", "make", "--config", self.folder / "config.json", "--seed", 2**63 + 5, "--out", folder)
            steps = [{"op": "forward", "cache": None, "input_ids": [[4]]}]
            out = self.emit(self.finding(steps, models={"main": {"config": config, "seed": 2**63 + 5}}))
            scope = {"np": numpy}
            exec(out[out.index("def mix(") : out.index("def make_model(")], scope)
            data = (folder / "model.safetensors").read_bytes()
            length = int.from_bytes(data[:8], "little")
            for name, tensor in json.loads(data[8 : 8 + length]).items():
                if name == "__metadata__":
                    continue
                start, end = tensor["data_offsets"]
                made = scope["weights"](2**63 + 5, name, tensor["shape"], config["initializer_range"])
                if dtype == "bfloat16":  # torch rounds it: to nearest, ties to even
                    bits = made.view(numpy.uint32)
                    made = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(numpy.uint16)
                self.assertEqual(made.tobytes(), data[8 + length + start : 8 + length + end], name)
