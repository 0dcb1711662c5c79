#!/usr/bin/env bash
# Write requirements.lock: the versions of everything that set-up, tests and CI install, resolved anew from the ranges
# in pyproject.toml. Takes some minutes and a C++ compiler, because llama-cpp-python is built.
set -euo pipefail
cd "$(dirname "$0")/.."
environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
python3 -m venv "$environment"
pip() { "$environment/bin/python" -m pip --disable-pip-version-check --quiet "$@"; }

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
{
    echo "# Versions of everything that set-up, tests and CI install. Written by \`make lock\`; do not edit."
    pip freeze --all --exclude pip | sed 's/+cpu$//'
} > requirements.lock
