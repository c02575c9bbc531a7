#!/bin/sh
# Writes directory $1 into directory $2, as NAME.tar.gz, where NAME is the directory's own name and the first part of all
# names in the archive. Equal contents give equal bytes: nothing depends on the machine, the user, the umask or the time
# zone, and all times are SOURCE_DATE_EPOCH.
set -eu
name=$(basename "$1")
LC_ALL=C tar --create --directory "$(dirname "$1")" --format=gnu --sort=name --mtime="@$SOURCE_DATE_EPOCH" \
    --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX "$name" | gzip --no-name --best >"$2/$name.tar.gz"
