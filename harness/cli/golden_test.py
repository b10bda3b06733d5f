"""golden verify, show, make and diff as processes."""

import json
import math
import shlex
import subprocess

from cli_case import CONFIG, EVERY_OP, GOLDEN, CliCase, Tensor, read_container, write_container

SEED = GOLDEN / "seed" / "seed.golden.safetensors"


class Verify(CliCase):
    def test_engine_and_oracle_pass_and_say_what_was_judged(self):
        for backend in ["engine", "oracle"]:
            run = self.expect(0, "golden", "verify", *sorted((GOLDEN / "seed").glob("*.golden.safetensors")), "--backend", backend)
            self.assertEqual([line[:5] for line in run.out.splitlines()], ["ok   ", "ok   ", "PASS "])
            self.assertRegex(run.last, rf"^PASS {backend}: 2 files, 16 rows compared, worst 0\.00\d+ of the bound \(step \d+ row 0 column \d element \d+\) in ")
            self.assertIn("atol 1e-05, rtol 0.0001 (file)", run.out)

    def test_json_lines_hold_the_same(self):
        lines = [json.loads(line) for line in self.expect(0, "golden", "verify", SEED, SEED, "--report", "jsonl").out.splitlines()]
        self.assertEqual(len(lines), 2)
        self.assertEqual(lines[0]["verdict"], "pass")
        self.assertEqual(lines[0]["rows"], 8)
        self.assertEqual(lines[0]["top1"], {"rows": 8, "agree": 8, "undecidable": 0})
        self.assertEqual(lines[0]["findings"], [])

    def test_the_report_says_which_tolerance_is_in_force(self):
        self.expect(0, "golden", "verify", SEED, "--tolerance", "derived", out="+ 8 x noise (command line)")
        self.expect(0, "golden", "verify", SEED, "--atol", "1e-6", out="atol 1e-06, rtol 0.0001 (command line)")
        self.expect(1, "golden", "verify", SEED, "--atol", "0", "--rtol", "0", out="atol 0, rtol 0 (command line)")

    def test_a_file_of_ids_only_is_judged(self):
        run = self.expect(0, "golden", "verify", GOLDEN / "lively" / "generate-dynamic.golden.safetensors", out="rows compared, ids only")
        self.assertRegex(run.last, r"^PASS engine: 1 file, \d+ rows compared")


class Planted(CliCase):
    def plant(self, step, index, change, name="seed/seed-float64", what="logits"):
        document, tensors, path = self.golden(name)
        tensor = tensors[f"step.{step}.{what}"]
        tensor[index] = change(tensor.numbers()[index])
        return self.write_golden(path, document, tensors)

    def test_one_wrong_logit_is_found_with_both_values_and_replayed_by_the_last_line(self):
        path = self.plant(3, 5, lambda value: value + 0.25)
        run = self.expect(1, "golden", "verify", path)
        want = read_container(path)[1]["step.3.logits"].numbers()[5]
        self.assertRegex(run.out, rf"(?m)^FAIL {path}: wrong_logits at step 3: row 0 column 0: logit 5 got -?\d[\d.e-]*, expected {want:.8g} \(bound .*\); 1 of 32 differ$")
        again = subprocess.run(run.last, shell=True, text=True, check=False, capture_output=True)
        self.assertEqual((again.returncode, again.stdout), (1, run.out))

    def test_the_replay_line_survives_odd_names_and_carries_the_options(self):
        document, tensors, path = self.golden("seed/seed-float64", folder=self.model_of("seed", "it's a $folder"))
        tensors["step.1.logits"][0] = 9
        self.write_golden(path, document, tensors)
        run = self.expect(1, "golden", "verify", path, "--model", path.parent, "--backend", "oracle", "--atol", "1e-3")
        again = subprocess.run(run.last, shell=True, text=True, check=False, capture_output=True)
        self.assertEqual((again.returncode, again.stdout), (1, run.out))
        self.assertIn("--atol 1e-3", shlex.join(shlex.split(run.last)))

    def test_the_first_of_several_wrong_steps_is_named_and_the_others_counted(self):
        document, tensors, path = self.golden()
        for step in [5, 3]:
            tensors[f"step.{step}.logits"][0] = 9
        run = self.expect(1, "golden", "verify", self.write_golden(path, document, tensors), out="and 1 later step is wrong too")
        self.assertIn("at step 3", run.out)

    def test_wrong_keys_and_values_are_found(self):
        for what in ["keys", "values"]:
            with self.subTest(what=what):
                document, tensors, path = self.golden("five-heads/keys-values-dynamic", folder=self.model_of("five-heads", what))
                step, tensor = next((k.split(".")[1], t) for k, t in tensors.items() if k.endswith(what) and t.data)
                shown = tensors[f"step.{step}.compared"].numbers().index(1)
                row, column = divmod(shown, tensor.shape[2])
                tensor[(row * tensor.shape[1] * tensor.shape[2] + column) * tensor.shape[3]] = 9
                self.expect(1, "golden", "verify", self.write_golden(path, document, tensors),
                            out=f"wrong_kv at step {step}: row {row} column {column}: {what[:-1]} 0 got ")

    def test_wrong_ids_are_found_by_the_engine_and_by_the_oracle(self):
        for backend in ["engine", "oracle"]:
            with self.subTest(backend=backend):
                document, tensors, path = self.golden("lively/generate-dynamic", folder=self.model_of("lively", backend))
                name, tensor = next((k, t) for k, t in tensors.items() if k.endswith("ids"))
                tensor[1] = (tensor.numbers()[1] + 1) % 31
                self.expect(1, "golden", "verify", self.write_golden(path, document, tensors), "--backend", backend,
                            out=(f"wrong_ids at step {name.split('.')[1]}: row 0 new token 1: id ", "recorded is id"))

    def test_numbers_of_a_hidden_row_are_not_compared(self):
        name = "transformers-5.18/model0"
        for golden in sorted((GOLDEN / name).glob("*.golden.safetensors")):
            document, tensors = json.loads(read_container(golden)[0]["kvproof"]), read_container(golden)[1]
            for key in [k for k in tensors if k.endswith("logits")]:
                flags = tensors[key.replace("logits", "compared")].numbers()
                if 0 in flags:
                    tensors[key][flags.index(0) * tensors[key].shape[2]] = 1e6
                    path = self.model_of(name) / "changed.golden.safetensors"
                    self.expect(0, "golden", "verify", self.write_golden(path, document, tensors))
                    return
        self.fail("no hidden row in the goldens: choose another folder")

    def test_a_golden_that_contradicts_the_contract_is_corrupt(self):
        for change, says in [
            (lambda steps: steps[1].update(attention_mask=[[1, 1]]), ("step 1: the file says accepted, expected mask_length", "cache 0, new 3, mask 2, expected 3")),
            (lambda steps: steps[3].update(attention_mask=[[1]]), ("cache 3, new 1, mask 1, expected 4",)),
            (lambda steps: steps[2].update(error="crop_range"), ("step 2: the file says crop_range, expected accepted",)),
            (lambda steps: steps[2].update(expect=4), ("step 2: the file says length 4, expected 3",)),
            (lambda steps: steps[0].update(kindd="static"), ("kindd",)),
            (lambda steps: steps[0].update(op="make"), ('unknown op "make"',)),
        ]:
            with self.subTest(says=says):
                document, tensors, path = self.golden(folder=self.folder)
                change(document["trace"])
                self.write_golden(path, document, tensors)
                self.expect(3, "golden", "verify", path, "--model", GOLDEN / "seed", out=("CORRUPT " + str(path), *says))

    def test_a_nan_in_a_golden_is_corrupt_and_passes_nobody(self):
        for bad in [math.nan, math.inf]:
            document, tensors, path = self.golden(folder=self.folder)
            tensors["step.1.logits"][0] = bad
            self.write_golden(path, document, tensors)
            self.expect(3, "golden", "verify", path, "--model", GOLDEN / "seed", out="in a row that counts, expected finite numbers")
            self.expect_complaint(3, "golden", "diff", path, path, says="finite numbers")


class NoVerdict(CliCase):
    def test_other_weights_are_refused_before_any_number_is_compared(self):
        run = self.expect(3, "golden", "verify", SEED, "--model", GOLDEN / "legacy", out=("weights_sha256 is", "nothing was compared"))
        self.assertRegex(run.last, r"^CORRUPT engine: 1 file \(1 not passed\), 0 rows compared, no numbers$")

    def test_another_config_is_refused_before_any_number_is_compared(self):
        model = self.model_of("seed")
        config = json.loads((model / "config.json").read_text())
        (model / "config.json").write_text(json.dumps(config | {"activation_function": "gelu", "attn_pdrop": 0.5}))
        run = self.expect(3, "golden", "verify", SEED, "--model", model, out=("config.json: other values of activation_function", "Nothing was compared"))
        self.assertIn("0 rows compared, no numbers", run.last)
        (model / "config.json").write_text(json.dumps(config | {"attn_pdrop": 0.5, "n_inner": 128}))
        self.expect(0, "golden", "verify", SEED, "--model", model)

    def test_nothing_to_compare_is_no_pass(self):
        document, _, path = self.golden()
        document["trace"] = [document["trace"][0], {"op": "length", "cache": "a", "expect": 0}]
        run = self.expect(2, "golden", "verify", self.write_golden(path, document, {}), out="NOTHING COMPARED")
        self.assertTrue(run.last.startswith("NO VERDICT engine: 1 file (1 not passed), 0 rows"), run)

    def test_a_file_that_is_not_there_or_no_file_is_named(self):
        self.expect(2, "golden", "verify", self.folder / "nowhere", out=("NO VERDICT ", "nowhere: cannot be opened: No such file"))
        self.expect(2, "golden", "verify", self.folder, out=f"NO VERDICT {self.folder}: is a directory, expected a regular file")
        for verb in [["show"], ["diff", SEED]]:
            self.expect_complaint(2, "golden", *verb, self.folder / "nowhere", says="nowhere: cannot be opened")

    def test_a_model_that_is_not_there_is_named(self):
        for golden, model in [(SEED, self.folder), (SEED, self.folder / "nowhere")]:
            run = self.run_kvproof("golden", "verify", golden, "--model", model)
            self.assertIn(run.code, (2, 3), run)
            self.assertIn(str(model), run.out)

    def test_of_several_outcomes_the_gravest_counts(self):
        document, tensors, path = self.golden()
        tensors["step.1.logits"][0] = 9
        wrong = self.write_golden(path, document, tensors)
        cut = path.parent / "cut.golden.safetensors"
        cut.write_bytes(SEED.read_bytes()[:-1])
        gone = path.parent / "gone"
        for files, code, word in [([gone, SEED], 2, "NO VERDICT"), ([SEED, wrong, gone], 1, "FAIL"), ([cut, wrong, gone, SEED], 3, "CORRUPT")]:
            run = self.expect(code, "golden", "verify", *files)
            self.assertIn(f"\n{word} engine: {len(files)} files (", run.out)


class Broken(CliCase):
    def test_a_golden_cut_at_every_byte_is_one_clear_line_each(self):
        whole = SEED.read_bytes()
        model = self.model_of("seed")
        cuts = []
        for length in range(len(whole)):
            cuts.append(model / f"{length}.golden.safetensors")
            cuts[-1].write_bytes(whole[:length])
        run = self.expect(3, "golden", "verify", *cuts)
        lines = run.out.splitlines()
        self.assertEqual(len(lines), len(cuts) + 1)
        for line, cut in zip(lines, cuts):
            self.assertTrue(line.startswith(f"CORRUPT {cut}"), line)
            self.assertGreater(len(line), len(f"CORRUPT {cut}: ") + 10, line)
        for cut in cuts[::97]:
            self.expect_complaint(3, "golden", "show", cut, says=str(cut))
            self.expect_complaint(3, "golden", "diff", SEED, cut, says=str(cut))

    def test_bytes_behind_the_end_are_corrupt(self):
        path = self.folder / "long.golden.safetensors"
        path.write_bytes(SEED.read_bytes() + b"\0")
        self.expect(3, "golden", "verify", path, "--model", GOLDEN / "seed", out="CORRUPT ")

    def test_a_byte_changed_anywhere_never_crashes(self):
        whole = bytearray(SEED.read_bytes())
        model = self.model_of("seed")
        changed = []
        for at in range(0, len(whole), 3):
            changed.append(model / f"{at}.golden.safetensors")
            changed[-1].write_bytes(whole[:at] + bytes([whole[at] ^ 0x15]) + whole[at + 1 :])
        run = self.run_kvproof("golden", "verify", *changed, "--report", "jsonl")
        self.assertEqual(run.code, 3, run)
        verdicts = [json.loads(line)["verdict"] for line in run.out.splitlines()]
        self.assertEqual(len(verdicts), len(changed))
        self.assertGreater(verdicts.count("corrupt"), len(changed) // 4)

    def test_cut_weights_are_one_clear_line(self):
        model = self.model_of("seed")
        weights = model / "model.safetensors"
        whole = weights.read_bytes()
        for length in [0, 1, 7, 8, 9, 100, len(whole) // 2, len(whole) - 1]:
            weights.write_bytes(whole[:length])
            run = self.expect(3, "golden", "verify", SEED, "--model", model, out=f"CORRUPT {weights}")
            self.assertEqual(len(run.out.splitlines()), 2, run)
            self.expect_complaint(3, "model", "info", model, says=str(weights))


class Make(CliCase):
    def make(self, *options, steps=EVERY_OP, code=0, run=None, config=CONFIG, **words):
        self.trace = self.write_trace(steps, run=run, models={"main": {"config": config, "seed": 1}})
        self.made = self.folder / "model" / "made.golden.safetensors"
        self.made.parent.mkdir(exist_ok=True)
        return self.expect(code, "golden", "make", self.trace, "--out", self.made, *options, **words)

    def test_what_the_oracle_or_the_engine_made_verifies_on_both(self):
        self.expect(0, "model", "make", "--seed", 1, "--out", self.folder / "model")
        for maker in ["oracle", "engine"]:
            self.make("--backend", maker, "--suite", "each op", out=f"{len(EVERY_OP)} steps, 7 of them with answers")
            for judge in ["engine", "oracle"]:
                self.expect(0, "golden", "verify", self.made, "--backend", judge)
            document = json.loads(read_container(self.made)[0]["kvproof"])
            self.assertEqual(document["suite"], "each op")
            self.assertEqual(document["producer"]["name"], f"kvproof {maker}")
            self.assertEqual(document["trace"][3]["error"], "mask_length")
            self.expect(0, "golden", "show", self.made, out=("suite each op", '"op":"generate"', "ids [["))

    def test_the_same_trace_makes_the_same_bytes(self):
        self.make()
        first = self.made.read_bytes()
        self.make()
        self.assertEqual(self.made.read_bytes(), first)

    def test_a_tolerance_that_fp32_is_too_coarse_for_is_refused(self):
        run = self.make("--atol", "1e-7", "--rtol", "1e-6", code=3, err=("plain fp32 reaches", "of the tolerance on this trace, expected at most 0.3"))
        self.assertIn(str(self.trace), run.err)
        self.assertFalse(self.made.exists())
        self.make()

    def test_the_traces_own_tolerance_is_recorded_and_the_command_lines_is_above_it(self):
        for options, expected in [([], {"atol": 2e-5, "rtol": 1e-4}), (["--rtol", "3e-4"], {"atol": 2e-5, "rtol": 3e-4})]:
            self.make(*options, run={"atol": 2e-5})
            self.assertEqual(json.loads(read_container(self.made)[0]["kvproof"])["tolerance"], expected)
        self.make(code=64, run={"derived_tolerance": True}, err="a golden records two numbers")

    def test_a_trace_that_contradicts_the_contract_is_named(self):
        self.make(code=3, steps=[EVERY_OP[0] | {"error": "capacity"}], err=("a.trace.json: step 0: the file says capacity, expected accepted",))

    def test_a_golden_is_about_one_model(self):
        trace = self.write_trace([], models={name: {"config": CONFIG, "seed": 1} for name in ["main", "other"]})
        self.expect_complaint(3, "golden", "make", trace, "--out", self.folder / "x", says="2 models, expected one")

    def test_nothing_is_written_where_nothing_was_compared(self):
        self.make(code=2, steps=EVERY_OP[:1], out=("nothing was written", "NOTHING COMPARED"))
        self.assertFalse(self.made.exists())

    def test_a_folder_that_is_not_there_is_named_and_an_old_file_survives(self):
        trace = self.write_trace(EVERY_OP)
        self.expect_complaint(2, "golden", "make", trace, "--out", self.folder / "no" / "x", says=str(self.folder / "no"))
        old = self.folder / "old"
        old.write_text("old")
        self.expect(3, "golden", "make", self.write_trace([{"op": "fly"}], name="b.trace.json"), "--out", old)
        self.assertEqual(old.read_text(), "old")
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a.trace.json", "b.trace.json", "old"])


class Diff(CliCase):
    def bare(self, change=lambda tensors: None, name="seed/seed-float64"):
        """What someone who writes no adapter has: just step.<i>.logits."""
        tensors = {k: t for k, t in read_container(GOLDEN / f"{name}.golden.safetensors")[1].items() if k.endswith("logits")}
        change(tensors)
        path = self.folder / "got.safetensors"
        write_container(path, {}, tensors)
        return path

    def diff(self, code, got, *options, want="seed/seed-float64", **words):
        return self.expect(code, "golden", "diff", GOLDEN / f"{want}.golden.safetensors", got, *options, **words)

    def test_the_same_numbers_are_0_in_f64_and_in_f32(self):
        self.diff(0, GOLDEN / "seed/seed-float64.golden.safetensors", out="ok   ")
        self.diff(0, SEED)
        self.diff(0, self.bare(), out="8 rows compared")
        self.diff(0, self.bare(lambda tensors: tensors.update({k: Tensor.of("F32", t.shape, t.numbers()) for k, t in tensors.items()})))

    def test_another_number_is_1_with_both_values_and_a_replay(self):
        run = self.diff(1, self.bare(lambda tensors: tensors["step.3.logits"].__setitem__(7, 4.5)), out=("wrong_logits at step 3", "logit 7 got 4.5, expected "))
        again = subprocess.run(run.last.strip().removeprefix("replay: "), shell=True, text=True, check=False, capture_output=True)
        self.assertEqual((again.returncode, again.stdout), (1, run.out))
        self.diff(0, self.bare(lambda tensors: tensors["step.3.logits"].__setitem__(7, 4.5)), "--atol", "10")

    def test_a_nan_is_1(self):
        self.diff(1, self.bare(lambda tensors: tensors["step.1.logits"].__setitem__(0, math.nan)), "--atol", "1e9", out="non_finite at step 1")

    def test_another_shape_is_1(self):
        def last_only(tensors):
            tensors["step.1.logits"] = Tensor.of("F64", [1, 1, 32], tensors["step.1.logits"].numbers()[-32:])

        self.diff(1, self.bare(last_only), out="wrong_shape at step 1: logits: shape [1, 1, 32] with 32 numbers, expected shape [1, 3, 32]")

    def test_missing_logits_are_2_unless_others_differ(self):
        self.diff(2, self.bare(lambda tensors: tensors.pop("step.5.logits")), out=("could not compare:", "step.5.logits", "ok   "))

        def missing_and_wrong(tensors):
            del tensors["step.5.logits"]
            tensors["step.1.logits"][0] = 9

        self.diff(1, self.bare(missing_and_wrong), out="could not compare")
        self.diff(2, self.bare(lambda tensors: tensors.clear()), out="NOTHING COMPARED")

    def test_keys_and_values_count_where_they_are_and_are_named_where_not(self):
        name = "five-heads/keys-values-dynamic"
        self.diff(0, GOLDEN / f"{name}.golden.safetensors", want=name)
        self.diff(0, self.bare(name=name), want=name, out="left out: ")

    def test_ids_must_be_the_same(self):
        name = "lively/generate-dynamic"
        _, tensors = read_container(GOLDEN / f"{name}.golden.safetensors")
        path = self.folder / "ids.safetensors"
        write_container(path, {}, tensors)
        self.diff(0, path, want=name, out="ids only")
        key = next(iter(tensors))
        tensors[key][0] = tensors[key].numbers()[0] + 1
        write_container(path, {}, tensors)
        self.diff(1, path, want=name, out=f"wrong_ids at {key.rsplit('.', 1)[0].replace('.', ' ')}: row 0 new token 0: id ")
        self.diff(2, self.bare(name=name), want=name, out=("left out", "NOTHING COMPARED"))

    def test_another_origin_is_3(self):
        self.expect_complaint(3, "golden", "diff", SEED, GOLDEN / "legacy/trace00.golden.safetensors", says=("weights_sha256 is", "Nothing was compared"))
        a, b = (GOLDEN / f"five-heads/trace0{i}.golden.safetensors" for i in (0, 1))
        self.expect_complaint(3, "golden", "diff", a, b, says=("another trace from step", "Nothing was compared"))
