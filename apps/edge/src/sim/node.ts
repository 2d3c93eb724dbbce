import { Code, ConnectError, createRouterTransport } from '@connectrpc/connect'
import type { Transport } from '@connectrpc/connect'
import { NodeService, SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'

/** Simulated node: speaks the node protocol, and its sandboxes are addresses that a test serves. */
export interface SimulatedNode {
  readonly transport: Transport
  /** Starts a new or a paused sandbox. */
  start(id: string, address: string, ingress?: SimulatedIngress): void
  /** The sandbox stays in this state until `start` or `pause`. */
  beginPause(id: string): void
  pause(id: string): void
  end(id: string, reason?: string): void
  /** Fails every watch, old and new, until `mend`. */
  breakWatches(): void
  mend(): void
  /** Number of GetSandbox calls. */
  readonly asked: number
  readonly watchers: number
}

export interface SimulatedIngress {
  readonly trafficAccessToken?: string
  readonly maskRequestHost?: string
  readonly httpsPorts?: number[]
}

interface SimulatedSandbox {
  readonly sandboxId: string
  readonly address: string
  readonly state: SandboxState
  readonly ingress?: SimulatedIngress
}

type Change =
  | { case: 'started'; value: SimulatedSandbox }
  | { case: 'pausing'; value: { sandboxId: string } }
  | { case: 'paused'; value: { sandboxId: string } }
  | { case: 'ended'; value: { sandboxId: string; reason: string } }
  | { case: 'synced'; value: Record<string, never> }

/** `newAddress` returns the address for a sandbox of CreateSandbox. */
export function simulatedNode(newAddress: () => string = () => '127.0.0.2'): SimulatedNode {
  const sandboxes = new Map<string, SimulatedSandbox>()
  const watches = new Set<Watch>()
  let broken = false
  let asked = 0

  const transport = createRouterTransport(({ service }) => {
    service(NodeService, {
      getNode: () => ({
        nodeId: 'simulated',
        runtime: 'gvisor',
        envdVersion: '0.6.13',
        templateIds: ['base'],
      }),
      createSandbox: ({ sandboxId }) => {
        if (sandboxes.has(sandboxId)) throw new ConnectError('id is taken', Code.AlreadyExists)
        start(sandboxId, newAddress())
        return { sandbox: sandboxOf(sandboxId) }
      },
      killSandbox: ({ sandboxId }) => {
        end(sandboxId)
        return {}
      },
      getSandbox: ({ sandboxId }) => {
        asked += 1
        return { sandbox: sandboxOf(sandboxId) }
      },
      listSandboxes: () => ({ sandboxes: [...sandboxes.values()] }),
      async *watchSandboxes(_, context) {
        const watch = createWatch(context.signal)
        watches.add(watch)
        try {
          for (const sandbox of sandboxes.values()) {
            if (isRunning(sandbox)) watch.push({ case: 'started', value: sandbox })
            if (sandbox.state === SandboxState.PAUSING) {
              watch.push({ case: 'pausing', value: { sandboxId: sandbox.sandboxId } })
            }
          }
          watch.push({ case: 'synced', value: {} })
          for (;;) {
            if (broken) throw new ConnectError('broken', Code.Unavailable)
            const event = await watch.next()
            if (!event) return
            yield { event }
          }
        } finally {
          watches.delete(watch)
        }
      },
    })
  })

  return {
    transport,
    start,
    beginPause,
    pause,
    end,
    breakWatches() {
      broken = true
      for (const watch of watches) watch.wake()
    },
    mend() {
      broken = false
    },
    get asked() {
      return asked
    },
    get watchers() {
      return watches.size
    },
  }

  function sandboxOf(sandboxId: string) {
    const sandbox = sandboxes.get(sandboxId)
    if (!sandbox) throw new ConnectError('no such sandbox', Code.NotFound)
    return sandbox
  }

  function start(sandboxId: string, address: string, ingress?: SimulatedIngress): void {
    const state = SandboxState.RUNNING
    const sandbox = { sandboxId, address, state, ...(ingress && { ingress }) }
    sandboxes.set(sandboxId, sandbox)
    for (const watch of watches) watch.push({ case: 'started', value: sandbox })
  }

  function beginPause(sandboxId: string): void {
    sandboxes.set(sandboxId, { ...sandboxOf(sandboxId), state: SandboxState.PAUSING })
    for (const watch of watches) watch.push({ case: 'pausing', value: { sandboxId } })
  }

  function pause(sandboxId: string): void {
    sandboxes.set(sandboxId, { sandboxId, address: '', state: SandboxState.PAUSED })
    for (const watch of watches) watch.push({ case: 'paused', value: { sandboxId } })
  }

  function end(id: string, reason = 'was killed'): void {
    if (!sandboxes.delete(id)) return
    for (const watch of watches) {
      watch.push({ case: 'ended', value: { sandboxId: id, reason } })
    }
  }
}

function isRunning({ state }: SimulatedSandbox): boolean {
  return state === SandboxState.RUNNING || state === SandboxState.PAUSING
}

interface Watch {
  push(change: Change): void
  wake(): void
  /** Returns undefined if the watcher disconnected or no change is queued. */
  next(): Promise<Change | undefined>
}

function createWatch(signal: AbortSignal): Watch {
  const queue: Change[] = []
  let wakeUp = () => {}
  signal.addEventListener('abort', () => wakeUp())
  return {
    push(change) {
      queue.push(change)
      wakeUp()
    },
    wake: () => wakeUp(),
    async next() {
      if (queue.length === 0 && !signal.aborted) {
        await new Promise<void>((resolve) => {
          wakeUp = resolve
        })
      }
      return queue.shift()
    },
  }
}
