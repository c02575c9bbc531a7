#!/bin/sh
# The list of what everything is made of, in CycloneDX's format.
set -eu
"$venv/bin/python" tools/release/sbom.py "$out/libsplit-$version.cdx.json"
