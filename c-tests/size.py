"""The shared library, stripped as it is installed, is no larger than its budget.

usage: size.py LIBRARY BYTES
"""

import os
import sys

library, budget = sys.argv[1:]
size = os.path.getsize(library)

print(f"{size:,} bytes of {int(budget):,}")
if size > int(budget):
    sys.exit("too large: find what has grown, or raise the budget in c-tests/CMakeLists.txt")
