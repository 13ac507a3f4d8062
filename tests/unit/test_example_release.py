"""The name of a release of the example: whatever goes to a box makes another one."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Callable
from pathlib import Path

import pytest

DEPLOY = Path(__file__).resolve().parents[2] / "examples" / "service" / "deploy.py"


@pytest.fixture
def name_of() -> Callable[[dict[str, bytes], Path], str]:
    """The function alone: to import the deploy would be to run it, and that takes a host."""
    tree = ast.parse(DEPLOY.read_text(encoding="utf-8"))
    tree.body = [
        each for each in tree.body if isinstance(each, ast.FunctionDef) and each.name == "name_of"
    ]
    given: dict[str, object] = {"Path": Path, "hashlib": hashlib}
    exec(compile(tree, str(DEPLOY), "exec"), given)  # noqa: S102 - a file of this repository
    found = given["name_of"]
    assert callable(found)
    return found


@pytest.mark.parametrize(
    "change",
    [
        lambda code: (code / "api.py").write_text("import this"),
        lambda code: (code / "api.py").rename(code / "app.py"),
        lambda code: (code / "page.html").write_text("<p>"),
        lambda code: (code / "sub" / "more.py").write_text("2"),
    ],
)
def test_whatever_changes_in_the_code_makes_another_release(
    name_of: Callable[[dict[str, bytes], Path], str],
    tmp_path: Path,
    change: Callable[[Path], object],
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "api.py").write_text("1")
    (tmp_path / "sub" / "more.py").write_text("1")
    before = name_of({"stack.yaml": b"a"}, tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "api.pyc").write_bytes(b"compiled")

    assert name_of({"stack.yaml": b"a"}, tmp_path) == before
    assert name_of({"stack.yaml": b"b"}, tmp_path) != before
    change(tmp_path)
    assert name_of({"stack.yaml": b"a"}, tmp_path) != before
