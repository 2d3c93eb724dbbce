import os
import unittest

import paths  # noqa: F401
from kernel_output import ControlLines, DecodedStream


def open_pipe():
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    return reader, writer


class Output(unittest.TestCase):
    def test_split_characters_are_joined(self):
        reader, writer = open_pipe()
        stream = DecodedStream("stdout", reader)
        os.write(writer, "é".encode()[:1])
        self.assertEqual(stream.read(), "")
        os.write(writer, "é".encode()[1:])
        self.assertEqual(stream.read(), "é")

    def test_bytes_that_are_no_text_are_replaced(self):
        reader, writer = open_pipe()
        stream = DecodedStream("stdout", reader)
        os.write(writer, b"a\xff\xc3")
        self.assertEqual(stream.read() + stream.finish(), "a\ufffd\ufffd")

    def test_lines_may_come_in_parts_and_foreign_lines_are_dropped(self):
        reader, writer = open_pipe()
        lines = ControlLines(reader)
        os.write(writer, b'not json\n[1]\n{"type":"re')
        self.assertEqual(lines.read(), [])
        os.write(writer, b'ady"}\n')
        self.assertEqual(lines.read(), [{"type": "ready"}])
        os.close(writer)
        lines.read()
        self.assertTrue(lines.is_closed)
