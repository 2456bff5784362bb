"""Whether a `with` swallows an exception: from what its context manager is, without running it."""

from __future__ import annotations

import ast
import sys
import types
from typing import Any

from . import guards, reading, statics
from .effects import PASS, Effect, Raised, joined
from .statics import UNKNOWN, Bound, Scope

_DEPTH = 5  # functions that return what another one has made
_PASSING = {  # their __exit__ never swallows, which can't be seen from its text
    ("unittest.mock", "_patch"),
    ("anyio._core._tasks", "CancelScope"),  # swallows a cancellation, and that is never judged
    ("anyio._backends._asyncio", "CancelScope"),
    ("unittest.mock", "_patch_dict"),
    ("asyncio.runners", "Runner"),
    ("asyncio.timeouts", "Timeout"),
    ("contextlib", "nullcontext"),
    ("concurrent.futures._base", "Executor"),
    ("tempfile", "_TemporaryFileWrapper"),
    ("tempfile", "SpooledTemporaryFile"),
    ("socketserver", "BaseServer"),
    ("_pytest.recwarn", "WarningsRecorder"),
    ("_pytest.recwarn", "WarningsChecker"),
}
_PASSING_MAKERS = {  # functions and methods whose managers do the same
    ("fastapi.telemetry._api", "_operation"),
    ("anyio._backends._asyncio", "current_default_thread_limiter"),
    ("anyio._core._tasks", "fail_after"),
    ("anyio._core._tasks", "move_on_after"),
}
_STACKS = {("contextlib", "ExitStack"), ("contextlib", "AsyncExitStack")}
_EXPECTING = {
    ("_pytest.python_api", "RaisesContext"): "expected_exception",
    ("_pytest.raises", "RaisesExc"): "expected_exceptions",
    ("unittest.case", "_AssertRaisesContext"): "expected",
    ("contextlib", "suppress"): "_exceptions",
}


def effect_of(guard: guards.Manager, scope: Scope, raised: Raised) -> Effect:
    """What the context manager of one `with` item does with the exception."""
    effect = _of_expression(guard.item.context_expr, scope, raised, guard.is_async, guard.item.optional_vars, 0)
    if effect.kind == "pass" or guard.sure:
        return effect
    return Effect("maybe", effect.why)


def _of_expression(node: Any, scope: Scope, raised: Raised, is_async: bool, target: Any, depth: int) -> Effect:
    if isinstance(node, ast.NamedExpr):
        node = node.value
    if isinstance(node, ast.IfExp):
        return joined(
            [_of_expression(branch, scope, raised, is_async, target, depth) for branch in (node.body, node.orelse)]
        )
    if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or):
        usable = [part for part in node.values if statics.value_of(part, scope) is not None]
        return joined([_of_expression(part, scope, raised, is_async, target, depth) for part in usable])
    if isinstance(target, ast.Name):
        entered = scope.look_up(target.id)
        if entered is not UNKNOWN and _known_name(type(entered)) in _STACKS:
            return _of_stack(entered, raised, depth)
    if isinstance(node, ast.Call):
        return _of_call(node, scope, raised, is_async, depth)
    value = statics.value_of(node, scope)
    if value is UNKNOWN:
        return Effect("maybe", "a context manager that is not known")
    return of_instance(value, raised, is_async, depth)


def _known_name(cls: type) -> tuple[str, str]:
    return reading.module(cls) or "", reading.qualname(cls)


def _of_call(node: ast.Call, scope: Scope, raised: Raised, is_async: bool, depth: int) -> Effect:
    called = statics.method(node.func, scope)
    if called is UNKNOWN:
        return Effect("maybe", "a context manager that is not known")
    if type(called) is Bound:
        return _of_method(called, node, scope, raised, is_async, depth)
    if issubclass(type(called), type):
        return _of_class(called, node, scope, raised, is_async, depth)
    if type(called) is types.FunctionType:
        module, name = called.__module__, called.__name__
        if name == "raises" and module in ("_pytest.python_api", "_pytest.raises"):
            return _expected(node, scope, raised, "pytest.raises")
        if (name in ("warns", "deprecated_call") and module == "_pytest.recwarn") or (module, name) in _PASSING_MAKERS:
            return PASS
        return _of_function(called, UNKNOWN, raised, is_async, depth)
    if type(called) in (types.BuiltinFunctionType, types.MethodDescriptorType):
        return PASS  # open, a lock: written in C, and none of those swallows
    return Effect("maybe", "a context manager that is not known")


def _of_method(called: Bound, node: ast.Call, scope: Scope, raised: Raised, is_async: bool, depth: int) -> Effect:
    name = called.function.__name__
    if (called.function.__module__, name) in _PASSING_MAKERS:
        return PASS
    if called.function.__module__ == "unittest.case":
        if name in ("assertRaises", "assertRaisesRegex"):
            return _expected(node, scope, raised, name)
        if name in ("assertWarns", "assertWarnsRegex", "assertLogs", "assertNoLogs"):
            return PASS
        if name == "subTest":
            return _of_subtest(raised)
    if name == "_recreate_cm" and called.function.__module__ == "contextlib":
        return of_instance(called.receiver, raised, is_async, depth)
    return _of_function(called.function, called.receiver, raised, is_async, depth)


def _of_subtest(raised: Raised) -> Effect:
    if raised.named("unittest.case.SkipTest", "unittest.case._ShouldStop"):
        return Effect("handled", "the sub-test is skipped")
    return Effect("ends", "the sub-test fails")


def _expected(node: ast.Call, scope: Scope, raised: Raised, what: str) -> Effect:
    """`raises(X)`, `assertRaises(X)`, `suppress(X, Y)`: the arguments are what is caught."""
    asked = node.args if what == "suppress" else node.args[:1]
    if not asked:
        asked = [k.value for k in node.keywords if k.arg in ("expected_exception", "exception")]
    classes = statics.exception_types(tuple(statics.value_of(argument, scope) for argument in asked))
    if classes is None:
        return Effect("maybe", "%s of something that is not known" % what)
    checked = "Regex" in what or any(k.arg in ("match", "check") for k in node.keywords)
    return _caught(classes, raised, what, checked)


def _caught(classes: tuple[type, ...], raised: Raised, what: str, checked: bool) -> Effect:
    caught = raised.caught_by(classes)
    if not caught and what == "suppress" and raised.is_group() and sys.version_info >= (3, 12):
        caught = raised.caught_by_star(classes)
    if caught is None or (caught and checked):
        return Effect("maybe", "%s, if it matches" % what)
    return Effect("handled", what) if caught else PASS


def _of_class(cls: type, node: ast.Call, scope: Scope, raised: Raised, is_async: bool, depth: int) -> Effect:
    for base in reading.mro(cls):
        known = _known_name(base)
        if known == ("contextlib", "suppress") and base is cls:
            return _expected(node, scope, raised, "suppress")
        if known in _EXPECTING or known in _STACKS:
            return Effect("maybe", reading.qualname(base))
        if known == ("contextlib", "closing") or known == ("contextlib", "aclosing"):
            return PASS
    return _of_exit(cls, UNKNOWN, raised, is_async, depth)


def of_instance(value: Any, raised: Raised, is_async: bool, depth: int = 0) -> Effect:
    """What the context manager *value* does."""
    for base in reading.mro(type(value)):
        known = _known_name(base)
        if known in _EXPECTING:
            classes = statics.exception_types(reading.own(value, _EXPECTING[known]))
            what = "suppress" if base.__name__ == "suppress" else "an expected exception"
            return Effect("maybe", what) if classes is None else _caught(classes, raised, what, False)
        if known in _STACKS:
            return _of_stack(value, raised, depth)
        if known[0] == "contextlib" and "GeneratorContextManager" in known[1]:
            generator = reading.own(value, "gen")
            frame = getattr(generator, "gi_frame", None) or getattr(generator, "ag_frame", None)
            function = reading.own(value, "func")
            if frame is not None:
                code = guards.of_code(frame.f_code, frame.f_globals)
                return _through_yields(code.node, Scope.of_frame(frame), raised, depth)
            if type(function) is types.FunctionType:
                return _of_generator(function, UNKNOWN, raised, depth)
    return _of_exit(type(value), value, raised, is_async, depth)


def _of_stack(stack: Any, raised: Raised, depth: int) -> Effect:
    callbacks = reading.own(stack, "_exit_callbacks")
    if type(callbacks).__name__ != "deque" or depth > _DEPTH:
        return Effect("maybe", "an ExitStack")
    for is_sync, callback in reversed(list(callbacks)):
        if type(callback) is types.MethodType:
            if reading.text_of(getattr(callback.__func__, "__name__", "")) in ("__exit__", "__aexit__"):
                effect = of_instance(callback.__self__, raised, not is_sync, depth + 1)
            else:
                effect = Effect("maybe", "a function on an ExitStack")
        elif type(callback) is types.FunctionType:
            plain = callback.__module__ == "contextlib" and "_create_cb_wrapper" in callback.__qualname__
            if plain or (callback.__module__ == "contextlib" and callback.__name__ == "_exit_wrapper"):
                effect = PASS if plain or "cb" in callback.__qualname__ else Effect("maybe", "an ExitStack")
            else:
                effect = Effect("maybe", "a function on an ExitStack")
        else:
            effect = Effect("maybe", "a function on an ExitStack")
        if effect.kind != "pass":
            return effect
    return PASS


def _of_function(function: types.FunctionType, receiver: Any, raised: Raised, is_async: bool, depth: int) -> Effect:
    """What is done by whatever *function* returns."""
    unknown = Effect("maybe", "what %s returns" % function.__name__)
    if depth > _DEPTH:
        return unknown
    wrapped = statics.attribute(function, "__wrapped__")
    decorated = function.__code__.co_name == "helper" and function.__globals__.get("__name__") == "contextlib"
    if decorated and type(wrapped) is types.FunctionType:
        return _of_generator(wrapped, receiver, raised, depth)
    if wrapped is not UNKNOWN:
        return unknown  # some other decorator
    code = guards.of_code(function.__code__, function.__globals__)
    node = code.node
    if not isinstance(node, ast.FunctionDef) or function.__code__.co_flags & 0x20:
        return unknown
    scope = Scope.of_function(function, receiver)
    returned = [found.value for found in _own_nodes(node) if isinstance(found, ast.Return)]
    if not returned or any(value is None for value in returned):
        return unknown
    effects = []
    for value in returned:
        if isinstance(value, ast.Name):
            value = _assigned_once(node, value.id) or value
        if isinstance(value, ast.Name) and receiver is not UNKNOWN and value.id == function.__code__.co_varnames[0]:
            effects.append(of_instance(receiver, raised, is_async, depth + 1))
        else:
            effects.append(_of_expression(value, scope, raised, is_async, None, depth + 1))
    return joined(effects)


def _assigned_once(node: Any, name: str) -> Any:
    stored = [n for n in _own_nodes(node) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Store)]
    values = [
        n.value
        for n in _own_nodes(node)
        if isinstance(n, ast.Assign) and len(n.targets) == 1 and getattr(n.targets[0], "id", None) == name
    ]
    return values[0] if len(stored) == len(values) == 1 else None


def _own_nodes(node: Any) -> Any:
    """All nodes of a function's body, those of functions and classes inside left out."""
    waiting = list(node.body)
    while waiting:
        found = waiting.pop()
        yield found
        if not isinstance(found, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            waiting.extend(ast.iter_child_nodes(found))


# @contextmanager


def _of_generator(function: types.FunctionType, receiver: Any, raised: Raised, depth: int) -> Effect:
    code = guards.of_code(function.__code__, function.__globals__)
    return _through_yields(code.node, Scope.of_function(function, receiver), raised, depth)


def _through_yields(node: Any, scope: Scope, raised: Raised, depth: int) -> Effect:
    """The exception is raised at the generator's `yield`: what its own try and with statements do with it there."""
    if node is None or depth > _DEPTH:
        return Effect("maybe", "a context manager without source")
    from . import predict

    effects = []
    for found in _own_nodes(node):
        if isinstance(found, ast.Yield):
            where = (found.lineno, found.col_offset, found.end_lineno or found.lineno, found.end_col_offset)
            effects.append(predict.through(guards.around(node.body, where), scope, raised, depth + 1))
    return joined(effects) if effects else Effect("maybe", "a context manager that never yields")


# classes with __exit__


def _of_exit(cls: type, receiver: Any, raised: Raised, is_async: bool, depth: int) -> Effect:
    name = "__aexit__" if is_async else "__exit__"
    for base in reading.mro(cls):
        if _known_name(base) == ("asyncio.taskgroups", "TaskGroup"):
            return Effect("becomes", "a task group", "group")
        found = reading.lookup(reading.class_dict(base), name)
        if found is UNKNOWN:
            continue
        if _known_name(base) in _PASSING:
            return PASS
        if type(found) is types.FunctionType:
            return _of_exit_function(found, cls, base, receiver, raised, is_async, depth)
        if type(found) in (types.MethodDescriptorType, types.WrapperDescriptorType, types.BuiltinFunctionType):
            return PASS  # written in C
        break
    return Effect("maybe", "%s of %s" % (name, reading.type_name(cls)))


def _of_exit_function(
    function: types.FunctionType, cls: type, base: type, receiver: Any, raised: Raised, is_async: bool, depth: int
) -> Effect:
    where = "%s of %s" % (function.__name__, reading.type_name(cls))
    node = guards.of_code(function.__code__, function.__globals__).node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or depth > _DEPTH:
        return Effect("maybe", where)
    if isinstance(node, ast.AsyncFunctionDef) != is_async:
        return Effect("maybe", where)
    names = [argument.arg for argument in node.args.args]
    asked = _Truth(names, Scope.of_function(function, receiver), raised, (cls, base, is_async, depth))
    answers = asked.returned(node.body)
    if None in answers or len(answers) > 1:
        return Effect("maybe", where)
    if answers == {True}:
        return Effect("handled", where)
    return PASS if answers == {False} else Effect("becomes", where, None)


class _Truth:
    """What an `__exit__` returns when it is told of the exception: True, False, None (not known) or "raise"."""

    def __init__(self, names: list[str], scope: Scope, raised: Raised, owner: Any) -> None:
        self.kind, self.value = (names + [""] * 4)[1:3]
        self.scope = scope
        self.raised = raised
        self.owner = owner

    def returned(self, body: Any) -> set[Any]:
        """The answers of a function with this body."""
        found = self._run(body)
        return {False if answer == "fall" else answer for answer in found}

    def _run(self, body: Any) -> set[Any]:
        found: set[Any] = set()
        for statement in body:
            step = self._step(statement)
            found |= step - {"fall"}
            if "fall" not in step:
                return found
        return found | {"fall"}

    def _step(self, statement: Any) -> set[Any]:
        if isinstance(statement, ast.Return):
            return {False if statement.value is None else self.true(statement.value)}
        if isinstance(statement, ast.Raise):
            return {"raise"}
        if isinstance(statement, ast.If):
            test = self.true(statement.test)
            yes = self._run(statement.body) if test is not False else set()
            if test is None and yes == {"raise"} and not statement.orelse:
                return {"fall"}  # "not entered yet", and the like
            no = self._run(statement.orelse) if test is not True else set()
            return yes | no
        if isinstance(statement, (ast.With, ast.AsyncWith)):
            return self._run(statement.body)
        if isinstance(statement, guards.Tries):
            body = self._run(statement.body + statement.orelse)
            final = self._run(statement.finalbody)
            return final if "fall" not in final else body | (final - {"fall"})
        if isinstance(statement, (ast.For, ast.While, ast.AsyncFor)):
            inside = self._run(statement.body) - {"fall"}
            return {None, "fall"} if inside else {"fall"}
        return {"fall"}

    def true(self, node: Any) -> bool | None:
        """Whether an expression is true; None if that is not known."""
        if isinstance(node, ast.Constant):
            return bool(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self.true(node.operand)
            return None if inner is None else not inner
        if isinstance(node, ast.BoolOp):
            parts = [self.true(part) for part in node.values]
            decisive = isinstance(node.op, ast.Or)
            if decisive in parts:
                return decisive
            return None if None in parts else not decisive
        if isinstance(node, ast.Name):
            return True if node.id in (self.kind, self.value) else None
        if isinstance(node, ast.Compare) and len(node.ops) == 1:
            return self._compare(node.left, node.ops[0], node.comparators[0])
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.Await):
            return self.true(node.value)
        return None

    def _compare(self, left: Any, operator: Any, right: Any) -> bool | None:
        if not isinstance(left, ast.Name) or left.id not in (self.kind, self.value):
            return None
        negative = isinstance(operator, (ast.IsNot, ast.NotEq, ast.NotIn))
        if isinstance(right, ast.Constant) and right.value is None:
            return negative
        if left.id != self.kind or self.raised.type is None:
            return None
        classes = statics.exception_types(statics.value_of(right, self.scope))
        if classes is None:
            return None
        return any(entry is self.raised.type for entry in classes) != negative

    def _call(self, node: ast.Call) -> bool | None:
        function = node.func
        if isinstance(function, ast.Name) and function.id in ("isinstance", "issubclass") and len(node.args) == 2:
            subject = node.args[0]
            if isinstance(subject, ast.Name) and subject.id in (self.kind, self.value):
                classes = statics.exception_types(statics.value_of(node.args[1], self.scope))
                return None if classes is None else self.raised.caught_by(classes)
        if isinstance(function, ast.Attribute) and function.attr in ("__exit__", "__aexit__"):
            inner = function.value
            cls, base, is_async, depth = self.owner
            if isinstance(inner, ast.Call) and getattr(inner.func, "id", "") == "super":
                mro = reading.mro(cls)
                for above in mro[next(i for i, entry in enumerate(mro) if entry is base) + 1 :]:
                    found = reading.lookup(reading.class_dict(above), function.attr)
                    if type(found) is types.FunctionType:
                        effect = _of_exit_function(found, cls, above, UNKNOWN, self.raised, is_async, depth + 1)
                        return {"pass": False, "handled": True}.get(effect.kind)
                return None
            value = statics.value_of(inner, self.scope)
            if value is not UNKNOWN:
                effect = of_instance(value, self.raised, function.attr == "__aexit__", depth + 1)
                return {"pass": False, "handled": True}.get(effect.kind)
        return None
