"""Puts an engine with a KV cache on trial by kvproof: one class with a method per op, handed to `serve`."""

from .calls import Answer, Forward, Generate, Rows
from .engine import Engine
from .refusal import Code, Refused, Unsupported
from .serve import serve

__all__ = ["Answer", "Code", "Engine", "Forward", "Generate", "Refused", "Rows", "Unsupported", "serve"]
