#!/usr/bin/env bash
# Write requirements.lock: the versions of everything that set-up, tests and CI install, resolved anew from the ranges
# in pyproject.toml, with the hashes of their files. Takes some minutes and a C++ compiler, because llama-cpp-python is
# built. With the argument `hashes`, keep the versions and write their hashes anew.
set -euo pipefail
cd "$(dirname "$0")/.."
environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
python3 -m venv "$environment"
pip() { "$environment/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }

resolve() {  # the versions that fit the ranges of pyproject.toml
    # The CPU build of torch, as in set_up.sh.
    pip install 'torch==2.13.0+cpu' 2>/dev/null || pip install 'torch==2.13.0'
    "$environment/bin/python" - > "$environment/all.txt" <<'PYTHON'
import tomllib

with open("pyproject.toml", "rb") as file:
    project = tomllib.load(file)
for group in (project["build-system"]["requires"], project["project"]["dependencies"], project["dependency-groups"]["dev"]):
    print(*group, sep="\n")
for requirements in project["project"]["optional-dependencies"].values():
    print(*requirements, sep="\n")
PYTHON
    pip install --requirement "$environment/all.txt"
    pip freeze --all --exclude pip | sed 's/+cpu$//'
}

hashes() {  # $@: options of uv; pins come from the standard input
    "$environment/bin/uv" --quiet pip compile - --no-deps --generate-hashes --no-annotate --no-header "$@"
}

hashes_of_cpu_torch() {  # $1: the pin of torch. PyTorch's own index lists all its CPU builds; else the one found by pip
    echo "$1+cpu" | hashes --default-index https://download.pytorch.org/whl/cpu 2>/dev/null | grep -- '--hash' && return
    pip download --no-deps --dest "$environment/torch" "$1+cpu" 2>/dev/null || return 0
    sha256sum "$environment"/torch/*.whl | sed 's/ .*//; s/^/    --hash=sha256:/'
}

if [ "${1:-}" = hashes ]; then
    sed -n 's/^\([^ #]*==[^ ]*\).*/\1/p' requirements.lock > "$environment/pins.txt"
else
    resolve > "$environment/pins.txt"
fi
pip install uv
hashes < "$environment/pins.txt" > "$environment/hashed.txt"
# The builds of torch for processors are not on PyPI: their hashes go behind those of PyPI's files.
torch=$(grep '^torch==' "$environment/pins.txt")
hashes_of_cpu_torch "$torch" | sed 's/ \\$//' | sort -u > "$environment/cpu.txt"
{
    echo "# Versions and hashes of everything that set-up, tests and CI install. Written by \`make lock\`; do not edit."
    "$environment/bin/python" - "$torch" "$environment/hashed.txt" "$environment/cpu.txt" <<'PYTHON'
import sys
from pathlib import Path

pin, hashed, cpu = sys.argv[1], Path(sys.argv[2]).read_text(), Path(sys.argv[3]).read_text().splitlines()
print(hashed.replace(f"{pin} \\\n", "".join(f"{line} \\\n" for line in [pin, *cpu])), end="")
PYTHON
} > requirements.lock
