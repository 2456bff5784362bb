"""Where our options end and the program begins."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dap_agent.cli.command_line import Target, UsageError, split
from dap_agent.cli.options import options_of

WITH_VALUE = frozenset(option.flag for option in options_of("run") if not option.is_switch)
SWITCHES = [option.flag for option in options_of("run") if option.is_switch]

words = st.text(alphabet="abcXYZ019-=._/ é", max_size=12)
#: Words that look like ours, to be found after the program.
lookalikes = st.sampled_from([*WITH_VALUE, *SWITCHES, "--", "-m", "-h", "--help", "-", "-c", "--json=-", "run"])
program_args = st.lists(words | lookalikes, max_size=8)
ours = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(sorted(WITH_VALUE)), words),
        st.tuples(st.sampled_from(SWITCHES)),
        st.builds(lambda flag, value: (f"{flag}={value}",), st.sampled_from(sorted(WITH_VALUE)), words),
    ),
    max_size=5,
).map(lambda groups: [word for group in groups for word in group])
names = st.text(alphabet="abcXYZ019._/ é=", min_size=1, max_size=12)


@given(ours, names, program_args)
def test_everything_after_the_program_is_the_programs(before: list[str], name: str, args: list[str]) -> None:
    assert split([*before, name, *args], WITH_VALUE) == (before, Target(name, False, tuple(args)))


@given(ours, names, program_args)
def test_everything_after_a_module_is_the_modules(before: list[str], name: str, args: list[str]) -> None:
    assert split([*before, "-m", name, *args], WITH_VALUE) == (before, Target(name, True, tuple(args)))
    assert split([*before, f"-m{name}", *args], WITH_VALUE) == (before, Target(name, True, tuple(args)))


@given(ours, words | lookalikes, program_args)
def test_after_two_dashes_any_word_is_the_program(before: list[str], name: str, args: list[str]) -> None:
    assert split([*before, "--", name, *args], WITH_VALUE) == (before, Target(name, False, tuple(args)))


@given(ours)
def test_without_a_program_all_is_ours(before: list[str]) -> None:
    assert split(before, WITH_VALUE) == (before, None)


def test_an_unknown_option_stays_for_the_parser_to_refuse() -> None:
    assert split(["--modle", "x", "y"], WITH_VALUE) == (["--modle"], Target("x", False, ("y",)))


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (["-m"], "name of a module"),
        (["--"], "no program after --"),
        (["-"], "standard input"),
        (["-c", "print()"], "no -c"),
        (["--json", "-", "-"], "standard input"),
    ],
)
def test_what_cannot_be_run_is_told(tokens: list[str], words: str) -> None:
    with pytest.raises(UsageError, match=words):
        split(tokens, WITH_VALUE)
