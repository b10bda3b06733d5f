"""The command line itself: help, version, what cannot be understood, and standard streams that fail."""

import os
import re
import shlex
import subprocess

from cli_case import GOLDEN, KVPROOF, CliCase

SEED = GOLDEN / "seed" / "seed.golden.safetensors"
COMMANDS = ["check", "shrink", "golden verify", "golden show", "golden make", "golden diff", "replay", "model make", "model info", "generate", "serve"]


class Help(CliCase):
    def test_every_command_explains_itself_without_its_required_options(self):
        for command in ["", "golden", "model", *COMMANDS]:
            for word in ["--help", "-h"]:
                with self.subTest(command=command, word=word):
                    run = self.expect(0, *command.split(), word, out="usage: kvproof")
                    self.assertEqual(run.err, "")

    def test_the_first_page_names_every_command_and_every_exit_code(self):
        page = self.expect(0, "--help").out
        for word in {command.split()[0] for command in COMMANDS}:
            self.assertRegex(page, rf"(?m)^  {word} ")
        for code in ["0 as expected", "1 violations", "2 no verdict", "3 corrupt data", "64 usage", "70 our own fault"]:
            self.assertIn(code, page)

    def test_every_command_the_first_page_names_can_be_asked_for_help(self):
        words = re.findall(r"(?m)^  ([a-z]+) ", self.expect(0, "--help").out)
        self.assertGreaterEqual(len(words), 5)
        for word in words:
            self.expect(0, word, "--help", out="usage")

    def test_version_names_the_blas_and_its_kernel(self):
        self.assertRegex(self.expect(0, "--version").out, r"^kvproof \d+\.\d+\.\d+ \(OpenBLAS .*kernel .*\)\n$")


class NotUnderstood(CliCase):
    def test_no_command_is_usage_and_shows_the_first_page(self):
        self.expect(64, out="usage: kvproof")

    def test_each_wrong_line_is_named_and_answered_with_the_next_thing_to_do(self):
        for line, says in [
            ("verify", 'unknown command "verify"'),
            ("golden", 'found "", expected verify, show, make or diff'),
            ("golden check x", 'found "check"'),
            ("model", "expected make or info"),
            (f"golden verify {SEED} --atolerance 1", "--atolerance"),
            (f"golden verify {SEED} --back oracle", "--back"),
            (f"golden verify {SEED} --atol 1 --atol 2", "--atol"),
            (f"golden verify {SEED} --atol", "--atol"),
            (f"golden verify {SEED} -x", "-x"),
            ("golden verify", "no file is named"),
            ("golden verify --backend oracle", "no file is named"),
            ("golden show", "no file is named"),
            ("golden make a b --out c", "not exactly one trace"),
            ("golden make a", "--out"),
            ("golden diff a", "1 files are named, expected two"),
            (f"golden diff {SEED} {SEED} --tolerance derived", "--tolerance derived"),
            ("replay", "no trace file is named"),
            ("model make --out x", "--seed"),
            ("model make --seed 1", "--out"),
            ("model make --seed 1 --out x surplus", "positional"),
            ("model info", "0 folders are named"),
            ("generate --ids 1 --max-new-tokens 1", "--model"),
            ("serve surplus", "positional"),
        ]:
            with self.subTest(line=line):
                run = self.expect_complaint(64, *shlex.split(line), says=says)
                self.assertRegex(run.err, r"^kvproof[ a-z]*: .*--help\n$" if "derived" not in line else r"^kvproof golden diff: ")

    def test_each_wrong_value_is_named_with_what_was_expected(self):
        generate = f"generate --model {GOLDEN / 'seed'} --ids 4 --max-new-tokens 1"
        for line, found, expected in [
            (f"golden verify {SEED} --atol x", '--atol is "x"', "a number >= 0"),
            (f"golden verify {SEED} --atol=-1", '--atol is "-1"', "a number >= 0"),
            (f"golden verify {SEED} --rtol nan", '--rtol is "nan"', "a number >= 0"),
            (f"golden verify {SEED} --rtol inf", '--rtol is "inf"', "a number >= 0"),
            (f"golden verify {SEED} --tolerance exact", '--tolerance is "exact"', "derived"),
            (f"golden verify {SEED} --report html", '--report is "html"', "text or jsonl"),
            (f"golden verify {SEED} --timeout 0", '--timeout is "0"', "seconds"),
            ("model make --out x --seed=-1", '--seed is "-1"', "a whole number from 0 to"),
            ("model make --out x --seed 1e3", '--seed is "1e3"', "a whole number from 0 to"),
            ("model make --out x --seed 18446744073709551616", "--seed is", "18446744073709551615"),
            ("model make --out x --seed 1 --n_embd 4.5", '--n_embd is "4.5"', "a whole number"),
            (generate.replace("4 ", "4,,5 "), '--ids is ""', "a whole number"),
            (f"{generate} --cache paged", "--cache is paged", "static_sliding_window"),
            (f"{generate} --cache none --window 3", "with --capacity or --window", "none"),
            (f"{generate} --capacity 99999999999999999999 --cache static", "--capacity is", "a whole number"),
        ]:
            with self.subTest(line=line):
                self.expect_complaint(64, *shlex.split(line), says=(found, expected))

    def test_a_wrong_value_is_seen_before_a_file_is_opened(self):
        self.expect_complaint(64, "golden", "verify", "nowhere", "--atol", "x", says="--atol")
        self.expect_complaint(64, "replay", "nowhere", "--rtol", "x", says="--rtol")

    def test_no_backend_is_no_verdict(self):
        trace = self.write_trace([])
        for backend in ["", "Engine", "motor", "plugin", "exec:", "exec:/nowhere/engine", "exec:false"]:
            for line in [["golden", "verify", SEED], ["replay", trace], ["golden", "make", trace, "--out", self.folder / "x"]]:
                with self.subTest(backend=backend, line=line[0]):
                    self.expect_complaint(2, *line, "--backend", backend, says="--backend")
        self.expect_complaint(2, "golden", "verify", SEED, "--backend", "motor", says='"motor" names no backend, expected engine, oracle')


class StandardStreams(CliCase):
    def shell(self, line):
        return subprocess.run(["bash", "-c", line.replace("kvproof", shlex.quote(KVPROOF), 1)], text=True, check=False, capture_output=True, timeout=600,
                              stdin=subprocess.DEVNULL, cwd=self.folder)

    def test_a_report_that_cannot_be_written_is_no_pass(self):
        for line in ["--help", "--version", f"golden verify {SEED}", f"golden verify {SEED} --report jsonl", f"golden show {SEED}",
                     f"golden diff {SEED} {SEED}", f"model info {GOLDEN / 'seed'}", "golden verify --help", "golden --help",
                     f"generate --model {GOLDEN / 'seed'} --ids 4 --max-new-tokens 2"]:
            for sink in [">/dev/full", ">&-"]:
                with self.subTest(line=line, sink=sink):
                    run = self.shell(f"kvproof {line} {sink}")
                    self.assertEqual(run.returncode, 2, run)
                    self.assertIn("standard output: a write failed", run.stderr)

    def test_a_violation_outweighs_a_report_that_cannot_be_written(self):
        self.assertEqual(self.shell(f"kvproof golden verify {SEED} --atol 0 --rtol 0 >/dev/full").returncode, 1)
        self.assertEqual(self.shell(f"kvproof golden verify {SEED} --model {GOLDEN / 'legacy'} >/dev/full").returncode, 3)

    def test_a_reader_that_goes_away_is_a_failed_write_and_no_signal(self):
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as gone:
            self.assertEqual(subprocess.run([KVPROOF, "golden", "show", SEED], stdout=gone, check=False).returncode, 2)

    def test_files_written_with_closed_streams_hold_nothing_but_themselves(self):
        self.assertEqual(self.shell("kvproof model make --seed 1 --out open").returncode, 0)
        self.assertEqual(self.shell("kvproof model make --seed 1 --out closed <&- >&- 2>&-").returncode, 2)
        for name in ["config.json", "model.safetensors"]:
            self.assertEqual((self.folder / "open" / name).read_bytes(), (self.folder / "closed" / name).read_bytes())
