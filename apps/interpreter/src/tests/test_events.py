import json
import unittest

import paths  # noqa: F401
from events import encode, result


class Events(unittest.TestCase):
    def test_lines_are_ascii(self):
        line = encode({"text": "é 😀 \n"})
        self.assertEqual(line.count(b"\n"), 1)
        self.assertTrue(line.isascii())
        self.assertEqual(json.loads(line), {"text": "é 😀 \n"})

    def test_media_types_become_fields(self):
        bundle = {"text/plain": "'abc'", "image/png": "iVBO", "application/x-own": 1}
        self.assertEqual(
            result(bundle, is_main=True),
            {
                "type": "result",
                "is_main_result": True,
                "text": "abc",
                "png": "iVBO",
                "extra": {"application/x-own": 1},
            },
        )

    def test_only_outer_quotes_go(self):
        for text, expected in (("'it'", "it"), ('"a\'b"', "a'b"), ("'", "'"), ("'a\"", "'a\"")):
            self.assertEqual(result({"text/plain": text}, True)["text"], expected)
