"""The command line of the boxes: up, list, ssh, down, clean, build."""

from __future__ import annotations

import argparse
import os
import shlex
import sys

from tools.boxes import machine, registry
from tools.boxes.box import Box
from tools.boxes.image import RELEASES, build
from tools.boxes.network import CHOICES
from tools.boxes.shell import BoxError


def main(argv: list[str] | None = None) -> int:
    """Run one command. Errors go to stderr with a way out, and exit 1."""
    asked = _parser().parse_args(argv)
    try:
        machine.require()
        return int(asked.run(asked) or 0)
    except BoxError as error:
        print(error, file=sys.stderr)
        return error.exit_code


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tools/box", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    up = commands.add_parser("up", help="boot a box that stays until `down`")
    up.add_argument("release", choices=sorted(RELEASES))
    up.add_argument("--name", help="its name (default: the release and six digits)")
    up.add_argument("--network", choices=CHOICES, help="default: auto")
    up.set_defaults(run=_up)
    listed = commands.add_parser("list", help="show all boxes")
    listed.set_defaults(run=_list)
    ssh = commands.add_parser("ssh", help="log in, or run one command")
    ssh.add_argument("login", metavar="[USER@]NAME", help="user: root, admin or nosudo")
    ssh.add_argument("command", nargs=argparse.REMAINDER)
    ssh.set_defaults(run=_ssh)
    down = commands.add_parser("down", help="take a box away")
    down.add_argument("name")
    down.set_defaults(run=_down)
    clean = commands.add_parser("clean", help="take away what dead runs left behind")
    clean.add_argument("--all", action="store_true", help="also the boxes that are in use")
    clean.set_defaults(run=_clean)
    images = commands.add_parser("build", help="build the cached images now")
    images.add_argument("release", nargs="*", metavar="RELEASE", help="default: all")
    images.set_defaults(run=_build)
    return parser


def _up(asked: argparse.Namespace) -> None:
    box = Box.boot(asked.release, name=asked.name, network=asked.network, keep=True)
    print(f"{box.name} {box.host}:{box.port}")
    print(shlex.join(box.ssh_argv()))


def _list(_: argparse.Namespace) -> None:
    for record in registry.records():
        box = Box(record)
        state = "left behind" if not record.wanted else "on" if box.is_on() else "off"
        print(f"{box.name}\t{record.release}\t{box.host}:{box.port}\t{state}\t{box.key}")


def _ssh(asked: argparse.Namespace) -> None:
    user, _, name = asked.login.rpartition("@")
    argv = Box.attach(name).ssh_argv(user or None)
    os.execvp(argv[0], [*argv, *asked.command])  # noqa: S606 - ssh takes over the terminal


def _down(asked: argparse.Namespace) -> None:
    Box.attach(asked.name).down()


def _clean(asked: argparse.Namespace) -> None:
    for name in registry.clean(everything=asked.all):
        print(f"removed {name}")


def _build(asked: argparse.Namespace) -> None:
    for release in asked.release or sorted(RELEASES):
        print(build(release).folder)
