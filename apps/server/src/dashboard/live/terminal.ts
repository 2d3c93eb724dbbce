/**
 * Connects a page to a terminal in a sandbox. The process outlives the channel: a page that reconnects sends the process
 * ID. A terminal neither resumes a paused sandbox nor extends its timeout.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { createSandboxClient } from '@atoll/client/sandbox'
import type { ProcessClient } from '@atoll/client/sandbox'
import { faultFromConnect } from '@atoll/client/connect-fault'
import type { ProcessSelector } from '@atoll/contracts/gen/process/process_pb'
import { Fault } from '@atoll/kit/fault'
import { findSandbox } from '../sandbox-access.ts'
import type { Recordings } from '../recordings/recordings.ts'
import type { Upstream } from '../upstream.ts'
import type { Channel, ChannelPort } from './channel.ts'
import { toChannelError } from './connection.ts'
import type { TerminalRequest, TerminalSize } from './messages.ts'
import { createOutputWindow } from './output-window.ts'
import { createTerminalInput } from './terminal-input.ts'
import type { TerminalInput } from './terminal-input.ts'
import { createTerminalRecorder } from './terminal-recorder.ts'
import { createTerminalOutput } from './terminal-output.ts'
import type { TerminalOutput } from './terminal-output.ts'

export interface TerminalTarget {
  readonly platform: Upstream
  readonly envdUrl: string
  readonly apiKey: string
  readonly recordings: Recordings
  /** Returns the team of the session. */
  findTeam(): Promise<string>
}

/** Marks processes that are terminals of the dashboard, so that a reloaded page can find them. */
const tag = 'dashboard-terminal'
const interruptByte = 0x03
const quitByte = 0x1c
/** How often a terminal checks that its key and its running sandbox still exist. */
const recheckMs = 15_000

interface OpenedProcess {
  readonly client: ProcessClient
  readonly pid: number
  readonly input: TerminalInput
}

export function openTerminal(
  request: TerminalRequest,
  port: ChannelPort,
  target: TerminalTarget,
): Channel {
  const window = createOutputWindow(port.signal)
  const recorder = createTerminalRecorder(port, { ...target, sandboxId: request.sandboxId })
  const drawn = Promise.withResolvers<void>()
  port.signal.addEventListener('abort', () => drawn.resolve(), { once: true })
  const output = createTerminalOutput(window, (bytes) => {
    drawn.resolve()
    port.sendBytes(bytes)
    recorder.write(bytes)
  })
  let size = request.size
  let process: OpenedProcess | undefined
  const fail = (thrown: unknown) => port.end({ error: toChannelError(toFault(thrown)) })
  const onStarted = async (client: ProcessClient, pid: number) => {
    process = { client, pid, input: createInput(client, pid, port, fail) }
    if (!request.pid && size !== request.size) await resize(client, pid, size)
    port.send({ started: { pid } })
    if (request.pid) {
      // Fails if the process has ended, which the stream reports.
      redraw({ client, pid, size: () => size, drawn: drawn.promise }).catch(() => {})
    }
    if (request.recording !== undefined) recorder.start(size, request.recording)
  }
  run({ request, port, target, output, onStarted }).catch((thrown: unknown) => {
    if (!port.signal.aborted) fail(thrown)
  })
  return {
    input(bytes) {
      if (bytes.includes(interruptByte) || bytes.includes(quitByte)) output.interrupt()
      try {
        process?.input.push(bytes)
      } catch (thrown) {
        fail(thrown)
      }
    },
    control(message) {
      if ('ack' in message) return window.acknowledged(message.ack)
      if ('record' in message) return message.record ? recorder.start(size) : recorder.stop()
      size = message.resize
      recorder.resize(size)
      // Fails if the process has ended, which needs no resize.
      if (process) resize(process.client, process.pid, size).catch(() => {})
      return undefined
    },
  }
}

async function run(parts: {
  readonly request: TerminalRequest
  readonly port: ChannelPort
  readonly target: TerminalTarget
  readonly output: TerminalOutput
  readonly onStarted: (client: ProcessClient, pid: number) => Promise<void>
}): Promise<void> {
  const { request, port, target, output, onStarted } = parts
  const { signal } = port
  const find = () => findSandbox(target.platform, target.apiKey, request.sandboxId)
  const access = await find()
  const timer = setInterval(() => {
    find().catch((thrown: unknown) => port.end({ error: toChannelError(thrown) }))
  }, recheckMs)
  signal.addEventListener('abort', () => clearInterval(timer), { once: true })
  const client = createSandboxClient({ url: target.envdUrl, ...access })
  const events = request.pid
    ? client.connect({ process: selectPid(request.pid) }, { signal })
    : client.start(startRequest(request.size), { signal })
  for await (const { event } of events) {
    if (event?.event.case === 'start') await onStarted(client, event.event.value.pid)
    else if (event?.event.case === 'data') {
      const { value } = event.event.value.output
      if (value) await output.push(value)
    } else if (event?.event.case === 'end') {
      output.flush()
      return port.end({ ended: { exitCode: event.event.value.exitCode } })
    }
  }
  throw new Fault('unavailable', 'terminal_broken', 'The sandbox closed the terminal')
}

function createInput(
  client: ProcessClient,
  pid: number,
  port: ChannelPort,
  onFailure: (error: unknown) => void,
): TerminalInput {
  return createTerminalInput({
    forward: (value) =>
      client.sendInput(
        { process: selectPid(pid), input: { input: { case: 'pty' as const, value } } },
        { signal: port.signal },
      ),
    onTaken: (bytes) => port.send({ taken: bytes }),
    onFailure,
  })
}

function toFault(thrown: unknown): Fault {
  return thrown instanceof Fault ? thrown : faultFromConnect(thrown, 'the sandbox')
}

function startRequest(size: TerminalSize) {
  const envs = { TERM: 'xterm-256color', LANG: 'C.UTF-8', COLORTERM: 'truecolor' }
  return { process: { cmd: '/bin/bash', args: ['-i', '-l'], envs }, pty: { size }, tag }
}

/** A program that prints nothing for so long, such as `sleep`, has nothing to draw. */
const longestRedrawMs = 5_000

/**
 * Makes the program draw its prompt or screen again: an earlier page has drawn it, not this one. Programs draw when the
 * size changes. A shell that sees both changes at once sees none, so the second one waits for output.
 */
async function redraw({
  client,
  pid,
  size,
  drawn,
}: {
  readonly client: ProcessClient
  readonly pid: number
  /** Size of the page, which may change meanwhile. */
  size(): TerminalSize
  /** Resolves at the next output, and when the page goes. */
  readonly drawn: Promise<void>
}): Promise<void> {
  const { cols, rows } = size()
  await resize(client, pid, { cols, rows: rows > 1 ? rows - 1 : rows + 1 })
  await Promise.race([drawn, sleep(longestRedrawMs, undefined, { ref: false })])
  await resize(client, pid, size())
}

async function resize(client: ProcessClient, pid: number, size: TerminalSize) {
  await client.update({ process: selectPid(pid), pty: { size } }, { timeoutMs: 10_000 })
}

function selectPid(value: number): { selector: ProcessSelector['selector'] } {
  return { selector: { case: 'pid', value } }
}
