"""README.md: its code runs against a server; the image has the files that it needs."""

import asyncio
import re

import pytest
from toy_service import PROJECT, load_pipeline, serve

PAGE = (PROJECT / "README.md").read_text("utf-8")


@pytest.mark.anyio
async def test_clients_are_answered(capsys):
    names = {}
    async with serve(load_pipeline()) as (_, port):
        for code in re.findall(r"^```python\n(.*?)^```", PAGE, re.M | re.S):
            await asyncio.to_thread(exec, code.replace(":8000", f":{port}"), names)
        names["server"].close()
    assert "{'text': 'bank', 'start': 14, 'end': 18}" in capsys.readouterr().out
    assert names["mean"].shape == (8,)


def test_the_image_has_the_files_of_the_server():
    lines = (PROJECT / "Dockerfile").read_text("utf-8")
    for name in re.findall(r"^COPY (\w+)", lines, flags=re.MULTILINE):
        assert f"!{name}\n" in (PROJECT / ".dockerignore").read_text("utf-8")
