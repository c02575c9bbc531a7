"""Writes a directory into a zip archive, whose bytes depend on names and contents and on SOURCE_DATE_EPOCH alone.

usage: zip.py DIRECTORY OUTPUT
"""

import os
import sys
import time
import zipfile
from pathlib import Path

directory, output = map(Path, sys.argv[1:])
date = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
with zipfile.ZipFile(output, "w") as archive:
    for file in sorted(path for path in directory.rglob("*") if path.is_file()):
        member = zipfile.ZipInfo(file.relative_to(directory.parent).as_posix(), date)
        member.external_attr = 0o644 << 16
        archive.writestr(member, file.read_bytes(), zipfile.ZIP_DEFLATED, 9)
