import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Button } from '../../../parts/controls.tsx'
import { Connection } from './connection.ts'
import { allowTerminalStyles } from './style-nonce.ts'

const theme = {
  background: '#0b0f10',
  foreground: '#dfe7e7',
  cursor: '#2dd4bf',
  selectionBackground: '#2dd4bf55',
}

/** One terminal. Stays mounted while another one is in front, so that its output is still drawn. */
export function Screen({
  sandboxId,
  pid,
  isHidden,
  onPid,
  onClose,
}: {
  readonly sandboxId: string
  readonly pid: number | undefined
  readonly isHidden: boolean
  readonly onPid: (pid: number) => void
  readonly onClose: () => void
}) {
  const host = useRef<HTMLDivElement>(null)
  const focus = useRef<() => void>(() => {})
  const [connection, setConnection] = useState<Connection | undefined>()
  useEffect(() => {
    if (!host.current) return undefined
    const opened = openScreen(host.current, sandboxId, pid)
    focus.current = opened.focus
    setConnection(opened.connection)
    return opened.close
  }, [])
  const currentPid = connection?.pid.value
  useEffect(() => {
    if (currentPid !== undefined) onPid(currentPid)
  }, [currentPid])
  useEffect(() => {
    if (!isHidden) focus.current()
  }, [isHidden, connection])
  const state = connection?.state.value
  return (
    <>
      <div ref={host} class="terminal-screen" hidden={isHidden} />
      {!isHidden && (state === 'lost' || state === 'ended') && (
        <div class="terminal-cover" role="status">
          <span class="grow">
            {state === 'lost'
              ? `Disconnected. ${connection?.message.value || 'Connecting again…'}`
              : connection?.message.value}
          </span>
          {state === 'lost' && (
            <Button isSmall action={() => connection?.connect()}>
              Connect now
            </Button>
          )}
          {state === 'ended' && (
            <Button isSmall action={onClose}>
              Close
            </Button>
          )}
        </div>
      )}
    </>
  )
}

function openScreen(host: HTMLElement, sandboxId: string, pid: number | undefined) {
  allowTerminalStyles()
  const terminal = new Terminal({
    theme,
    fontSize: 13,
    fontFamily: "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace",
    scrollback: 5_000,
    // Links in output would be chosen by the sandbox.
    linkHandler: { activate() {} },
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  terminal.open(host)
  fit.fit()
  const connection = new Connection(sandboxId, pid, {
    onOutput: (bytes) => new Promise((resolve) => terminal.write(bytes, resolve)),
    size: () => ({ cols: terminal.cols, rows: terminal.rows }),
    onAttached: (running) =>
      terminal.write(
        `\r\n\u001b[2mConnected to process ${running} again. Press Enter for a prompt.\u001b[0m\r\n`,
      ),
  })
  terminal.onData((text) => connection.input(text))
  terminal.onBinary((binary) => connection.inputBytes(binary))
  terminal.onResize((size) => connection.resize(size))
  const observer = new ResizeObserver(() => {
    if (host.clientWidth > 0 && host.clientHeight > 0) fit.fit()
  })
  observer.observe(host)
  return {
    connection,
    focus: () => terminal.focus(),
    close() {
      observer.disconnect()
      connection.close()
      terminal.dispose()
    },
  }
}
