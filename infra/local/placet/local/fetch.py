"""RabbitMQ and Erlang from the distribution's own packages, without root and without installing anything.

`apt-get` with a state of its own finds and downloads them, `dpkg-deb` unpacks them into the cache.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from placet.local import remedies
from placet.local.errors import NotThisWay

NOT_NEEDED = frozenset(
    {
        "adduser",
        "cron",
        "cron-daemon-common",
        "libpopt0",
        "libproc2-0",
        "logrotate",
        "passwd",
        "procps",
        "sensible-utils",
    }
)
"""What the package depends on for a service of the system, and a private node does not use."""


def cache() -> Path:
    """The directory for what is worth keeping between runs: PLACET_CACHE, or one for this account."""
    if named := os.environ.get("PLACET_CACHE"):
        return Path(named).absolute()
    return Path("/var/cache/placet") if os.geteuid() == 0 else Path.home() / ".cache/placet"


def rabbitmq() -> Path:
    """The root of an unpacked RabbitMQ; the first time it is downloaded (35 MB, about 10 seconds)."""
    base = cache() / "rabbitmq"
    root = base / "root"
    if root.exists():
        return root
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise NotThisWay(
            f"no RabbitMQ here, and no apt-get to fetch it with ({remedies.RABBITMQ}; or its like on this machine)"
        )
    base.mkdir(parents=True, exist_ok=True)
    with _alone_in(base):
        if not root.exists():
            print("placet: fetching RabbitMQ into", base, file=sys.stderr, flush=True)
            _fill(base, root)
    return root


def _fill(base: Path, root: Path) -> None:
    unfinished, packages = base / "unfinished", base / "packages"
    for folder in (unfinished, packages):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir()
    _download(base, packages)
    for package in sorted(packages.glob("*.deb")):
        _run("dpkg-deb", "-x", package, unfinished)
    _move_erlang(unfinished, root)
    _run("chmod", "-R", "a+rX", base)
    # The last step, so that a root that exists is a whole one.
    unfinished.rename(root)
    shutil.rmtree(packages)


def _download(base: Path, packages: Path) -> None:
    apt = ["apt-get", *_options(base)]
    _run(*apt, "update", "-qq")
    plan = _run(*apt, "install", "--simulate", "--no-install-recommends", "rabbitmq-server")
    names = [line.split()[1] for line in plan.splitlines() if line.startswith("Inst ")]
    _run(*apt, "download", "-qq", *(name for name in names if name not in NOT_NEEDED), cwd=packages)


def _options(base: Path) -> list[str]:
    """Let apt write only below `base`."""
    for folder in ("apt/lists/partial", "apt/cache/archives/partial"):
        (base / folder).mkdir(parents=True, exist_ok=True)
    settings = {
        "Dir::State::lists": base / "apt/lists",
        "Dir::Cache": base / "apt/cache",
        "Dir::Log": base / "apt",
        "Dir::State::status": "/var/lib/dpkg/status",
        "Debug::NoLocking": "1",
        **({"APT::Sandbox::User": "root"} if os.geteuid() == 0 else {}),
    }
    return [option for name, value in settings.items() for option in ("-o", f"{name}={value}")]


def _move_erlang(tree: Path, root: Path) -> None:
    """Name the new place in Erlang's start scripts, which hold it as text and heed no variable."""
    erlang = tree / "usr/lib/erlang"
    for script in (erlang / "bin/erl", erlang / "bin/start", *erlang.glob("erts-*/bin/erl")):
        if script.is_file() and not script.is_symlink():
            script.write_text(script.read_text().replace("/usr/lib/erlang", f"{root}/usr/lib/erlang"))


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        raise NotThisWay(f"{' '.join(map(str, command[:1]))} failed while fetching RabbitMQ: {done.stderr[-600:]}")
    return done.stdout


@contextmanager
def _alone_in(base: Path) -> Generator[None]:
    with (base / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
