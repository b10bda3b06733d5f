"""Random numbers that any language can remake: splitmix64, no state of a library, no floating-point functions."""

import numpy as np

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def fnv1a(text):
    """FNV-1a 64 of the text's UTF-8 bytes: the name of a stream becomes its key."""
    value = 0xCBF29CE484222325
    for byte in text.encode():
        value = (value ^ byte) * 0x100000001B3 & MASK
    return value


def mix(value):
    """The finaliser of splitmix64."""
    value = (value ^ value >> 30) * 0xBF58476D1CE4E5B9 & MASK
    value = (value ^ value >> 27) * 0x94D049BB133111EB & MASK
    return value ^ value >> 31


class Random:
    """A stream of its own for each (seed, name): drawing more from one never moves another."""

    def __init__(self, seed, name):
        self.state = mix(seed & MASK) ^ fnv1a(name)

    def next(self):
        self.state = self.state + GOLDEN & MASK
        return mix(self.state)

    def below(self, bound):
        return (self.next() >> 32) * bound >> 32

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def chance(self, percent):
        return self.below(100) < percent

    def choice(self, items):
        items = list(items)
        return items[self.below(len(items))]

    def weighted(self, weights):
        """A key of the dict, as often as its whole-number weight says."""
        ticket = self.below(sum(weights.values()))
        for key, weight in weights.items():
            ticket -= weight
            if ticket < 0:
                return key

    def ints(self, shape, low, high):
        rows, columns = shape
        return [[self.between(low, high) for _ in range(columns)] for _ in range(rows)]


def bells(seed, name, count):
    """`count` nearly normal float64 of deviation 1: the sum of the four 16-bit quarters of one hash each, exact."""
    with np.errstate(over="ignore"):
        steps = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(GOLDEN)
        value = steps + np.uint64(mix(seed & MASK) ^ fnv1a(name))
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            value = (value ^ value >> np.uint64(shift)) * np.uint64(factor)
        value ^= value >> np.uint64(31)
    quarters = [(value >> np.uint64(shift) & np.uint64(0xFFFF)).astype(np.float64) for shift in (0, 16, 32, 48)]
    return (sum(quarters) - 2 * 65535) / (65536 / np.sqrt(3.0))
