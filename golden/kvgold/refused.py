"""One builder for each refusal code: generator -> a step that the contract refuses with just that code."""

import copy


def unknown_cache(make):
    calls = [{"op": "reset"}, {"op": "save", "to": "s0"}, {"op": "length", "expect": 0}, {"op": "read", "layer": -1}]
    calls += [{"op": "crop", "length": -1}, {"op": "gather", "rows": []}, {"op": "forward", "input_ids": [[1, 2]]}]
    calls += [{"op": "drop"}, {"op": "clone", "from": "nobody"}]
    return {"cache": "nobody"} | make.random.choice(calls)


def cache_exists(make):
    name = make.name()
    calls = [{"op": "new", "kind": "dynamic"}, {"op": "new", "kind": "rolling"}, {"op": "clone", "from": name}]
    return {"cache": name} | make.random.choice(calls)


def name_unknown(make):
    return {"op": "load", "cache": make.random.choice(("fresh", make.name())), "from": "nothing"}


def bad_argument(make):
    """In `new` mostly: an unknown kind, a size missing, too small, or on a kind that has none."""
    new = {"op": "new", "cache": "fresh"}
    sizes = [
        {"kind": "rolling"},
        {"kind": "dynamic", "capacity": 8},
        {"kind": "static"},
        {"kind": "static", "capacity": 0},
    ]
    sizes += [{"kind": "static", "capacity": 8, "window": 2}, {"kind": "static_sliding_window", "capacity": 8}]
    sizes += [{"kind": "static_sliding_window", "capacity": 8, "window": 0}, {"kind": "dynamic", "window": 2}]
    wish = make.forward(None) | {"logits": "some", "input_ids": []}
    return make.random.choice([new | size for size in sizes] + [wish])


def layer_range(make):
    return {"op": "read", "cache": make.name(), "layer": make.random.choice((-1, make.config["n_layer"]))}


def crop_range(make):
    name = make.name()
    return {"op": "crop", "cache": name, "length": make.random.choice((-1, make.state.caches[name].length + 1))}


def crop_evicted(make):
    """A window of 3 over 6 columns has lost three: keeping 4 would need two of them."""
    name = make.fresh()
    make.emit(
        {
            "op": "new",
            "cache": name,
            "kind": "static_sliding_window",
            "capacity": make.random.between(3, 9),
            "window": 3,
        }
    )
    for _ in range(2):
        make.emit(
            {"op": "forward", "cache": name, "input_ids": make.random.ints((2, 3), 0, make.config["vocab_size"] - 1)}
        )
    return {"op": "crop", "cache": name, "length": make.random.between(2, 4)}


def row_range(make):
    name = make.name()
    cache = make.state.caches[name]
    held = len(cache.ids)
    wrong = [[], [held], [-1], [*range(held), held]]
    if cache.kind != "dynamic" and held:
        wrong.append([*range(held), 0])
    return {"op": "gather", "cache": name, "rows": make.random.choice(wrong)}


def empty_input(make):
    return _forward(make, "empty_input")


def batch_mismatch(make):
    return _forward(make, "batch_mismatch")


def token_range(make):
    return _forward(make, "token_range")


def mask_length(make):
    return _forward(make, "mask_length")


def mask_value(make):
    return _forward(make, "mask_value")


def mask_revival(make):
    """Needs a hidden past: the mask of ones, or none at all, would bring it back."""
    return _forward(make, "mask_revival", hidden=True)


def position_shape(make):
    return _forward(make, "position_shape")


def position_range(make):
    return _forward(make, "position_range")


def context_length(make):
    name = make.new("dynamic")
    make.emit(make.forward(name, rows=2) | {"use_cache": True})
    cache = make.state.caches[name]
    rows, length, limit = len(cache.ids), cache.length, make.config["n_positions"]
    ids = make.random.ints((rows, limit + 1 - length), 0, make.config["vocab_size"] - 1)
    mask = [row + [1] * (limit + 1 - length) for row in cache.bits.astype(int).tolist()]
    return {"op": "forward", "cache": name, "input_ids": ids, "attention_mask": mask}


def capacity(make):
    """Full to the last slot, or nearly, and one column more; a call that keeps nothing is refused as well."""
    name, slots = make.fresh(), make.random.between(2, 5)
    make.emit({"op": "new", "cache": name, "kind": "static", "capacity": slots})
    fed = make.random.between(1, slots)
    make.emit({"op": "forward", "cache": name, "input_ids": make.random.ints((2, fed), 0, 1)})
    step = {"op": "forward", "cache": name, "input_ids": make.random.ints((2, slots + 1 - fed), 0, 1)}
    return step | ({"use_cache": False} if make.random.chance(50) else {})


def _forward(make, code, hidden=False):
    """A forward onto a warm cache, spoilt for this code; half of them again for a later one, which must not show."""
    name = make.new(make.random.choice(("dynamic", "static_sliding_window")))
    ids = make.random.ints((2, 3), 0, make.config["vocab_size"] - 1)
    mask = [[0, 1, 1], [1, 1, 1]] if hidden else [[1, 1, 1], [1, 1, 1]]
    make.emit({"op": "forward", "cache": name, "input_ids": ids, "attention_mask": mask})
    step = {"op": "forward", "cache": name, "input_ids": make.random.ints((2, 2), 0, make.config["vocab_size"] - 1)}
    step |= {"attention_mask": [row + [1, 1] for row in mask], "position_ids": [[2, 3], [3, 4]]}
    _spoil(make, step, code)
    twice = copy.deepcopy(step)
    _spoil(make, twice, make.random.choice(("token_range", "mask_value", "position_shape", "position_range")))
    return twice if make.random.chance(50) and make.state.refusal(twice) == code else step


def _spoil(make, step, code):
    """Breaks one rule of a forward, in place."""
    random, ids, mask = make.random, step["input_ids"], step["attention_mask"]
    row = random.below(2)
    if code == "empty_input":
        step["input_ids"] = random.choice(([], [[], []]))
    elif code == "batch_mismatch":
        random.choice((ids, mask, step["position_ids"], ids[row])).pop()
    elif code == "token_range":
        if ids and ids[row % len(ids)]:
            ids[row % len(ids)][0] = random.choice((-1, make.config["vocab_size"]))
    elif code == "mask_length":
        mask[row] = random.choice((mask[row][:-1], mask[row] + [1], mask[row][-2:]))
    elif code == "mask_value":
        mask[row % len(mask)][-1] = random.choice((2, -1))
    elif code == "mask_revival":
        step["attention_mask"] = [[1] * 5, [1] * 5]
    elif code == "position_shape":
        step["position_ids"][0] = step["position_ids"][0] + [4]
    elif code == "position_range":
        step["position_ids"][-1][-1] = random.choice((-1, make.config["n_positions"]))


BUILDERS = {
    builder.__name__: builder
    for builder in (
        unknown_cache,
        cache_exists,
        name_unknown,
        bad_argument,
        layer_range,
        empty_input,
        batch_mismatch,
        token_range,
        mask_length,
        mask_value,
        mask_revival,
        position_shape,
        position_range,
        context_length,
        capacity,
        crop_range,
        crop_evicted,
        row_range,
    )
}
