import runpy
import sys

import debugpy

print(debugpy.listen(("127.0.0.1", 0))[1], flush=True)
debugpy.wait_for_client()
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
