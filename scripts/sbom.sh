#!/usr/bin/env bash
# Write build/hapax.cdx.json: what is installed in .venv as a CycloneDX bill of materials, with licences and with which
# package needs which. The same packages give the same bytes.
set -euo pipefail
cd "$(dirname "$0")/.."
environment=$(mktemp -d)
trap 'rm -rf "$environment"' EXIT
python3 -m venv "$environment"
"$environment/bin/python" -m pip --disable-pip-version-check --quiet install 'cyclonedx-bom>=7,<8'
mkdir -p build
"$environment/bin/cyclonedx-py" environment --pyproject pyproject.toml --mc-type application --output-reproducible \
    --output-format JSON --output-file build/hapax.cdx.json .venv/bin/python
echo "written: build/hapax.cdx.json"
