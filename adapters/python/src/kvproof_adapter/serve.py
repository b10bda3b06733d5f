"""The loop between the pipe and the engine."""

import sys
import traceback
from typing import Any

from .engine import Engine
from .message import BrokenMessage, Document, encode, read_message
from .pipe import Pipe, take_standard_streams
from .session import Session

EXIT_NO_MESSAGE = 3
EXIT_ENGINE_THREW = 70


def serve(engine: Engine) -> None:
    """Answers requests until `close` or the end of the input.

    Ends the program with code 3 over bytes that are no message, and with code 70 over an exception of the engine that
    is no refusal: its state is unknown from there on. The reason is on standard error, for kvproof to show.
    """
    pipe = take_standard_streams()
    try:
        converse(Session(engine), pipe)
        return
    except BrokenMessage as error:
        print(f"kvproof_adapter: no message: {error}", file=sys.stderr)
        code = EXIT_NO_MESSAGE
    except Exception:
        traceback.print_exc()
        code = EXIT_ENGINE_THREW
    sys.stderr.flush()
    pipe.close()  # before threads of the engine are waited for: the other side must not wait with us
    raise SystemExit(code)


def converse(session: Session, pipe: Pipe) -> None:
    while not session.closed and (message := read_message(pipe.read)) is not None:
        pipe.write(reply_bytes(session, message.document))


def reply_bytes(session: Session, document: Document) -> bytes:
    if type(document.get("id")) is not int or not isinstance(document.get("op"), str):
        raise BrokenMessage("a request without an integer id and an op")
    echo: dict[str, Any] = {"id": document["id"]}
    reply = session.answer(document)
    message = encode(echo | reply.outcome, reply.tensors)
    if len(message) <= session.most_reply_bytes:
        return message
    reason = f"the reply takes {len(message)} bytes, you read at most {session.most_reply_bytes}"
    return encode(echo | {"unsupported": {"reason": reason}})
