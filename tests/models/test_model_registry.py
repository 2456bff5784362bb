"""Names of models, plug-ins, prices, and what importing costs."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dap_agent.errors import DapAgentError
from dap_agent.models import prices, registry
from dap_agent.models.base import Backend, ModelError, Usage


@pytest.mark.parametrize(
    ("spec", "parts"),
    [
        ("anthropic:claude-sonnet-4-5", ("anthropic", "claude-sonnet-4-5")),
        (" openai:ft:gpt-4.1:me ", ("openai", "ft:gpt-4.1:me")),
        ("local:http://127.0.0.1:8080/v1#m", ("local", "http://127.0.0.1:8080/v1#m")),
        ("scripted:C:/x.json", ("scripted", "C:/x.json")),
    ],
)
def test_split(spec: str, parts: tuple[str, str]) -> None:
    assert registry.split(spec) == parts


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ("claude-opus-5-5", "anthropic:claude-opus-5-5"),
        ("gpt-5", "openai:gpt-5"),
        ("http://127.0.0.1:8080/v1", "local:http://127.0.0.1:8080/v1"),
        ("", "anthropic:claude-sonnet-4-5"),
        ("anthropic:", "is incomplete"),
        (":x", "is incomplete"),
        ("antropic:x", "did you mean 'anthropic'?"),
        ("nothing-like-it:x", "There is no model provider 'nothing-like-it'"),
    ],
)
def test_names_that_are_wrong(spec: str, words: str) -> None:
    with pytest.raises(DapAgentError) as caught:
        registry.create(spec)
    assert words in caught.value.message
    assert "anthropic, local, openai, scripted" in caught.value.message


def test_backends_fit_the_protocol(kit: Any, tmp_path: Path) -> None:
    kit.serve()
    script = tmp_path / "s.json"
    script.write_text('{"turns": []}', encoding="utf-8")
    for spec in ("anthropic:m", "openai:m", "local:8080#m", f"scripted:{script}"):
        backend = registry.create(spec, timeout=5, max_retries=1)
        assert isinstance(backend, Backend)
        assert backend.name == spec
        assert backend.on_retry is None  # type: ignore[attr-defined]


PLUGINS = {
    "good": "def create(name, **options):\n    return Good(name, options)\n",
    "raises_at_import": "raise RuntimeError('no compiler')\n",
    "raises": "def create(name, **options):\n    raise KeyError('token')\n",
    "speaks": (
        "from dap_agent.models.base import ModelError\n"
        "def create(name, **options):\n    raise ModelError('Set MY_KEY.', 'missing-key')\n"
    ),
    "no_backend": "def create(name, **options):\n    return 5\n",
    "no_function": "create = 5\n",
    "misses": "",
    "anthropic": "raise RuntimeError('must not be asked')\n",
}
GOOD = """
class Good:
    def __init__(self, name, options):
        self.name = 'good:' + name
        self.options = options
    async def complete(self, **options):
        ...
    def cost(self, usage):
        return None
    async def aclose(self):
        ...
"""


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Installed distributions with backends of their own, good and bad."""
    for name, code in PLUGINS.items():
        module = f"dap_agent_test_plugin_{name}"
        (tmp_path / f"{module}.py").write_text((GOOD if name == "good" else "") + code, encoding="utf-8")
        metadata = tmp_path / f"plugin_{name}-1.0.dist-info"
        metadata.mkdir()
        (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: plugin-{name}\nVersion: 1.0\n")
        (metadata / "entry_points.txt").write_text(f"[dap_agent.backends]\n{name} = {module}:create\n")
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("plugins")
class TestPlugins:
    def test_are_listed_with_ours(self) -> None:
        assert {"anthropic", "local", "openai", "scripted", "good", "raises"} <= set(registry.providers())

    def test_a_good_one(self) -> None:
        backend: Any = registry.create("good:model", timeout=7, max_retries=2)
        assert backend.name == "good:model"
        assert backend.options == {"timeout": 7, "max_retries": 2}

    @pytest.mark.parametrize(
        ("name", "words"),
        [
            ("raises_at_import", "importing it raised RuntimeError: no compiler"),
            ("raises", "it raised KeyError: 'token'"),
            ("no_backend", "create() returned int, which is no Backend"),
            ("no_function", "is no function"),
            ("misses", "importing it raised AttributeError"),
        ],
    )
    def test_a_broken_one_says_so_and_breaks_no_other(self, name: str, words: str) -> None:
        with pytest.raises(DapAgentError) as caught:
            registry.create(f"{name}:model")
        assert words in caught.value.message
        assert f"plugin-{name}" in caught.value.message
        assert registry.create("good:model").name == "good:model"

    def test_its_own_words_are_kept(self) -> None:
        with pytest.raises(ModelError, match=r"^Set MY_KEY\.$"):
            registry.create("speaks:model")

    def test_ours_cannot_be_replaced(self) -> None:
        with pytest.raises(ModelError, match="no key for Anthropic"):
            registry.create("anthropic:m")


class TestPrices:
    def test_cached_and_written_tokens_have_their_own_price(self) -> None:
        usage = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=800_000, cache_write_tokens=100_000)
        assert prices.cost("claude-sonnet-4-5", usage) == pytest.approx(0.1 * 3 + 0.8 * 0.3 + 0.1 * 3.75 + 0.1 * 15)

    @pytest.mark.parametrize("model", ["claude-sonnet-4-5-20250929", "claude-sonnet-4-5", "gpt-5-2025-08-07"])
    def test_dated_names(self, model: str) -> None:
        assert prices.cost(model, Usage(1)) is not None

    @pytest.mark.parametrize("model", ["claude-unknown", "gpt-5-mini-unknown", "", "x-20250929"])
    def test_unknown(self, model: str) -> None:
        assert prices.cost(model, Usage(1)) is None

    def test_the_table_is_plausible(self) -> None:
        for model, (per_input, per_output, per_cached) in prices._TABLE.items():
            assert 0 < per_cached < per_input < per_output <= 100, model

    @pytest.mark.parametrize(("text", "dollars"), [("2,4", 2 + 4), (" 2, 4, 1", 1 + 4)])
    def test_from_the_environment(self, kit: Any, text: str, dollars: float) -> None:
        kit.monkeypatch.setenv("DAP_AGENT_PRICE", text)
        assert prices.cost("whatever", Usage(1_000_000, 1_000_000, 1_000_000)) == pytest.approx(dollars)

    @pytest.mark.parametrize("text", ["x", "1", "1,2,3,4", "1,-2", "1,nan", "1,inf", "1;2"])
    def test_nonsense_in_the_environment(self, kit: Any, text: str) -> None:
        kit.monkeypatch.setenv("DAP_AGENT_PRICE", text)
        with pytest.raises(ModelError, match="DAP_AGENT_PRICE"):
            prices.cost("m", Usage(1))

    @pytest.mark.parametrize("spec", ["anthropic:m", "openai:m"])
    def test_nonsense_is_told_before_the_first_request(self, kit: Any, spec: str) -> None:
        kit.serve()
        kit.monkeypatch.setenv("DAP_AGENT_PRICE", "cheap")
        with pytest.raises(ModelError, match="DAP_AGENT_PRICE is 'cheap'"):
            registry.create(spec)

    def test_backends_know_their_price(self, kit: Any) -> None:
        kit.serve()
        million = Usage(1_000_000)
        assert registry.create("anthropic:claude-opus-5-5").cost(million) == pytest.approx(4)
        assert registry.create("openai:gpt-5-mini").cost(million) == pytest.approx(0.25)
        assert registry.create("openai:my-own").cost(million) is None


HEAVY = ["anthropic", "openai", "httpx2", "httpx", "pydantic", "jsonschema", "rich"]


@pytest.mark.parametrize(
    "code",
    [
        "import dap_agent.models, dap_agent.models.registry",
        "from dap_agent.models import registry; registry.create('local:8080#m')",
        "from dap_agent.models import registry; registry.create('anthropic:m'); registry.create('openai:m')",
        "import dap_agent.testing",
    ],
)
def test_no_sdk_is_imported_before_it_is_needed(kit: Any, code: str) -> None:
    kit.serve()
    check = f"import sys; {code}; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", check], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"


def test_works_without_installed_metadata(kit: Any) -> None:
    import importlib.metadata

    kit.monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: [])
    assert registry.providers() == ["anthropic", "local", "openai", "scripted"]
    assert registry.create("local:8080#m").name == "local:8080#m"
