"""PagerDuty and Slack as their documents have them: what they take, refuse, and answer.

PagerDuty: the Events API v2, "Send an alert event": required fields, enumerations, the lengths of
routing_key (32), dedup_key (255) and summary (1024), 512 KB for an event, and its answers.
Slack: "Sending messages using incoming webhooks" and its list of errors; a text above 40,000
characters would be cut.
"""

from __future__ import annotations

import json
from typing import Any

import jsonschema

from tests.story.webhook import Webhook

Answer = tuple[int, dict[str, str], str]
JSON = {"Content-Type": "application/json"}
PLAIN = {"Content-Type": "text/plain"}
MOST_BYTES = 512 * 1024
_TEXT = {"type": "string", "minLength": 1}
EVENT: dict[str, Any] = {
    "type": "object",
    "required": ["routing_key", "event_action", "payload"],
    "additionalProperties": False,
    "properties": {
        "routing_key": {"type": "string", "minLength": 32, "maxLength": 32},
        "event_action": {"enum": ["trigger", "acknowledge", "resolve"]},
        "dedup_key": {"type": "string", "maxLength": 255},
        "client": {"type": "string"},
        "client_url": {"type": "string"},
        "images": {"type": "array"},
        "links": {"type": "array"},
        "payload": {
            "type": "object",
            "required": ["summary", "source", "severity"],
            "additionalProperties": False,
            "properties": {
                "summary": {**_TEXT, "maxLength": 1024},
                "source": _TEXT,
                "severity": {"enum": ["critical", "error", "warning", "info"]},
                "timestamp": {
                    "type": "string",
                    "pattern": r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:?\d\d)$",
                },
                "component": {"type": "string"},
                "group": {"type": "string"},
                "class": {"type": "string"},
                "custom_details": {"type": "object"},
            },
        },
    },
}
_RULES = jsonschema.Draft202012Validator(EVENT)


class PagerDuty(Webhook):
    """Opens one incident for each dedup_key of the events it takes."""

    def __init__(self, key: str) -> None:
        self.key = key
        self.incidents: dict[str, dict[str, Any]] = {}
        super().__init__()

    def judge(self, raw: bytes) -> Answer:
        event = json.loads(raw)
        faults = [error.message for error in _RULES.iter_errors(event)]
        if len(raw) > MOST_BYTES:
            faults.append("the event is too large")
        if not faults and event["routing_key"] != self.key:
            faults.append("Invalid routing key")
        if faults:
            told = {"status": "invalid event", "message": "Event object is invalid"}
            return 400, JSON, json.dumps({**told, "errors": faults})
        self.incidents.setdefault(event["dedup_key"], event)
        told = {"status": "success", "message": "Event processed"}
        return 202, JSON, json.dumps({**told, "dedup_key": event["dedup_key"]})


class Slack(Webhook):
    """Takes a text."""

    def judge(self, raw: bytes) -> Answer:
        try:
            message = json.loads(raw)
        except ValueError:
            return 400, PLAIN, "invalid_payload"
        if not isinstance(message, dict) or not isinstance(message.get("text", ""), str):
            return 400, PLAIN, "invalid_payload"
        if not message.get("text"):
            return 400, PLAIN, "no_text"
        if len(message["text"]) > 40_000:
            return 400, PLAIN, "msg_too_long"
        return 200, PLAIN, "ok"
