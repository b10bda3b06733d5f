"""A conversation: models, lanes, and one reply for each request."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier
from typing import Any

from numpy.typing import NDArray

from .engine import Engine, capabilities_of
from .fields import Fields, Misread
from .lane import Lane, Reply, reply_to_no
from .message import MOST_BYTES
from .refusal import Refused, Unsupported

MAJOR = 1
MOST_LANES = 16
OK = Reply({"ok": {}})


class Session:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._models: dict[str, Any] = {}
        self._lanes: dict[int, Lane] = {}
        self.most_reply_bytes = MOST_BYTES
        self.closed = False

    def answer(self, document: dict[str, Any]) -> Reply:
        """The reply to one request; exceptions of the engine that are no refusals come through."""
        request = Fields(document)
        own = {
            "hello": self._hello,
            "open": self._open,
            "begin": self._begin,
            "together": self._together,
            "close": self._close,
        }
        try:
            answer = own.get(request.text("op"))
            return answer(request) if answer else self._lane(request).call(request)
        except (Refused, Unsupported, Misread) as no:
            return reply_to_no(no)

    def _hello(self, request: Fields) -> Reply:
        protocol = request.row("protocol")
        if len(protocol) != 2 or protocol[0] != MAJOR:
            raise Refused("other", f"you speak protocol {protocol}, I speak {[MAJOR, 0]}")
        if request.has("limits"):
            self.most_reply_bytes = Fields(request.object("limits")).maybe_integer("message_bytes") or MOST_BYTES
        engine = self._engine
        said = {"protocol": [MAJOR, 0], "name": str(engine.name), "version": str(engine.version)}
        return Reply({"ok": said | {"capabilities": capabilities_of(engine)}})

    def _open(self, request: Fields) -> Reply:
        name, folder = request.text("model"), request.text("folder")
        try:
            self._models[name] = self._engine.open(folder)
        except tuple(getattr(self._engine, "refusals", ())) as error:
            raise Refused("other", f"{type(error).__name__}: {error}") from error
        return OK

    def _begin(self, request: Fields) -> Reply:
        for lane in self._lanes.values():
            lane.drop_all()
        begin = getattr(self._engine, "begin", None)
        if begin is not None:
            begin(request.maybe_text("case") or "", request.object("run") if request.has("run") else {})
        return OK

    def _close(self, _: Fields) -> Reply:
        self.closed = True
        return OK

    def _lane(self, step: Fields) -> Lane:
        number = step.maybe_integer("lane") or 0
        if not 0 <= number < MOST_LANES:
            raise Misread(f"lane is {number}, expected 0 to {MOST_LANES - 1}")
        if number not in self._lanes:
            self._lanes[number] = Lane(self._engine, self._models)
        return self._lanes[number]

    def _together(self, request: Fields) -> Reply:
        """The calls of all lanes at once, each on a thread of its own."""
        steps = [Fields(step) for step in request.array("steps")]
        lanes = [self._lane(step) for step in steps]
        if len(set(map(id, lanes))) != len(lanes):
            raise Misread("two steps of one lane at once")
        start = Barrier(max(1, len(steps)))

        def play(lane: Lane, step: Fields) -> Reply:
            start.wait()
            return lane.call(step)

        with ThreadPoolExecutor(MOST_LANES) as threads:
            replies = list(threads.map(play, lanes, steps))
        tensors: dict[str, NDArray[Any]] = {}
        for index, reply in enumerate(replies):
            tensors |= {f"{index}.{name}": array for name, array in reply.tensors.items()}
        return Reply({"ok": {"replies": [reply.outcome for reply in replies]}}, tensors)
