"""Access tokens: only those of our issuer, for our audience, in their time and form, signed by a known key, are believed."""

import base64
import hmac
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.jwk import OKPKey, RSAKey

from placet.auth import InvalidToken, KeySource, Principal, Verifier
from placet.local.issuer import ISSUER, Issuer

AUDIENCE = "placet-permission"
SCOPES = ("placet:approval.decide", "placet:approval.read")


@pytest.fixture(scope="module")
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture(scope="module")
async def verifier(issuer: Issuer, tmp_path_factory: pytest.TempPathFactory) -> Verifier:
    return await started(issuer.write_jwks(tmp_path_factory.mktemp("keys") / "jwks.json"))


async def started(jwks: Path) -> Verifier:
    keys = KeySource(str(jwks))
    await keys.start()
    return Verifier(keys, issuer=ISSUER, audience=AUDIENCE)


async def refusal(verifier: Verifier, token: str) -> str:
    with pytest.raises(InvalidToken) as caught:
        await verifier.verify(token)
    return str(caught.value)


def claims_of(token: str) -> dict[str, Any]:
    payload = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))


def segment(document: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(document).encode()).rstrip(b"=").decode()


def signed(issuer: Issuer, header: dict[str, Any] | None = None, **changed: Any) -> str:
    """A token of the issuer with claims and header changed; None takes a claim away."""
    key: OKPKey = issuer._key  # pyright: ignore[reportPrivateUsage]
    claims = claims_of(issuer.token("ann", "t1", SCOPES)) | changed
    kept = {name: value for name, value in claims.items() if value is not None}
    parts = {"alg": "Ed25519", "typ": "at+jwt", "kid": key.kid} | (header or {})
    return jwt.encode(parts, kept, key, algorithms=["Ed25519", "EdDSA"])


@pytest.mark.req("P6")
async def test_a_good_token_speaks_for_its_subject_in_its_tenant(verifier: Verifier, issuer: Issuer) -> None:
    principal = await verifier.verify(issuer.token("ann", "t1", SCOPES))
    assert principal == Principal("t1", "ann", frozenset(SCOPES))
    assert principal.may("placet:approval.decide")
    assert not principal.may("placet:turn.submit")


@pytest.mark.req("P6")
@pytest.mark.parametrize("audience", [AUDIENCE, [AUDIENCE], ["other", AUDIENCE]])
@pytest.mark.parametrize("kind", ["at+jwt", "application/at+jwt", "AT+JWT"])
async def test_the_forms_that_the_profile_allows_are_good(
    verifier: Verifier, issuer: Issuer, audience: Any, kind: str
) -> None:
    assert (await verifier.verify(issuer.token("ann", "t1", SCOPES, audience=audience, kind=kind))).subject == "ann"


@pytest.mark.req("P6")
async def test_a_token_without_scope_opens_no_door(verifier: Verifier, issuer: Issuer) -> None:
    assert (await verifier.verify(signed(issuer, scope=None))).scopes == frozenset()


@pytest.mark.req("P6")
@pytest.mark.parametrize(
    "other",
    [
        {"seconds": -3600},
        {"audience": "placet"},
        {"audience": list[str]()},
        {"issuer": "https://other.example"},
        {"issuer": ISSUER + "/"},
        {"kind": "JWT"},
        {"kind": ""},
    ],
    ids=str,
)
async def test_a_token_for_another_place_or_time_is_refused(
    verifier: Verifier, issuer: Issuer, other: dict[str, Any]
) -> None:
    assert await refusal(verifier, issuer.token("ann", "t1", SCOPES, **other))


@pytest.mark.req("P6")
async def test_a_token_of_a_key_that_nobody_published_is_refused(verifier: Verifier) -> None:
    assert await refusal(verifier, Issuer().token("ann", "t1", SCOPES))


@pytest.mark.req("P6")
@pytest.mark.parametrize("claim", ["iss", "aud", "exp", "iat", "sub", "jti", "tenant"])
@pytest.mark.parametrize("value", [None, ""], ids=["missing", "empty"])
async def test_a_claim_that_must_be_there_is_missed(
    verifier: Verifier, issuer: Issuer, claim: str, value: str | None
) -> None:
    assert await refusal(verifier, signed(issuer, {}, **{claim: value}))


@pytest.mark.req("P6")
@pytest.mark.parametrize("claim", ["iss", "aud", "exp", "iat", "nbf", "sub", "tenant", "scope"])
@pytest.mark.parametrize("odd", [7, True, [], ["t1"], [["t1"]], {"t1": 1}, "\0"], ids=repr)
async def test_a_claim_of_another_type_is_refused_or_read_as_it_is(
    verifier: Verifier, issuer: Issuer, claim: str, odd: Any
) -> None:
    try:
        principal = await verifier.verify(signed(issuer, {}, **{claim: odd}))
    except InvalidToken:
        return
    assert (claim, odd) in [("iat", 7), ("nbf", 7), ("scope", "\0"), ("tenant", "\0"), ("sub", "\0")]
    assert isinstance(principal.tenant, str)


@pytest.mark.req("P6")
async def test_an_end_beyond_every_clock_is_refused(verifier: Verifier, issuer: Issuer) -> None:
    assert await refusal(verifier, signed(issuer, exp=10**400))


@pytest.mark.req("P6", "T13")
@pytest.mark.parametrize("tenant", ["../t2", "t1/customers", "t1\n", "t 1", "caf\u00e9", "\0", "x" * 500])
async def test_a_tenant_is_an_identifier(verifier: Verifier, issuer: Issuer, tenant: str) -> None:
    assert await refusal(verifier, signed(issuer, tenant=tenant))


@pytest.mark.req("P6")
async def test_the_public_key_is_no_shared_secret(tmp_path: Path) -> None:
    key = RSAKey.generate_key(2048, {"kid": "k1"})
    jwks = tmp_path / "jwks.json"
    jwks.write_text(json.dumps({"keys": [key.as_dict(private=False)]}))
    verifier = await started(jwks)
    claims = claims_of(Issuer().token("ann", "t1", SCOPES))
    header = {"typ": "at+jwt", "kid": "k1"}
    assert (await verifier.verify(jwt.encode(header | {"alg": "RS256"}, claims, key))).subject == "ann"
    for secret in (key.as_pem(private=False), json.dumps(key.as_dict(private=False)).encode(), b""):
        text = f"{segment(header | {'alg': 'HS256'})}.{segment(claims)}"
        mac = base64.urlsafe_b64encode(hmac.digest(secret, text.encode(), "sha256")).rstrip(b"=").decode()
        assert await refusal(verifier, f"{text}.{mac}")


@pytest.mark.req("P6")
@pytest.mark.parametrize("algorithm", ["none", "None", "", "HS256", "RS512", None, 7, ["Ed25519"]])
@pytest.mark.parametrize("signature", ["", "AAAA"])
async def test_an_algorithm_that_we_do_not_allow_is_refused(
    verifier: Verifier, issuer: Issuer, algorithm: Any, signature: str
) -> None:
    payload = issuer.token("ann", "t1", SCOPES).split(".")[1]
    key: OKPKey = issuer._key  # pyright: ignore[reportPrivateUsage]
    assert await refusal(verifier, f"{segment({'alg': algorithm, 'typ': 'at+jwt', 'kid': key.kid})}.{payload}.{signature}")


@pytest.mark.req("P6")
async def test_a_token_that_was_changed_is_refused(verifier: Verifier, issuer: Issuer) -> None:
    head, payload, signature = issuer.token("ann", "t1", SCOPES).split(".")
    forged = claims_of(f".{payload}.") | {"tenant": "t2"}
    assert await refusal(verifier, f"{head}.{segment(forged)}.{signature}")
    assert await refusal(verifier, f"{head}.{payload}.{signature[:-4]}AAAA")
    assert await refusal(verifier, f"{head}.{payload}.")


@pytest.mark.req("P6", "O3")
async def test_the_refusal_holds_no_part_of_the_token(verifier: Verifier, issuer: Issuer) -> None:
    for token in (
        signed(issuer, sub="CANARY", exp=1),
        signed(issuer, sub=["CANARY"]),
        signed(issuer, aud="CANARY"),
        "CANARY",
    ):
        assert "CANARY" not in await refusal(verifier, token)


@pytest.mark.req("P6")
async def test_the_refusal_says_what_is_wrong(verifier: Verifier, issuer: Issuer) -> None:
    good = issuer.token("ann", "t1", SCOPES)
    head, payload, signature = good.split(".")
    said = {
        issuer.token("ann", "t1", SCOPES, seconds=-3600): "it has expired",
        issuer.token("ann", "t1", SCOPES, audience="placet"): f"the audience is not {AUDIENCE}",
        signed(issuer, iss="https://other.example"): "iss is wrong",
        signed(issuer, nbf=2**40): "nbf is wrong",
        signed(issuer, sub=7): "sub is wrong",
        signed(issuer, tenant=None): "it lacks tenant",
        signed(issuer, tenant=None, jti=None): "it lacks jti, tenant",
        Issuer().token("ann", "t1", SCOPES): "it is signed by an unknown key",
        f"{head}.{payload}.{signature[:-4]}AAAA": "the signature is wrong",
        f"{segment({'alg': 'HS256'})}.{payload}.{signature}": "it is signed with an algorithm that is not allowed",
        "CANARY": "it is not a token",
        f"{head}.{payload}": "it is not a token",
    }
    assert {token: await refusal(verifier, token) for token in said} == said


@pytest.mark.req("P6")
@pytest.mark.parametrize(
    "token",
    [
        "",
        ".",
        "..",
        "...",
        "a.b.c",
        "\ud800.a.b",
        "é.é.é",
        "a" * 10000,
        f"{segment([])}..",
        f"{segment('x')}..",
        f"{segment(None)}..",
    ]
    + [f"{segment({'alg': 'Ed25519', 'kid': kid})}.{segment({})}.AAAA" for kid in (7, ["k"], {"k": 1}, None)]
    + [f"{segment({'alg': 'Ed25519', 'crit': crit})}.{segment({})}.AAAA" for crit in (["x"], [None], None, 7)]
    + [
        base64.urlsafe_b64encode(b"[" * 100_000).decode() + ".AAAA.AAAA",
        base64.urlsafe_b64encode(b"1" * 5000).decode() + ".A.A",
    ],
    ids=range(21),
)
async def test_a_malformed_token_is_refused_and_nothing_else_happens(verifier: Verifier, token: str) -> None:
    assert await refusal(verifier, token)


@pytest.mark.req("P6")
@given(token=st.text() | st.binary().map(lambda raw: raw.decode("latin-1")) | st.from_regex(r"[\w-]*\.[\w-]*\.[\w-]*"))
async def test_whatever_comes_as_a_token_is_refused_and_nothing_else_happens(verifier: Verifier, token: str) -> None:
    assert await refusal(verifier, token)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.sampled_from(["alg", "typ", "kid", "crit", "b64", "jku", "jwk", "x5u"])


@pytest.mark.req("P6")
@given(head=st.dictionaries(NAMES, JSON), claims=JSON)
async def test_whatever_a_token_says_of_itself_it_proves_nothing(verifier: Verifier, head: Any, claims: Any) -> None:
    assert await refusal(verifier, f"{segment(head)}.{segment(claims)}.AAAA")


@pytest.mark.req("P6")
@given(
    changed=st.dictionaries(
        st.sampled_from(["iss", "aud", "exp", "iat", "nbf", "sub", "jti", "tenant", "scope"]), JSON, min_size=1
    )
)
async def test_whatever_the_issuer_signs_is_a_principal_or_refused(verifier: Verifier, issuer: Issuer, changed: Any) -> None:
    try:
        principal = await verifier.verify(signed(issuer, **changed))
    except InvalidToken:
        return
    assert principal.tenant
    assert principal.subject
