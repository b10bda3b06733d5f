"""How an engine says no."""

from typing import Literal

Code = Literal[
    "unknown_cache",
    "model_mismatch",
    "cache_exists",
    "name_unknown",
    "bad_argument",
    "layer_range",
    "empty_input",
    "batch_mismatch",
    "token_range",
    "mask_length",
    "mask_value",
    "mask_revival",
    "position_shape",
    "position_range",
    "context_length",
    "capacity",
    "crop_range",
    "crop_evicted",
    "row_range",
    "other",
]
"""The contract's reasons; `other` for an engine that has none of its own."""


class Refused(Exception):  # noqa: N818 - a refusal is an answer, not an error
    """The engine refuses a call, by this rule of the contract."""

    def __init__(self, code: Code, message: str = "") -> None:
        super().__init__(message)
        self.code: Code = code


class Unsupported(Exception):  # noqa: N818
    """The engine cannot express a call. It counts as not covered, never as passed or refused."""
