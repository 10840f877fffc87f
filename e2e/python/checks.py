"""Reports what is checked, one line each, as the Go test that starts these programs reads it (TAP)."""

import sys
import threading
import traceback

_results = []
_lock = threading.Lock()


def check(name, body):
    """Runs body and reports it under the name. Several may run at once."""
    try:
        body()
        line = f"ok {name}"
    except Exception:
        line = f"not ok {name}: {traceback.format_exc()}"
    with _lock:
        _results.append(line.startswith("ok"))
        print(line, flush=True)


def same(got, want):
    assert got == want, f"got {got}, want {want}"


def done():
    """Ends the program."""
    print(f"1..{len(_results)}")
    sys.exit(0 if all(_results) else 1)
