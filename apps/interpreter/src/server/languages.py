"""Languages that contexts can have, and the kernel program of each."""

import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Callable, Dict, List

from kernel_requests import encode_json, encode_shell


class UnknownLanguage(Exception):
    """The client asked for a language without a kernel."""


@dataclass(frozen=True)
class Language:
    name: str
    command: List[str]
    encode: Callable[[Dict[str, Any]], bytes] = encode_json
    # Otherwise SIGINT alone interrupts the kernel.
    takes_interrupt_messages: bool = False


ALIASES = {"py": "python", "python3": "python", "js": "javascript", "ts": "typescript", "sh": "bash"}

# Languages of the packages that this template has no kernel for.
ABSENT = {
    "java": " For Java, build a template from this one with the Debian package default-jdk and run jshell as a command.",
}


def find_languages(kernels: Path) -> Dict[str, Language]:
    """Returns the languages whose interpreter is installed."""
    node, r = shutil.which("node"), shutil.which("R")
    script = str(kernels / "javascript" / "main.ts")
    flags = ["--disable-warning=ExperimentalWarning"]
    found = [
        Language("python", [sys.executable, str(kernels / "python" / "main.py")]),
        Language("bash", ["bash", "--norc", str(kernels / "bash" / "kernel.sh")], encode_shell),
    ]
    if node:
        for name in ("javascript", "typescript"):
            found.append(Language(name, [node, *flags, script, name], takes_interrupt_messages=True))
    if r:
        # Other locales would print letters outside ASCII as codes.
        command = ["env", "LANG=C.UTF-8", r, "--no-echo", "--no-restore", "--no-save"]
        found.append(Language("r", [*command, f"--file={kernels / 'r' / 'main.R'}", "--args"]))
    return {language.name: language for language in found}


def select_language(languages: Dict[str, Language], name: str) -> Language:
    asked = name.strip().lower()
    language = languages.get(ALIASES.get(asked, asked))
    if language is None:
        known = ", ".join(sorted(languages))
        advice = ABSENT.get(asked, "")
        raise UnknownLanguage(f"Language {name[:40]} is not supported. Use one of: {known}.{advice}")
    return language
