"""What is answered to requests, in process: names, refusals, their order, and what an engine gets to see."""

import numpy as np
import pytest
from engines import Counting, Smallest

from kvproof_adapter import Answer, Forward, Refused, Unsupported
from kvproof_adapter.session import Session


class Talk:
    """A session with one model `main`, one `other`, and a cache `a` of three columns."""

    def __init__(self, engine=None):
        self.engine = engine or Counting()
        self.session = Session(self.engine)
        for name in ("main", "other"):
            self.ask("open", model=name, folder=f"/{name}")
        self.ask("begin", case="x", run={})
        self.ask("new", cache="a", kind="dynamic")
        self.feed("a", 1, 2, 3)

    def ask(self, op, **fields):
        self.last = self.session.answer({"id": 1, "op": op, **fields})
        return self.last.outcome

    def feed(self, cache, *tokens, **fields):
        return self.ask("forward", cache=cache, input_ids=[list(tokens)], **fields)

    def length(self, cache):
        return self.ask("length", cache=cache)

    def code(self, op, **fields):
        outcome = self.ask(op, **fields)
        assert list(outcome) == ["error"], outcome
        return outcome["error"]["code"]


@pytest.fixture
def talk():
    return Talk()


def ok(length):
    return {"ok": {"length": length}}


def test_what_is_declared_is_what_there_is():
    ops = {"clone", "crop", "drop", "forward", "gather", "generate", "length", "load", "new", "read", "reset", "save"}
    said = Talk().ask("hello", protocol=[1, 7])["ok"]
    assert said["protocol"] == [1, 0] and said["name"] == "counting" and said["version"] == "1.5"
    assert said["capabilities"]["kinds"] == ["dynamic", "static", "static_sliding_window"]
    assert set(said["capabilities"]["ops"]) == ops
    assert "max_batch" not in said["capabilities"]
    assert not any(said["capabilities"][f] for f in ("codes", "threads", "exact", "unbounded_window", "poison"))


def test_what_is_absent_is_not_declared():
    class One(Smallest):
        max_batch, deterministic = 1, True

    said = Talk(One()).ask("hello", protocol=[1, 0])["ok"]["capabilities"]
    assert said["ops"] == ["drop", "forward", "length", "new"]
    assert said["max_batch"] == 1 and said["deterministic"] is True


def test_another_major_version_is_refused_in_words(talk):
    for protocol in ([2, 0], [0, 9], [1], []):
        assert talk.ask("hello", protocol=protocol) == {
            "error": {"code": "other", "message": f"you speak protocol {protocol}, I speak [1, 0]"}
        }


def test_every_op_answers_with_the_length(talk):
    assert talk.length("a") == ok(3)
    assert talk.feed("a", 4) == ok(4)
    assert talk.ask("clone", cache="b", **{"from": "a"}) == ok(4)
    assert talk.ask("crop", cache="b", length=1) == ok(1)
    assert talk.ask("gather", cache="b", rows=[0, 0]) == ok(3)
    assert talk.length("b") == ok(3)  # the cache that gather gave took the place of the old one
    assert talk.ask("save", cache="b", to="s") == ok(3)
    assert talk.ask("reset", cache="b") == ok(0)
    assert talk.ask("load", cache="b", **{"from": "s"}) == ok(3)
    assert talk.ask("read", cache="b", layer=1) == ok(3)
    assert talk.ask("drop", cache="b") == {"ok": {}}
    assert talk.length("a") == ok(4)
    assert talk.ask("forward", cache=None, input_ids=[[1]]) == {"ok": {}}
    assert talk.ask("generate", input_ids=[[1]], max_new_tokens=2) == {"ok": {}}


def test_arrays_ride_beside_the_answer(talk):
    talk.feed("a", 4)
    assert talk.last.tensors["logits"].tolist() == [[[4.0, 4.0]]]
    talk.ask("read", cache="a", layer=1)
    assert {name: array.dtype for name, array in talk.last.tensors.items()} == {
        "keys": np.float64,
        "values": np.float16,
    }
    talk.ask("generate", input_ids=[[1]], max_new_tokens=2)
    assert talk.last.tensors["ids"].tolist() == [[5, 6]] and talk.last.tensors["ids"].dtype == np.int64
    talk.ask("generate", input_ids=[[1], [1]], max_new_tokens=1)
    assert talk.last.tensors["ids"].shape == (2, 0) and talk.last.tensors["ids"].dtype == np.int64


def test_the_engine_sees_the_call_as_it_was_written(talk):
    ragged = [[1, 2], [], [-5, 1 << 62]]
    talk.ask(
        "forward", cache="a", input_ids=ragged, attention_mask=[[2]], position_ids=[], use_cache=False, logits="none"
    )
    cache = talk.engine.asked[-1][2]
    assert talk.engine.asked[-1] == ("forward", "/main", cache, Forward(ragged, [[2]], [], False, "none"))
    talk.ask("forward", cache=None, input_ids=[], model="other")
    assert talk.engine.asked[-1] == ("forward", "/other", None, Forward([], None, None, True, "all"))


def test_a_cache_of_another_model_is_for_the_engine_to_refuse(talk):
    assert talk.feed("a", 4, model="other") == ok(4)
    assert talk.engine.asked[-1][1] == "/other"
    assert talk.feed("a", 5) == ok(5)
    assert talk.engine.asked[-1][1] == "/main"


def test_sizes_are_handed_on(talk):
    talk.ask("new", cache="w", kind="static_sliding_window", capacity=8, window=3, model="other")
    assert talk.engine.asked[-1] == ("new", "/other", "static_sliding_window", 8, 3)


REFUSED_WORDS = [
    ("unknown_cache", "forward", {"cache": "z", "input_ids": [[1]], "logits": "some"}),
    ("unknown_cache", "clone", {"cache": "a", "from": "z"}),  # before cache_exists
    ("unknown_cache", "crop", {"cache": "z", "length": -1}),
    ("unknown_cache", "gather", {"cache": "z", "rows": []}),
    ("unknown_cache", "reset", {"cache": "z"}),
    ("unknown_cache", "drop", {"cache": "z"}),
    ("unknown_cache", "length", {"cache": "z"}),
    ("unknown_cache", "read", {"cache": "z", "layer": -1}),
    ("unknown_cache", "save", {"cache": "z", "to": "s"}),
    ("model_mismatch", "forward", {"cache": "a", "input_ids": [[1]], "logits": "some", "model": "other"}),
    ("cache_exists", "new", {"cache": "a", "kind": "no such"}),  # before bad_argument
    ("cache_exists", "clone", {"cache": "a", "from": "a"}),
    ("name_unknown", "load", {"cache": "b", "from": "never"}),
    ("bad_argument", "new", {"cache": "b", "kind": "no such"}),
    ("bad_argument", "new", {"cache": "b", "kind": "dynamic", "capacity": 8}),
    ("bad_argument", "new", {"cache": "b", "kind": "dynamic", "window": 8}),
    ("bad_argument", "new", {"cache": "b", "kind": "static"}),
    ("bad_argument", "new", {"cache": "b", "kind": "static", "capacity": 0}),
    ("bad_argument", "new", {"cache": "b", "kind": "static", "capacity": -(1 << 63)}),
    ("bad_argument", "new", {"cache": "b", "kind": "static", "capacity": 8, "window": 8}),
    ("bad_argument", "new", {"cache": "b", "kind": "static_sliding_window", "capacity": 8}),
    ("bad_argument", "new", {"cache": "b", "kind": "static_sliding_window", "capacity": 8, "window": 0}),
    ("bad_argument", "forward", {"cache": "a", "input_ids": [[1]], "logits": "some"}),
    ("bad_argument", "forward", {"cache": "a", "input_ids": [[1]], "logits": ""}),
    ("bad_argument", "generate", {"input_ids": [[1]], "max_new_tokens": 0}),
    ("bad_argument", "generate", {"input_ids": [[1]], "max_new_tokens": 1, "capacity": 4}),
    ("bad_argument", "generate", {"input_ids": [[1]], "max_new_tokens": 1, "window": 4}),
    ("bad_argument", "generate", {"input_ids": [[1]], "max_new_tokens": 1, "kind": "no such"}),
    ("bad_argument", "generate", {"input_ids": [[1]], "max_new_tokens": 1, "kind": "static"}),
]


@pytest.mark.parametrize(("code", "op", "fields"), REFUSED_WORDS)
def test_what_the_words_get_wrong_is_refused_without_asking_the_engine(talk, code, op, fields):
    before = len(talk.engine.asked)
    assert talk.code(op, **fields) == code
    assert len(talk.engine.asked) == before
    assert talk.length("a") == ok(3)
    assert talk.code("length", cache="b") == "unknown_cache"


MISREAD = [
    ("new", {"kind": "dynamic"}),
    ("new", {"cache": 7, "kind": "dynamic"}),
    ("new", {"cache": "b", "kind": "static", "capacity": "8"}),
    ("new", {"cache": "b", "kind": "static", "capacity": 8.0}),
    ("new", {"cache": "b", "kind": "static", "capacity": True}),
    ("new", {"cache": "b", "kind": "static", "capacity": 1 << 63}),
    ("new", {"cache": "b", "kind": "dynamic", "model": "never opened"}),
    ("new", {"cache": "b", "kind": "dynamic", "model": ""}),
    ("new", {"cache": "b", "kind": "dynamic", "lane": 16}),
    ("new", {"cache": "b", "kind": "dynamic", "lane": -1}),
    ("forward", {"cache": "a"}),
    ("forward", {"cache": "a", "input_ids": [1]}),
    ("forward", {"cache": "a", "input_ids": [[1.5]]}),
    ("forward", {"cache": "a", "input_ids": [["1"]]}),
    ("forward", {"cache": "a", "input_ids": [[True]]}),
    ("forward", {"cache": "a", "input_ids": [[1, 1 << 63]]}),
    ("forward", {"cache": "a", "input_ids": [[1, -(1 << 63) - 1]]}),
    ("forward", {"cache": "a", "input_ids": [[None]]}),
    ("forward", {"cache": "a", "input_ids": [[1]], "attention_mask": 1}),
    ("forward", {"cache": "a", "input_ids": [[1]], "use_cache": 1}),
    ("crop", {"cache": "a", "length": None}),
    ("gather", {"cache": "a", "rows": [[0]]}),
    ("together", {"steps": {}}),
    ("together", {"steps": ["new"]}),
    ("together", {"steps": [{"op": "length", "cache": "a"}, {"op": "length", "cache": "a"}]}),
    ("open", {"model": "main"}),
    ("hello", {}),
]


@pytest.mark.parametrize(("op", "fields"), MISREAD)
def test_a_call_that_cannot_be_read_is_a_bad_argument(talk, op, fields):
    assert talk.code(op, **fields) == "bad_argument"
    assert talk.length("a") == ok(3)


def test_null_is_the_same_as_left_out(talk):
    assert talk.ask("new", cache="b", kind="dynamic", capacity=None, window=None, model=None) == ok(0)
    assert talk.feed("b", 1, attention_mask=None, use_cache=None, logits=None) == ok(1)


def test_fields_that_nobody_knows_are_ignored(talk):
    assert talk.feed("a", 1, colour="blue") == ok(4)


@pytest.mark.parametrize("op", ["rewind", "", "_new", "__init__", "call"])
def test_an_unknown_op_is_unsupported(talk, op):
    assert talk.ask(op, cache="a") == {"unsupported": {"reason": f'unknown op "{op}"'}}


def test_an_op_that_the_engine_has_not_is_unsupported():
    assert "unsupported" in Talk(Smallest()).ask("crop", cache="a", length=0)


def test_a_kind_that_the_engine_has_not_is_unsupported_but_an_unknown_one_is_refused():
    talk = Talk(Smallest())
    assert "unsupported" in talk.ask("new", cache="b", kind="static", capacity=4)
    assert talk.code("new", cache="b", kind="no such") == "bad_argument"
    assert talk.code("new", cache="b", kind="static") == "bad_argument"


def test_an_exception_among_the_refusals_is_a_refusal(talk):
    assert talk.feed("a", 90) == {"error": {"code": "other", "message": "ValueError: no 90"}}


def test_a_refusal_with_a_code_keeps_it(talk):
    assert talk.feed("a", 91) == {"error": {"code": "token_range", "message": "91 it is"}}


def test_what_the_engine_cannot_express_is_unsupported(talk):
    assert talk.feed("a", 92) == {"unsupported": {"reason": "no 92"}}


def test_any_other_exception_comes_through(talk):
    with pytest.raises(KeyError):
        talk.feed("a", 93)


def test_nothing_but_the_engine_can_refuse():
    class Lazy(Counting):
        def length(self, cache):
            raise ValueError("of a cache that is half written")

        def forward(self, model, cache, call):
            return Answer(logits=Late())

    class Late:
        def __array__(self, *_, **__):
            raise ValueError("computed too late")

    talk = Session(Lazy())
    talk.answer({"op": "open", "model": "main", "folder": ""})
    with pytest.raises(ValueError, match="half written"):
        talk.answer({"op": "new", "cache": "a", "kind": "dynamic"})
    with pytest.raises(ValueError, match="too late"):
        talk.answer({"op": "forward", "cache": None, "input_ids": [[1]]})


def test_what_the_engine_did_before_it_refused_is_not_hidden(talk):
    talk.feed("a", 90)
    assert talk.length("a") == ok(4)


def test_a_refused_op_leaves_the_names_as_they_were(talk):
    assert talk.code("new", cache="b", kind="static", capacity=90) == "other"
    assert talk.code("length", cache="b") == "unknown_cache"
    talk.feed("a", 4, 5, 6, 7, 8, 9)
    assert talk.code("clone", cache="b", **{"from": "a"}) == "other"
    assert talk.code("length", cache="b") == "unknown_cache"
    talk.ask("save", cache="a", to="nine")
    talk.feed("a", 10)
    assert talk.code("load", cache="a", **{"from": "nine"}) == "other"
    assert talk.length("a") == ok(10)
    assert talk.code("load", cache="b", **{"from": "nine"}) == "other"
    assert talk.code("length", cache="b") == "unknown_cache"
    assert talk.code("crop", cache="a", length=11) == "other"
    assert talk.length("a") == ok(10)


def test_a_refused_drop_keeps_the_cache():
    class Sticky(Counting):
        def drop(self, cache):
            raise Refused("other", "it is in use")

    talk = Talk(Sticky())
    assert talk.code("drop", cache="a") == "other"
    assert talk.length("a") == ok(3)


def test_a_saved_name_outlives_its_cache_and_is_overwritten(talk):
    talk.ask("save", cache="a", to="s")
    talk.ask("drop", cache="a")
    assert talk.ask("load", cache="b", **{"from": "s"}) == ok(3)
    talk.feed("b", 4)
    talk.ask("save", cache="b", to="s")
    assert talk.ask("load", cache="c", **{"from": "s"}) == ok(4)


def test_a_loaded_cache_belongs_to_the_model_it_was_saved_from(talk):
    talk.ask("new", cache="o", kind="dynamic", model="other")
    talk.ask("save", cache="o", to="s")
    talk.ask("load", cache="a", **{"from": "s"})
    talk.ask("clone", cache="b", **{"from": "a"})
    for cache in ("a", "b"):
        talk.feed(cache, 1)
        assert talk.engine.asked[-1][1] == "/other"


def test_the_drop_hook_is_called_when_a_cache_goes(talk):
    def dropped():
        return [each[1] for each in talk.engine.asked if each[0] == "drop"]

    talk.ask("save", cache="a", to="s")
    talk.ask("load", cache="a", **{"from": "s"})
    assert dropped() == [[1, 2, 3]]
    talk.feed("a", 4)
    talk.ask("drop", cache="a")
    assert dropped() == [[1, 2, 3], [1, 2, 3, 4]]
    talk.ask("new", cache="a", kind="dynamic")
    talk.ask("begin", case="next")
    assert dropped()[2:] == [[]]


def test_begin_forgets_caches_and_saved_names_but_not_models(talk):
    talk.ask("save", cache="a", to="s")
    assert talk.ask("begin", case="the second", run={"poison": True}) == {"ok": {}}
    assert talk.engine.asked[-1] == ("begin", "the second", {"poison": True})
    assert talk.code("length", cache="a") == "unknown_cache"
    assert talk.code("load", cache="a", **{"from": "s"}) == "name_unknown"
    assert talk.ask("new", cache="a", kind="dynamic", model="other") == ok(0)


def test_a_folder_that_the_engine_does_not_open_is_refused(talk):
    assert talk.code("open", model="main", folder="nowhere") == "other"


def test_lanes_have_names_of_their_own(talk):
    steps = [{"op": "length", "cache": "a"}, {"op": "new", "cache": "a", "kind": "dynamic", "lane": 1}]
    assert talk.ask("together", steps=steps) == {"ok": {"replies": [ok(3), ok(0)]}}
    steps = [{"op": "forward", "cache": "a", "input_ids": [[lane]], "lane": lane} for lane in (0, 1)]
    assert talk.ask("together", steps=steps) == {"ok": {"replies": [ok(4), ok(1)]}}
    assert {name: array[0, 0, 0] for name, array in talk.last.tensors.items()} == {"0.logits": 4, "1.logits": 1}


def test_each_lane_is_refused_by_itself(talk):
    steps = [{"op": "forward", "cache": "a", "input_ids": [[90]]}, {"op": "crop", "cache": "z", "length": 0, "lane": 3}]
    replies = talk.ask("together", steps=steps)["ok"]["replies"]
    assert [reply["error"]["code"] for reply in replies] == ["other", "unknown_cache"]


def test_lanes_run_at_once():
    from threading import Barrier

    class Meeting(Counting):
        meet = Barrier(3, timeout=10)

        def forward(self, model, cache, call):
            self.meet.wait()  # passes only when all three are in here
            return super().forward(model, cache, call)

    talk = Talk.__new__(Talk)
    talk.session = Session(Meeting())
    talk.ask("open", model="main", folder="")
    steps = [{"op": "forward", "cache": None, "input_ids": [[1]], "lane": lane} for lane in range(3)]
    assert talk.ask("together", steps=steps)["ok"]["replies"] == [{"ok": {}}] * 3


def test_each_step_has_a_thread_and_all_start_together():
    from threading import get_ident

    class Threads(Counting):
        def new(self, model, kind, capacity, window):
            self.threads.add(get_ident())
            return []

    talk = Talk.__new__(Talk)
    engine = Threads()
    talk.session = Session(engine)
    talk.ask("open", model="main", folder="")
    for turn in range(20):
        engine.threads = set()
        talk.ask("together", steps=[{"op": "new", "cache": f"{turn}", "kind": "dynamic", "lane": n} for n in range(4)])
        assert len(engine.threads) == 4  # a thread that had gone on alone would have been used again


def test_an_exception_in_a_lane_comes_through(talk):
    with pytest.raises(KeyError):
        talk.ask("together", steps=[{"op": "forward", "cache": "a", "input_ids": [[93]]}])


def test_no_steps_have_no_replies(talk):
    assert talk.ask("together", steps=[]) == {"ok": {"replies": []}}


def test_long_texts_are_cut(talk):
    class Chatty(Counting):
        def forward(self, model, cache, call):
            raise Unsupported("x" * 100_000)

    talk.engine = Chatty()
    talk.session = Session(talk.engine)
    talk.ask("open", model="main", folder="")
    assert len(talk.ask("forward", cache=None, input_ids=[[1]])["unsupported"]["reason"]) == 2000
