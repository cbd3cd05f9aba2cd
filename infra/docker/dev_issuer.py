"""An issuer of development tokens for docker-compose, in place of a company's identity provider. Never for anything real.

`keys` makes a key pair once: the private key stays in /key, which only this image mounts; the services read /jwks.
`token NAME TENANT ask|approve` prints an access token for a person.
"""

import argparse
import json
import os
from pathlib import Path

from joserfc.jwk import OKPKey

from placet.local.issuer import APPROVER, ASKER, Issuer

PRIVATE = Path("/key/private.json")
PUBLIC = Path("/jwks/jwks.json")
ROLES = {"ask": ASKER, "approve": APPROVER}
LIFETIME_SECONDS = 12 * 3600


def kept_key(path: Path) -> OKPKey:
    """The key in the file, which is made, readable by its owner only, when it is not there."""
    if path.exists():
        return OKPKey.import_key(json.loads(path.read_text()))
    key = OKPKey.generate_key("Ed25519", {"kid": "placet-development", "use": "sig"})
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(key.as_dict(private=True), file)
    return key


def main() -> None:
    """Make the keys, or print a token."""
    parser = argparse.ArgumentParser(prog="dev-issuer", description=__doc__)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("keys")
    token = verbs.add_parser("token")
    token.add_argument("name")
    token.add_argument("tenant")
    token.add_argument("role", choices=ROLES)
    asked = parser.parse_args()
    issuer = Issuer(kept_key(PRIVATE))
    if asked.verb == "keys":
        issuer.write_jwks(PUBLIC)
    else:
        print(issuer.token(asked.name, asked.tenant, ROLES[asked.role], seconds=LIFETIME_SECONDS))


if __name__ == "__main__":
    main()
