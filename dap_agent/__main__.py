"""`python -m dap_agent` is the same as `dap-agent`."""

import sys

from dap_agent.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
