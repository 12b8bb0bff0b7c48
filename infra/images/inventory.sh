#!/bin/sh
# What an environment is made of: a CycloneDX bill of materials and a list of licences, for /usr/share/doc/march.
# Runs in a build stage: inventory.sh PYTHON FOLDER
set -eu
python=$1
folder=$2
mkdir -p "$folder"
cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible \
    --output-file "$folder/sbom.cdx.json" "$python"
pip-licenses --python "$python" --format markdown --with-urls --output-file "$folder/licences.md"
