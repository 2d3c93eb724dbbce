import { basename } from 'node:path'
import { Fault } from '@atoll/kit/fault'
import { createGate } from '@atoll/kit/gate'
import { randomHex } from '@atoll/kit/id'
import { checkSpec } from '../domain/sandbox.ts'
import type {
  Introduction,
  ProcessIdentity,
  RunningSandbox,
  Runtime,
  SandboxRecord,
  SandboxSpec,
} from '../domain/sandbox.ts'
import type { Slot } from '../domain/slot.ts'
import type { SandboxEvents } from './events.ts'
import type { SlotPool } from './slot-pool.ts'

/** What runs on this node. Creating and killing are the only ways in and out. */
export interface Sandboxes {
  create(request: CreateRequest): Promise<RunningSandbox>
  /** Returns once nothing of the sandbox is left on the host. */
  kill(sandboxId: string, reason?: string): Promise<void>
  get(sandboxId: string): RunningSandbox | undefined
  list(): RunningSandbox[]
  /** One pass: removes sandboxes whose first process is gone, and says why it went. */
  reap(): Promise<void>
  /** Waits for whatever is being created or removed. */
  settle(): Promise<void>
}

export interface CreateRequest {
  readonly spec: SandboxSpec
  readonly introduction: Introduction
  readonly signal?: AbortSignal
}

export interface SandboxPorts {
  readonly records: {
    create(record: SandboxRecord): Promise<boolean>
    update(record: SandboxRecord): Promise<void>
  }
  readonly runtime: Runtime
  /** Mounts the root file system; undefined when this node has no such template. */
  mountRootfs(spec: SandboxSpec): Promise<Rootfs | undefined>
  introduce(
    slot: Slot,
    initToken: string,
    introduction: Introduction,
    isAlive: () => boolean,
  ): Promise<void>
  isAlive(process: ProcessIdentity): boolean
  oomKills(sandboxId: string): Promise<number>
  bundleDir(sandboxId: string): string
  envdDir(): string
  /** Removes every trace but the slot, whatever of it there is. Repeatable. */
  erase(sandboxId: string): Promise<void>
}

export interface Rootfs {
  readonly path: string
  readonly hasSudo: boolean
}

/** Wide enough to keep both disk and processor busy, narrow enough that each create stays quick. */
const createsAtOnce = 4

export function createSandboxes(parts: {
  readonly ports: SandboxPorts
  readonly slots: SlotPool
  readonly events: SandboxEvents
  readonly adopted: readonly RunningSandbox[]
}): Sandboxes {
  const { ports, slots, events } = parts
  const running = new Map(parts.adopted.map((sandbox) => [sandbox.record.sandboxId, sandbox]))
  const creating = new Map<string, Promise<unknown>>()
  const removing = new Map<string, Promise<void>>()
  const gate = createGate(createsAtOnce)

  async function build({ spec, introduction, signal }: CreateRequest): Promise<RunningSandbox> {
    signal?.throwIfAborted()
    const slot = await slots.take()
    const record: SandboxRecord = {
      ...spec,
      phase: 'creating',
      slotNumber: slot.number,
      envd: basename(ports.envdDir()),
    }
    try {
      if (!(await ports.records.create(record))) throw taken(spec.sandboxId)
    } catch (error) {
      await slots.giveBack(slot)
      throw error
    }
    try {
      const process = await boot(spec, slot, introduction, signal)
      const sandbox = { record: { ...record, phase: 'running', process } as const, slot }
      await ports.records.update(sandbox.record)
      signal?.throwIfAborted()
      return sandbox
    } catch (error) {
      await eraseWithSlot(spec.sandboxId, slot)
      throw error
    }
  }

  async function boot(
    spec: SandboxSpec,
    slot: Slot,
    introduction: Introduction,
    signal: AbortSignal | undefined,
  ): Promise<ProcessIdentity> {
    const rootfs = await ports.mountRootfs(spec)
    if (!rootfs)
      throw new Fault('not_found', 'template_not_found', `No template ${spec.templateId} here`)
    const initToken = randomHex(32)
    const process = await ports.runtime.start({
      spec,
      slot,
      rootfs: rootfs.path,
      hasSudo: rootfs.hasSudo,
      bundleDir: ports.bundleDir(spec.sandboxId),
      envdDir: ports.envdDir(),
      initToken,
    })
    const isAlive = () => signal?.aborted !== true && ports.isAlive(process)
    await ports.introduce(slot, initToken, introduction, isAlive)
    return process
  }

  async function eraseWithSlot(sandboxId: string, slot: Slot): Promise<void> {
    await ports.erase(sandboxId)
    await slots.giveBack(slot)
  }

  /** A second caller waits for the first one's removal. */
  function remove(sandbox: RunningSandbox, reason: string): Promise<void> {
    const { sandboxId } = sandbox.record
    const begun = removing.get(sandboxId)
    if (begun) return begun
    // From here on nobody is led to it; the edge resets its connections.
    events.ended(sandboxId, reason)
    running.delete(sandboxId)
    const removal = eraseWithSlot(sandboxId, sandbox.slot).finally(() => removing.delete(sandboxId))
    removing.set(sandboxId, removal)
    return removal
  }

  async function reasonOfDeath({ sandboxId, memoryMb }: SandboxRecord): Promise<string> {
    return (await ports.oomKills(sandboxId)) > 0
      ? `ran out of memory (limit ${memoryMb} MB)`
      : 'died: its first process ended'
  }

  return {
    async create(request) {
      const { spec } = request
      checkSpec(spec)
      if (running.has(spec.sandboxId) || creating.has(spec.sandboxId)) throw taken(spec.sandboxId)
      const built = gate(() => build(request))
      creating.set(spec.sandboxId, built)
      try {
        const sandbox = await built
        running.set(spec.sandboxId, sandbox)
        events.started(sandbox)
        return sandbox
      } finally {
        creating.delete(spec.sandboxId)
      }
    },

    async kill(sandboxId, reason = 'was killed') {
      await creating.get(sandboxId)?.catch(() => {})
      const sandbox = running.get(sandboxId)
      await (sandbox ? remove(sandbox, reason) : removing.get(sandboxId))
    },

    get: (sandboxId) => running.get(sandboxId),
    list: () => [...running.values()],

    async reap() {
      for (const sandbox of running.values()) {
        const { record } = sandbox
        if (record.process && ports.isAlive(record.process)) continue
        await remove(sandbox, await reasonOfDeath(record))
      }
    },

    async settle() {
      await Promise.allSettled([...creating.values(), ...removing.values()])
    },
  }
}

function taken(sandboxId: string): Fault {
  return new Fault('conflict', 'sandbox_exists', `Sandbox ${sandboxId} exists already`)
}
