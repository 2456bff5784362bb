"""From `PROVIDER:NAME` to a backend.

Providers are the entry points of the group `dap_agent.backends`; each names a function
`create(name, *, timeout, max_retries) -> Backend`. The four that ship are also known without installed metadata (a
source tree). No SDK is imported here.
"""

import importlib
from typing import TYPE_CHECKING, Any

from dap_agent.errors import DapAgentError
from dap_agent.models.base import Backend

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "dap_agent.backends"
_BUILT_IN = {
    "anthropic": "dap_agent.models.anthropic:create",
    "openai": "dap_agent.models.openai:create",
    "local": "dap_agent.models.local:create",
    "scripted": "dap_agent.models.scripted:create",
}
_FAMILIES = {"claude": "anthropic", "gpt": "openai", "o1": "openai", "o3": "openai", "o4": "openai", "http": "local"}


def providers() -> list[str]:
    """The names of all providers, ours and those of installed plug-ins, sorted."""
    return sorted({*_BUILT_IN, *_plugins()})


def split(spec: str) -> tuple[str, str]:
    """`PROVIDER:NAME` as (provider, name).

    Raises:
        DapAgentError: no provider is named, or the name is missing.
    """
    provider, colon, name = spec.strip().partition(":")
    if not colon or name.startswith("//"):
        raise DapAgentError(_no_provider(spec.strip()))
    if not provider or not name:
        raise DapAgentError(
            f"The model {spec!r} is incomplete: write PROVIDER:NAME, for example anthropic:claude-sonnet-4-5 "
            f"(providers: {', '.join(providers())})."
        )
    return provider, name


def create(spec: str, *, timeout: float | None = None, max_retries: int = 4) -> Backend:
    """The backend for *spec*.

    Args:
        spec: `PROVIDER:NAME`.
        timeout: seconds without any byte from the provider after which a request is given up; None: the provider's
            default (120; 600 for local servers, which may read a long prompt slowly).
        max_retries: how often a failed request is repeated.

    Raises:
        DapAgentError: unknown provider, broken plug-in; or what the provider says (`ModelError`: a missing key).
    """
    provider, name = split(spec)
    factory = _factory(provider)
    options: dict[str, Any] = {"max_retries": max_retries}
    if timeout is not None:
        options["timeout"] = timeout
    if provider in _BUILT_IN:
        made = factory(name, **options)
    else:
        try:
            made = factory(name, **options)
        except DapAgentError:
            raise
        except Exception as error:  # a plug-in may raise anything; the user needs to know whose fault it is
            raise DapAgentError(_broken(provider, f"it raised {type(error).__name__}: {error}")) from error
    if not isinstance(made, Backend):
        raise DapAgentError(_broken(provider, f"its create() returned {type(made).__name__}, which is no Backend"))
    return made


def _factory(provider: str) -> Any:
    if provider in _BUILT_IN:
        module, _, function = _BUILT_IN[provider].partition(":")
        return getattr(importlib.import_module(module), function)
    entry = _plugins().get(provider)
    if entry is None:
        raise DapAgentError(_unknown(provider))
    try:
        factory = entry.load()
    except Exception as error:  # importing a plug-in may raise anything; only this provider is lost by it
        raise DapAgentError(_broken(provider, f"importing it raised {type(error).__name__}: {error}")) from error
    if not callable(factory):
        raise DapAgentError(_broken(provider, f"its entry point {entry.value} is no function"))
    return factory


def _plugins() -> "dict[str, EntryPoint]":
    from importlib.metadata import entry_points

    return {entry.name: entry for entry in entry_points(group=GROUP) if entry.name not in _BUILT_IN}


def _package(provider: str) -> str:
    entry = _plugins().get(provider)
    return entry.dist.name if entry is not None and entry.dist is not None else "its package"


def _broken(provider: str, why: str) -> str:
    return (
        f"The model provider {provider!r} of the plug-in {_package(provider)} cannot be used, {why}: update or "
        "uninstall the plug-in, or choose another provider."
    )


def _unknown(provider: str) -> str:
    import difflib

    known = providers()
    near = difflib.get_close_matches(provider, known, 1)
    hint = f", did you mean {near[0]!r}? The" if near else ": the"
    return f"There is no model provider {provider!r}{hint} providers are {', '.join(known)}."


def _no_provider(spec: str) -> str:
    family = next((provider for start, provider in _FAMILIES.items() if spec.lower().startswith(start)), "anthropic")
    example = f"{family}:{spec}" if spec else "anthropic:claude-sonnet-4-5"
    return (
        f"The model {spec!r} names no provider: write PROVIDER:NAME, for example {example} "
        f"(providers: {', '.join(providers())})."
    )
