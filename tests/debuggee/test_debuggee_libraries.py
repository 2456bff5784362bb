"""What a picture of a failure in a library needs: the package's frame, wide objects, a parser's tokens."""

import collections
import dataclasses
import uuid
from typing import Any

from dap_agent.debuggee.secrets import Secrets
from dap_agent.debuggee.snapshot import take
from dap_agent.debuggee.stop import Stop
from dap_agent.debuggee.values import Formatter


class Wide:
    """Its first attribute alone would fill the text."""

    def __init__(self) -> None:
        self.first = [{f"key{n}": "x" * 50} for n in range(50)]
        for n in range(14):
            setattr(self, f"a{n}", n)
        self.last = None


def show(value: Any, name: str | None = None) -> dict[str, Any]:
    return Formatter(Secrets({})).value(value, name)


def test_one_attribute_does_not_hide_the_others() -> None:
    found = show(Wide())
    assert found["truncated"]
    assert "a0=0" in found["text"] and found["text"].endswith("last=None>")


def test_what_is_cut_within_is_closed() -> None:
    outer = Wide()
    outer.first = Wide()  # type: ignore[assignment]
    text = show(outer)["text"]
    inside = text[text.index("first=<") : text.index(", a13=13, last=None>")]
    assert inside.count("<") == inside.count(">")


class Token:
    def __init__(self, kind: Any, text: str, number: int) -> None:
        self.kind, self.text, self.number = kind, text, number


@dataclasses.dataclass
class AccessToken:
    value: str
    id: uuid.UUID
    raw: bytes
    nested: Any = None


NamedToken = collections.namedtuple("NamedToken", "line kind text")
HIDDEN = "correct-horse-4"


def test_the_structure_of_a_parsers_token_is_shown() -> None:
    assert show(Token(None, HIDDEN, 7), "token")["text"].endswith("kind=None, text=<masked>, number=7>")
    assert show(NamedToken(3, None, HIDDEN), "next_token")["text"].endswith("(line=3, kind=None, text=<masked>)")
    in_parser = show({"token": Token(None, HIDDEN, 7), "after": "visible"})["text"]
    assert "number=7" in in_parser and "'visible'" in in_parser and HIDDEN not in in_parser


def test_no_text_in_it_is_shown() -> None:
    id = uuid.uuid4()
    found = show(AccessToken(HIDDEN, id, HIDDEN.encode(), [{"a": (HIDDEN, Token(HIDDEN, HIDDEN, 1))}]), "token")
    assert found["masked"]
    assert HIDDEN not in found["text"] and str(id) not in found["text"] and str(id.int) not in found["text"]


def test_other_secrets_are_hidden_whole() -> None:
    for name in ("password", "access_token", "session_token", "api_token", "auth", "csrf_token"):
        assert show(Token(None, HIDDEN, 7), name)["text"] == "<masked>"
    for value in (HIDDEN, HIDDEN.encode(), {"a": HIDDEN}, [HIDDEN], (HIDDEN,), uuid.uuid4()):
        assert show(value, "token")["text"] == "<masked>"


def test_a_class_called_token_is_no_header() -> None:
    secrets = Secrets({})
    for text in ("<lexer.Token is_group=False, is_keyword=False>", "Token index=12, value=1"):
        assert secrets.mask(text) == text
    for header in ("Bearer a1B2c3D4e5F6==", "Token 0123456789abcdef", "token abcdefghijklmnopqrstuvwx"):
        assert "<masked>" in secrets.mask(header)


def failing(code: str, filename: str, **names: Any) -> Any:
    space = {"__name__": "x", **names}
    exec(compile(code, filename, "exec"), space)
    return space["call"]


def test_the_package_that_called_the_standard_library_is_shown_in_full(tmp_path: Any) -> None:
    import os

    packages = tmp_path / "lib" / "python3" / "site-packages" / "pkg"
    packages.mkdir(parents=True)
    (packages / "mod.py").write_text("def call(value):\n    kept = value\n    return loads(kept)\n")
    stdlib = os.path.join(os.path.dirname(os.__file__), "json", "decoder.py")
    inner = failing("def call(text):\n    raise ValueError(text)\n", stdlib)
    middle = failing((packages / "mod.py").read_text(), str(packages / "mod.py"), loads=inner)
    user = failing("def call(n):\n    return middle(n)\n", str(tmp_path / "main.py"), middle=middle)
    try:
        user(5)
    except ValueError as error:
        traceback = error.__traceback__
        assert traceback is not None
        data = take(Stop.from_exception(error, traceback.tb_next, thread_name="MainThread"))
    frame = data["frames"][1]
    assert [frame["stdlib"] for frame in data["frames"]] == [True, False, False]
    assert frame["package"]["name"] == "pkg"
    assert [pair["name"] for pair in frame["locals"]] == ["value", "kept"]
    assert frame["source"]["lines"][1] == "    kept = value"


def test_attribute_error_tells_of_the_object() -> None:
    class Base:
        def run(self) -> None:
            raise NotImplementedError

    class Thing(Base):
        def __init__(self) -> None:
            self.here = 1

        def run(self) -> None:
            super().run() if self.here == 0 else self.missing  # type: ignore[attr-defined]

    try:
        Thing().run()
    except AttributeError as error:
        data = take(Stop.from_exception(error, error.__traceback__, thread_name="MainThread"))
    attributes = {pair["name"]: pair["value"]["text"] for pair in data["exception"]["attributes"]}
    assert "here=1" in attributes["obj"]
    assert [pair["name"] for pair in data["frames"][0]["locals"]] == ["self"]  # no __class__
