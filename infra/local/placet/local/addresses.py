"""The URLs of brokers and databases, taken apart and put together here alone: what one leaves out, hides or spells oddly."""

from urllib.parse import SplitResult, parse_qs, parse_qsl, quote, unquote, urlencode, urlsplit, urlunsplit

THIS_MACHINE = ("127.0.0.1", "localhost", "::1")

_WHO_AND_WHERE = ("user", "password", "passfile", "dbname", "database")
"""What the query of a database's URL may say in place of its other parts; a login of our own must not inherit it."""


def broker_port(amqp_url: str) -> int:
    """The port of a broker, which depends on the scheme when the URL names none."""
    parts = urlsplit(amqp_url)
    return parts.port or (5671 if parts.scheme == "amqps" else 5672)


def credentials(amqp_url: str) -> tuple[str, str]:
    """Name and password in a broker's URL; a broker's default user where it names nobody."""
    parts = urlsplit(amqp_url)
    return unquote(parts.username or "guest"), unquote(parts.password or "guest")


def without_vhost(amqp_url: str) -> str:
    """The same login, in whatever vhost the client takes by default."""
    return urlunsplit(urlsplit(amqp_url)._replace(path="", fragment=""))


def vhost_url(amqp_url: str, vhost: str, user: str, password: str) -> str:
    """The URL of one vhost of the broker, for one user."""
    return _for(urlsplit(amqp_url), user, password, vhost)


def management_url(amqp_url: str) -> str:
    """Where the broker's management API is, if it is in its usual place, with the same login."""
    host = urlsplit(amqp_url).hostname or "127.0.0.1"
    name, password = (quote(part, safe="") for part in credentials(amqp_url))
    return f"http://{name}:{password}@{f'[{host}]' if ':' in host else host}:15672"


def database_url(admin_url: str, database: str, role: str, password: str) -> str:
    """The URL of one database of the server, for one role. Whatever else the query says, of encryption perhaps, stays."""
    parts = urlsplit(admin_url)
    kept = [(name, value) for name, value in parse_qsl(parts.query) if name not in _WHO_AND_WHERE]
    return _for(parts._replace(query=urlencode(kept, quote_via=quote)), role, password, database)


def is_of_this_machine(url: str) -> bool:
    """Whether the server listens here: on a loopback address, or on a socket in a folder."""
    parts = urlsplit(url)
    host = unquote(parts.hostname or "") or parse_qs(parts.query).get("host", [""])[0]
    return host in THIS_MACHINE or host.startswith("/")


def _for(parts: SplitResult, user: str, password: str, path: str) -> str:
    """The same server for somebody else. The address is kept as it stands: it may be IPv6, a list, or missing."""
    address = parts.netloc.rpartition("@")[2]
    login = f"{quote(user, safe='')}:{quote(password, safe='')}"
    return urlunsplit(parts._replace(netloc=f"{login}@{address}", path=f"/{quote(path, safe='')}", fragment=""))
