import { signal } from '@preact/signals'
import { openChannel } from '../../../data/live.ts'
import type { LiveChannel, LiveMessage } from '../../../data/live.ts'
import { createInputQueue } from '../../../model/input-queue.ts'
import { endOf } from '../../../model/process.ts'
import { reconnectDelayMs } from '../../../model/reconnect.ts'

export type ConnectionState = 'connecting' | 'open' | 'lost' | 'ended'

export interface ConnectionEvents {
  /** Resolves when the bytes are drawn. */
  onOutput(bytes: Uint8Array): Promise<void>
  size(): TerminalSize
  /** Called after a reconnect to a running process. Its earlier output is not sent again. */
  onAttached(pid: number): void
  /** The server has ended the recording. */
  onRecordingStopped(reason: string): void
}

interface TerminalSize {
  readonly cols: number
  readonly rows: number
}

interface TerminalMessage extends LiveMessage {
  readonly started?: { readonly pid: number }
  readonly ended?: { readonly exitCode: number }
  /** Bytes of input that the sandbox has taken. */
  readonly taken?: number
  /** Null: nothing is recorded. */
  readonly recording?: { readonly id: string } | null
  readonly reason?: string
}

const acknowledgeBytes = 32 * 1024
const notFound = 404

/** One terminal of a sandbox, on a channel of the live connection. Reconnects to the same process until it ends. */
export class Connection {
  readonly state = signal<ConnectionState>('connecting')
  readonly message = signal('')
  readonly pid = signal<number | undefined>(undefined)
  /** ID of the recording under way. A new connection continues it. */
  readonly recording = signal<string | undefined>(undefined)
  readonly #events: ConnectionEvents
  readonly #channel: LiveChannel
  readonly #input = createInputQueue((bytes) => this.#channel.sendBytes(bytes))
  #isClosed = false
  #attempts = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #drawnBytes = 0

  constructor(sandboxId: string, pid: number | undefined, events: ConnectionEvents) {
    this.#events = events
    this.pid.value = pid
    this.#channel = openChannel({
      request: () => ({
        terminal: {
          ...{ sandboxId, size: events.size(), pid: this.pid.value },
          recording: this.recording.value,
        },
      }),
      onMessage: (message) => this.#receive(message),
      onBytes: (bytes) => void this.#draw(bytes),
      onLost: () => {
        if (this.state.value !== 'ended') this.state.value = 'lost'
      },
    })
  }

  connect(): void {
    clearTimeout(this.#timer)
    this.#channel.reopen()
  }

  input(text: string): void {
    this.#send(new TextEncoder().encode(text))
  }

  /** Takes one byte per character, as the terminal reports mouse events. */
  inputBytes(binary: string): void {
    this.#send(Uint8Array.from(binary, (char) => char.charCodeAt(0)))
  }

  resize({ cols, rows }: TerminalSize): void {
    this.#channel.control({ resize: { cols, rows } })
  }

  record(isWanted: boolean): void {
    this.#channel.control({ record: isWanted })
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#channel.close()
  }

  #send(bytes: Uint8Array): void {
    if (this.state.value === 'open') this.#input.push(bytes)
  }

  /** Reports drawn bytes to the server, which sends no more than the page can draw. */
  async #draw(bytes: Uint8Array): Promise<void> {
    await this.#events.onOutput(bytes)
    this.#drawnBytes += bytes.length
    if (this.#drawnBytes < acknowledgeBytes) return
    this.#channel.control({ ack: this.#drawnBytes })
    this.#drawnBytes = 0
  }

  #receive({ recording, reason, ...message }: TerminalMessage): void {
    if (recording !== undefined) this.recording.value = recording?.id
    if (reason !== undefined) this.#events.onRecordingStopped(reason)
    this.#receiveState(message)
  }

  #receiveState({ started, ended, taken, error, closed }: TerminalMessage): void {
    if (started) this.#start(started.pid)
    if (taken) this.#input.taken(taken)
    if (ended) this.#end(`The process has ended: ${endOf(ended.exitCode)}.`)
    else if (error) this.message.value = error.message
    if (!closed || this.#isClosed || this.state.value === 'ended') return
    // The process is gone, for example after the sandbox booted again.
    if (error?.status === notFound) this.#end(error.message)
    else this.#retry()
  }

  #start(pid: number): void {
    if (this.pid.value !== undefined) this.#events.onAttached(pid)
    this.pid.value = pid
    this.state.value = 'open'
    this.message.value = ''
    this.#attempts = 0
    this.#drawnBytes = 0
    this.#input.reset()
  }

  #end(message: string): void {
    this.recording.value = undefined
    this.state.value = 'ended'
    this.message.value = message
  }

  #retry(): void {
    this.state.value = 'lost'
    this.#timer = setTimeout(() => this.connect(), reconnectDelayMs(this.#attempts))
    this.#attempts += 1
  }
}
