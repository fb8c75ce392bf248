"""A web server on this machine for as long as a test needs one."""

import http.server
import threading
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    """Serve with that handler and give the address; its requests may wait for `self.server.released`."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        running.released = threading.Event()  # type: ignore[attr-defined]
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}"
        finally:
            running.released.set()  # type: ignore[attr-defined]
            running.shutdown()
            thread.join()
