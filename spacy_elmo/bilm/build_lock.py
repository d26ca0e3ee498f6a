"""`BUILD_LOCK`: for all that is built once, such as weights that are loaded or laid out.

What is done under it is short or rare, and whoever needs it stays picklable. A fork waits for it
(`inference.threads`): a child must not get something half made.
"""

import threading

# A lock of C code: `with` cannot be interrupted between taking it and knowing it, as it can be
# with a lock written in Python.
BUILD_LOCK = threading.RLock()
