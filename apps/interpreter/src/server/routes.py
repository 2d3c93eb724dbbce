"""Paths of the HTTP interface."""

from tornado.web import Application

from context_handlers import ContextHandler, ContextsHandler, HealthHandler, RestartHandler
from contexts import Contexts
from execute_handler import ExecuteHandler
from sandbox_variables import SandboxVariables


def make_application(contexts: Contexts, variables: SandboxVariables) -> Application:
    parts = {"contexts": contexts, "variables": variables}
    routes = [
        (r"/health", HealthHandler, parts),
        (r"/execute", ExecuteHandler, parts),
        (r"/contexts", ContextsHandler, parts),
        (r"/contexts/([^/]+)", ContextHandler, parts),
        (r"/contexts/([^/]+)/restart", RestartHandler, parts),
    ]
    return Application(routes, log_function=lambda handler: None)
