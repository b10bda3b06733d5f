"""A pytest plugin: each law of `kvproof check` on one backend is a test.

pytest loads it wherever the package is installed; it does nothing unless a backend is named.
"""

import shlex
from collections.abc import Generator
from pathlib import Path

import pytest

from .judging import LawVerdict, NoVerdict, Verdicts, check, law_names

OWN = ("--backend", "--report", "--only", "--skip", "--list", "--coverage", "--write-known-failing")
KNOWN_FAILING = "--known-failing"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("kvproof", "an engine on trial by kvproof")
    group.addoption("--kvproof-backend", metavar="SPEC", help="judge this: exec:COMMAND, as in kvproof check --backend")
    group.addoption("--kvproof-binary", metavar="FILE", help="the kvproof command (default: kvproof, found in PATH)")
    group.addoption(
        "--kvproof-args", metavar="WORDS", help="further arguments of kvproof check, as in a shell: '--traces 20'"
    )
    parser.addini("kvproof_backend", "judge this, unless files or folders are named on the command line")
    parser.addini("kvproof_binary", "the kvproof command", default="kvproof")
    parser.addini("kvproof_args", "further arguments of kvproof check", default="")


def pytest_configure(config: pytest.Config) -> None:
    backend = config.getoption("--kvproof-backend")
    named = config.args_source is pytest.Config.ArgsSource.ARGS
    backend = backend or (not named and config.getini("kvproof_backend"))
    if backend:
        config.pluginmanager.register(Laws(config, str(backend)), "kvproof-laws")


class Laws:
    """Adds a test for each law, and judges those that are left when all are chosen in one run of kvproof."""

    def __init__(self, config: pytest.Config, backend: str) -> None:
        self.backend = backend
        self.binary = str(config.getoption("--kvproof-binary") or config.getini("kvproof_binary"))
        self.arguments = shlex.split(config.getoption("--kvproof-args") or config.getini("kvproof_args"))
        self._folder = config.invocation_params.dir
        self._verdicts: Verdicts | None = None
        self._trouble = ""
        for word in self.arguments:
            if word.split("=")[0] in OWN:
                raise pytest.UsageError(f"kvproof-args: {word} is said by pytest; choose laws with -k or --deselect")

    def pytest_report_header(self) -> str:
        return f"kvproof: {self.backend}, judged by {self.binary}"

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Puts the laws behind what pytest finds by itself."""
        report = yield
        if isinstance(collector, pytest.Session) and report.passed:
            report.result.append(LawCollector.from_parent(collector, name="kvproof", nodeid="kvproof", laws=self))
        return report

    def verdicts(self, item: pytest.Item) -> Verdicts | str:
        """What kvproof said, or in words why it said nothing."""
        if self._verdicts is None and not self._trouble:
            chosen = [each.name for each in item.session.items if isinstance(each, LawItem)]
            try:
                self._verdicts = check(self.binary, self.backend, chosen, self.arguments, self._folder)
            except NoVerdict as error:
                self._trouble = f"kvproof gave no verdict, see {item.nodeid}"
                return f"kvproof gave no verdict: {error}"
        return self._trouble if self._verdicts is None else self._verdicts


class LawCollector(pytest.Collector):
    """All laws that the kvproof at hand knows."""

    def __init__(self, *, laws: Laws, **keywords: object) -> None:
        super().__init__(**keywords)  # type: ignore[arg-type]  # pytest's own
        self._laws = laws

    def collect(self) -> list[pytest.Item]:
        try:
            names = law_names(self._laws.binary)
        except NoVerdict as error:
            raise self.CollectError(str(error)) from None
        items: list[pytest.Item] = [LawItem.from_parent(self, name=name, laws=self._laws) for name in names]
        if any(word.split("=")[0] == KNOWN_FAILING for word in self._laws.arguments):
            items.append(ListItem.from_parent(self, name="known-failing", laws=self._laws))
        return items


class JudgedItem(pytest.Item):
    """A test that is decided by what kvproof says. If it says nothing, that is an error, whatever the reason."""

    def __init__(self, *, laws: Laws, **keywords: object) -> None:
        super().__init__(**keywords)  # type: ignore[arg-type]  # pytest's own
        self._laws = laws

    def setup(self) -> None:
        found = self._laws.verdicts(self)
        if isinstance(found, str):
            pytest.fail(found, pytrace=False)
        self.judged(found)

    def judged(self, verdicts: Verdicts) -> None:
        """Takes what is wanted from the verdicts."""
        raise NotImplementedError

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"kvproof: {self.name}"


class LawItem(JudgedItem):
    """One law."""

    _verdict: LawVerdict

    def judged(self, verdicts: Verdicts) -> None:
        self._verdict = verdicts.laws[self.name]
        if self._verdict.verdict == "nothing_compared":
            pytest.fail(f"{self.name}: nothing was compared", pytrace=False)

    def runtest(self) -> None:
        verdict = self._verdict.verdict
        if verdict == "not_covered":
            pytest.skip(f"{self.name} is not covered: {self._verdict.not_covered()}")
        self.add_report_section("call", "kvproof", self._verdict.summary())
        if verdict == "known_failing":
            pytest.xfail(f"{self.name} is known to fail: {self._verdict.known()}")
        if verdict != "pass":
            pytest.fail(self._verdict.failure(), pytrace=False)


class ListItem(JudgedItem):
    """The list of known failures: nothing in it passes unexpectedly or is about no law."""

    _problems: list[str]

    def judged(self, verdicts: Verdicts) -> None:
        self._problems = (
            [*verdicts.problems, f"to write the list anew: {verdicts.rewrite}"] if verdicts.problems else []
        )

    def runtest(self) -> None:
        if self._problems:
            pytest.fail("\n".join(self._problems), pytrace=False)
