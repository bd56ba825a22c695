"""The model file, and files that are written completely or not at all.

`write` and `read` store a document of plain values and its arrays in one checked archive; the layers above define their
meaning. `atomic_writer` and `check_writable` serve every other output file too.
"""

from softcount.files.archive import FORMAT, read, write
from softcount.files.atomic import atomic_writer, check_writable

__all__ = ["FORMAT", "atomic_writer", "check_writable", "read", "write"]
