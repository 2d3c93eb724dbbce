import { FitAddon } from '@xterm/addon-fit'
import { Terminal } from '@xterm/xterm'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Button } from '../../../parts/controls.tsx'
import { showError } from '../../../parts/toasts.tsx'
import { Connection } from './connection.ts'
import { allowTerminalStyles } from './style-nonce.ts'
import { terminalOptions } from './terminal-options.ts'

/** One terminal. Stays mounted while another one is in front, so that its output is still drawn. */
export function Screen({
  sandboxId,
  pid,
  isHidden,
  takesFocus = true,
  focusRequest = 0,
  fontSize = 13,
  onPid,
  onConnection,
  onClose,
  closeLabel = 'Close',
}: {
  readonly sandboxId: string
  readonly pid: number | undefined
  readonly isHidden: boolean
  readonly takesFocus?: boolean
  /** A new number moves the focus into the terminal again. */
  readonly focusRequest?: number
  readonly fontSize?: number
  readonly onPid?: (pid: number) => void
  readonly onConnection?: (connection: Connection) => void
  readonly onClose: () => void
  readonly closeLabel?: string
}) {
  const host = useRef<HTMLDivElement>(null)
  const focus = useRef<() => void>(() => {})
  const [connection, setConnection] = useState<Connection | undefined>()
  useEffect(() => {
    if (!host.current) return undefined
    const opened = openScreen(host.current, { sandboxId, pid, fontSize })
    focus.current = opened.focus
    setConnection(opened.connection)
    onConnection?.(opened.connection)
    return opened.close
  }, [])
  const currentPid = connection?.pid.value
  useEffect(() => {
    if (currentPid !== undefined) onPid?.(currentPid)
  }, [currentPid])
  useEffect(() => {
    if (!isHidden && takesFocus) focus.current()
  }, [isHidden, takesFocus, focusRequest, connection])
  return (
    <>
      <div ref={host} class="terminal-screen" hidden={isHidden} />
      {!isHidden && connection && (
        <Cover connection={connection} onClose={onClose} closeLabel={closeLabel} />
      )}
    </>
  )
}

/** Says why a terminal takes no input. */
function Cover({
  connection,
  onClose,
  closeLabel,
}: {
  readonly connection: Connection
  readonly onClose: () => void
  readonly closeLabel: string
}) {
  const state = connection.state.value
  if (state !== 'lost' && state !== 'ended') return null
  const message = connection.message.value
  return (
    <div class="terminal-cover" role="status">
      <span class="grow">
        {state === 'lost' ? `Disconnected. ${message || 'Connecting again…'}` : message}
      </span>
      {state === 'lost' ? (
        <Button isSmall action={() => connection.connect()}>
          Connect now
        </Button>
      ) : (
        <Button isSmall action={onClose}>
          {closeLabel}
        </Button>
      )}
    </div>
  )
}

function openScreen(
  host: HTMLElement,
  {
    sandboxId,
    pid,
    fontSize,
  }: {
    readonly sandboxId: string
    readonly pid: number | undefined
    readonly fontSize: number
  },
) {
  allowTerminalStyles()
  const terminal = new Terminal({ ...terminalOptions, fontSize })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  terminal.open(host)
  fit.fit()
  const connection = new Connection(sandboxId, pid, {
    onOutput: (bytes) => new Promise((resolve) => terminal.write(bytes, resolve)),
    size: () => ({ cols: terminal.cols, rows: terminal.rows }),
    onRecordingStopped: (reason) => showError(new Error(reason)),
    onAttached: (running) =>
      // The server makes the program draw its prompt or screen again below this line.
      terminal.write(`\r\n\u001b[2mConnected to process ${running} again.\u001b[0m\r\n`),
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
