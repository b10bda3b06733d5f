"""Traces written by hand: each shows one promise of the contract on purpose, where random traces meet it by chance."""

from . import refused
from .contract import STATIC, positions_from_mask
from .portable import Random
from .random_trace import Generator


def new(cache, kind="dynamic", **sizes):
    return {"op": "new", "cache": cache, "kind": kind} | sizes


def feed(cache, ids, mask=None, **more):
    """A forward; with a mask its new columns take their positions from it, as a caller with padding must."""
    step = {"op": "forward", "cache": cache, "input_ids": ids} | more
    if mask is None:
        return step
    positions = positions_from_mask(mask)[:, -len(ids[0]) :]
    return step | {"attention_mask": mask, "position_ids": positions.tolist()}


def length(cache, expect):
    return {"op": "length", "cache": cache, "expect": expect}


def read(cache, *layers):
    return [{"op": "read", "cache": cache, "layer": layer} for layer in layers]


def source_text():
    """Prefix 4 9 6, then 7: lengths 3 and 4, a mask of 4, and the same as one full pass."""
    return [
        new("a"),
        feed("a", [[4, 9, 6]], attention_mask=[[1, 1, 1]]),
        length("a", 3),
        feed("a", [[7]], attention_mask=[[1, 1, 1, 1]]),
        length("a", 4),
        feed(None, [[4, 9, 6, 7]], attention_mask=[[1, 1, 1, 1]]),
    ]


def ten_tokens(prompt, ids):
    """The loop people write by hand: greedy ids fed one by one, the mask growing by one each step."""
    steps = [new("a"), feed("a", [prompt], attention_mask=[[1] * len(prompt)])]
    for count, token in enumerate(ids[:-1], len(prompt) + 1):
        steps += [feed("a", [[token]], attention_mask=[[1] * count]), length("a", count)]
    return [*steps, feed(None, [prompt + ids[:-1]])]


def keys_and_values(start, rows, more, config):
    """`read` after everything that moves K and V; `rows` is a gather, `more` a crop that the kind allows."""
    draw = Random(1, "keys_and_values")
    vocabulary, last = config["vocab_size"] - 1, config["n_layer"] - 1
    layers = range(config["n_layer"])
    held = {"mask": [[0, 0, 1, 1], [1, 1, 1, 1], [0, 1, 1, 1]]}

    def fed(count, *, hide=None):
        held["mask"] = [row + [1] * count for row in held["mask"]]
        if hide:
            held["mask"][hide[0]][hide[1]] = 0
        return feed("a", draw.ints((len(held["mask"]), count), 0, vocabulary), held["mask"])

    steps = [new("a", **start), *read("a", 0), feed("a", draw.ints((3, 4), 0, vocabulary), held["mask"])]
    steps += [*read("a", *layers), fed(1), *read("a", 0, last), fed(3), *read("a", *layers)]
    steps += [{"op": "clone", "cache": "b", "from": "a"}, {"op": "crop", "cache": "a", "length": more}]
    held["mask"] = [row[:more] for row in held["mask"]]
    steps += [*read("a", 1, last), {"op": "gather", "cache": "a", "rows": rows}, *read("a", *layers)]
    held["mask"] = [held["mask"][row] for row in rows]
    steps += [fed(2), *read("a", 0, last), fed(1, hide=(1, more - 1)), *read("a", last), *read("b", 0, last)]
    steps += [{"op": "save", "cache": "a", "to": "s"}, {"op": "reset", "cache": "a"}, *read("a", last)]
    return [*steps, {"op": "load", "cache": "b", "from": "s"}, *read("b", *layers), length("b", more + 3)]


def windows(window, capacity, config):
    """The same ragged tokens cut into calls in five ways: the answer does not depend on the cuts. Then crops."""
    draw = Random(window * 100 + capacity, "windows")
    total = 14
    ids = draw.ints((2, total), 0, config["vocab_size"] - 1)
    mask = [[0] * pad + [1] * (total - pad) for pad in (3, 0)]
    steps = []
    for name, cuts in zip("abcde", ([14], [1] * 14, [3, 7, 4], [6, 1, 1, 6], [2] * 7), strict=True):
        steps.append(new(name, "static_sliding_window", capacity=capacity, window=window))
        end = 0
        for cut in cuts:
            begin, end = end, end + cut
            steps.append(feed(name, [row[begin:end] for row in ids], [row[:end] for row in mask]))
    return steps + _after_the_window(min(window, capacity), draw.ints((2, 3), 0, config["vocab_size"] - 1), mask)


def _after_the_window(window, ids, mask):
    """One column less is legal, two are not once the window has moved on; a window of 1 has nothing to miss."""
    total = len(mask[0])

    def crop(cache, length, **more):
        return {"op": "crop", "cache": cache, "length": length} | more

    def again(cache, past, **more):
        return feed(cache, ids, [row[:past] + [1, 1, 1] for row in mask], **more)

    refused_crop = {"error": "crop_evicted"} if 1 < window < total else {}
    left = total - 1 if refused_crop else total - 2
    steps = [again("a", total, use_cache=False), *read("a", 0, 2), again("c", total)]
    steps += [crop("b", total - 1), *read("b", 1), crop("b", total - 2, **refused_crop), length("b", left)]
    steps += [*read("b", 1), again("b", left), *read("b", 2), length("b", left + 3)]
    return [*steps, crop("d", 0), feed("d", ids), *read("d", 1)]


def generations(kind, prompts, mask, eos, config):
    """Greedy ids of one way to cache: ragged and alone, with and without eos, and the exact fits of both limits."""
    columns, limit, alone = len(prompts[0]), config["n_positions"], [prompts[-1]]
    fixed = {} if kind is None else {"kind": kind}
    if kind == "static_sliding_window":
        fixed["window"] = 6

    def ask(ids, new_tokens, **more):
        size = {"capacity": columns + new_tokens - 1} if kind in STATIC else {}
        return {"op": "generate", "input_ids": ids, "max_new_tokens": new_tokens} | fixed | size | more

    steps = [ask(prompts, 10, attention_mask=mask), ask(alone, 10), ask(alone, 1), ask(alone, 10, eos_token_id=eos)]
    steps += [ask(prompts, 12, attention_mask=mask, eos_token_id=eos), ask(alone, limit - columns + 1)]
    steps += [ask(alone, limit - columns + 2, error="context_length"), ask(alone, 0, error="bad_argument")]
    steps += [ask(prompts, 3, attention_mask=[[*row[:-1], 0] for row in mask], error="mask_value")]
    if kind == "static":
        steps += [ask(alone, 4, capacity=columns + 2, error="capacity"), ask(alone, 4, capacity=columns + 20)]
    if kind is None:
        steps += [ask(alone, 4, capacity=20, error="bad_argument"), ask(alone, 4, window=2, error="bad_argument")]
    return steps


def refusals(config):
    """Every code once in one trace, each followed by proof that nothing moved."""
    generator = Generator(config, 5, 0)
    generator.codes = list(refused.BUILDERS)
    return generator.make(100)


def first_applies(config):
    """Calls that break two rules, neighbours in the contract's table: the first is the code."""
    vocabulary, limit = config["vocab_size"], config["n_positions"]
    warm = feed("a", [[1, 2, 3], [4, 5, 6]], [[0, 1, 1], [1, 1, 1]])
    good = feed("a", [[7], [8]], [[0, 1, 1, 1], [1, 1, 1, 1]])
    generate = {"op": "generate", "input_ids": [[1, 2]], "max_new_tokens": 2}

    def bad(code, **fields):
        return good | fields | {"error": code}

    short, two, alive = [[0, 1, 1], [1, 1, 1]], [[0, 1, 1, 2], [1, 1, 1, 1]], [[1, 1, 1, 1], [1, 1, 1, 1]]
    pairs = [
        bad("unknown_cache", cache="nobody", logits="some"),
        bad("bad_argument", logits="some", input_ids=[[], []]),
        bad("empty_input", input_ids=[[]]),
        bad("batch_mismatch", input_ids=[[vocabulary]]),
        bad("batch_mismatch", input_ids=[[7], []]),
        bad("token_range", input_ids=[[7], [-1]], attention_mask=short),
        bad("mask_length", attention_mask=[[0, 1, 2], [1, 1, 1]]),
        bad("mask_value", attention_mask=[[1, 1, 1, 2], [1, 1, 1, 1]]),
        bad("mask_revival", attention_mask=alive, position_ids=[[2], []]),
        bad("position_shape", position_ids=[[2], [3, limit]]),
        bad("mask_value", attention_mask=two, position_ids=[[limit], [0]]),
        {"op": "new", "cache": "a", "kind": "rolling", "error": "cache_exists"},
        {"op": "clone", "cache": "a", "from": "nobody", "error": "unknown_cache"},
        {"op": "read", "cache": "nobody", "layer": 99, "error": "unknown_cache"},
        {"op": "crop", "cache": "nobody", "length": -1, "error": "unknown_cache"},
        {"op": "gather", "cache": "nobody", "rows": [], "error": "unknown_cache"},
        {"op": "load", "cache": "nobody", "from": "nothing", "error": "name_unknown"},
        generate | {"max_new_tokens": 0, "input_ids": [], "error": "bad_argument"},
        generate | {"input_ids": [[], []], "attention_mask": [[1]], "error": "empty_input"},
        generate | {"attention_mask": [[0, 0, 0]], "error": "mask_length"},
        generate | {"attention_mask": [[1, 0]], "max_new_tokens": limit + 1, "error": "mask_value"},
        generate | {"kind": "static", "capacity": 4, "max_new_tokens": limit, "error": "context_length"},
    ]
    full = [
        new("s", "static", capacity=4),
        feed("s", [[1, 2, 3]]),
        feed("s", [[1, 2]], position_ids=[[3, limit]], error="position_range"),
        feed("s", [[1] * (limit - 2)], error="context_length"),
        feed("s", [[1, 2]], use_cache=False, error="capacity"),
        length("s", 3),
        feed("s", [[1]]),
    ]
    return [new("a"), warm, *pairs, length("a", 3), good, *read("a", 0), *full]
