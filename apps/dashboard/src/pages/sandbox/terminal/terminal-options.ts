import type { ITerminalOptions } from '@xterm/xterm'

/** Options of all terminals, live and replayed. */
export const terminalOptions: ITerminalOptions = {
  theme: {
    background: '#0b0f10',
    foreground: '#dfe7e7',
    cursor: '#2dd4bf',
    selectionBackground: '#2dd4bf55',
  },
  fontSize: 13,
  fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace",
  scrollback: 5_000,
  // Links in output would be chosen by the sandbox.
  linkHandler: { activate() {} },
}
