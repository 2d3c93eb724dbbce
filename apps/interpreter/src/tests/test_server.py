"""Runs the server with its real kernels."""

import json
import re
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request
from http.client import HTTPConnection
from pathlib import Path

from paths import ROOT

PORT = 49998


def call(method, path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(f"http://127.0.0.1:{PORT}{path}", data, method=method)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read().decode("ascii")


def execute(code, **options):
    lines = call("POST", "/execute", {"code": code, **options}).splitlines()
    return [event for event in map(json.loads, lines) if event["type"] != "keepalive"]


def of_type(events, kind):
    return [event for event in events if event["type"] == kind]


def text_of(events, kind="stdout"):
    return "".join(event["text"] for event in of_type(events, kind))


class Server(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        command = [sys.executable, str(ROOT / "server" / "main.py"), "--address", "127.0.0.1"]
        cls.server = subprocess.Popen([*command, "--port", str(PORT), "--cwd", "/tmp"])
        while True:
            try:
                call("GET", "/health")
                return
            except OSError:
                if cls.server.poll() is not None:
                    raise
                time.sleep(0.1)

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait(30)

    def test_state_stays_and_the_last_value_is_the_result(self):
        execute("x = 1")
        events = execute("x += 1\nprint('printed')\nx")
        self.assertEqual(events[0]["type"], "number_of_executions")
        self.assertEqual(text_of(events), "printed\n")
        self.assertEqual(of_type(events, "result")[0]["text"], "2")
        self.assertEqual(events[-1], {"type": "end_of_execution"})

    def test_errors(self):
        error = of_type(execute("1 / 0"), "error")[0]
        self.assertEqual((error["name"], error["value"]), ("ZeroDivisionError", "division by zero"))
        self.assertRegex(error["traceback"], r"----> 1 1 / 0")

    def test_variables_are_put_back(self):
        for language, code in (
            ("python", "import os; print(os.environ.get('ONCE', ''))"),
            ("bash", 'echo "$ONCE"'),
        ):
            first = execute(code, language=language, env_vars={"ONCE": "it's"})
            self.assertEqual(text_of(first), "it's\n", language)
            self.assertEqual(text_of(execute(code, language=language)), "\n", language)

    def test_bash_keeps_its_state_and_reports_the_status(self):
        execute("a=5; cd /usr", language="bash")
        events = execute('echo "$a $PWD"; false', language="bash")
        self.assertEqual(text_of(events), "5 /usr\n")
        self.assertEqual(of_type(events, "error")[0]["value"], "1")

    def test_contexts(self):
        context = json.loads(call("POST", "/contexts", {"cwd": "/usr"}))
        self.assertEqual((context["language"], context["cwd"]), ("python", "/usr"))
        events = execute("import os; os.getcwd()", context_id=context["id"])
        self.assertEqual(of_type(events, "result")[0]["text"], "/usr")
        self.assertIn(context, json.loads(call("GET", "/contexts")))
        call("POST", f"/contexts/{context['id']}/restart")
        self.assertEqual(of_type(execute("os", context_id=context["id"]), "error")[0]["name"], "NameError")
        call("DELETE", f"/contexts/{context['id']}")
        with self.assertRaises(urllib.error.HTTPError) as refused:
            execute("1", context_id=context["id"])
        self.assertEqual(refused.exception.code, 404)

    def test_what_is_refused(self):
        for body in (
            {"code": "1", "context_id": "a", "language": "python"},
            {"code": "1", "language": "cobol"},
            {"language": "python"},
            {"code": "1", "env_vars": {"A": 1}},
        ):
            with self.assertRaises(urllib.error.HTTPError, msg=str(body)) as refused:
                call("POST", "/execute", body)
            self.assertEqual(refused.exception.code, 400, body)

    def test_a_refused_language_has_its_reason_in_the_status_line(self):
        for language, expected in (("java", "default-jdk"), ("c\u00f6bol\r\nX: y", "c\\?bol\\?\\?X: y is not supported")):
            with self.assertRaises(urllib.error.HTTPError) as refused:
                execute("1", language=language)
            self.assertRegex(refused.exception.reason, expected)

    def test_a_kernel_that_dies_is_replaced(self):
        error = of_type(execute("import os; os._exit(3)"), "error")[0]
        self.assertEqual(error["name"], "KernelDied")
        self.assertEqual(of_type(execute("1 + 1"), "result")[0]["text"], "2")

    def test_a_client_that_leaves_interrupts_its_code(self):
        execute("import time; kept = 1")
        client = HTTPConnection("127.0.0.1", PORT)
        client.request("POST", "/execute", json.dumps({"code": "time.sleep(600)"}))
        client.getresponse().read(20)
        client.close()
        events = execute("kept")
        self.assertEqual([event.get("text") for event in of_type(events, "result")], ["1"], events)

    def test_output_does_not_pile_up(self):
        execute("import sys")
        for code in ("sys.stdout.write('x' * 50_000_000);", "for _ in range(500): display('y' * 100_000)"):
            self.assertGreater(len(call("POST", "/execute", {"code": code})), 50_000_000)
        status = Path(f"/proc/{self.server.pid}/status").read_text()
        peak_kb = int(re.search(r"VmHWM:\s*(\d+)", status).group(1))
        self.assertLess(peak_kb, 80_000)
