"""Secrets never leave the debuggee: found by name, by the shape of well-known tokens, by the values of the environment.

Self-contained: dap-agent runs this file on its own side as well, as a second line (session/redaction.py).
"""

from __future__ import annotations

import os
import re
from typing import Any, Iterable, Mapping

MASK = "<masked>"

MARGIN = 1024
"""Characters to look at beyond a cut, so that a secret across it is still recognised."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAMES = _words(
    "password passwords passwd passwds passphrase passphrases passcode passcodes pwd pwds secret secrets token apikey "
    "apikeys authorization auth cookie cookies cookiejar dsn credential credentials cred creds jwt bearer sessionid "
    "privatekey secretkey accesskey authkey connectionstring"
)
_ENDINGS = ("password", "passwd", "passphrase", "secret", "apikey", "token", "credentials")
_PAIRS = frozenset(
    [(kind, "key") for kind in _words("api access private secret signing encryption auth master ssh account license")]
    + [(kind, "tokens") for kind in _words("access auth refresh api session bearer")]
    + [(kind, "keys") for kind in _words("api access private secret signing encryption")]
    + [("session", "id"), ("session", "key"), ("connection", "string"), ("pass", "word"), ("pass", "phrase")]
)
_HINTED = _words("access auth refresh api session bearer csrf xsrf id user login sign signing key reset private")
# what a name is about when it ends so: `token_count`, `password_field`, `cookie_path` hold no secret
_HARMLESS = _words(
    "count counts counter length len size sizes limit limits total type types kind expiry expires expiration ttl "
    "timeout lifetime age path paths file files filename dir directory folder url urls uri host hostname port sock "
    "socket enabled disabled required valid name names field fields ids index idx pos position offset start end model "
    "models backend backends method methods scheme class cls func function factory provider validator validators "
    "policy rules min max usage budget prefix user username algorithm scope scopes error errors status state manager "
    "middleware handler handlers view views form page template stream iterator samesite secure httponly domain"
)
_HINT = re.compile(r"pass|pwd|secret|token|auth|cookie|dsn|cred|key|session|jwt|bearer|connection", re.I)
_WORD = re.compile(r"[A-Z]+(?=[A-Z][a-z])|[A-Z]?[a-z]+|[A-Z]+")
_NAME_LENGTH = 128

# a keyword within a text makes it worth to look for `name=value`, `"name": "value"`, `Header: value`
_CLUES = ("passw", "passphr", "passcode", "pwd", "secret", "token", "api", "auth", "cookie", "dsn", "cred", "key",
          "session", "jwt", "connection")  # fmt: skip
_CLUE = re.compile("|".join(_CLUES), re.I)
_NAME_PART = re.compile(r"[\w.\-]*")
_AFTER_NAME = re.compile(r"(\\*[\"'])?\]?[ \t]{0,8}(===?|!=|=>|:=|=|:|,)[ \t]{0,8}")
_ANNOTATION = re.compile(r"[ \t]*:[^=\n\"'#]{1,80}=[ \t]*")
_AFTER_OPTION = re.compile(r"[ \t]+(?=[^\s\-])")
_OPENING = re.compile(r"[bBuUrRfF]{0,2}(\\*)(\"\"\"|'''|\"|')")
_BARE = re.compile(r"(?:(?!&[\w.%\-]+=)[^\s\"'\\])+")
# what a parser's token looks like: `token=<lexer.Token kind=3>`, `token=Token(kind='NAME')`
_OBJECT = re.compile(r"<[A-Za-z_][\w.]* |[A-Za-z_][\w.]*\(")
_TO_LINE_END = re.compile(r"[^\r\n\"']+")
_SCHEME_WORD = re.compile(r"(?:basic|bearer|token|digest|negotiate|apikey)[ \t]+(?=\S)", re.I)
_NOTHING = frozenset(["none", "null", "true", "false", "undefined", "", "...", MASK])
_HEADERS = frozenset(["authorization", "cookie"])

# (a substring that must be there, the pattern): the substring test is what most texts cost
_SHAPES = [
    (clue, re.compile(pattern))
    for clue, pattern in (
        ("AKIA", r"\bAKIA[0-9A-Z]{16}\b"),
        ("ASIA", r"\bASIA[0-9A-Z]{16}\b"),
        ("gh", r"\bgh[pousr]_[A-Za-z0-9]{20,}"),
        ("github_pat_", r"\bgithub_pat_[A-Za-z0-9_]{20,}"),
        ("glpat-", r"\bglpat-[\w\-]{16,}"),
        ("xox", r"\bxox[a-z]-[\w\-]{8,}"),
        ("xapp-", r"\bxapp-[\w\-]{8,}"),
        ("AIza", r"\bAIza[\w\-]{30,}"),
        ("ya29.", r"\bya29\.[\w\-]{20,}"),
        ("sk-", r"\bsk-[A-Za-z0-9_\-]{16,}"),
        ("k_live_", r"\b[rsp]k_live_[A-Za-z0-9]{8,}"),
        ("k_test_", r"\b[rsp]k_test_[A-Za-z0-9]{8,}"),
        ("whsec_", r"\bwhsec_[A-Za-z0-9+/=]{16,}"),
        ("npm_", r"\bnpm_[A-Za-z0-9]{30,}"),
        ("pypi-", r"\bpypi-[\w\-]{30,}"),
        ("hf_", r"\bhf_[A-Za-z0-9]{30,}"),
        ("dckr_pat_", r"\bdckr_pat_[\w\-]{20,}"),
        ("SG.", r"\bSG\.[\w\-]{16,}\.[\w\-]{16,}"),
        ("eyJ", r"\beyJ[\w\-]{8,}\.[\w\-]{8,}(?:\.[\w\-]*)*"),
        ("PRIVATE KEY", r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY[A-Z ]*-----[\s\S]*?(?:-----END [A-Z0-9 ]*-----|\Z)"),
    )
]  # fmt: skip
_USERINFO = re.compile(r"://([^\s/?#@:\"'<>]*):([^\s/?#\"'<>]+)@")
# with `=` at its end only: `<lexer.Token is_keyword=False>` is no header
_BEARER = re.compile(
    r"\b(?:bearer|token)[ \t]+((?:(?=\S*(?:[0-9]|(?-i:[a-z][A-Z])))[\w.~+/\-]{8,}|[\w.~+/\-]{20,})={0,2}(?![\w=]))",
    re.I,
)
_BASIC = re.compile(r"\b[Bb]asic[ \t]+((?=\S*(?:[a-z][A-Z]|[0-9=]))[A-Za-z0-9+/]{6,}={0,2})")

_NOT_SECRET_VARIABLES = frozenset(["PWD", "OLDPWD", "XDG_SESSION_ID", "TERM_SESSION_ID", "LOGNAME"])
_SHORTEST = 6
_SHORTEST_SHAPE = 8  # x://:p@h, and longer ones
_known_names: dict[str, bool] = {}


def is_secret_name(name: str) -> bool:
    """Whether a variable, key, attribute, option or header of that name holds a secret.

    Words count, not substrings: `db_password`, `apiKey`, `X-Auth-Token` do; `author`, `tokenizer`, `max_tokens`,
    `token_count` do not.
    """
    known = _known_names.get(name)
    if known is None:
        known = _judge(name[-_NAME_LENGTH:])
        if len(_known_names) > 5000:
            _known_names.clear()
        if len(name) <= _NAME_LENGTH:
            _known_names[name] = known
    return known


def _judge(name: str) -> bool:
    if not _HINT.search(name):
        return False
    words = [word.lower() for word in _WORD.findall(name)]
    if not words or words[-1] in _HARMLESS or words[-2:] == ["token", "id"]:
        return False
    if words[0] in ("max", "min", "num", "n", "total") and words[-1] == "token":
        return False
    for i, word in enumerate(words):
        if word in _NAMES or word.endswith(_ENDINGS) or (i and (words[i - 1], word) in _PAIRS):
            return True
    return False


def is_token_name(name: str) -> bool:
    """Whether nothing but the word `token` makes a name secret: it may be a parser's token, too."""
    words = [word.lower() for word in _WORD.findall(name[-_NAME_LENGTH:])]
    return words[-1:] == ["token"] and not any(word in _HINTED or _judge(word) for word in words[:-1])


class Secrets:
    """The masking rules, with the secret values of one environment.

    Args:
        environment: names and values; None: this process's own, as they are now and as they were at the start.
    """

    def __init__(self, environment: Mapping[str, str] | None = None) -> None:
        self._values: set[str] = set()
        self._learned: set[str] = set()
        self._pattern: Any = None
        for name, value in (_environment() if environment is None else environment).items():
            if len(value) >= _SHORTEST and name not in _NOT_SECRET_VARIABLES and is_secret_name(name):
                self._values.update(_spellings(value))
        self._compile()

    @property
    def margin(self) -> int:
        """Characters to look at on each side of a cut."""
        return max([MARGIN] + [len(value) for value in self._values])

    def learn(self, value: str) -> None:
        """Mask *value* wherever `mask_known` meets it: it was found under a secret name.

        Only what looks made up: a word, a path or a short text may stand elsewhere for something else.
        """
        if not 8 <= len(value) <= 4096 or value.startswith(("/", "./", "~", "<")) or " " in value:
            return
        if re.search(r"[0-9]", value) or (re.search(r"[a-zA-Z]", value) and re.search(r"[^\w.:/\\\-]", value)):
            self._learned.update(_spellings(value))

    def mask(self, text: str, code: bool = False) -> str:
        """*text* with its secrets replaced by MASK.

        Args:
            code: source code, where an unquoted value after a secret name is an expression and stays.
        """
        found = self.spans(text, code)
        return _replace(text, found) if found else text

    def mask_lines(self, lines: list[str], code: bool = False) -> list[str]:
        """Like `mask` for a text given by its lines; a secret over several lines is masked in each."""
        text = "\n".join(lines)
        found = self.spans(text, code)
        if not found:
            return lines
        split = []
        for begin, end in found:
            while True:
                cut = text.find("\n", begin, end)
                if cut < 0:
                    break
                split.append((begin, cut))
                begin = cut + 1
            split.append((begin, end))
        return _replace(text, [span for span in split if span[0] < span[1]]).split("\n")

    def mask_known(self, text: str) -> str:
        """*text* without the values of secret variables and without those that were learned; no other rule."""
        if self._learned:
            self._values |= self._learned
            self._learned = set()
            self._compile()
        return self._pattern.sub(MASK, text) if self._pattern is not None else text

    def knows_values(self) -> bool:
        """Whether there are values to mask: of secret variables, or learned."""
        return bool(self._values or self._learned)

    def spans(self, text: str, code: bool = False) -> list[tuple[int, int]]:
        """Begin and end of each secret in *text*, in order, without overlaps."""
        found: list[tuple[int, int]] = []
        if self._pattern is not None:
            found.extend(match.span() for match in self._pattern.finditer(text))
        if len(text) >= _SHORTEST_SHAPE:
            found.extend(_shaped(text))
        if len(text) >= 5 and ("=" in text or ":" in text or "," in text or "-" in text):
            found.extend(_named(text, code))
        return _merged(found) if found else found

    def _compile(self) -> None:
        ordered = sorted(self._values, key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, ordered))) if ordered else None


_Environ = type(os.environ)


def _environment() -> dict[str, str]:
    now = {}
    # the program may have put something else in the place of os.environ
    held = os.environ.__dict__.get("_data") if type(os.environ) is _Environ else None
    if type(held) is dict:
        for key, value in list(held.items()):
            if type(key) in (bytes, str) and type(value) in (bytes, str):
                now[os.fsdecode(key)] = os.fsdecode(value)
    # a name may have had two values: keep both, under names that judge alike
    before = {"was_" + name: value for name, value in _at_start.items() if now.get(name) != value}
    return {**before, **now}


_at_start: dict[str, str] = {}
_at_start.update(_environment())


def _spellings(value: str) -> Iterable[str]:
    """The ways in which a text may be written: as it is, escaped by repr or JSON, in a URL, in base64 by its lines."""
    import json
    from urllib.parse import quote

    value = value.strip()
    found = {value, repr(value)[1:-1], json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    try:
        found.add(quote(value, safe=""))
        found.add(value.encode("utf-8").decode("latin-1"))
        found.add(repr(value.encode("utf-8"))[2:-1])
    except UnicodeError:
        pass  # lone surrogates: it cannot be written so
    lines = value.splitlines()
    if len(lines) > 1:
        found.update(line.strip() for line in lines if len(line.strip()) >= 16)
    return [spelling for spelling in found if len(spelling) >= _SHORTEST]


def _shaped(text: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for clue, pattern in _SHAPES:
        if clue in text:
            found.extend(match.span() for match in pattern.finditer(text))
    if "://" in text and "@" in text:
        found.extend(match.span(2) for match in _USERINFO.finditer(text))
    if "earer" in text or "oken " in text or "EARER" in text:
        found.extend(match.span(1) for match in _BEARER.finditer(text))
    if "asic " in text:
        found.extend(match.span(1) for match in _BASIC.finditer(text))
    return found


def _named(text: str, code: bool) -> list[tuple[int, int]]:
    lower = text.lower()
    if not any(clue in lower for clue in _CLUES):
        return []
    found = []
    end_of_last = 0
    for clue in _CLUE.finditer(text):
        if clue.start() < end_of_last:
            continue
        begin = clue.start()
        while begin > max(0, clue.start() - 64) and (text[begin - 1].isalnum() or text[begin - 1] in "_.-"):
            begin -= 1
        end = _NAME_PART.match(text, clue.end()).end()  # type: ignore[union-attr]
        end_of_last = end
        name = text[begin:end]
        if not is_secret_name(name):
            continue
        in_literal = code and text[end : end + 1] not in ("'", '"') and _in_literal(text, begin)
        span = _value_after(text, end, name, code and not in_literal)
        if in_literal and span is not None and text[span[0]] in "{%$<":
            continue  # a placeholder that is filled in later
        if span is not None and text[span[0] : span[1]].lower() not in _NOTHING:
            found.append(span)
            end_of_last = max(end_of_last, span[1])
    return found


def _in_literal(text: str, position: int) -> bool:
    """Whether *position* in source code seems to be inside a string literal that begins on its line."""
    before = text[text.rfind("\n", 0, position) + 1 : position]
    return before.count('"') % 2 == 1 or before.count("'") % 2 == 1


def _value_after(text: str, end: int, name: str, code: bool) -> tuple[int, int] | None:
    """The value that stands behind a secret name which ends at *end*."""
    if code:
        return _literal_after(text, end, name)
    separator = _AFTER_NAME.match(text, end)
    if separator is None:
        option = _AFTER_OPTION.match(text, end) if name.startswith("--") else None
        if option is None:
            return None
        value = _BARE.match(text, option.end())
        return (value.start(), value.end()) if value else _quoted(text, option.end())
    closing_quote, sign = separator.groups()
    if sign == "," and not closing_quote:
        return None
    start = separator.end()
    quoted = _quoted(text, start)
    if quoted is not None:
        return quoted
    if sign == ",":
        return None
    words = [word.lower() for word in _WORD.findall(name)]
    if sign == ":" and not closing_quote and words[-1] in _HEADERS:
        value = _TO_LINE_END.match(text, start)
        return (value.start(), value.end()) if value else None
    scheme = _SCHEME_WORD.match(text, start)
    value = _BARE.match(text, scheme.end() if scheme else start)
    if value is None or (_OBJECT.match(text, start) and is_token_name(name)):
        return None
    stop = len(value[0].rstrip(",;)]}>")) + value.start()
    if stop <= start or text.startswith(MASK, value.start()):
        return None
    prose = sign == ":" and not closing_quote and words[-1] in ("token", "auth", "tokens", "cookies", "secret")
    if prose and (stop - start < 8 or not re.search(r"[0-9]", text[start:stop])):
        return None  # "unexpected token: )"
    return start, stop


def _literal_after(text: str, end: int, name: str) -> tuple[int, int] | None:
    """In source code: the string literal given to a secret name; `token = "NUMBER"` is a lexer's word, not a secret."""
    separator = _ANNOTATION.match(text, end) or _AFTER_NAME.match(text, end)
    if separator is None or "," in separator[0]:
        return None
    span = _quoted(text, separator.end())
    if span is None:
        return None
    inside = text[span[0] : span[1]]
    words = [word.lower() for word in _WORD.findall(name)]
    if words[-1] in ("token", "auth") and len(inside) < 16 and re.match(r"[A-Za-z_]+\Z", inside):
        return None
    return span


def _quoted(text: str, start: int) -> tuple[int, int] | None:
    """The inside of the quoted text that begins at *start*; unclosed, it ends with the line."""
    opening = _OPENING.match(text, start)
    if opening is None:
        return None
    slashes, quote = opening.groups()
    close = slashes + quote
    i = begin = opening.end()
    while True:
        i = text.find(close, i)
        if i < 0:
            i = len(text)
            if len(quote) == 1:
                line = text.find("\n", begin)
                i = line if line >= 0 else i
            return begin, i
        backslashes = 0
        while i - backslashes > begin and text[i - backslashes - 1] == "\\":
            backslashes += 1
        if backslashes % 2 == 0 or slashes:
            return begin, i
        i += 1


def _merged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    if len(spans) < 2:
        return spans
    spans.sort()
    merged = [spans[0]]
    for begin, end in spans[1:]:
        if begin <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((begin, end))
    return merged


def _replace(text: str, spans: list[tuple[int, int]]) -> str:
    parts = []
    last = 0
    for begin, end in spans:
        parts.append(text[last:begin])
        parts.append(MASK)
        last = end
    parts.append(text[last:])
    return "".join(parts)


_shared: list[Secrets] = []


def mask_text(text: str) -> str:
    """*text* masked by all rules, with the secret variables of this process's environment at the first call."""
    if not _shared:
        _shared.append(Secrets())
    return _shared[0].mask(text)


def mask_code(text: str) -> str:
    """Like `mask_text` for source code: of what follows a secret name only string literals are masked."""
    if not _shared:
        _shared.append(Secrets())
    return _shared[0].mask(text, code=True)


def forget_environment() -> None:
    """Read the environment anew at the next `mask_text`."""
    del _shared[:]
