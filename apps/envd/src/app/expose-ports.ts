/**
 * Reconciler that makes servers on loopback reachable from outside: it lists listening sockets and forwards each
 * loopback-only port from the sandbox's own address. It polls less often while the sandbox is idle.
 */
import { loopbackOnlyPorts } from '../domain/sandbox/listeners.ts'
import type { ForwardPort, PortForward, Listener } from '../domain/sandbox/listeners.ts'

export interface ExposePorts {
  /** Reports activity in the sandbox: poll at the short interval for a while. */
  nudge(): void
  /** Moves all forwards to the current address, if it changed (after a restore). Resolves when they are in place. */
  updateAddress(): Promise<void>
  close(): Promise<void>
}

export interface ExposePortsDeps {
  readonly listeners: () => readonly Listener[]
  /** The sandbox's own address; undefined if it has none. */
  readonly address: () => string | undefined
  readonly forward: ForwardPort
  /** Monotonic clock. */
  readonly nowMs: () => number
  readonly report: (cause: unknown) => void
}

export function exposePorts(deps: ExposePortsDeps): ExposePorts {
  const forwards = new Map<number, ExposedPort>()
  let busyUntilMs = deps.nowMs() + busyPeriodMs
  let stopped = false
  let currentPass = Promise.resolve()
  let timer = schedulePass(busyIntervalMs)

  return {
    nudge() {
      const wasIdle = deps.nowMs() > busyUntilMs
      setBusy()
      if (wasIdle && !stopped) schedule()
    },
    async updateAddress() {
      if (stopped || forwards.size === 0) return
      const address = deps.address()
      if ([...forwards.values()].every((exposed) => exposed.address === address)) return
      clearTimeout(timer)
      currentPass = currentPass.then(runPass)
      await currentPass
    },
    async close() {
      stopped = true
      clearTimeout(timer)
      await currentPass
      await Promise.all([...forwards.values()].map(({ forwarding }) => forwarding.close()))
      forwards.clear()
    },
  }

  function schedulePass(intervalMs: number, wasDeferred = false): NodeJS.Timeout {
    const dueMs = deps.nowMs() + intervalMs
    // A late timer means that the sandbox was frozen. The client that resumed it is about to send a request, which
    // should go first, so the pass is deferred. It is deferred only once, because on a busy machine every timer may
    // be late.
    const startPass = () => {
      if (!wasDeferred && deps.nowMs() - dueMs > lateMs) timer = schedulePass(busyIntervalMs, true)
      else currentPass = runPass()
    }
    return setTimeout(startPass, intervalMs).unref()
  }

  async function runPass(): Promise<void> {
    await reconcile(forwards, deps, setBusy).catch(deps.report)
    if (!stopped) schedule()
  }

  function setBusy(): void {
    busyUntilMs = deps.nowMs() + busyPeriodMs
  }

  function schedule(): void {
    clearTimeout(timer)
    const intervalMs = deps.nowMs() > busyUntilMs ? idleIntervalMs : busyIntervalMs
    timer = schedulePass(intervalMs)
  }
}

/** Opens and closes forwards to match the listening sockets. Calls `onChange` after each change. */
async function reconcile(
  forwards: Map<number, ExposedPort>,
  deps: ExposePortsDeps,
  onChange: () => void,
): Promise<void> {
  const wanted = loopbackOnlyPorts(deps.listeners())
  if (wanted.size === 0 && forwards.size === 0) return
  const address = deps.address()
  for (const [port, exposed] of forwards) {
    if (exposed.host === wanted.get(port) && exposed.address === address) continue
    forwards.delete(port)
    await exposed.forwarding.close()
    onChange()
  }
  if (address === undefined) return
  for (const [port, host] of wanted) {
    if (forwards.has(port) || forwards.size >= forwardLimit) continue
    const forwarding = await deps.forward(address, port, host)
    if (!forwarding) continue
    forwards.set(port, { address, host, forwarding })
    onChange()
  }
}

interface ExposedPort {
  readonly address: string
  readonly host: string
  readonly forwarding: PortForward
}

const busyIntervalMs = 1000
const idleIntervalMs = 5000
const busyPeriodMs = 5 * 60_000
/** Delay of a timer that busy machines rarely reach, and frozen sandboxes always. */
const lateMs = 200

/** Far above normal use; each forward holds a listening socket of envd. */
const forwardLimit = 1000
