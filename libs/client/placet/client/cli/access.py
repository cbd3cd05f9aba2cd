"""Where Placet is, and as whom to speak: from options, the environment, or the profile that `make up` wrote."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import httpx2

from placet.client.api import Client
from placet.client.cli.leaving import USAGE, Trouble

PROFILE = ".placet/profile.json"


@dataclass(frozen=True, slots=True)
class Access:
    """An address, and a token with the name that it is known by here. `source` says where the token is from."""

    url: str
    name: str
    source: str
    token: str = field(repr=False)

    def client(self) -> Client:
        """A client of this address with this token."""
        return Client(self.url, self.token)


@dataclass(frozen=True, slots=True)
class Profile:
    """What `make up` left for the people of one machine."""

    path: Path
    url: str = ""
    tokens: dict[str, str] = field(default_factory=dict[str, str], repr=False)


def find_access(url: str | None, token: str | None, who: str | None, usual: str) -> Access:
    """Options before the environment before the profile; `usual` is whom of the profile the command takes. Raises Trouble.

    A token of the profile is for the profile's address and goes to no other.
    """
    profile = read_profile()
    address = _address(url or os.environ.get("PLACET_URL") or profile.url)
    if token:
        return Access(address, "the given token", "--token", _checked(token))
    if not who and (found := os.environ.get("PLACET_TOKEN")):
        return Access(address, "the given token", "PLACET_TOKEN", _checked(found))
    return _of_profile(profile, address, who or usual)


def everybody(url: str | None, token: str | None, who: str | None) -> list[Access]:
    """The access that is asked for, or, when nothing says which, each one of the profile. Raises Trouble."""
    profile = read_profile()
    if token or who or os.environ.get("PLACET_TOKEN") or not profile.tokens:
        return [find_access(url, token, who, "alice")]
    return [find_access(url, None, name, name) for name in profile.tokens]


def read_profile() -> Profile:
    """The profile that PLACET_PROFILE names, or that of the current folder; empty if there is none. Raises Trouble."""
    named = os.environ.get("PLACET_PROFILE")
    path = Path(named or PROFILE)
    try:
        read: Any = json.loads(path.read_text("utf-8"))
    except FileNotFoundError as error:
        if named:
            raise Trouble(USAGE, f"PLACET_PROFILE names {path}, which does not exist.", _AGAIN) from error
        return Profile(path)
    except (OSError, ValueError) as error:
        raise Trouble(USAGE, f"The profile {path} cannot be read: {type(error).__name__}.", _AGAIN) from error
    if not _is_profile(read):
        raise Trouble(USAGE, f"The profile {path} does not hold an address and tokens.", _AGAIN)
    return Profile(path, read["url"], {str(name): str(token) for name, token in read["tokens"].items()})


_AGAIN = f"`make up` writes one to {PROFILE}, which is read without PLACET_PROFILE."


def _is_profile(read: Any) -> bool:
    if not isinstance(read, dict):
        return False
    members = cast("dict[str, Any]", read)
    return isinstance(members.get("url"), str) and isinstance(members.get("tokens"), dict)


def _address(url: str) -> str:
    if not url:
        raise Trouble(
            USAGE, "No address of Placet is known.", "Run `make up` in this folder, or say it with --url or PLACET_URL."
        )
    if not url.startswith(("http://", "https://")):
        raise Trouble(USAGE, "The address has to begin with http:// or https://.")
    if not _leads_somewhere(url):
        raise Trouble(USAGE, "The address is not a URL: it has a host, and perhaps a port up to 65535.")
    return url.rstrip("/")


def _leads_somewhere(url: str) -> bool:
    """Whether there is a host and a possible port. For the client library there need not be."""
    try:
        read = httpx2.URL(url)
    except (httpx2.InvalidURL, UnicodeError):
        return False
    return bool(read.host) and 0 <= (read.port or 0) <= 65535


def _of_profile(profile: Profile, address: str, name: str) -> Access:
    if not profile.tokens:
        raise Trouble(
            USAGE,
            "No token is known.",
            "Put one into PLACET_TOKEN, or run `make up`, which writes a profile into this folder.",
        )
    if name not in profile.tokens:
        known = ", ".join(profile.tokens)
        raise Trouble(
            USAGE, f"The profile {profile.path} has no token of {name}; it knows {known}.", "Choose one with --as."
        )
    if address != profile.url.rstrip("/"):
        raise Trouble(
            USAGE,
            f"The tokens of {profile.path} are for {profile.url} and are not sent to {address}.",
            "Put a token for that address into PLACET_TOKEN.",
        )
    return Access(address, name, str(profile.path), _checked(profile.tokens[name]))


def _checked(token: str) -> str:
    stripped = token.strip()
    if not stripped or not stripped.isascii() or not stripped.isprintable() or " " in stripped:
        raise Trouble(USAGE, "The token holds characters that no token has; it may have been cut or pasted wrongly.")
    return stripped
