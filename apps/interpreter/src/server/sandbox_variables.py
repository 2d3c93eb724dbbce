"""Environment variables of the sandbox, as envd knows them."""

import json
import logging
from typing import Dict, Optional, Tuple

from tornado.httpclient import AsyncHTTPClient

log = logging.getLogger("variables")

# Sandbox ID and access token: both change when a sandbox is copied.
Identity = Tuple[Optional[str], Optional[str]]


class SandboxVariables:
    """Asks envd once per sandbox: kernels start in the template, before a sandbox and its variables exist."""

    def __init__(self, envd: str):
        self._envd = envd
        self._known_for: Optional[Identity] = None
        self._known: Dict[str, str] = {}

    async def read(self, identity: Identity) -> Dict[str, str]:
        if identity != self._known_for:
            self._known = await self._fetch(identity[1])
            self._known_for = identity
        return self._known

    async def _fetch(self, token: Optional[str]) -> Dict[str, str]:
        headers = {"X-Access-Token": token} if token else {}
        try:
            answer = await AsyncHTTPClient().fetch(
                f"{self._envd}/envs", headers=headers, connect_timeout=5, request_timeout=10
            )
            return {str(name): str(value) for name, value in json.loads(answer.body).items()}
        except Exception as failure:
            log.warning("The variables of the sandbox cannot be read from envd: %s", failure)
            return {}
