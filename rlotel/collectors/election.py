"""Which of a node's processes reads its GPUs, and what each of them does: by locks of files in a folder.

The operating system lets go of a lock when its holder dies, however it dies: nothing has to be cleaned up, and no
clock and no process number has to be believed.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from rlotel.capture import own_folder

SHARED = "shared"


class Held:
    """A file of which this process has the lock, until `release` or its death."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor: int | None = descriptor

    @classmethod
    def take(cls, path: Path) -> Held | None:
        """Take the lock if it is free.

        Raises:
            OSError: there can be no such file.
        """
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(descriptor).st_nlink:
                return cls(path, descriptor)
        except BlockingIOError:
            pass  # another has it
        except OSError:
            os.close(descriptor)
            raise
        os.close(descriptor)  # or its last holder removed the file while we opened it
        return None

    def write(self, text: str) -> None:
        """Replace what the file says."""
        if self._descriptor is not None:
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, text.encode(), 0)

    def rename(self, path: Path) -> None:
        """Give the file another name.

        Raises:
            OSError: it cannot have that one.
        """
        self._path = self._path.rename(path)

    def release(self, *, remove: bool = False) -> None:
        """Let go of the lock; a second call does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                if remove and os.path.samestat(os.fstat(descriptor), self._path.stat()):
                    self._path.unlink()
                fcntl.flock(
                    descriptor, fcntl.LOCK_UN
                )  # also for copies in children that were forked behind our back
            os.close(descriptor)

    def disown(self) -> None:
        """In a forked child: close its copy, or the lock would outlive its holder."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            with contextlib.suppress(OSError):
                os.close(descriptor)


class Node:
    """The processes of one run on one node.

    Args:
        run: what is the same in all of them, and different in those of other runs.
        folder: where all runs of this user keep their locks; by default one in the temporary folder.
    """

    def __init__(self, run: str, folder: Path | None = None) -> None:
        base = folder or own_folder()
        self._folder = base / f"gpu-{hashlib.sha256(run.encode()).hexdigest()[:16]}"

    def elect(self) -> Held | None:
        """Become the process that reads the GPUs, if no other is.

        Raises:
            OSError: there is no place for the lock.
        """
        self._make_folder()
        return Held.take(self._folder / "sampler.lock")

    def prefer(self) -> Held | None:
        """Let the others know that this process had better be the one: what it reads belongs to what it reports.

        Raises:
            OSError: there is no place for it.
        """
        self._make_folder()
        return Held.take(self._folder / f"{os.getpid()}-{secrets.token_hex(4)}.loop")

    def prefers(self) -> bool:
        """Whether a living process is preferred."""
        return any(_alive(file) for file in self._files("*.loop"))

    def leave(self) -> None:
        """Remove the folder, if nobody has anything in it."""
        with contextlib.suppress(OSError):
            self._folder.rmdir()

    def claim(self, role: str, uuids: tuple[str, ...]) -> Held | None:
        """Let the others know what this process does with which GPUs.

        Raises:
            OSError: there is no place for it.
        """
        self._make_folder()
        name = f"{os.getpid()}-{secrets.token_hex(4)}"
        held = Held.take(self._folder / f"{name}.new")
        if held is not None:
            held.write(json.dumps({"role": role, "uuids": uuids}))
            held.rename(self._folder / f"{name}.role")  # from now on the others see it, locked and whole
        return held

    def roles(self) -> dict[str, str]:
        """The role of each GPU that a living process has claimed; claims of the dead are removed."""
        roles: dict[str, str] = {}
        for role, uuids in self._claims():
            for uuid in uuids:
                roles[uuid] = both(roles.get(uuid), role)
        return roles

    def _make_folder(self) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def _claims(self) -> Iterator[tuple[str, list[str]]]:
        for file in self._files("*.role"):
            if _alive(file):
                # It may be gone meanwhile.
                with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                    claim = json.loads(file.read_text("utf-8"))
                    yield str(claim["role"]), [str(uuid) for uuid in claim["uuids"]]

    def _files(self, pattern: str) -> list[Path]:
        try:
            return sorted(self._folder.glob(pattern))
        except OSError:
            return []


def _alive(file: Path) -> bool:
    """Whether a process has the lock of a file; one that nobody has is removed."""
    try:
        dead = Held.take(file)
    except OSError:
        return False
    if dead is None:
        return file.exists()
    dead.release(remove=True)
    return False


def both(known: str | None, role: str) -> str:
    """The role of a GPU that has these: two different ones share it."""
    return role if known in (None, role) else SHARED
