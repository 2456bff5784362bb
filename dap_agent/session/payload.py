"""The debuggee side as one text: what is run in the user's process, and how it is asked."""

import ast
import base64
import functools
import json
import zlib
from collections.abc import Mapping
from typing import Any

from dap_agent.session.api import InspectionError

PACKAGE = "_dap_agent_debuggee"
"""The name of the package in the debuggee's `sys.modules`."""

# Runs in the debuggee. A loader of its own: nothing is added to sys.meta_path or sys.path, and modules are compiled
# when they are first needed. The standard library is imported past what the program has put in its place: a replaced
# `builtins.__import__` or `open` (pyfakefs, lazy importers), a file of its own called `dis.py`.
_LOADER = """
def _install(name, sources, cache):
    import builtins, marshal, os, sys, threading
    if name in sys.modules:
        return
    module_type = type(sys)
    package = module_type(name)
    package.__path__ = []
    package.__package__ = name
    real_import = builtins.__import__
    real_open = builtins.open
    own_builtins = dict(vars(builtins))
    library = os.path.dirname(os.path.abspath(os.__file__))
    library_path = [p for p in sys.path if p.startswith(library) and not p.rstrip(os.sep).endswith("-packages")]
    importing = threading.RLock()
    exists = os.path.exists

    def load(short):
        full = name + "." + short
        module = sys.modules.get(full)
        if module is not None:
            return module
        module = module_type(full)
        module.__package__ = name
        module.__file__ = "<dap-agent>/debuggee/%s.py" % short
        module.__dict__["__builtins__"] = own_builtins
        code = compiled(short, module.__file__)
        sys.modules[full] = module
        try:
            exec(code, module.__dict__)
        except BaseException:
            del sys.modules[full]
            raise
        setattr(package, short, module)
        return module

    def compiled(short, file):
        # a program may have many children, and most of them never fail: they share what one has compiled
        kept = os.path.join(cache or "", "%s-%s.code" % (sys.implementation.cache_tag, short))
        part = "%s.%d" % (kept, os.getpid())
        try:
            if cache and exists(kept):
                with real_open(kept, "rb") as stream:
                    return marshal.loads(stream.read())
        except OSError:
            pass  # dap-agent has just gone and taken its folder along
        code = compile(sources[short], file, "exec", 0, True)
        try:
            if cache and exists(cache):
                with real_open(part, "wb") as stream:
                    stream.write(marshal.dumps(code))
                os.replace(part, kept)
        except OSError:
            pass  # the disk is full, or no descriptor is left: then the next one compiles again
        return code

    def own_import(wanted, globals=None, locals=None, fromlist=(), level=0):
        if level:
            if wanted:
                return load(wanted)
            for short in fromlist:
                load(short)
            return package
        if wanted in sys.modules:
            return real_import(wanted, globals, locals, fromlist, level)
        base = os.path.join(library, wanted.partition(".")[0])
        if not (exists(base + ".py") or exists(base)):
            return real_import(wanted, globals, locals, fromlist, level)
        with importing:
            before = builtins.__import__, builtins.open, sys.path
            builtins.__import__, builtins.open, sys.path = real_import, real_open, library_path
            try:
                return real_import(wanted, globals, locals, fromlist, level)
            finally:
                builtins.__import__, builtins.open, sys.path = before

    own_builtins["__import__"] = own_import
    exec(compile(sources["__init__"], "<dap-agent>/debuggee/__init__.py", "exec", 0, True), package.__dict__)
    package.load = load
    sys.modules[name] = package
    load("api")
"""


@functools.cache
def bundle() -> str:
    """Python source that, run by `exec(text, {})` in the debuggee, defines the package there, once.

    `api` is loaded at once, the other modules when they are first imported, or by the package's `load(NAME)`. Their
    file names are `<dap-agent>/debuggee/NAME.py`. A global `cache` of the `exec` names a private folder for compiled
    modules.
    """
    from importlib.resources import files

    folder = files("dap_agent").joinpath("debuggee")
    texts = {
        entry.name[: -len(".py")]: entry.read_text(encoding="utf-8")
        for entry in sorted(folder.iterdir(), key=lambda entry: entry.name)
        if entry.name.endswith(".py")
    }
    return f"{_LOADER}\n_install({PACKAGE!r}, {texts!r}, globals().get('cache'))\n"


@functools.cache
def install_expression() -> str:
    """An expression for an evaluate that runs `bundle()` and leaves no name behind in the frame."""
    # a third of the size at a third of the time that the best packing takes; pydevd has both modules loaded long before
    packed = base64.b64encode(zlib.compress(bundle().encode(), 1)).decode()
    return f"exec(__import__('zlib').decompress(__import__('base64').b64decode({packed!r})), {{}})"


def call_expression(name: str, arguments: Mapping[str, Any]) -> str:
    """The expression for an evaluate that asks the debuggee side (`dap_agent/debuggee/api.py`); its value is a str.

    Args:
        name: of the question.
        arguments: its arguments, anything that JSON can hold.
    """
    asked = json.dumps(arguments)
    return f"__import__('sys').modules['{PACKAGE}.api'].call({name!r}, {asked!r})"


def guarded_call_expression(name: str, arguments: Mapping[str, Any]) -> str:
    """Like `call_expression`, but the value is an empty text where the debuggee side has not been installed."""
    asked = json.dumps(arguments)
    module = f"__import__('sys').modules.get('{PACKAGE}.api')"
    return f"getattr({module}, 'call', lambda *_: '')({name!r}, {asked!r})"


def interruption(ticket: str) -> dict[str, Any]:
    """Arguments of the `evaluate` that ends the question `evaluate` with this *ticket* in the debuggee."""
    return {"expression": guarded_call_expression("interrupt", {"ticket": ticket}), "context": "clipboard"}


def is_absent(text: str) -> bool:
    """Whether the result of an evaluate of `guarded_call_expression` says that nothing is installed."""
    return text.strip() in ("", "''")


def parse_reply(text: str) -> Any:
    """The answer in the result of an evaluate of `call_expression`: a JSON text, or its repr where a frame was given.

    Raises:
        InspectionError: the question was wrong or could not be answered; the message says why.
    """
    try:
        text = text.strip()
        reply = json.loads(text if text.startswith("{") else ast.literal_eval(text))
        ok = reply["ok"]
    except (ValueError, SyntaxError, TypeError, KeyError, MemoryError, RecursionError) as error:
        shown = text.strip()
        raise InspectionError(
            "The debuggee's answer can't be read; it begins with: "
            f"{shown[:200] if shown else '(nothing)'}. The program may have been resumed or may have ended."
        ) from error
    if ok:
        return reply["result"]
    failed = reply["error"]
    if failed["type"] == "NotThere":
        raise InspectionError(failed["message"])
    raise InspectionError(f"Looking into the program failed inside it: {failed['type']}: {failed['message']}.")


def problem(text: str) -> str | None:
    """Why `parse_reply` would fail, as a sentence; None if it would not."""
    try:
        parse_reply(text)
    except InspectionError as error:
        return error.message
    return None
