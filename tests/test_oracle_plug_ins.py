"""Backends of other packages: entry points of the group `hapax.models`."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import pytest

from hapax.grammar.errors import HapaxError
from hapax.llm_oracle.registry import list_models, open_model, open_models, price_table

ROOT = Path(__file__).parents[1]
EXAMPLE = ROOT / "docs" / "examples" / "hapax-echo"


def install(source: Path, target: Path, tmp_path: Path) -> None:
    """Install a package from source into a folder, without network."""
    copy = shutil.copytree(source, tmp_path / "source")  # building writes beside the sources
    if find_spec("pip") and find_spec("setuptools"):
        options = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--target", str(target)]
        subprocess.run([sys.executable, "-m", "pip", "install", *options, str(copy)], check=True, timeout=120)
        return
    project = tomllib.loads((copy / "pyproject.toml").read_text("utf-8"))["project"]
    (group, points) = next(iter(project["entry-points"].items()))
    provide(target, project["name"], dict(points), group)
    shutil.copy(copy / "hapax_echo.py", target)


def provide(target: Path, name: str, points: dict[str, str], group: str = "hapax.models") -> None:
    """Write the metadata of an installed package with these entry points."""
    folder = target / f"{name.replace('-', '_')}-1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    lines = [f"{point} = {value}" for point, value in points.items()]
    (folder / "entry_points.txt").write_text("\n".join([f"[{group}]", *lines, ""]))


def run(target: Path, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(target)}
    command = [sys.executable, ROOT / "cli.py", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


def test_the_example_package_installs_and_searches(tmp_path: Path) -> None:
    """The package of docs/models.md, installed, is listed by `hapax models` and answers a search in all roles."""
    target = tmp_path / "site"
    install(EXAMPLE, target, tmp_path)
    rules = tmp_path / "currency.rules"
    rules.write_text(
        'oracle uses_currency(Country, Currency): "[1] uses [2]" / "[1] does not use [2]" / "does [1] use [2]?"\n'
        'given lives_in(Person, Country): "[1] lives in [2]" / "[1] does not live in [2]" / "does [1] live in [2]?"\n'
        'given can_pay_with(Person, Currency): "[1] can pay with [2]" / "[1] cannot pay with [2]" / "can [1]?"\n'
        "@name currency\n"
        "lives_in(Person X, Country A) & uses_currency(Country A, Currency B) -> can_pay_with(Person X, Currency B)\n"
    )

    listed = run(target, "models", "--json")
    searched = run(target, "search", rules, "-m", "echo:krone,franc", "--db", tmp_path / "kb.db", "--beam", "2")

    assert listed.returncode == 0, listed.stderr
    (echo,) = [listing for listing in json.loads(listed.stdout) if listing["name"].startswith("echo")]
    assert echo["name"] == "echo:VALUE,..."
    assert echo["available"]
    assert "hapax-echo" in echo["abilities"]
    assert searched.returncode == 0, searched.stderr
    assert "krone" in searched.stdout


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder on the path of this process, for packages."""
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_a_plug_in_is_opened_once_and_priced(site: Path) -> None:
    """One string opens one model for all its roles; the backend's price counts, since it has none of its own."""
    (site / "example_models.py").write_text((EXAMPLE / "hapax_echo.py").read_text("utf-8"))
    provide(site, "example", {"parrot": "example_models:BACKEND"})

    models = open_models("parrot:a,b", evaluator="parrot:a,b")

    assert models.knowledge is models.critic is models.evaluator
    with pytest.raises(HapaxError, match=r"simulated\[:SEED\], parrot:VALUE"):
        open_model("parrot", "critic")
    assert price_table(models) == {}  # its models are named echo/..., a name that no backend has


@pytest.mark.parametrize(
    ("module", "fault"),
    [
        ("import no_such_module_anywhere", "ModuleNotFoundError: No module named 'no_such_module_anywhere'"),
        ("BACKEND = 7", "is of type int, not a hapax.llm_oracle.backend.Backend"),
        ("from hapax.llm_oracle.backend import Backend\nBACKEND = Backend(open=id, roles=('judge',), abilities='')", "roles"),
        ("", "AttributeError"),
    ],
)  # fmt: skip
def test_a_faulty_plug_in_is_named(site: Path, module: str, fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the package and the remedy; `hapax models` shows it and goes on; other models are not affected."""
    monkeypatch.delitem(sys.modules, "faulty_models", raising=False)
    (site / "faulty_models.py").write_text(module)
    provide(site, "broken-package", {"faulty": "faulty_models:BACKEND"})

    with pytest.raises(HapaxError, match=r"^broken-package: .*pip uninstall broken-package") as error:
        open_model("faulty:x", "critic")
    listing = list_models()[-1]

    assert fault in str(error.value)
    assert (listing.name, listing.available, listing.remedy) == ("faulty", False, str(error.value))
    assert open_model("frequency", "evaluator").identity.name == "frequency"
    monkeypatch.delitem(sys.modules, "faulty_models", raising=False)


def test_a_plug_in_cannot_take_a_name(site: Path) -> None:
    """A built-in backend keeps its name, and of two plug-ins with one name neither is chosen; both are told."""
    provide(site, "first", {"frequency": "nowhere:BACKEND", "twice": "nowhere:BACKEND"})
    provide(site, "second", {"twice": "elsewhere:BACKEND"})

    remedies = {listing.name: listing.remedy for listing in list_models() if not listing.available}

    assert open_model("frequency", "evaluator").identity.name == "frequency"
    assert remedies["frequency"].startswith("first: the model backend `frequency` has the name of one that is built in")
    with pytest.raises(HapaxError, match=r"first and second: these packages each provide a model backend `twice`"):
        open_model("twice:x", "critic")


def test_a_plug_in_must_play_its_roles(site: Path) -> None:
    """A model without the method of its role is refused when it is opened."""
    (site / "odd_models.py").write_text(
        "from hapax.llm_oracle.backend import ALL_ROLES, Backend\n"
        "BACKEND = Backend(open=lambda request: request, roles=ALL_ROLES, abilities='nothing')\n"
    )
    provide(site, "odd", {"odd": "odd_models:BACKEND"})

    with pytest.raises(HapaxError, match=r"odd opened as ModelRequest, which is not a Critic"):
        open_model("odd", "critic")
    sys.modules.pop("odd_models")


def test_entry_points_are_read_only_when_needed() -> None:
    """Opening a built-in model finds no plug-ins, and importing the registry does not even load the means to."""
    code = (
        "import sys; from hapax.llm_oracle import registry;"
        "assert 'importlib.metadata' not in sys.modules;"
        "registry._plug_ins = None; registry.open_model('frequency', 'evaluator')"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
