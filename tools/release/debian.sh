#!/bin/sh
# The Debian packages, which tools/deb.sh installs, uses and removes again.
set -eu
tools/deb.sh "$out"
