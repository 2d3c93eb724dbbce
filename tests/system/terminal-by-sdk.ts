import { waitFor } from '@atoll/kit/wait'
import type { CommandHandle, Sandbox } from 'e2b'

/** Terminal in a sandbox, opened through the SDK. */
export interface SdkTerminal {
  readonly handle: CommandHandle
  type(keys: string): Promise<void>
  /** Waits until the output since the last call matches, and drops it up to the end of the match. */
  waitForText(pattern: RegExp): Promise<string>
}

export function openTerminal(
  sandbox: Sandbox,
  size: { readonly cols: number; readonly rows: number } = { cols: 80, rows: 24 },
): Promise<SdkTerminal> {
  return attach(sandbox, (onData) => sandbox.pty.create({ ...size, timeoutMs: 0, onData }))
}

/** Connects to an open terminal from another connection. */
export function joinTerminal(sandbox: Sandbox, pid: number): Promise<SdkTerminal> {
  return attach(sandbox, (onData) => sandbox.pty.connect(pid, { timeoutMs: 0, onData }))
}

async function attach(
  sandbox: Sandbox,
  open: (onData: (bytes: Uint8Array) => void) => Promise<CommandHandle>,
): Promise<SdkTerminal> {
  const decoder = new TextDecoder()
  let screen = ''
  const handle = await open((bytes) => void (screen += decoder.decode(bytes, { stream: true })))
  return {
    handle,
    type: (keys) => sandbox.pty.sendInput(handle.pid, new TextEncoder().encode(keys)),
    async waitForText(pattern) {
      const match = await waitFor(
        `${pattern} on the terminal`,
        () => pattern.exec(screen) ?? undefined,
      ).catch((cause: unknown) => {
        throw new Error(`no ${pattern} in ${JSON.stringify(screen)}`, { cause })
      })
      screen = screen.slice(match.index + match[0].length)
      return match[0]
    },
  }
}
