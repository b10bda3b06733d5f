import math
import struct

M = 2**64 - 1


def mix(z):
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & M
    z = (z ^ z >> 27) * 0x94D049BB133111EB & M
    return z ^ z >> 31


def tensor(seed, name, count, initializer_range=0.02):
    h = 0xCBF29CE484222325
    for byte in name.encode():
        h = (h ^ byte) * 0x100000001B3 & M
    key, amplitude = mix(seed + h & M), math.sqrt(3) * initializer_range
    centre = 1.0 if name.endswith(("ln_1.weight", "ln_2.weight", "ln_f.weight")) else 0.0
    bits = [mix(key + (i + 1) * 0x9E3779B97F4A7C15 & M) for i in range(count)]
    return struct.pack(f"<{count}f", *[centre + amplitude * ((2 * (b >> 12) + 1) / 2**52 - 1) for b in bits])


for name in ("transformer.wte.weight", "transformer.h.0.ln_1.weight", "transformer.h.0.mlp.c_fc.bias"):
    print(name, tensor(7, name, 4).hex())
