#!/usr/bin/env bash
# Build the wheel from what git tracks at HEAD, into build/wheel. Each build of one commit has the same bytes: the times
# and modes of its files come from the commit, whatever the checkout, the clock and the umask. PYTHON: the Python that
# builds it, with setuptools; default: that of .venv.
set -euo pipefail
cd "$(dirname "$0")/.."
source=$(mktemp -d)
trap 'rm -rf "$source"' EXIT
git archive HEAD | tar -x -C "$source"
umask 022
chmod -R u=rwX,go=rX "$source"
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
export SOURCE_DATE_EPOCH
"${PYTHON:-.venv/bin/python}" -m pip --disable-pip-version-check --quiet wheel --no-deps --no-build-isolation --wheel-dir build/wheel "$source"
sha256sum build/wheel/*.whl
