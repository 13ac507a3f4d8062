#!/usr/bin/env python3
"""Put a page on a pull request, a merge request or an issue: one, which is edited, not repeated.

    post.py github-comment PAGE
    post.py github-issue PAGE CODE      CODE 0 closes the issue, any other opens or edits it
    post.py gitlab-note PAGE
    post.py gitlab-issue PAGE CODE

What is ours is known by a mark at its end, and by its author. The variables are those that GitHub
Actions and GitLab CI set, and a token. Needs nothing but Python.
"""

from __future__ import annotations

import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

TRIES = 4
PER_PAGE = 100
TITLE = "Infrastructure is not as the main branch has it"
# Of characters: what GitHub takes in a comment. GitLab takes a million.
LIMIT = 65_000
CUT = "\n\n**This page was cut.** The job's summary has all of it.\n"


class Api:
    """A JSON API. Every call is tried again when the server is busy or away."""

    def __init__(self, base: str, headers: dict[str, str]) -> None:
        self.base, self.headers = base.rstrip("/"), headers

    def call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        """The answer as JSON. Raises SystemExit with what the server said."""
        data = None if body is None else json.dumps(body).encode()
        headers = {**self.headers, "Content-Type": "application/json"}
        for attempt in range(1, TRIES + 1):
            request = urllib.request.Request(  # noqa: S310  # the address comes from the CI itself
                self.base + path, data=data, headers=headers, method=method
            )
            try:
                with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310  # as above
                    return json.loads(answer.read() or b"null")
            except urllib.error.HTTPError as error:
                if error.code not in {429, 500, 502, 503, 504} or attempt == TRIES:
                    said = error.read().decode(errors="replace")[:300]
                    sys.exit(f"{method} {path}: HTTP {error.code}: {said}\n{advice(error.code)}")
                pause = float(error.headers.get("Retry-After") or attempt)
            except urllib.error.URLError as error:
                if attempt == TRIES:
                    sys.exit(f"{method} {path}: {error.reason}\nTry: run the job again")
                pause = float(attempt)
            time.sleep(min(pause, 30.0) * float(os.environ.get("POST_PAUSE", "1")))
        raise AssertionError("unreachable")

    def every(self, path: str) -> Iterator[dict[str, Any]]:
        """All items of a list, page after page."""
        sign = "&" if "?" in path else "?"
        number = 1
        while True:
            found = self.call("GET", f"{path}{sign}per_page={PER_PAGE}&page={number}")
            yield from found
            if len(found) < PER_PAGE:
                return
            number += 1


def advice(code: int) -> str:
    """What to do about an answer."""
    if code in {401, 403, 404}:
        return (
            "Try: give the job's token the right to write here (GitHub: permissions:"
            " pull-requests: write, issues: write; GitLab: a project access token with api scope)"
        )
    return "Try: run the job again"


def need(name: str) -> str:
    """A variable of the CI. Raises SystemExit."""
    value = os.environ.get(name)
    if not value:
        sys.exit(f"{name} is not set\nTry: run this as a step of the CI file beside it")
    return value


def mark(kind: str) -> str:
    """What our text ends with, which no reader sees."""
    return f"<!-- jobwarden {kind} {os.environ.get('POST_KEY', 'preview')} -->"


def fit(text: str, end: str, limit: int) -> str:
    """The text with its mark; cut at a line where it is too long."""
    room = limit - len(end) - len(CUT) - 2
    if len(text) > room:
        text = text[:room].rpartition("\n")[0] + CUT
    return f"{text.rstrip()}\n\n{end}\n"


def github() -> Api:
    """The API, with the job's token."""
    return Api(
        os.environ.get("GITHUB_API_URL", "https://api.github.com"),
        {
            "Authorization": f"Bearer {need('GITHUB_TOKEN')}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
        },
    )


def ours_on_github(item: dict[str, Any], end: str) -> bool:
    """A stranger may copy the mark, but is no bot; POST_AUTHOR names whoever the token is of."""
    user = item.get("user") or {}
    author = os.environ.get("POST_AUTHOR")
    mine = user.get("login") == author if author else user.get("type") == "Bot"
    return mine and (item.get("body") or "").rstrip().endswith(end)


def github_comment(page: str) -> str:
    """One comment on the pull request."""
    api, end = github(), mark("comment")
    repo, number = need("GITHUB_REPOSITORY"), need("PR_NUMBER")
    listed = api.every(f"/repos/{repo}/issues/{number}/comments")
    found = next((item for item in listed if ours_on_github(item, end)), None)
    body = {"body": fit(page, end, LIMIT)}
    if found is None:
        api.call("POST", f"/repos/{repo}/issues/{number}/comments", body)
        return "comment written"
    api.call("PATCH", f"/repos/{repo}/issues/comments/{found['id']}", body)
    return "comment edited"


def github_issue(page: str, code: str) -> str:
    """One open issue while something differs; closed when nothing does."""
    api, end = github(), mark("issue")
    repo = need("GITHUB_REPOSITORY")
    listed = api.every(f"/repos/{repo}/issues?state=open")
    found = next(
        (it for it in listed if "pull_request" not in it and ours_on_github(it, end)), None
    )
    body = {"title": TITLE, "body": fit(page, end, LIMIT)}
    if code == "0":
        if found is None:
            return "nothing to say"
        closed = {**body, "state": "closed", "state_reason": "completed"}
        api.call("PATCH", f"/repos/{repo}/issues/{found['number']}", closed)
        return "issue closed"
    if found is None:
        api.call("POST", f"/repos/{repo}/issues", body)
        return "issue opened"
    api.call("PATCH", f"/repos/{repo}/issues/{found['number']}", body)
    return "issue edited"


def gitlab() -> tuple[Api, str, int]:
    """The API, our project's path, and who we are."""
    api = Api(need("CI_API_V4_URL"), {"PRIVATE-TOKEN": need("GITLAB_TOKEN")})
    project = urllib.parse.quote(
        os.environ.get("CI_MERGE_REQUEST_PROJECT_ID") or need("CI_PROJECT_ID"), safe=""
    )
    return api, f"/projects/{project}", api.call("GET", "/user")["id"]


def ours_on_gitlab(item: dict[str, Any], end: str, text: str, me: int) -> bool:
    """Whether we wrote it; a stranger may copy the mark."""
    return item["author"]["id"] == me and (item.get(text) or "").rstrip().endswith(end)


def gitlab_note(page: str) -> str:
    """One note on the merge request."""
    (api, project, me), end = gitlab(), mark("note")
    notes = f"{project}/merge_requests/{need('CI_MERGE_REQUEST_IID')}/notes"
    found = next((it for it in api.every(notes) if ours_on_gitlab(it, end, "body", me)), None)
    body = {"body": fit(page, end, LIMIT)}
    if found is None:
        api.call("POST", notes, body)
        return "note written"
    api.call("PUT", f"{notes}/{found['id']}", body)
    return "note edited"


def gitlab_issue(page: str, code: str) -> str:
    """One open issue while something differs; closed when nothing does."""
    (api, project, me), end = gitlab(), mark("issue")
    listed = api.every(f"{project}/issues?state=opened")
    found = next((it for it in listed if ours_on_gitlab(it, end, "description", me)), None)
    body = {"title": TITLE, "description": fit(page, end, LIMIT)}
    if code == "0":
        if found is None:
            return "nothing to say"
        api.call("PUT", f"{project}/issues/{found['iid']}", {**body, "state_event": "close"})
        return "issue closed"
    if found is None:
        api.call("POST", f"{project}/issues", body)
        return "issue opened"
    api.call("PUT", f"{project}/issues/{found['iid']}", body)
    return "issue edited"


PLACES: dict[str, Callable[..., str]] = {
    "github-comment": github_comment,
    "github-issue": github_issue,
    "gitlab-note": gitlab_note,
    "gitlab-issue": gitlab_issue,
}


def main(words: list[str]) -> None:
    """Post a page. Raises SystemExit."""
    expected = 3 if words and words[0].endswith("-issue") else 2
    if len(words) != expected or words[0] not in PLACES:
        sys.exit(f"{__doc__}")
    place, page, *code = words
    print(PLACES[place](Path(page).read_text(encoding="utf-8"), *code))


if __name__ == "__main__":
    main(sys.argv[1:])
