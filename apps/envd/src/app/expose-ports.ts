/**
 * Makes servers that listen on loopback alone reachable from outside, as their users expect of a port they opened: a
 * reconciler that looks at what listens and forwards each such port from the sandbox's own address. Looking costs little,
 * but in an idle sandbox nothing new will listen, so there it looks less often.
 */
import { hiddenPorts } from '../domain/sandbox/listening.ts'
import type { Forward, Forwarding, Listener } from '../domain/sandbox/listening.ts'

export interface ExposePorts {
  /** Something happens in the sandbox: look closely for a while. */
  nudge(): void
  /** When the sandbox has another address, as after a restore, all is forwarded from there before this ends. */
  follow(): Promise<void>
  close(): Promise<void>
}

export interface PortPorts {
  readonly listeners: () => readonly Listener[]
  /** The sandbox's own; undefined when it has none. */
  readonly address: () => string | undefined
  readonly forward: Forward
  /** Monotonic. */
  readonly nowMs: () => number
  readonly report: (cause: unknown) => void
}

export function exposePorts(ports: PortPorts): ExposePorts {
  const open = new Map<number, Exposed>()
  let busyUntilMs = ports.nowMs() + busyForMs
  let stopped = false
  let underWay = Promise.resolve()
  let timer = lookAfter(busyIntervalMs)

  return {
    nudge() {
      const wasIdle = ports.nowMs() > busyUntilMs
      busyUntilMs = ports.nowMs() + busyForMs
      if (wasIdle && !stopped) schedule()
    },
    async follow() {
      if (stopped || open.size === 0) return
      const address = ports.address()
      if ([...open.values()].every((exposed) => exposed.address === address)) return
      clearTimeout(timer)
      underWay = underWay.then(pass)
      await underWay
    },
    async close() {
      stopped = true
      clearTimeout(timer)
      await underWay
      await Promise.all([...open.values()].map(({ forwarding }) => forwarding.close()))
      open.clear()
    },
  }

  function lookAfter(intervalMs: number, mayBeLate = false): NodeJS.Timeout {
    const dueMs = ports.nowMs() + intervalMs
    // Too late means that we stood still. Whoever let us go on is about to ask for something, which comes first. On a
    // full machine every look may be late: none is put off twice.
    const look = () => {
      if (!mayBeLate && ports.nowMs() - dueMs > lateMs) timer = lookAfter(busyIntervalMs, true)
      else underWay = pass()
    }
    return setTimeout(look, intervalMs).unref()
  }

  async function pass(): Promise<void> {
    await reconcile().catch(ports.report)
    if (!stopped) schedule()
  }

  function schedule(): void {
    clearTimeout(timer)
    const intervalMs = ports.nowMs() > busyUntilMs ? idleIntervalMs : busyIntervalMs
    timer = lookAfter(intervalMs)
  }

  async function reconcile(): Promise<void> {
    const wanted = hiddenPorts(ports.listeners())
    if (wanted.size === 0 && open.size === 0) return
    const address = ports.address()
    for (const [port, exposed] of open) {
      if (exposed.host === wanted.get(port) && exposed.address === address) continue
      open.delete(port)
      await exposed.forwarding.close()
      busyUntilMs = ports.nowMs() + busyForMs
    }
    if (address === undefined) return
    for (const [port, host] of wanted) {
      if (open.has(port) || open.size >= forwardLimit) continue
      const forwarding = await ports.forward(address, port, host)
      if (!forwarding) continue
      open.set(port, { address, host, forwarding })
      busyUntilMs = ports.nowMs() + busyForMs
    }
  }
}

interface Exposed {
  readonly address: string
  readonly host: string
  readonly forwarding: Forwarding
}

const busyIntervalMs = 1000
const idleIntervalMs = 5000
const busyForMs = 5 * 60_000
const lateMs = 200

/** More servers than anybody has; each holds a socket of ours. */
const forwardLimit = 1000
