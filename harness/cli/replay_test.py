"""replay, model and generate as processes."""

import json
import subprocess

from cli_case import CONFIG, EVERY_OP, GOLDEN, CliCase, read_container


class Replay(CliCase):
    def test_each_op_passes_on_every_backend(self):
        trace = self.write_trace(EVERY_OP)
        for backend in ["engine", "oracle"]:
            run = self.expect(0, "replay", trace, "--backend", backend, out="(default)")
            self.assertRegex(run.last, rf"^PASS {backend}: 1 trace, \d+ rows compared")

    def test_lanes_poison_and_several_models_are_played(self):
        models = {name: {"config": CONFIG | {"n_layer": layers}, "seed": layers} for name, layers in [("main", 1), ("other", 2)]}
        steps = [step | {"lane": lane} for lane in (0, 1) for step in EVERY_OP]
        steps += [{"op": "new", "cache": "o", "kind": "dynamic", "model": "other"}, {"op": "forward", "cache": "o", "input_ids": [[1, 2]]},
                  {"op": "forward", "cache": "o", "input_ids": [[1, 2]], "model": "main", "error": "model_mismatch"}]
        for step in steps:
            if step["op"] == "read":
                step["layer"] = 0
        self.expect(0, "replay", self.write_trace(steps, models=models, run={"poison": True}), out="PASS engine")

    def test_a_failure_is_replayed_by_its_last_line(self):
        trace = self.write_trace(EVERY_OP, run={"atol": 0, "rtol": 0})
        run = self.expect(1, "replay", trace, out=("wrong_logits at step 2", "atol 0, rtol 0 (file)"))
        again = subprocess.run(run.last, shell=True, text=True, check=False, capture_output=True)
        self.assertEqual((again.returncode, again.stdout), (1, run.out))
        self.expect(0, "replay", trace, "--atol", "1e-5", "--rtol", "1e-4", out="(command line)")

    def test_a_folder_of_a_trace_lies_beside_it_and_holds_the_weights_it_names(self):
        self.model_of("seed")
        sha256 = json.loads(read_container(GOLDEN / "seed/seed.golden.safetensors")[0]["kvproof"])["weights_sha256"]
        steps = [{"op": "forward", "cache": None, "input_ids": [[4, 9, 6]]}]
        self.expect(0, "replay", self.write_trace(steps, models={"main": {"folder": "model", "weights_sha256": sha256}}))
        for folder, sha, code, says in [("model", "0" * 64, 3, "other weights than the trace was made for"), ("nowhere", sha256, None, "nowhere")]:
            run = self.run_kvproof("replay", self.write_trace(steps, models={"main": {"folder": folder, "weights_sha256": sha}}))
            self.assertIn(run.code, (2, 3) if code is None else (code,), run)
            self.assertIn(says, run.out)

    def test_a_trace_cut_at_every_byte_is_one_clear_line_each(self):
        whole = self.write_trace(EVERY_OP[:4]).read_bytes()
        cuts = []
        for length in range(len(whole)):
            cuts.append(self.folder / f"{length}.trace.json")
            cuts[-1].write_bytes(whole[:length])
        lines = self.expect(3, "replay", *cuts).out.splitlines()
        self.assertEqual(len(lines), len(cuts) + 1)
        for line, cut in zip(lines, cuts):
            self.assertTrue(line.startswith(f"CORRUPT {cut}"), line)

    def test_what_a_trace_may_not_say_is_named(self):
        new = EVERY_OP[0]
        for steps, options, says in [
            ([new | {"op": "fly"}], {}, 'a.trace.json: step 0: unknown op "fly"'),
            ([new | {"size": 3}], {}, "size"),
            ([{"op": "new", "cache": "a"}], {}, "kind"),
            ([new | {"model": "other"}], {}, 'model "other", expected a model of the header'),
            ([new, new], {}, None),
            ([new, new | {"error": "capacity"}], {}, "step 1: the file says capacity, expected cache_exists"),
            ([new, {"op": "length", "cache": "a", "expect": 1}], {}, "step 1: the file says length 1, expected 0"),
            ([new], {"run": {"noise": True}}, "noise"),
            ([new], {"models": {"main": {"config": CONFIG | {"n_head": 3}, "seed": 1}}}, "n_head"),
        ]:
            with self.subTest(says=says):
                run = self.expect(3 if says else 2, "replay", self.write_trace(steps, **options))
                self.assertIn(says or "NOTHING COMPARED", run.out)

    def test_what_is_no_trace_is_named(self):
        self.expect(2, "replay", self.folder, out=str(self.folder))
        self.expect(2, "replay", self.folder / "nowhere", out="nowhere")
        self.expect(3, "replay", GOLDEN / "seed/seed.golden.safetensors", out="CORRUPT ")


class Model(CliCase):
    def test_a_seed_makes_the_same_bytes_and_another_seed_others(self):
        made = [self.expect(0, "model", "make", "--seed", seed, "--out", self.folder / str(i), out="weights_sha256 ").out.split()[-1]
                for i, seed in enumerate([7, 7, 8, 2**64 - 1])]
        self.assertEqual(made[0], made[1])
        self.assertEqual(len(set(made)), 3)
        run = self.expect(0, "model", "info", self.folder / "0", out=("n_layer 2, n_head 5, n_embd 20 (head_dim 4)", "lm_head tied, weights F32", made[0]))
        self.assertEqual(len(run.out.splitlines()), 2)

    def test_a_config_and_sizes_above_it(self):
        config = self.folder / "config.json"
        config.write_text(json.dumps(CONFIG | {"tie_word_embeddings": False}))
        self.expect(0, "model", "make", "--seed", 1, "--config", config, "--n_layer", 1, "--vocab_size", 50, "--out", self.folder / "m")
        self.expect(0, "model", "info", self.folder / "m", out=("n_layer 1", "vocab_size 50", "lm_head separate"))

    def test_what_cannot_be_honoured_is_named_and_nothing_is_written(self):
        for change, says in [({"model_type": "llama"}, "model_type"), ({"n_head": 3}, "n_head"), ({"activation_function": "mish"}, "mish"), ({"n_embd": -20}, "n_embd is -20"),
                             ({"n_embd": 2**40}, "n_embd"), ({"vocab_size": 0}, "vocab_size")]:
            with self.subTest(says=says):
                config = self.folder / "config.json"
                config.write_text(json.dumps(CONFIG | change))
                self.expect_complaint(3, "model", "make", "--seed", 1, "--config", config, "--out", self.folder / "m", says=says)
                self.assertFalse((self.folder / "m").exists())
        config.write_text("{")
        self.expect_complaint(3, "model", "make", "--seed", 1, "--config", config, "--out", self.folder / "m", says="config.json")

    def test_a_folder_that_cannot_be_written_or_read_is_named(self):
        (self.folder / "file").write_text("")
        self.expect_complaint(2, "model", "make", "--seed", 1, "--out", self.folder / "file" / "m", says="file")
        for folder in [self.folder / "nowhere", self.folder]:
            run = self.run_kvproof("model", "info", folder)
            self.assertIn(run.code, (2, 3), run)
            self.assertIn(str(folder), run.err)
            self.assertEqual(len(run.err.splitlines()), 1, run)


class Generate(CliCase):
    CACHES = [["none"], ["dynamic"], ["static", "--capacity", 20], ["static_sliding_window", "--capacity", 20, "--window", 20]]

    def generate(self, *ids, n=10, code=0, model="lively", options=(), **words):
        prompts = [word for each in ids for word in ("--ids", each)]
        run = self.expect(code, "generate", "--model", GOLDEN / model, *prompts, "--max-new-tokens", n, *options, **words)
        return [[int(i) for i in line.split(",")] for line in run.out.splitlines()]

    def test_every_cache_gives_the_same_ids_alone_and_in_a_ragged_batch(self):
        prompts = ["4,9,6", "3", "8,8,1,2,30"]
        alone = [self.generate(prompt)[0] for prompt in prompts]
        self.assertEqual([len(row) for row in alone], [10, 10, 10])
        self.assertGreater(len({tuple(row) for row in alone}), 1)
        for cache in self.CACHES:
            with self.subTest(cache=cache):
                self.assertEqual(self.generate(*prompts, options=["--cache", *cache]), alone)

    def test_the_ids_are_those_that_transformers_chose(self):
        metadata, tensors = read_container(GOLDEN / "lively/generate-none.golden.safetensors")
        compared = 0
        for index, step in enumerate(json.loads(metadata["kvproof"])["trace"]):
            if step["op"] != "generate" or step.get("error"):
                continue
            rows = step["input_ids"], step.get("attention_mask") or [[1] * len(row) for row in step["input_ids"]]
            prompts = [",".join(str(i) for i, seen in zip(*row) if seen) for row in zip(*rows)]
            eos = ["--eos", step["eos_token_id"]] if "eos_token_id" in step else []
            recorded = tensors[f"step.{index}.ids"]
            for cache in self.CACHES[:2]:
                ids = self.generate(*prompts, n=step["max_new_tokens"], options=["--cache", *cache, *eos])
                self.assertEqual([i for row in ids for i in row], recorded.numbers())
                compared += 1
        self.assertGreater(compared, 0)

    def test_a_row_ends_with_its_eos(self):
        ids = self.generate("4,9,6")[0]
        eos = ids[3]
        self.assertEqual(self.generate("4,9,6", options=["--eos", eos])[0], ids[: ids.index(eos) + 1])

    def test_a_window_changes_the_ids_or_not_but_never_fails(self):
        self.assertEqual(len(self.generate("4,9,6,2,1,7", options=["--cache", "static_sliding_window", "--capacity", 4, "--window", 2])[0]), 10)

    def test_what_the_contract_refuses_is_usage_with_its_code(self):
        for ids, options, says in [
            (["4,9,99"], [], "(token_range)"),
            (["4"], ["--cache", "static", "--capacity", 5], "(capacity)"),
            (["4"], ["--cache", "static"], "(bad_argument)"),
            (["4"], ["--capacity", 5], "(bad_argument)"),
            (["4"], ["--cache", "static", "--capacity", 0], "(bad_argument)"),
        ]:
            with self.subTest(says=says, options=options):
                self.generate(*ids, options=options, code=64, err=says)
        self.generate("4", n=0, code=64, err="(bad_argument)")
        self.generate("4", n=10**9, code=64, err="(context_length)")
