"""A private RabbitMQ."""

import secrets
import subprocess
from pathlib import Path

from placet.local import logins
from placet.local.broker_admin import ManagementApi
from placet.local.private import binaries
from placet.local.private.scratch import Scratch
from placet.local.private.server import PrivateServer


class PrivateRabbitMQ(PrivateServer):
    """A node of its own with the administrator guest:guest and the management API, nothing of it beyond 127.0.0.1.

    Durable queues and their confirmed messages survive `kill`; a quorum queue once `holds_on_disk` says so.
    """

    name = "rabbitmq"
    patience = 90.0

    def __init__(self, scratch: Scratch, *, durable: bool = False) -> None:
        self._epmd: subprocess.Popen[bytes] | None = None
        self._epmd_port, self._erlang_port, self._management_port = (scratch.free_port() for _ in range(3))
        super().__init__(scratch, durable=durable)

    @property
    def url(self) -> str:
        return f"amqp://guest:guest@127.0.0.1:{self.port}"

    @property
    def admin(self) -> ManagementApi:
        """How vhosts and users are made on this node."""
        return ManagementApi(f"http://guest:guest@127.0.0.1:{self._management_port}", self.url)

    def start(self) -> None:
        if self._epmd is None:
            self._epmd = self._start_epmd()
        super().start()

    def log_in(self) -> None:
        logins.log_in_to_rabbitmq(self.url)
        self.admin.log_in()

    def holds_on_disk(self, vhost: str, queue: str) -> bool:
        """Whether a quorum queue outlives `kill` by now.

        Ra writes the directory of its members late, so a queue that is killed within a second of its declaration comes
        back empty or not at all, even with confirmed messages in it.
        """
        member = f"{'%2F' if vhost == '/' else vhost}_{queue}".encode()
        as_term = bytes([len(member) % 256]) + member
        return any(as_term in file.read_bytes() for file in self._home.glob("data/**/names.dets"))

    def _start_epmd(self) -> subprocess.Popen[bytes]:
        """Erlang's port mapper, in the foreground and ours: a node that finds none leaves one behind."""
        command = [self._programs.epmd, "-port", str(self._epmd_port), "-address", "127.0.0.1"]
        return self._scratch.spawn(command, self._environment(), self._home / "epmd.log")

    def _prepare(self) -> None:
        self._programs = binaries.rabbitmq()
        for name in ("data", "log", "generated"):
            self._scratch.folder(self.name, name)
        self._scratch.write(self._home / "rabbitmq.conf", self._configuration())
        self._scratch.write(self._home / "enabled_plugins", "[rabbitmq_management].\n")
        self._scratch.write(self._home / ".erlang.cookie", secrets.token_hex(20), mode=0o400)

    def _configuration(self) -> str:
        settings = {
            "listeners.tcp.1": f"127.0.0.1:{self.port}",
            "management.tcp.ip": "127.0.0.1",
            "management.tcp.port": self._management_port,
            "log.console": "false",
            "log.file.level": "warning",
            "disk_free_limit.absolute": "50MB",
            "vm_memory_high_watermark.absolute": "1GB",
            "raft.wal_max_size_bytes": 64_000_000,
        }
        return "".join(f"{name} = {value}\n" for name, value in settings.items())

    def _command(self) -> list[str | Path]:
        return [self._programs.server]

    def _environment(self) -> dict[str, str]:
        home = self._home
        return {
            **self._programs.environment,
            "LANG": "C.UTF-8",
            "HOME": str(home),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_NODENAME": f"placet{self.port}@localhost",
            "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
            "RABBITMQ_NODE_PORT": str(self.port),
            "RABBITMQ_DIST_PORT": str(self._erlang_port),
            "RABBITMQ_MNESIA_BASE": str(home / "data"),
            "RABBITMQ_LOG_BASE": str(home / "log"),
            "RABBITMQ_CONFIG_FILE": str(home / "rabbitmq.conf"),
            "RABBITMQ_ADVANCED_CONFIG_FILE": str(home / "advanced.config"),
            "RABBITMQ_GENERATED_CONFIG_DIR": str(home / "generated"),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(home / "enabled_plugins"),
            # Without the interface, Erlang's own port would listen on every address.
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none",
            "ERL_EPMD_PORT": str(self._epmd_port),
            "ERL_EPMD_ADDRESS": "127.0.0.1",
        }
