"""Language models behind one protocol, `Backend`: `registry.create("PROVIDER:NAME")` gives one.

The vendors' SDKs are imported when a backend is used, never by importing this package.
"""

from dap_agent.models.base import (
    AssistantMessage,
    Backend,
    Call,
    Message,
    ModelError,
    Retry,
    ToolResult,
    ToolResults,
    ToolSpec,
    Turn,
    Usage,
    UserMessage,
)

__all__ = [
    "AssistantMessage",
    "Backend",
    "Call",
    "Message",
    "ModelError",
    "Retry",
    "ToolResult",
    "ToolResults",
    "ToolSpec",
    "Turn",
    "Usage",
    "UserMessage",
]
