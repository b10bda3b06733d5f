#include "harness/report/transformers_prelude.hpp"

namespace kvproof::harness {

const std::string_view kPythonVerdict = R"py(

class Verdict(Exception):
    """Ends the script: what was shown, or why it was not."""

    def __init__(self, shown, text):
        super().__init__(text)
        self.shown = shown


def shown(text):
    raise Verdict(True, text)


def not_shown(text):
    raise Verdict(False, text)


def ids(rows):
    return torch.tensor(rows, dtype=torch.long)


def same_bits(a, b):
    return torch.equal(a.contiguous().view(torch.uint8), b.contiguous().view(torch.uint8))
)py";

const std::string_view kPythonGenerated = R"py(

def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
    z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
    return z ^ z >> 31


def weights(seed, name, shape, deviation):
    """float32 [shape]: uniform, of this standard deviation about 0 (1 for the weights of norms), a hash of seed, name and index."""
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 % 2**64
    count = int(np.prod(shape))
    with np.errstate(over="ignore"):
        z = np.uint64(mix((seed + h) % 2**64)) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            z = (z ^ z >> np.uint64(shift)) * np.uint64(factor)
        z ^= z >> np.uint64(31)
    unit = (2 * (z >> np.uint64(12)) + np.uint64(1)).astype(np.float64) / 2**52 - 1
    centre = 1.0 if name.endswith(("ln_1.weight", "ln_2.weight", "ln_f.weight")) else 0.0
    return (centre + 1.7320508075688772 * deviation * unit).astype(np.float32).reshape(shape)


def make_model(source, attention, dtype, **settings):
    """GPT-2 with random weights that are the same on every machine."""
    config = GPT2Config.from_dict(source["config"] | settings)
    stored = getattr(torch, source["config"].get("dtype") or source["config"].get("torch_dtype") or "float32")
    model = GPT2LMHeadModel._from_config(config, attn_implementation=attention).to(dtype).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            values = weights(source["seed"], name, parameter.shape, config.initializer_range)
            parameter.copy_(torch.from_numpy(values).to(stored))
    model.generation_config = GenerationConfig()
    return model
)py";

const std::string_view kPythonFolder = R"py(

def load_model(source, attention, dtype, **settings):
    config = GPT2Config.from_pretrained(source["folder"], **settings)
    model = GPT2LMHeadModel.from_pretrained(source["folder"], config=config, dtype=dtype, attn_implementation=attention).eval()
    model.generation_config = GenerationConfig()
    return model
)py";

const std::string_view kPythonRecompute = R"py(

def additive(mask, dtype):
    """[B, 1, N, N] of what each query sees. A row of `mask` is one row of bits, or the bits of each query as a string."""
    count = len(mask[0])
    sees = torch.zeros(len(mask), count, count, dtype=torch.bool)
    for b, row in enumerate(mask):
        for q in range(count):
            for c in range(q + 1):
                sees[b, q, c] = row[q][c] == "1" if isinstance(row[q], str) else row[c] == 1
            if not sees[b, q].any():
                sees[b, q, q] = True  # a hidden query that sees nothing: its logits do not count, but must be finite
    return torch.zeros(sees.shape, dtype=dtype).masked_fill(~sees, torch.finfo(dtype).min)[:, None]


def recompute(exact, input_ids, position_ids, mask):
    """What is right: Transformers' own model in float64 and without a cache, on the whole history at once."""
    cache = DynamicCache()
    logits = exact(input_ids=ids(input_ids), position_ids=ids(position_ids), attention_mask=additive(mask, exact.dtype), past_key_values=cache).logits
    return logits, cache


def off_bound(step, what, got, want, counts):
    """Shows numbers that are further off than rounding can be. A NaN is further off."""
    if tuple(got.shape) != tuple(want.shape):
        shown(f"step {step}: {what} of shape {list(got.shape)}, expected {list(want.shape)}")
    if not torch.isfinite(got).all():
        shown(f"step {step}: {what} that are not finite")
    difference = (got.double() - want).abs()
    off = ~(difference <= ATOL + RTOL * want.abs()) & counts
    largest = torch.where(counts, difference, torch.zeros_like(difference)).max().item() if difference.numel() else 0.0
    print(f"step {step}: the largest difference of {what} from a recompute without cache in float64 is {largest:.3g}")
    if off.any():
        at = tuple(off.nonzero()[0].tolist())
        shown(
            f"step {step}: {int(off.sum())} of {off.numel()} {what} are wrong, by up to {largest:.3g};"
            f" the first at {list(at)} is {got[at].item():.8g}, a recompute without cache in float64 gives {want[at].item():.8g}"
        )


def compare(step, logits, want, counts):
    """`counts` [B][T]: 1 where the query is not hidden; of hidden ones only that they are finite is asked."""
    off_bound(step, "logits", logits, want, torch.tensor(counts, dtype=torch.bool)[:, :, None].expand(want.shape))
)py";

const std::string_view kPythonMisuse = R"py(

# What torch and Transformers raise when an argument does not suit them. Anything else from inside is a breakdown.
ARGUMENT_ERRORS = (ValueError, IndexError, KeyError, TypeError, RuntimeError)


@contextlib.contextmanager
def must_refuse(step, finding=None):
    """The call in this block breaks a rule. `finding`: what is to be shown of it, if anything."""
    try:
        yield
    except Exception as error:
        words = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        print(f"step {step}: refused as it should be: {words}")
        if finding == "broke_down" and not isinstance(error, ARGUMENT_ERRORS):
            shown(f"step {step}: no error about an argument, but {words}")
    else:
        if finding == "accepts_misuse":
            shown(f"step {step}: no exception was raised")
        not_shown(f"step {step}: no exception was raised, and what follows depends on one")
)py";

const std::string_view kPythonState = R"py(

def state_of(**caches):
    """Length, K and V of each cache, copied."""
    state = {}
    for name, cache in caches.items():
        layers = [(int(layer.get_seq_length()), layer.keys, layer.values) for layer in cache.layers]
        held = [(n, k[:, :, :n].clone(), v[:, :, :n].clone()) if k is not None else (n, None, None) for n, k, v in layers]
        state[name] = (int(cache.get_seq_length()), held)
    return state


def must_be_unchanged(step, before, after):
    for name in before:
        (was, old), (now, new) = before[name], after[name]
        if was != now:
            shown(f"step {step}: the call was refused, but get_seq_length() of {name} was {was} and is {now}")
        if [n for n, *_ in old] != [n for n, *_ in new]:
            shown(f"step {step}: the call was refused, but the layers of {name} held {[n for n, *_ in old]} columns and hold {[n for n, *_ in new]}")
        for layer, ((_, *a), (_, *b)) in enumerate(zip(old, new)):
            if any(x is not None and not same_bits(x, y) for x, y in zip(a, b)):
                shown(f"step {step}: the call was refused, but keys or values of layer {layer} of {name} are others now")
)py";

const std::string_view kPythonCrop = R"py(

def crop(cache, length):
    """Keeps `length` columns. 4.57 has crop(columns to keep); 5.x has crop(-columns to remove), where a positive number is deprecated."""
    if isinstance(cache, StaticCache) and not hasattr(StaticLayer, "crop"):
        not_shown("a StaticCache of this release has no crop")
    past = int(cache.get_seq_length())
    keeps = "max_length" in inspect.signature(DynamicLayer.crop).parameters
    cache.crop(length - past if length < 0 or (not keeps and length <= past) else length)
)py";

const std::string_view kPythonGather = R"py(

def gather(cache, rows):
    """reorder_cache where the number of rows stays, and for a StaticCache, which has nothing else."""
    keys = cache.layers[0].keys
    if isinstance(cache, StaticCache) or len(rows) == (0 if keys is None else len(keys)):
        cache.reorder_cache(ids(rows))
    else:
        cache.batch_select_indices(ids(rows))
)py";

const std::string_view kPythonStore = R"py(

def store(cache):
    """A cache outside of the cache: the tuples of 4.57, or what torch.save makes of it."""
    if hasattr(cache, "to_legacy_cache") and isinstance(cache, DynamicCache):
        return cache.to_legacy_cache()
    file = io.BytesIO()
    torch.save(cache, file)
    return file.getvalue()


def restore(stored):
    if isinstance(stored, tuple):
        return DynamicCache.from_legacy_cache(stored)
    return torch.load(io.BytesIO(stored), weights_only=False)
)py";

const std::string_view kPythonLength = R"py(

def must_be_length(step, cache, want):
    length = int(cache.get_seq_length())
    print(f"step {step}: get_seq_length() is {length}, expected {want}")
    if length != want:
        shown(f"step {step}: get_seq_length() is {length}, expected {want}")
)py";

const std::string_view kPythonRead = R"py(

def read(cache, layer):
    """K and V of the columns held, copied: [B, H, S, D]."""
    held = cache.layers[layer]
    length = int(held.get_seq_length())
    return held.keys[:, :, :length].clone(), held.values[:, :, :length].clone()
)py";

const std::string_view kPythonCompareRead = R"py(

def compare_read(step, got, cache, layer, counts):
    """`counts` [B][S]: 1 where the column is not hidden."""
    wanted = (cache.layers[layer].keys, cache.layers[layer].values)
    for what, numbers, want in zip(("keys", "values"), got, wanted):
        off_bound(step, what, numbers, want, torch.tensor(counts, dtype=torch.bool)[:, None, :, None].expand(want.shape))
)py";

const std::string_view kPythonSameColumns = R"py(

def must_be_same_columns(step, got, earlier_step, earlier, pairs):
    """`pairs`: (row, column) now and (row, column) then of what is one and the same column."""
    for (row, column), (old_row, old_column) in pairs:
        for what, now, then in zip(("keys", "values"), got, earlier):
            if not same_bits(now[row, :, column], then[old_row, :, old_column]):
                shown(f"step {step}: {what} of row {row} column {column} are not what they were at step {earlier_step}, row {old_row} column {old_column}")
)py";

const std::string_view kPythonBits = R"py(

def must_be_same_bits(step, logits, earlier_step, earlier):
    """The same call on the same state twice."""
    if not same_bits(logits, earlier):
        largest = (logits - earlier).abs().max().item()
        shown(f"step {step}: the call of step {earlier_step} once more, on the same state, gives other bits, by up to {largest:.3g}")
)py";

const std::string_view kPythonGreedy = R"py(

def must_be_greedy(step, got, exact, input_ids, mask, eos):
    """Each id must be the best of a recompute on the ids before it, or tie with it. Behind its eos a row is not judged."""
    for b, (prompt, bits) in enumerate(zip(input_ids, mask)):
        tokens, sees = list(prompt), list(bits)
        for n, token in enumerate(got[b].tolist()):
            positions = [max(p - 1, 0) for p in np.cumsum(sees).tolist()]
            row = recompute(exact, [tokens], [positions], [sees])[0][0, -1]
            best = int(row.argmax())
            bound = ATOL + RTOL * row[best].abs().item()
            if row[best].item() - row[token].item() > 2 * bound:
                shown(f"step {step}: id {n} of row {b} is {token}, but {best} is better: {row[best].item():.8g} and {row[token].item():.8g}")
            if token == eos:
                break
            tokens, sees = tokens + [token], sees + [1]
)py";

const std::string_view kPythonMain = R"py(

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--attention", choices=["eager", "sdpa"], default="eager")
    attention = parser.parse_args().attention
    torch.set_num_threads(1)
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    print(f"transformers {transformers.__version__}, torch {torch.__version__}, {attention}")
    try:
        with torch.no_grad():
            play(attention)
        not_shown("every step was as it should be")
    except Verdict as verdict:
        print(f"SHOWN: {verdict}" if verdict.shown else f"NOT SHOWN: {verdict}")
        sys.exit(0 if verdict.shown else 1)
    except Exception as error:
        traceback.print_exc(file=sys.stdout)
        words = f"a legal call raised {type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
        print(f"SHOWN: {words}" if LEGAL_CALL_RAISES else f"NOT SHOWN: {words}")
        sys.exit(0 if LEGAL_CALL_RAISES else 1)


if __name__ == "__main__":
    main()
)py";

}  // namespace kvproof::harness
