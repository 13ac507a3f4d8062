"""What the workers do. Each action takes a payload and returns a result, or raises JobFailed.

The two that would ask a language model sleep instead, for ``seconds`` of the payload.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Callable
from typing import Any

from fpdf import FPDF

Payload = dict[str, Any]
LONGEST_SECONDS = 3600


class JobFailed(Exception):
    """The job cannot be done. ``code`` is what alerts are routed by."""

    def __init__(self, code: str, message: str, **more: object) -> None:
        super().__init__(message)
        self.error = {"code": code, "message": message, **more}


def rewrite_resume(payload: Payload) -> Payload:
    """Put each line of a resume into active voice, as far as a stand-in can."""
    text = _text(payload, "text")
    _think(payload)
    lines = [line.strip().removeprefix("was responsible for ") for line in text.splitlines()]
    return {"text": "\n".join(line[:1].upper() + line[1:] for line in lines if line)}


def build_pdf(payload: Payload) -> Payload:
    """Build a PDF of a title and some text. A large one belongs into a file store, not in a row."""
    title, text = _text(payload, "title"), _text(payload, "text")
    _think(payload)
    page = FPDF(format="A4")
    page.add_page()
    page.set_font("Helvetica", "B", 16)
    page.multi_cell(0, 10, _latin(title), new_x="LMARGIN", new_y="NEXT")
    page.set_font("Helvetica", size=11)
    page.multi_cell(0, 6, _latin(text), new_x="LMARGIN", new_y="NEXT")
    pdf = bytes(page.output())
    return {"type": "application/pdf", "bytes": len(pdf), "base64": base64.b64encode(pdf).decode()}


def iterate_chat(payload: Payload) -> Payload:
    """Answer one message of a chat."""
    message = _text(payload, "message")
    _think(payload)
    return {"reply": f"You said {len(message.split())} words. What else?"}


ACTIONS: dict[str, Callable[[Payload], Payload]] = {
    "resume_rewrite": rewrite_resume,
    "pdf_build": build_pdf,
    "ai_chat": iterate_chat,
}


def _text(payload: Payload, field: str) -> str:
    value = payload.get(field)
    if not isinstance(value, str) or not value.strip():
        raise JobFailed("validation_failed", f"{field} must be a text", field=field)
    return value


def _think(payload: Payload) -> None:
    seconds = payload.get("seconds", 0.1)
    if type(seconds) not in {int, float} or not 0 <= seconds <= LONGEST_SECONDS:
        allowed = f"a number from 0 to {LONGEST_SECONDS}"
        raise JobFailed("validation_failed", f"seconds must be {allowed}", field="seconds")
    time.sleep(seconds)


def _latin(text: str) -> str:
    """Replace what the PDF's built-in fonts lack. A service of yours would bring a font."""
    return text.encode("latin-1", "replace").decode("latin-1")
