"""Secrets are masked by name, by shape and by the environment's values, wherever they stand."""

import string
import types
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dap_agent.debuggee.secrets import MASK, Secrets, is_secret_name, mask_text
from dap_agent.debuggee.values import WIDE, Formatter


@pytest.mark.parametrize(
    "name",
    [
        "password", "db_password", "DB_PASSWORD", "userPassword", "password2", "passwd", "pwd", "passphrase",
        "token", "access_token", "accessToken", "X-Auth-Token", "csrfmiddlewaretoken", "apiKey", "API_KEY",
        "APIKey", "openai_api_key", "apikey", "secret", "client_secret", "SECRET_KEY", "aws_secret_access_key",
        "authorization", "Authorization", "Proxy-Authorization", "auth", "basic_auth", "cookie", "cookies",
        "Set-Cookie", "dsn", "SENTRY_DSN", "credential", "credentials", "private_key", "session_id", "sessionId",
        "sessionid", "jwt", "--api-key", "dbpassword", "connection_string",
    ],
)  # fmt: skip
def test_secret_names(name: str) -> None:
    assert is_secret_name(name)


@pytest.mark.parametrize(
    "name",
    [
        "tokenizer", "tokens", "max_tokens", "input_tokens", "token_count", "n_token", "tokenize", "author",
        "authors", "authority", "authenticate", "authenticated", "AUTH_USER_MODEL", "secretary", "key", "keys",
        "keyword", "monkey", "keyboard", "compass", "passenger", "bypass", "cwd", "session", "cookiecutter",
        "token_type", "password_field", "cookie_path", "token_limit", "credit_card", "primary_key", "foreign_key",
        "sort_key",
    ],
)  # fmt: skip
def test_harmless_names(name: str) -> None:
    assert not is_secret_name(name)


JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N"
SHAPES = [
    "AKIA" + "IOSFODNN7EXAMPLE", "ghp_" + "a1B2" * 9, "github_pat_" + "a1B2_" * 8, "glpat-" + "a1b2c3d4e5f6g7h8i9j0",
    "xox" + "b-123456789012-abcdefABCDEF", "AIza" + "SyA1b2C3d4E5f6G7h8I9j0K1l2M3n4O5p6Q",
    "sk-" + "proj-a1B2c3D4e5F6g7H8",
    "sk-" + "ant-api03-abcdefghijklmnop", JWT, "sk_" + "live_a1b2c3d4e5f6",
    "npm_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8",
    "pypi-" + "AgEIcHlwaS5vcmcCJGExYjJjM2Q0ZTVmNmc3aDg", "hf_" + "abcdefghijABCDEFGHIJ0123456789abcd",
]  # fmt: skip


@pytest.mark.parametrize("secret", SHAPES)
@pytest.mark.parametrize("around", ["%s", "use %s now", "'%s'", "url?x=%s&y=1", "(%s)"])
def test_token_shapes(secret: str, around: str) -> None:
    masked = Secrets({}).mask(around % secret)
    assert secret not in masked
    assert masked == around % MASK


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("password=hunter2", "password=<masked>"),
        ("password = hunter2, user = bob", "password = <masked>, user = bob"),
        ("host=db password=hunter2 dbname=x", "host=db password=<masked> dbname=x"),
        ('{"password": "hun\\"ter2", "a": 1}', '{"password": "<masked>", "a": 1}'),
        ("{'api_key': 'abc', 'b': 2}", "{'api_key': '<masked>', 'b': 2}"),
        ("{b'authorization': b'xyz'}", "{b'authorization': b'<masked>'}"),
        ('{\\"token\\": \\"abc\\", \\"x\\": 1}', '{\\"token\\": \\"<masked>\\", \\"x\\": 1}'),
        ("postgres://bob:pw@host/db", "postgres://bob:<masked>@host/db"),
        ("redis://:pw@host", "redis://:<masked>@host"),
        ("Authorization: Basic dXNlcjpwYXNz\nAccept: x", "Authorization: <masked>\nAccept: x"),
        ("curl -H 'Authorization: Bearer abc.def' url", "curl -H 'Authorization: <masked>' url"),
        ("Cookie: a=b; c=d", "Cookie: <masked>"),
        ("[('Authorization', 'anything'), ('Accept', 'x')]", "[('Authorization', '<masked>'), ('Accept', 'x')]"),
        ("sent Bearer a1b2c3d4e5", "sent Bearer <masked>"),
        ("Basic authentication failed", "Basic authentication failed"),
        ("https://x/?api_key=abc&page=2", "https://x/?api_key=<masked>&page=2"),
        ("run --password hunter2 --verbose", "run --password <masked> --verbose"),
        ("unexpected token: )", "unexpected token: )"),
        (
            "f(token=<lex.Token kind=3>, last_token=Token(kind='X'))",
            "f(token=<lex.Token kind=3>, last_token=Token(kind='X'))",
        ),
        ("password=Token('x') api_token=<a b", "password=<masked>'x') api_token=<masked> b"),
        ("Unexpected token < in JSON", "Unexpected token < in JSON"),
        ("max_tokens=5 tokenizer=bpe author=me", "max_tokens=5 tokenizer=bpe author=me"),
        ("password=None token=null", "password=None token=null"),
        ("risk-management-assessment-of-things", "risk-management-assessment-of-things"),
        ("assert token == 'abc'", "assert token == '<masked>'"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY-----\nend", "<masked>\nend"),
        ("-----BEGIN PRIVATE KEY-----\nabc cut", "<masked>"),
    ],
)
def test_texts(text: str, masked: str) -> None:
    secrets = Secrets({})
    assert secrets.mask(text) == masked
    assert secrets.mask(masked) == masked


@pytest.mark.parametrize(
    ("code", "masked"),
    [
        ("password = get_password()", "password = get_password()"),
        ('password = "hunter2"', 'password = "<masked>"'),
        ("connect(password='hunter2', user='bob')", "connect(password='<masked>', user='bob')"),
        ('def f(api_key: str = "abc123"): pass', 'def f(api_key: str = "<masked>"): pass'),
        ("def f(password: str, token: str = None): pass", "def f(password: str, token: str = None): pass"),
        ('if token == "NUMBER":', 'if token == "NUMBER":'),
        ('db = "host=x password=hunter2"', 'db = "host=x password=<masked>"'),
        ('f"password={password}"', 'f"password={password}"'),
        ('os.environ["PASSWORD"]', 'os.environ["PASSWORD"]'),
        ('os.environ["PASSWORD"] = "hunter2"', 'os.environ["PASSWORD"] = "<masked>"'),
        ('fields = ("password", "email")', 'fields = ("password", "email")'),
    ],
)
def test_source_code_keeps_its_expressions(code: str, masked: str) -> None:
    assert Secrets({}).mask(code, code=True) == masked


def test_environment_values_in_every_spelling() -> None:
    value = 'p"äss\\word 1'
    secrets = Secrets({"SERVICE_PASSWORD": value, "PWD": "/work/here", "TOKEN_FILE": "/run/token", "AUTH_TOKEN": "abc"})
    import json
    from urllib.parse import quote

    for text in (value, repr(value), json.dumps(value), quote(value, safe=""), f"x{value}y"):
        assert MASK in secrets.mask(text)
    assert secrets.mask("/work/here/file.py /run/token abc") == "/work/here/file.py /run/token abc"


def test_lines_keep_their_number() -> None:
    lines = ["a", "-----BEGIN PRIVATE KEY-----", "MIIE", "-----END PRIVATE KEY-----", "b"]
    assert Secrets({}).mask_lines(lines) == ["a", MASK, MASK, MASK, "b"]


def test_a_secret_across_a_cut_is_still_one() -> None:
    secret = "sk-" + "A1b2" * 20
    formatter = Formatter(Secrets({"MY_TOKEN": "qwertyuiop" * 3}))
    for offset in range(150, 260):
        for text in ("." * offset + secret, "." * offset + " " + "qwertyuiop" * 3):
            assert "A1b2" not in formatter.text("x " + text)
            assert "qwert" not in formatter.text("x " + text)


def test_a_value_found_by_name_is_masked_elsewhere_too() -> None:
    formatter = Formatter(Secrets({}))
    formatter.value({"password": "s3cretvalue"})
    assert formatter.text(["again s3cretvalue"]) == "['again <masked>']"
    formatter.value("/srv/data/2024", "pwd")
    assert formatter.text("/srv/data/2024") == "'/srv/data/2024'"


def test_records_pairs_and_command_lines() -> None:
    formatter = Formatter(Secrets({}))
    assert formatter.text([("Authorization", "x"), ("Accept", "y")]) == "[('Authorization', <masked>), ('Accept', 'y')]"
    assert formatter.text([(b"cookie", b"x")]) == "[(b'cookie', <masked>)]"
    assert formatter.text(["run", "--api-key", "x", "y"]) == "['run', '--api-key', <masked>, 'y']"
    assert formatter.text({"name": "Authorization", "value": "x"}) == "{'name': 'Authorization', 'value': <masked>}"
    assert (
        formatter.text({"token": None, "password": "", "auth": True}) == "{'token': None, 'password': '', 'auth': True}"
    )


def test_mask_text_knows_this_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from dap_agent.debuggee import secrets

    monkeypatch.setenv("THE_PASSWORD", "from the environment")
    secrets.forget_environment()
    assert mask_text("it is from the environment!") == f"it is {MASK}!"
    secrets.forget_environment()


_names = st.sampled_from(
    ["password", "api_key", "Authorization", "dbPassword", "client_secret", "session_id", "x-auth-token"]
)
_secret = st.text(string.ascii_letters + string.digits + "!#%*+/=?@^_~-.", min_size=3, max_size=40).map(
    lambda t: "Zq" + t + "9Zq"
)


def _wrap(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    name = st.text(string.ascii_lowercase, min_size=1, max_size=5)
    return (
        st.lists(inner, min_size=1, max_size=3)
        | st.tuples(st.integers(), inner)
        | st.dictionaries(name, inner, min_size=1, max_size=3)
        | st.builds(lambda x: types.SimpleNamespace(a=x), inner)
        | st.builds(lambda x: ValueError(x), inner)
    )


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_a_secret_never_survives_at_any_nesting(data: st.DataObject) -> None:
    name, secret = data.draw(_names), data.draw(_secret)
    holder = data.draw(
        st.sampled_from(
            [
                {name: secret},
                {name: [secret, {"x": secret}]},
                {name.encode(): secret.encode()},
                (name, secret),
                types.SimpleNamespace(**{name.replace("-", "_"): secret}),
                f"{name}={secret}",
                f'{{"{name}": "{secret}"}}',
                f"x {name}: {secret} " if name != "x-auth-token" else f"{name}={secret}",
                ["run", f"--{name}", secret],
                {"name": name, "value": secret},
            ]
        )
    )
    value = data.draw(st.recursive(st.just(holder), _wrap, max_leaves=3))
    text = Formatter(Secrets({}), WIDE).text(value)
    assert secret not in text


@settings(max_examples=200, deadline=None)
@given(st.recursive(_secret, _wrap, max_leaves=4), st.data())
def test_an_environment_secret_never_survives(value: Any, data: st.DataObject) -> None:
    def leaves(item: Any) -> list[str]:
        if isinstance(item, str):
            return [item]
        if isinstance(item, dict):
            return [leaf for key, inner in item.items() for leaf in leaves(inner)]
        if isinstance(item, (list, tuple)):
            return [leaf for inner in item for leaf in leaves(inner)]
        if isinstance(item, types.SimpleNamespace):
            return leaves(item.a)
        return leaves(item.args) if isinstance(item, ValueError) else []

    secret = data.draw(st.sampled_from(leaves(value)))
    text = Formatter(Secrets({"SOME_TOKEN": secret}), WIDE).text(value)
    assert secret not in text


@given(st.text(), st.booleans())
@settings(max_examples=300, deadline=None)
def test_masking_takes_any_text_and_is_stable(text: str, code: bool) -> None:
    secrets = Secrets({"A_SECRET": "s3cr3t-value"})
    once = secrets.mask(text, code)
    assert secrets.mask(once, code) == once
