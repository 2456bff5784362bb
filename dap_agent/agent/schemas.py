"""Writes `schemas/tools.schema.json` anew from the tools' definitions: `python -m dap_agent.agent.schemas FILE`."""

import json
import sys
from pathlib import Path

from dap_agent.agent.tools import schema_document
from dap_agent.agent.toolset import tools


def tools_schema() -> str:
    """The text of `schemas/tools.schema.json`."""
    return json.dumps(schema_document(tools()), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(tools_schema(), encoding="utf-8")
