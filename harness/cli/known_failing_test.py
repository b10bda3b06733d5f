"""check --known-failing as a process: what is expected is short, what is not is in full, and a list must stay true."""

import json
import re
import subprocess
import sys
import xml.etree.ElementTree
from pathlib import Path

from cli_case import KVPROOF, CliCase

FAULT = "fault:mask-short-accepted"  # accepts a short mask; where a column is hidden it refuses it as something else
ACCEPTS = {"law": "mask.refused", "backend": "engine *", "finding": "accepts_misuse", "code": "mask_length", "reason": "it pads the mask"}
OTHER_CODE = {"law": "mask.refused", "backend": "engine *", "finding": "wrong_code", "code": "mask_length", "reason": "it looks at the padded mask"}


class KnownFailing(CliCase):
    def check(self, code, *arguments, backend=FAULT, **says):
        return self.expect(code, "check", "--failures", self.folder / "failures", "--only", "mask.refused", "--backend", backend, *arguments, **says)

    def list_of(self, *entries, name="list.json"):
        path = self.folder / name
        path.write_text(json.dumps({"format": "kvproof-known-failing", "version": [1, 0], "entries": list(entries)}))
        return path

    def test_every_way_of_failing_is_shown_with_its_own_case(self):
        run = self.check(1)
        self.assertRegex(run.out, r"mask\.refused: \d+ of 100 traces fail with wrong_code mask_length; the smallest form of the first:")
        self.assertRegex(run.out, r"mask\.refused: \d+ of 100 traces fail with accepts_misuse mask_length; the smallest form of the first:")
        files = sorted((self.folder / "failures").iterdir())
        runs = [json.loads(file.read_text())["run"] for file in files]
        self.assertEqual({(run["law"], run["finding"], run["code"]) for run in runs},
                         {("mask.refused", "accepts_misuse", "mask_length"), ("mask.refused", "wrong_code", "mask_length")})
        for file, recorded in zip(files, runs):
            self.expect(1, "replay", file, "--backend", FAULT, out=f"FAIL {file}: {recorded['finding']} at step")

    def test_programs_are_told_kind_code_file_and_command(self):
        (line,) = self.check(1, "--report", "jsonl").out.splitlines()
        law = json.loads(line)
        self.assertEqual([law["verdict"], law["engine"].split()[0], law["backend"]], ["fail", "engine", FAULT])
        self.assertEqual({(f["kind"], f["code"]) for f in law["failures"]}, {("accepts_misuse", "mask_length"), ("wrong_code", "mask_length")})
        self.assertEqual(sum(f["traces"] for f in law["failures"]), law["failed"])
        for failure in law["failures"]:
            self.assertTrue(json.loads(Path(failure["file"]).read_text())["trace"])
            self.assertIn(failure["file"], failure["replay"])
            self.assertEqual(subprocess.run(failure["replay"], shell=True, capture_output=True, check=False).returncode, 1)

    def test_what_is_expected_takes_one_line_and_is_no_violation(self):
        run = self.check(0, "--known-failing", self.list_of(ACCEPTS, OTHER_CODE))
        self.assertRegex(run.out, r"(?m)^mask\.refused .* known failing$")
        self.assertRegex(run.out, r"(?m)^known  mask\.refused accepts_misuse mask_length: \d+ of 100 traces: it pads the mask$")
        self.assertNotIn("smallest form", run.out)
        self.assertRegex(run.last, "^PASS ")
        self.assertFalse((self.folder / "failures").exists())

    def test_what_is_not_expected_is_shown_in_full_beside_what_is(self):
        run = self.check(1, "--known-failing", self.list_of(ACCEPTS))
        self.assertIn("known  mask.refused accepts_misuse mask_length", run.out)
        self.assertIn("FAIL mask.refused/0: wrong_code at step", run.out)
        self.assertNotIn("accepts_misuse at step", run.out)
        self.assertIn("replay", run.last)

    def test_an_entry_of_another_backend_expects_nothing(self):
        entries = [entry | {"backend": "transformers *"} for entry in (ACCEPTS, OTHER_CODE)]
        self.check(1, "--known-failing", self.list_of(*entries), out=("2 about other backends", "accepts_misuse at step", "wrong_code at step"))

    def test_an_unexpected_pass_is_a_violation(self):
        run = self.check(1, "--known-failing", self.list_of(ACCEPTS), backend="engine")
        self.assertIn('unexpected pass: entry 0 (mask.refused accepts_misuse mask_length, backend "engine *"): nothing failed so', run.out)
        self.assertRegex(run.last, r"^to write the list anew: .* --write-known-failing ")

    def test_a_law_that_did_not_run_or_ran_too_little_is_no_unexpected_pass(self):
        away = ACCEPTS | {"law": "position.refused", "code": "position_range"}
        self.check(0, "--known-failing", self.list_of(away), backend="engine", out="1 that this run is too small to tell")
        self.check(0, "--known-failing", self.list_of(ACCEPTS), "--traces", 99, backend="engine", out="1 that this run is too small to tell")
        self.check(1, "--known-failing", self.list_of(ACCEPTS | {"traces": 20}), "--traces", 20, backend="engine", out="unexpected pass: entry 0")

    def test_a_law_that_does_not_exist_is_a_violation(self):
        stale = ACCEPTS | {"law": "mask.refsued"}
        self.check(1, "--known-failing", self.list_of(ACCEPTS, OTHER_CODE, stale), out="stale: entry 2 (mask.refsued accepts_misuse mask_length")

    def test_a_broken_list_is_corrupt_and_said_before_anything_runs(self):
        for change, says in [({"reason": ""}, "reason is empty"), ({"reason": "TODO: say why"}, "Write it."), ({"resaon": "x"}, "unknown field"),
                             ({"law": "*", "code": None}, "means 45 laws")]:
            self.expect_complaint(3, "check", "--known-failing", self.list_of(ACCEPTS | change), says=says)
        self.expect_complaint(3, "check", "--known-failing", self.list_of(ACCEPTS, ACCEPTS), says="entry 1: says the same as entry 0")
        self.expect_complaint(2, "check", "--known-failing", self.folder / "none.json", says="none.json")

    def test_the_list_is_written_and_the_printed_command_writes_it(self):
        path = self.list_of(ACCEPTS, ACCEPTS | {"code": "mask_value"})
        run = self.check(1, "--known-failing", path)
        command = re.search(r"(?m)^to write the list anew: (.*)$", run.out).group(1)
        self.assertEqual(subprocess.run(command, shell=True, capture_output=True, check=False).returncode, 1)
        entries = json.loads(path.read_text())["entries"]
        self.assertEqual(entries[0], ACCEPTS)  # met: the reason stays
        self.assertEqual([(e["finding"], e["code"]) for e in entries[1:]], [("wrong_code", "mask_length")])  # the stale one is gone
        self.expect_complaint(3, "check", "--known-failing", path, says="Write it.")
        entries[1]["reason"] = "it looks at the padded mask"
        self.check(0, "--known-failing", self.list_of(*entries))

    def test_a_list_is_begun_and_gone_on_with(self):
        path = self.folder / "new.json"
        self.check(1, "--write-known-failing", path)
        first = path.read_text()
        self.assertEqual(first.count("TODO: say why"), 2)
        self.check(0, "--write-known-failing", path)  # all that fails is in the list now
        self.assertEqual(path.read_text(), first)

    def test_reports_for_programs_say_what_became_of_the_list(self):
        path = self.list_of(ACCEPTS, OTHER_CODE, ACCEPTS | {"code": "mask_value"})
        law, known = map(json.loads, self.check(1, "--known-failing", path, "--report", "jsonl").out.splitlines())
        self.assertEqual([law["verdict"], law["failures"]], ["known_failing", []])
        self.assertEqual({(k["kind"], k["code"], k["reason"]) for k in law["known"]},
                         {("accepts_misuse", "mask_length", ACCEPTS["reason"]), ("wrong_code", "mask_length", OTHER_CODE["reason"])})
        self.assertEqual([known["entries"], known["met"], [p["entry"] for p in known["problems"]]], [3, 2, [2]])
        root = xml.etree.ElementTree.fromstring(self.check(1, "--known-failing", path, "--report", "junit").out)
        self.assertIn("known failing: ", root.find(".//testcase[@name='mask.refused']/skipped").get("message"))
        self.assertIn("entry 2", root.find(".//testcase[@name='list']/failure").get("message"))

    def test_an_engine_that_refuses_nothing_fails_in_as_many_ways_as_there_are_codes(self):
        backend = f"exec:{sys.executable} {Path(__file__).with_name('accepts_everything.py')} {KVPROOF}"
        arguments = ("check", "--failures", self.folder / "failures", "--backend", backend, "--only", "isolation.refusal", "--traces", 19)
        law = json.loads(self.expect(1, *arguments, "--report", "jsonl").out)
        self.assertEqual({failure["kind"] for failure in law["failures"]}, {"accepts_misuse"})
        codes = [failure["code"] for failure in law["failures"]]
        self.assertEqual(len(codes), len(set(codes)))
        self.assertEqual(len(codes), 18)  # model_mismatch is isolation.models'
        self.assertNotIn("ways_left", law)
        listed = self.folder / "list.json"
        self.expect(1, *arguments, "--write-known-failing", listed)
        entries = json.loads(listed.read_text())["entries"]
        self.assertEqual(set(codes) - {entry["code"] for entry in entries}, {"unknown_cache", "cache_exists", "name_unknown", "bad_argument"})

    def test_a_change_behind_a_refusal_is_laid_to_it(self):
        run = self.expect(1, "check", "--failures", self.folder / "failures", "--backend", "fault:refused-call-appends", "--only", "isolation.refusal")
        self.assertRegex(run.out, r"FAIL isolation\.refusal/\d+: state_changed at step 3: changed by the call that was refused at step 2 \(token_range\): length")
