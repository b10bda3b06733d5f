"""The plugin: a pass only where kvproof says pass; whatever goes wrong with kvproof itself is an error."""

import json
import subprocess
import sys
import xml.etree.ElementTree

import pytest
from conftest import HERE

LAWS = {"length.grows": "pass", "mask.absent": "pass", "window.band": "not_covered"}


def line(law, verdict, **more):
    found = {"law": law, "verdict": verdict, "traces": 4, "rows": 60, "worst": 0.25, "not_covered": {}, "failed": 0}
    if verdict == "not_covered":
        found |= {"traces": 0, "rows": 0, "not_covered": {"kind static_sliding_window": 4}}
    if verdict == "fail":
        finding = {"kind": "wrong_logits", "step": 3, "message": "got 1, expected 2"}
        case = {
            "case": f"{law}/0",
            "reason": "    0 {}\n",
            "findings": [finding, finding],
            "replay": "kvproof replay x",
        }
        found |= {"failed": 2, "failures": [case]}
    return json.dumps(found | more)


class Stand:
    """A kvproof that says what it is told to, and pytest with the plugin in front of it."""

    def __init__(self, pytester):
        self.pytester = pytester
        self.binary = pytester.path / "fake-kvproof"
        self.calls = pytester.path / "calls.txt"

    def says(self, lines, code=0, laws=tuple(LAWS), err="", list_code=0):
        listing = "".join(f"{law}   what it says\n" for law in laws)
        text = f"""#!{sys.executable}
import sys
with open({str(self.calls)!r}, "a") as calls: print(*sys.argv[1:], file=calls)
if "--list" in sys.argv: print({listing!r}, end=""); sys.exit({list_code})
print({chr(10).join(lines)!r}, end="\\n" * {bool(lines)}); print({err!r}, file=sys.stderr); sys.exit({code})
"""
        self.binary.write_text(text)
        self.binary.chmod(0o755)
        return self

    def run(self, *arguments, backend="exec:me"):
        backend = ["--kvproof-backend", backend] if backend else []
        return self.pytester.runpytest(*backend, f"--kvproof-binary={self.binary}", *arguments)

    def outcomes(self, *arguments, **options):
        self.last = self.run(*arguments, **options)
        return self.last.parseoutcomes()


@pytest.fixture
def stand(pytester):
    return Stand(pytester)


def all_lines(**changed):
    return [line(law, verdict) for law, verdict in (LAWS | changed).items()]


def test_without_a_backend_nothing_happens(stand):
    stand.says(all_lines())
    assert stand.run(backend=None).ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert not stand.calls.exists()


def test_each_law_is_a_test(stand):
    assert stand.says(all_lines()).outcomes("-v", "-rs") == {"passed": 2, "skipped": 1}
    stand.last.stdout.fnmatch_lines(
        [
            "kvproof: exec:me, judged by *fake-kvproof",
            "*collected 3 items",
            "kvproof::length.grows PASSED*",
            "kvproof::mask.absent PASSED*",
            "kvproof::window.band SKIPPED*",
            "SKIPPED*window.band is not covered: kind static_sliding_window (4 traces)",
        ],
        consecutive=False,
    )
    assert stand.last.ret == 0


def test_a_failing_law_shows_the_trace_and_the_replay_command(stand):
    assert stand.says(all_lines(**{"mask.absent": "fail"}), 1).outcomes() == {"passed": 1, "failed": 1, "skipped": 1}
    stand.last.stdout.fnmatch_lines(
        [
            "mask.absent: 2 of 4 traces fail; in the smallest form:",
            "    0 {}",
            "wrong_logits at step 3: got 1, expected 2",
            "replay: kvproof replay x",
        ],
        consecutive=True,
    )
    assert (
        "Traceback" not in stand.last.stdout.str()
        and "pytest_plugin.py" not in stand.last.stdout.str().split("FAILURES")[1]
    )
    assert stand.last.ret == pytest.ExitCode.TESTS_FAILED


def test_each_way_of_failing_is_shown(stand):
    failure = json.loads(line("mask.absent", "fail"))["failures"][0]
    failures = [failure, failure | {"replay": "kvproof replay y"}]
    lines = all_lines()[::2] + [line("mask.absent", "fail", failures=failures)]
    stand.says(lines, 1).run().stdout.fnmatch_lines(
        ["replay: kvproof replay x", "    0 {}", "*at step 3*", "replay: kvproof replay y"]
    )


def known_line(*problems):
    said = {
        "known_failing": "known.json",
        "entries": 2,
        "met": 1,
        "rewrite": "kvproof check --write-known-failing known.json",
    }
    return json.dumps(said | {"problems": [{"entry": 1, "message": problem} for problem in problems]})


KNOWN = [{"kind": "wrong_logits", "code": None, "traces": 2, "reason": "issue 12"}]


def test_a_law_that_is_known_to_fail_is_expected_to(stand):
    lines = all_lines()[::2] + [line("mask.absent", "known_failing", known=KNOWN, failed=2), known_line()]
    counts = stand.says(lines).outcomes("-rxX", "--kvproof-args=--known-failing known.json")
    assert counts == {"passed": 2, "skipped": 1, "xfailed": 1}
    assert "mask.absent is known to fail: issue 12" in stand.last.stdout.str()
    assert "--only window.band --known-failing known.json" in stand.calls.read_text()


@pytest.mark.parametrize("argument", ["--known-failing known.json", "--known-failing=known.json"])
def test_a_list_that_is_not_true_fails_by_itself(stand, argument):
    lines = [*all_lines(), known_line("unexpected pass: entry 1", "stale: entry 0")]
    assert stand.says(lines, 1).outcomes(f"--kvproof-args={argument}") == {"passed": 2, "skipped": 1, "failed": 1}
    stand.last.stdout.fnmatch_lines(
        ["unexpected pass: entry 1", "stale: entry 0", "to write the list anew: kvproof check --write-known-failing *"]
    )


def test_only_failures_that_are_known_are_a_verdict(stand):
    lines = [line("mask.absent", "known_failing", known=KNOWN), known_line()]
    counts = stand.says(lines).outcomes("-k", "mask or known", "--kvproof-args=--known-failing known.json")
    assert counts == {"xfailed": 1, "passed": 1, "deselected": 2}


def test_the_list_without_any_law_is_an_error(stand):
    counts = stand.says(all_lines()).outcomes("-k", "known-failing", "--kvproof-args=--known-failing known.json")
    assert counts == {"errors": 1, "deselected": 3}
    assert "no law is chosen" in stand.last.stdout.str() and stand.calls.read_text() == "check --list\n"


def test_kvproof_is_run_once_for_the_chosen_laws(stand):
    lines = [line("length.grows", "pass"), line("mask.absent", "pass")]
    assert stand.says(lines).outcomes("-k", "length or mask")["passed"] == 2
    assert stand.calls.read_text().splitlines() == [
        "check --list",
        "check --backend exec:me --report jsonl --only length.grows --only mask.absent",
    ]


def test_a_deselected_law_is_not_judged(stand):
    lines = [line("length.grows", "pass"), line("mask.absent", "pass")]
    assert stand.says(lines).outcomes("--deselect", "kvproof::window.band")["passed"] == 2


def test_collecting_alone_judges_nothing(stand):
    stand.says(all_lines()).run("--collect-only")
    assert stand.calls.read_text() == "check --list\n"


def test_further_arguments_are_handed_on(stand):
    stand.says(all_lines()).run("--kvproof-args", "--traces 20 --failures 'a folder'")
    assert stand.calls.read_text().splitlines()[-1].endswith("--only window.band --traces 20 --failures a folder")


@pytest.mark.parametrize(
    "word",
    [
        "--only mask.*",
        "--skip=mask.*",
        "--report text",
        "--backend engine",
        "--list",
        "--coverage",
        "--write-known-failing x",
    ],
)
def test_arguments_that_are_pytests_to_give_are_refused(stand, word):
    result = stand.says(all_lines()).run(f"--kvproof-args={word}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*choose laws with -k or --deselect"])


def test_it_can_all_stand_in_the_ini_file(stand):
    stand.says(all_lines())
    ini = f"kvproof_backend = exec:python3 'my adapter.py'\nkvproof_binary = {stand.binary}\nkvproof_args = --traces 5"
    stand.pytester.makeini(f"[pytest]\n{ini}\n")
    assert stand.pytester.runpytest().parseoutcomes() == {"passed": 2, "skipped": 1}
    assert "--backend exec:python3 'my adapter.py' --report" in stand.calls.read_text()
    stand.pytester.makepyfile(test_own="def test_own(): pass")
    assert stand.pytester.runpytest().parseoutcomes() == {"passed": 3, "skipped": 1}
    assert stand.pytester.runpytest("test_own.py").parseoutcomes() == {"passed": 1}  # a file was named: that alone


def test_the_command_line_outweighs_the_ini_file(stand):
    stand.says(all_lines())
    stand.pytester.makeini(
        "[pytest]\nkvproof_backend = exec:other\nkvproof_binary = /nonexistent\nkvproof_args = --traces 5\n"
    )
    assert stand.outcomes("--kvproof-args=--traces 6") == {"passed": 2, "skipped": 1}
    assert "--backend exec:me " in stand.calls.read_text() and stand.calls.read_text().endswith("--traces 6\n")


def test_the_projects_own_tests_run_too(stand):
    stand.pytester.makepyfile(test_own="def test_own(): pass")
    assert stand.says(all_lines()).outcomes() == {"passed": 3, "skipped": 1}
    assert stand.outcomes("test_own.py") == {"passed": 3, "skipped": 1}


ALL_PASS = [line(law, "pass") for law in LAWS]
NO_VERDICTS = {
    "no verdict": ([], 2, "exit 2"),
    "no verdict in spite of lines": (ALL_PASS, 2, "exit 2"),
    "corrupt data": (ALL_PASS, 3, "exit 3"),
    "usage": ([], 64, "exit 64"),
    "its own fault": (ALL_PASS, 70, "exit 70"),
    "a signal": (ALL_PASS, "__import__('os').kill(__import__('os').getpid(), 9)", "exit -9"),
    "silence": ([], 0, "0 lines for 3 laws"),
    "a law is missing": (ALL_PASS[:2], 0, "missing ['window.band']"),
    "a law twice": ([*ALL_PASS, ALL_PASS[0]], 0, "4 lines for 3 laws"),
    "another law": ([*ALL_PASS[:2], line("mask.other", "pass")], 0, "not asked for ['mask.other']"),
    "text instead of lines": (["PASS engine: 45 laws"], 0, "no report line: PASS engine"),
    "half a line": ([ALL_PASS[0], ALL_PASS[1][:-4]], 0, "no report line"),
    "no law in a line": (["{}"], 0, "no report line"),
    "a line that is no object": (["7"], 0, "no report line"),
    "an unknown verdict": ([*ALL_PASS[:2], line("window.band", "fine")], 0, "verdict 'fine'"),
    "a list with problems, exit 0": ([*ALL_PASS, known_line("stale")], 0, "exit 0 does not go with"),
    "a list without problems, exit 1": ([*ALL_PASS, known_line()], 1, "exit 1 does not go with"),
    "failing without saying so": ([*ALL_PASS[:2], line("window.band", "fail")], 0, "exit 0 does not go with"),
    "saying so without failing": (ALL_PASS, 1, "exit 1 does not go with"),
    "nothing judged, exit 0": (
        [line(law, "not_covered") for law in LAWS],
        0,
        "does not go with the verdicts ['not_covered']",
    ),
}


@pytest.mark.parametrize("what", NO_VERDICTS)
def test_what_is_no_verdict_is_an_error_for_every_law(stand, what):
    lines, code, words = NO_VERDICTS[what]
    assert stand.says(lines, code, err="the reason").outcomes() == {"errors": 3}
    assert words in stand.last.stdout.str()
    assert stand.last.ret == pytest.ExitCode.TESTS_FAILED
    assert len(stand.calls.read_text().splitlines()) == 2  # it is not tried again for each law


def test_the_reason_stands_once_and_the_others_point_to_it(stand):
    stand.says([], 2, err="cannot start me").run().stdout.fnmatch_lines(
        ["kvproof gave no verdict: exit 2", "cannot start me", "kvproof gave no verdict, see kvproof::length.grows"]
    )


def test_nothing_but_uncovered_laws_is_an_error_that_says_why(stand):
    assert stand.says([line("window.band", "not_covered")], 2).outcomes("-k", "window")["errors"] == 1
    assert "nothing was judged; not covered: kind static_sliding_window (4 traces)" in stand.last.stdout.str()


def test_a_law_that_compared_nothing_is_an_error(stand):
    assert stand.says(all_lines(**{"mask.absent": "nothing_compared"})).outcomes() == {
        "passed": 1,
        "errors": 1,
        "skipped": 1,
    }


@pytest.mark.parametrize(("laws", "code"), [((), 0), (tuple(LAWS), 1)])
def test_a_kvproof_without_laws_is_an_error(stand, laws, code):
    assert stand.says(all_lines(), laws=laws, list_code=code).outcomes() == {"errors": 1}


def test_a_kvproof_that_is_not_there_is_an_error(stand):
    assert stand.outcomes() == {"errors": 1}
    assert "cannot run" in stand.last.stdout.str() and "Traceback" not in stand.last.stdout.str()


def test_what_was_judged_stands_in_the_reports(stand):
    lines = all_lines(**{"mask.absent": "fail"})
    lines[0] = line("length.grows", "pass", not_covered={"kind static": 7})
    stand.says(lines, 1).run("--junitxml=out.xml", "-rA")
    suite = xml.etree.ElementTree.parse(stand.pytester.path / "out.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures"), suite.get("skipped"), suite.get("errors")) == (
        "3",
        "1",
        "1",
        "0",
    )
    text = stand.run("-rA").stdout.str()
    assert "4 traces, 60 rows compared, worst 0.25 of the bound; not covered: kind static (7 traces)" in text


def test_a_worst_that_is_no_number_is_shown(stand):
    assert stand.says(all_lines()[:2] + [line("window.band", "pass", worst="inf")]).outcomes("-rA") == {"passed": 3}
    assert "worst inf of the bound" in stand.last.stdout.str()


# The real kvproof.


def test_a_right_and_a_wrong_engine(pytester, kvproof):
    options = [f"--kvproof-binary={kvproof}", "--kvproof-args=--traces 3", "-k", "padding.left or window.band"]
    assert pytester.runpytest("--kvproof-backend=engine", *options).parseoutcomes() == {"passed": 2, "deselected": 43}
    wrong = pytester.runpytest("--kvproof-backend=fault:pad-mask-prefill-only", *options)
    assert wrong.parseoutcomes()["failed"] == 1 and wrong.ret == pytest.ExitCode.TESTS_FAILED
    wrong.stdout.fnmatch_lines(["wrong_logits at step *", "replay: *replay kvproof-failures/padding.left-1-*"])
    assert list(pytester.path.glob("kvproof-failures/padding.left-*.trace.json"))


def test_an_adapter_that_does_not_start_is_an_error(pytester, kvproof):
    options = [f"--kvproof-binary={kvproof}", "-k", "mask.absent"]
    result = pytester.runpytest("--kvproof-backend=exec:no-such-command", *options)
    assert result.parseoutcomes() == {"errors": 1, "deselected": 44}
    assert 'cannot start "no-such-command"' in result.stdout.str()


def test_an_adapter_without_any_cache_to_speak_of_fails(pytester, kvproof):
    file = pytester.path / "adapter.py"
    file.write_text(f"import sys\nsys.path.insert(0, {str(HERE)!r})\nfrom engines import *\nserve(Smallest())\n")
    options = [f"--kvproof-binary={kvproof}", "--kvproof-args=--traces 2", "-k", "length.rows or cache.crop"]
    result = pytester.runpytest(f"--kvproof-backend=exec:{sys.executable} {file}", *options)
    assert result.parseoutcomes() == {"failed": 1, "skipped": 1, "deselected": 43}


def test_a_list_of_known_failures(pytester, kvproof):
    fault, run = "fault:pad-mask-prefill-only", ["--traces", "3", "--only", "padding.left"]
    write = [kvproof, "check", "--backend", fault, *run, "--write-known-failing", "known.json"]
    assert subprocess.run(write, cwd=pytester.path, stdout=subprocess.DEVNULL).returncode == 1
    known = pytester.path / "known.json"
    known.write_text(known.read_text().replace("TODO: say why", "pads are forgotten"))
    options = [f"--kvproof-binary={kvproof}", "--kvproof-args=--traces 3 --known-failing known.json"]
    options += ["-k", "padding.left or window.band or known-failing", "-rx"]
    met = pytester.runpytest(f"--kvproof-backend={fault}", *options)
    assert met.parseoutcomes() == {"passed": 2, "xfailed": 1, "deselected": 43}
    assert "padding.left is known to fail: pads are forgotten" in met.stdout.str()
    known.write_text(known.read_text().replace("padding.left", "padding.no-such-law"))
    stale = pytester.runpytest(f"--kvproof-backend={fault}", *options)
    assert stale.parseoutcomes() == {"passed": 1, "failed": 2, "deselected": 43}
    stale.stdout.fnmatch_lines(["stale*padding.no-such-law*", "to write the list anew: *--write-known-failing*"])
