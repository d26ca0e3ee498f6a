"""README.md: its code runs against a server; the image has the files that it needs."""

import asyncio
import re
import threading
import time

from toy_service import PROJECT, Limits, create_app, load_pipeline, make_server, open_socket

PAGE = (PROJECT / "README.md").read_text("utf-8")


def test_clients_are_answered(capsys):
    server = make_server(create_app(load_pipeline(), Limits()), Limits(), log_level="error")
    opened = open_socket("127.0.0.1", 0, 10)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve(sockets=[opened])))
    thread.start()
    try:
        while not server.started:
            time.sleep(0.01)
        names = {}
        for code in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
            exec(code.replace(":8000", f":{opened.getsockname()[1]}"), names)
        names["server"].close()
    finally:
        server.should_exit = True
        thread.join()
    assert "{'text': 'bank', 'start': 14, 'end': 18}" in capsys.readouterr().out
    assert names["mean"].shape == (8,)


def test_the_image_has_the_files_of_the_server():
    lines = (PROJECT / "Dockerfile").read_text("utf-8")
    for name in re.findall(r"^COPY (\w+)", lines, flags=re.MULTILINE):
        assert f"!{name}\n" in (PROJECT / ".dockerignore").read_text("utf-8")
