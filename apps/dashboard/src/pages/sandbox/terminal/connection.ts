import { signal } from '@preact/signals'
import { reconnectDelayMs } from '../../../model/reconnect.ts'

export type ConnectionState = 'connecting' | 'open' | 'lost' | 'ended'

export interface ConnectionEvents {
  /** Resolves when the bytes are drawn. */
  onOutput(bytes: Uint8Array): Promise<void>
  size(): TerminalSize
  /** Called after a reconnect to a running process. Its earlier output is not sent again. */
  onAttached(pid: number): void
}

interface TerminalSize {
  readonly cols: number
  readonly rows: number
}

interface ControlMessage {
  readonly started?: { readonly pid: number }
  readonly ended?: { readonly exitCode: number }
  readonly error?: string
}

const acknowledgeBytes = 64 * 1024
const processIsGone = /not found|no process|no such/i

/** One terminal of a sandbox. Reconnects to the same process until it ends. */
export class Connection {
  readonly state = signal<ConnectionState>('connecting')
  readonly message = signal('')
  readonly pid = signal<number | undefined>(undefined)
  readonly #sandboxId: string
  readonly #events: ConnectionEvents
  #socket: WebSocket | undefined
  #isClosed = false
  #attempts = 0
  #timer: ReturnType<typeof setTimeout> | undefined
  #drawnBytes = 0

  constructor(sandboxId: string, pid: number | undefined, events: ConnectionEvents) {
    this.#sandboxId = sandboxId
    this.#events = events
    this.pid.value = pid
    this.connect()
  }

  connect(): void {
    clearTimeout(this.#timer)
    const { cols, rows } = this.#events.size()
    const query = new URLSearchParams({ cols: String(cols), rows: String(rows) })
    if (this.pid.value !== undefined) query.set('pid', String(this.pid.value))
    const path = `/bff/sandboxes/${encodeURIComponent(this.#sandboxId)}/terminal?${query}`
    this.#socket = new WebSocket(path)
    this.#socket.binaryType = 'arraybuffer'
    this.#socket.addEventListener('message', ({ data }) => this.#receive(data))
    this.#socket.addEventListener('close', () => this.#onClose())
  }

  input(text: string): void {
    this.#send(new TextEncoder().encode(text))
  }

  /** Takes one byte per character, as the terminal reports mouse events. */
  inputBytes(binary: string): void {
    this.#send(Uint8Array.from(binary, (char) => char.charCodeAt(0)))
  }

  resize({ cols, rows }: TerminalSize): void {
    this.#send(JSON.stringify({ resize: { cols, rows } }))
  }

  close(): void {
    this.#isClosed = true
    clearTimeout(this.#timer)
    this.#socket?.close()
  }

  #send(data: string | Uint8Array<ArrayBuffer>): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(data)
  }

  #receive(data: ArrayBuffer | string): void {
    if (typeof data === 'string') this.#control(JSON.parse(data))
    else void this.#draw(data)
  }

  /** Reports drawn bytes to the server, which sends no more than the page can draw. */
  async #draw(data: ArrayBuffer): Promise<void> {
    await this.#events.onOutput(new Uint8Array(data))
    this.#drawnBytes += data.byteLength
    if (this.#drawnBytes < acknowledgeBytes) return
    this.#send(JSON.stringify({ ack: this.#drawnBytes }))
    this.#drawnBytes = 0
  }

  #control({ started, ended, error }: ControlMessage): void {
    if (started) {
      if (this.pid.value !== undefined) this.#events.onAttached(started.pid)
      this.pid.value = started.pid
      this.state.value = 'open'
      this.message.value = ''
      this.#attempts = 0
      this.#drawnBytes = 0
    } else if (ended) {
      this.state.value = 'ended'
      this.message.value = `The process ended with exit code ${ended.exitCode}.`
    } else this.message.value = error ?? ''
  }

  #onClose(): void {
    if (this.#isClosed || this.state.value === 'ended') return
    // The process is gone, for example after the sandbox booted again.
    const isGone = processIsGone.test(this.message.value)
    this.state.value = isGone ? 'ended' : 'lost'
    if (isGone) return
    this.#timer = setTimeout(() => this.connect(), reconnectDelayMs(this.#attempts))
    this.#attempts += 1
  }
}
