"""Text of any encoding as a stream of UTF-8, in the memory of a buffer."""

from __future__ import annotations

import codecs
import io
from typing import Any, BinaryIO, cast

BUFFER = 1 << 18
_FAULT = "\udcff"
"""Stands where bytes are no text: UTF-8 has none for it, and whoever reads it finds its place."""


def as_utf8(stream: BinaryIO, encoding: str) -> BinaryIO:
    """The text of a stream in UTF-8, with bytes that are not UTF-8 where the stream is at fault."""
    if codecs.lookup(encoding).name == "utf-8":
        return stream
    return cast(BinaryIO, io.BufferedReader(_Transcoded(stream, encoding), BUFFER))


def _faulty(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeDecodeError)
    return _FAULT, error.end


codecs.register_error("asset_svm.fault", _faulty)


class _Transcoded(io.RawIOBase):
    def __init__(self, stream: BinaryIO, encoding: str):
        self.stream, self.held = stream, memoryview(b"")
        self.decoder = codecs.getincrementaldecoder(encoding)("asset_svm.fault")
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self.held and not self.ended:
            part = self.stream.read(BUFFER)
            self.ended = not part
            text = self.decoder.decode(part, final=self.ended)
            self.held = memoryview(text.encode("utf-8", "surrogatepass"))
        size = min(len(buffer), len(self.held))
        buffer[:size], self.held = self.held[:size], self.held[size:]
        return size
