"""A copy of a running cluster in a folder of its own: a restored backup, or a standby."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from infra.local.cluster import Cluster
from infra.local.folder import PORT, prepare_folder


@contextmanager
def copy_of(cluster: Cluster, *, standby: bool) -> Iterator[Cluster]:
    """Copy with pg_basebackup and start it; both go at the end."""
    folder = prepare_folder(None, cluster.owner, keep=False)
    copy = Cluster(cluster.server, folder, cluster.owner)
    try:
        argv = [cluster.server.program("pg_basebackup"), "-h", str(cluster.folder), "-p", str(PORT)]
        argv += ["-U", "postgres", "-D", str(copy.data), "-X", "stream", "-c", "fast", "--no-sync"]
        done = cluster.owner.run([*argv, *(["-R"] if standby else [])], folder=folder)
        assert done.returncode == 0, done.stdout
        conf = copy.data / "jobwarden.conf"
        conf.write_text(conf.read_text().replace(str(cluster.folder), str(folder)))
        copy.start()
        yield copy
    finally:
        copy.destroy()
