"""IPython shell that sends results and errors as answers."""

import sys
from typing import Any

from IPython.core.displayhook import DisplayHook
from IPython.core.displaypub import DisplayPublisher
from IPython.core.interactiveshell import InteractiveShell
from traitlets import Instance, Type
from traitlets.config import Config

from .answers import Answers
from .formats import add_formats


class ResultHook(DisplayHook):
    """Sends the value of the last expression."""

    def write_output_prompt(self) -> None:
        pass

    def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
        self.shell.answers.send_result(format_dict, is_main=True)

    def finish_displayhook(self) -> None:
        pass


class ResultPublisher(DisplayPublisher):
    """Sends what `display` shows."""

    def publish(self, data: Any, metadata: Any = None, source: Any = None, **options: Any) -> None:
        self.shell.answers.send_result(data, is_main=False)

    def clear_output(self, wait: bool = False) -> None:
        pass


class KernelShell(InteractiveShell):
    displayhook_class = Type(ResultHook)
    display_pub_class = Type(ResultPublisher)
    answers = Instance(Answers)

    async def run_request(self, code: str) -> None:
        transformed, problem = code, None
        try:
            transformed = self.transform_cell(code)
        except Exception:
            problem = sys.exc_info()
        prepared = {"transformed_cell": transformed, "preprocessing_exc_tuple": problem}
        if not self.should_run_async(code, **prepared):
            self.run_cell(code, store_history=True)
            return
        try:
            await self.run_cell_async(code, store_history=True, **prepared)
        finally:
            self.events.trigger("post_execute")

    def _showtraceback(self, etype: Any, evalue: Any, stb: Any) -> None:
        self.answers.send_error(etype.__name__, str(evalue), "\n".join(stb))

    def enable_gui(self, gui: Any = None) -> None:
        """Does nothing: figures are results, there is no window."""

    def ask_exit(self) -> None:
        raise SystemExit


def make_shell(answers: Answers) -> KernelShell:
    config = Config()
    config.HistoryManager.enabled = False
    config.InteractiveShell.colors = "NoColor"
    config.InteractiveShell.xmode = "Context"
    shell = KernelShell.instance(config=config, answers=answers)
    shell.user_ns["__name__"] = "__main__"
    # Commands write straight to the pipes of the kernel, without a terminal in between.
    shell.system = shell.system_raw
    add_formats(shell.display_formatter)
    return shell
