/** Connect handlers of the Process service. */
import type { Process } from '@atoll/contracts/gen/process/process_pb'
import { Signal } from '@atoll/contracts/gen/process/process_pb'
import type {
  PTY,
  StartRequest as StartRequestMessage,
} from '@atoll/contracts/gen/process/process_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { HandlerContext, ServiceImpl } from '@connectrpc/connect'
import type { LiveProcess } from '../../app/live-process.ts'
import type { Attachment, Processes } from '../../app/processes.ts'
import type { Sandbox } from '../../app/sandbox.ts'
import type { CaTrust } from '../../app/ca-trust.ts'
import type { TerminalSize } from '../../domain/process/process.ts'
import { globalVariables } from '../../domain/sandbox/settings.ts'
import type { Users } from '../../domain/access/user.ts'
import { actingUserKey, resolveUser } from '../access/rpc-user.ts'
import { outputFramesKey } from './output-frames.ts'
import { keepaliveIntervalMs } from '../wire/streams.ts'
import { streamEvents } from './process-events.ts'
import type { StreamedEvent } from './process-events.ts'
import { sendInput, streamInput, toSelector, withinDeadline } from './process-input.ts'

export interface ProcessServiceDeps {
  readonly processes: Processes
  readonly sandbox: Sandbox
  readonly trust: CaTrust
  readonly users: Users
}

export function processService(deps: ProcessServiceDeps): ServiceImpl<typeof Process> {
  const { processes } = deps
  return {
    async *start(request, context) {
      context.signal.throwIfAborted()
      const settings = deps.sandbox.settings()
      if (!settings)
        throw new ConnectError('The sandbox is not ready yet. Retry in a moment.', Code.Unavailable)
      const user = await resolveUser(context.values.get(actingUserKey), deps.users, settings)
      const attachment = await processes.start({
        ...fromMessage(request),
        user,
        workdir: settings.defaultWorkdir,
        globals: globalVariables(settings, deps.trust.variables()),
        timeoutMs: context.timeoutMs(),
      })
      yield* stream(attachment, context, { ownsDeadline: true })
    },
    async *connect(request, context) {
      const attachment = processes.connect(toSelector(request.process))
      yield* stream(attachment, context, { ownsDeadline: false })
    },
    list() {
      return { processes: processes.list().map(toProcessInfo) }
    },
    update(request) {
      const selector = toSelector(request.process)
      if (request.pty) processes.resize(selector, toSize(request.pty))
      else processes.requireLive(selector)
      return {}
    },
    async streamInput(requests, context) {
      const { signal } = context
      await withinDeadline(streamInput(processes, requests, signal), signal)
      return {}
    },
    async sendInput(request, context) {
      const selector = toSelector(request.process)
      await withinDeadline(sendInput(processes, selector, request.input), context.signal)
      return {}
    },
    sendSignal(request) {
      const selector = toSelector(request.process)
      processes.requireLive(selector)
      processes.signal(selector, toSignal(request.signal))
      return {}
    },
    closeStdin(request) {
      if (!processes.closeStdin(toSelector(request.process))) {
        throw new ConnectError(
          'A terminal has no stdin to close. Send Ctrl-D (0x04) as pty input.',
          Code.Unknown,
        )
      }
      return {}
    },
  }
}

function fromMessage(request: StartRequestMessage) {
  const { cmd = '', args = [], envs = {}, cwd } = request.process ?? {}
  return {
    cmd,
    args,
    envs,
    cwd,
    tag: request.tag,
    terminal: request.pty && toSize(request.pty),
    stdin: request.stdin ?? true,
  }
}

function toProcessInfo({ pid, request: { tag, cwd, cmd, args, envs } }: LiveProcess) {
  return {
    pid,
    ...(tag !== undefined && { tag }),
    config: { cmd, args: [...args], envs: { ...envs }, ...(cwd !== undefined && { cwd }) },
  }
}

function stream(
  attachment: Attachment,
  { signal, requestHeader, values }: HandlerContext,
  { ownsDeadline }: { readonly ownsDeadline: boolean },
): AsyncIterable<StreamedEvent> {
  const keepaliveMs = keepaliveIntervalMs(requestHeader.get('keepalive-ping-interval'))
  const events = streamEvents(attachment, { signal, keepaliveMs, ownsDeadline })
  return values.get(outputFramesKey)?.sendOutput(events) ?? events
}

/** The kernel stores 16 bits per dimension. */
function toSize({ size }: PTY): TerminalSize {
  return { cols: (size?.cols ?? 0) & 0xffff, rows: (size?.rows ?? 0) & 0xffff }
}

function toSignal(signal: Signal): 'SIGKILL' | 'SIGTERM' {
  if (signal === Signal.SIGKILL) return 'SIGKILL'
  if (signal === Signal.SIGTERM) return 'SIGTERM'
  throw new ConnectError(
    `Signal ${signal} is not supported. Use SIGKILL or SIGTERM.`,
    Code.Unimplemented,
  )
}
