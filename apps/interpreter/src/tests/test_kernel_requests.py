import subprocess
import unittest

import paths  # noqa: F401
from kernel_requests import encode_shell


class ShellRequests(unittest.TestCase):
    def test_values_survive_quoting_and_names_are_checked(self):
        program = encode_shell(
            {
                "code": "echo \"$A\" 'b'",
                "variables": {"A": "it's $HOME\n`x`", "B-C; touch /tmp/x": "1"},
                "sandbox_variables": {},
            }
        )
        self.assertTrue(program.endswith(b"\0"))
        script = program[:-1].decode() + '\nprintf "%s|%s|%s" "$A" "$atoll_code" "$atoll_undo"'
        said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
        self.assertEqual(said.stdout, "it's $HOME\n`x`|echo \"$A\" 'b'|unset A\n")
        self.assertNotIn("touch", script)
