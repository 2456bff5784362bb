"""Bytes of a source file as text and back, without losing a byte: encoding, BOM and newlines are kept."""

import io
import re
import tokenize
from codecs import BOM_UTF8
from dataclasses import dataclass, replace

from dap_agent.fixes.failures import EditError, UnreadableFile

_LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_NEWLINE = re.compile(r"\r\n|\r|\n")
_SURROGATE = re.compile("[\ud800-\udfff]")


def split_lines(text: str) -> list[str]:
    """Lines with their ends, split where the tokenizer splits: at \\n, \\r\\n and \\r, not at a form feed."""
    return _LINE.findall(text)


def ending(line: str) -> str:
    """The newline at the end of *line*, or an empty string."""
    if line.endswith("\r\n"):
        return "\r\n"
    return line[-1:] if line.endswith(("\n", "\r")) else ""


def unix(text: str) -> str:
    """*text* with every newline as \\n."""
    return text.replace("\r\n", "\n").replace("\r", "\n") if "\r" in text else text


def indent_of(line: str) -> str:
    """The blanks at the start of *line* that count as indentation: those after the last form feed."""
    blanks = line[: len(line) - len(line.lstrip(" \t\f"))]
    return blanks[blanks.rfind("\f") + 1 :]


@dataclass(frozen=True)
class SourceText:
    """The decoded content of one file.

    Args:
        text: the content, newlines as they are in the file, without a BOM.
        encoding: codec name for the way back.
        bom: whether the file starts with a UTF-8 BOM.
        errors: error handler of the codec; `surrogateescape` for files that are not Python.
    """

    text: str
    encoding: str
    bom: bool = False
    errors: str = "strict"

    @property
    def newline(self) -> str:
        """The newline that most lines use; \\n for a file without any."""
        found = _NEWLINE.findall(self.text)
        return max(("\n", "\r\n", "\r"), key=found.count) if found else "\n"

    def with_text(self, text: str) -> "SourceText":
        """The same file with other content."""
        return replace(self, text=text)

    def encode(self) -> bytes:
        """The bytes of the file.

        Raises:
            EditError: the text holds a character that the file's encoding does not have.
        """
        try:
            body = self.text.encode(self.encoding, self.errors)
        except UnicodeEncodeError as error:
            raise EditError(
                f"the character {error.object[error.start]!r} does not exist in the file's encoding {self.encoding}; "
                "write it as an escape such as \\u20ac"
            ) from None
        return (BOM_UTF8 if self.bom else b"") + body


def decode(data: bytes, name: str) -> SourceText:
    """The text of a file.

    Args:
        data: all of its bytes.
        name: its path; `.py` and `.pyi` files are decoded as PEP 263 says, others as UTF-8.

    Raises:
        UnreadableFile: it is binary, or not in the encoding that it declares.
    """
    bom = data.startswith(BOM_UTF8)
    body = data[len(BOM_UTF8) :] if bom else data
    if not is_python(name):
        if b"\0" in data:
            raise UnreadableFile(f"{name} is a binary file; only text files can be read or edited.")
        return SourceText(body.decode("utf-8", "surrogateescape"), "utf-8", bom, "surrogateescape")
    try:
        encoding = "utf-8" if bom else tokenize.detect_encoding(io.BytesIO(data).readline)[0]
        text = body.decode(encoding)
        survives = text.encode(encoding) == body
    except (SyntaxError, UnicodeError, LookupError) as error:
        raise UnreadableFile(f"{name} is not text in the encoding that it declares: {error}.") from None
    if b"\0" in data and "\0" in text:
        raise UnreadableFile(f"{name} is a binary file; only text files can be read or edited.")
    if not survives:
        raise UnreadableFile(f"{name} cannot be edited: its encoding {encoding} does not give the same bytes back.")
    return SourceText(text, encoding, bom)


def new_file(content: str, name: str) -> SourceText:
    """The text of a file that does not exist yet: UTF-8, or what its own PEP 263 line says.

    Raises:
        EditError: it declares an encoding that does not exist or does not fit.
    """
    check_model_text(content)
    if not is_python(name):
        return SourceText(content, "utf-8")
    head = "".join(split_lines(content)[:2]).encode("utf-8", "replace")
    try:
        encoding = tokenize.detect_encoding(io.BytesIO(head).readline)[0]
    except SyntaxError as error:
        raise EditError(f"the new file {name} declares an unknown encoding: {error}") from None
    if encoding == "utf-8-sig":
        return SourceText(content.removeprefix("\ufeff"), "utf-8", True)
    return SourceText(content, encoding)


def is_python(name: str) -> bool:
    """Whether *name* is a Python source file."""
    return name.lower().endswith((".py", ".pyi", ".pyw"))


def check_model_text(text: str) -> None:
    """Refuses text that no file can hold.

    Raises:
        EditError: *text* has a lone surrogate or a NUL.
    """
    if _SURROGATE.search(text):
        raise EditError("the text has half of a surrogate pair, which no file can hold; write the whole character")
    if "\0" in text:
        raise EditError("the text has a NUL character; write it as the escape \\0")
