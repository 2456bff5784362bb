"""What the exit status of `dap-agent` says.

A program that ends without our doing keeps its own status: `run` ends with the same number, or by the same signal.
The numbers below are ours; they stay clear of what Python (1, 2), pytest (0 to 5) and shells (126 and up) use.
"""

#: Bad options or settings (`EX_USAGE` of sysexits.h).
USAGE = 64
#: dap-agent itself could not work, for example because the debug adapter did not start (`EX_SOFTWARE`).
UNABLE = 70
#: An uncaught exception (or a death by signal) was reported; there is no fix.
CRASHED = 80
#: A fix was proposed and not applied.
PROPOSED = 81
#: A fix was applied, and the program ran again without an uncaught exception and ended with status 0.
FIXED = 82
#: A fix was applied, and the program failed when it ran again.
STILL_FAILING = 83
#: A fix was applied to the files; nothing was run again: an attached program, or a server that went on with it.
APPLIED = 84

#: Each of our statuses with its meaning, as `--help` and the README show them.
MEANINGS: dict[int, str] = {
    USAGE: "wrong options or settings",
    UNABLE: "dap-agent itself could not do its work",
    CRASHED: "the program crashed and there is no fix",
    PROPOSED: "a fix was proposed and not applied",
    FIXED: "a fix was applied and the program then ran through with status 0",
    STILL_FAILING: "a fix was applied and the program then failed again",
    APPLIED: "a fix was applied and nothing was run again (attach, or a server that went on with it)",
}
