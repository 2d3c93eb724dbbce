import { SandboxState } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { FetchSandboxRequest, NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { randomLabel } from '@atoll/kit/id'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ServiceImpl } from '@connectrpc/connect'
import { checkGeneration, notFound, refused } from './sandbox.ts'
import { toMessage } from './sandbox-message.ts'
import type { NodeState, PausedSandbox } from './sandbox.ts'

type Methods = Pick<
  ServiceImpl<typeof NodeService>,
  'pauseSandbox' | 'resumeSandbox' | 'fetchSandbox'
>

interface PauseOptions {
  readonly keepsMemory: () => boolean
  readonly sizeOf: (id: string, withMemory: boolean) => bigint
  readonly fetchLog: (id: string) => void
}

/** Simulates pausing and resuming sandboxes. */
export function simulatePauses(state: NodeState, { keepsMemory, sizeOf, fetchLog }: PauseOptions) {
  const { running, paused, events, failures } = state
  const checkReadable = (sandboxId: string) => {
    if (paused.get(sandboxId)?.isQuarantined) {
      throw new ConnectError(`Sandbox ${sandboxId} cannot be used`, Code.DataLoss)
    }
  }
  const setPausing = (sandboxId: string, isPausing: boolean) =>
    markPausing(state, sandboxId, isPausing)
  const methods: Methods = {
    async pauseSandbox({ sandboxId, keepMemory, generation }) {
      failures.throwIfDown()
      checkReadable(sandboxId)
      checkGeneration(state, { sandboxId, generation })
      const earlier = paused.get(sandboxId)
      if (earlier) return { keptId: earlier.keptId ?? '' }
      if (!running.has(sandboxId)) throw notFound()
      if (keepMemory && !keepsMemory()) throw new ConnectError('runc', Code.FailedPrecondition)
      setPausing(sandboxId, true)
      try {
        await failures.apply('pause')
        if (keepMemory) await failures.apply('keepMemory')
      } catch (error) {
        setPausing(sandboxId, false)
        throw error
      }
      const sandbox = running.get(sandboxId)
      if (!sandbox) throw notFound()
      running.delete(sandboxId)
      const content = { ...sandbox, isPausing: false, keepsMemory: keepMemory }
      const keptId = keep(state, sandboxId, content)
      events.publish({ case: 'paused', value: { sandboxId } })
      await failures.apply('pause', 'after')
      return { sizeBytes: sizeOf(sandboxId, keepMemory), keptId }
    },
    fetchSandbox: (request) => fetchPaused(state, request, fetchLog),
    async resumeSandbox(request) {
      const { sandboxId, boot, accessToken, network, ingress, generation } = request
      failures.throwIfDown()
      checkReadable(sandboxId)
      checkGeneration(state, { sandboxId, generation })
      const current = running.get(sandboxId)
      if (current) return { sandbox: toMessage(sandboxId, current) }
      paused.set(sandboxId, { ...findPaused(state, request), generation })
      await failures.apply('resume')
      const found = paused.get(sandboxId)
      if (!found) throw notFound()
      const { keepsMemory: hasMemory, keptGeneration: _kept, keptId: _id, ...sandbox } = found
      paused.delete(sandboxId)
      const boots = sandbox.boots + (boot || !hasMemory ? 1 : 0)
      const address = state.newAddress()
      const resumed = { ...sandbox, accessToken, network, ingress, boots, address }
      running.set(sandboxId, resumed)
      events.publish({ case: 'started', value: toMessage(sandboxId, resumed) })
      await failures.apply('resume', 'after')
      return { sandbox: toMessage(sandboxId, resumed) }
    },
  }
  return { methods }
}

/** Returns the paused sandbox whose files are on the node. */
function findPaused(
  { paused }: NodeState,
  wanted: { readonly sandboxId: string; readonly keptGeneration: number },
): PausedSandbox {
  const found = paused.get(wanted.sandboxId)
  if (!found || isOlder(found, wanted)) throw notFound()
  if (found.isEvicted) throw refused('evicted', 'sandbox_evicted')
  return found
}

function isOlder(
  { keptGeneration }: PausedSandbox,
  wanted: { readonly keptGeneration: number },
): boolean {
  return keptGeneration !== undefined && keptGeneration < wanted.keptGeneration
}

/** Returns the random ID of the pause. */
function keep({ paused, objects }: NodeState, sandboxId: string, sandbox: PausedSandbox): string {
  const keptId = randomLabel(12)
  const content = { ...sandbox, keptGeneration: sandbox.generation, keptId }
  paused.set(sandboxId, content)
  objects?.set(keyOf(sandboxId, sandbox.generation), content)
  return keptId
}

async function fetchPaused(
  state: NodeState,
  request: Pick<FetchSandboxRequest, 'sandboxId' | 'keptGeneration' | 'keptId' | 'generation'>,
  fetchLog: (id: string) => void,
) {
  const { sandboxId, keptGeneration, keptId, generation } = request
  await state.failures.apply('fetch')
  checkGeneration(state, { sandboxId, generation })
  const content = state.objects?.get(keyOf(sandboxId, keptGeneration))
  if (!content || content.keptId !== keptId) throw notFound()
  const earlier = state.paused.get(sandboxId)
  if (earlier && !isOlder(earlier, request)) {
    const isSame = earlier.keptGeneration === keptGeneration && earlier.keptId === keptId
    if (isSame && !earlier.isEvicted) return {}
    if (!isSame) throw new ConnectError('there is content that is not older', Code.AlreadyExists)
  }
  fetchLog(sandboxId)
  state.paused.set(sandboxId, { ...content, generation })
  await state.failures.apply('fetch', 'after')
  return {}
}

function keyOf(sandboxId: string, keptGeneration: number): string {
  return `${sandboxId}.${keptGeneration}`
}

function markPausing({ running, events }: NodeState, sandboxId: string, isPausing: boolean): void {
  const sandbox = running.get(sandboxId)
  if (!sandbox) return
  const changed = { ...sandbox, isPausing }
  running.set(sandboxId, changed)
  if (isPausing) events.publish({ case: 'pausing', value: { sandboxId } })
  else events.publish({ case: 'started', value: toMessage(sandboxId, changed) })
}

/** Returns paused and quarantined sandboxes as the node protocol reports them. */
export function listPaused({ paused, objects }: Pick<NodeState, 'paused' | 'objects'>) {
  return [...paused].map(([sandboxId, sandbox]) => ({
    sandboxId,
    address: '',
    state: sandbox.isQuarantined ? SandboxState.QUARANTINED : SandboxState.PAUSED,
    keepsMemory: sandbox.keepsMemory,
    generation: sandbox.isQuarantined ? 0 : sandbox.generation,
    keptGeneration: sandbox.keptGeneration ?? 0,
    keptId: sandbox.keptId ?? '',
    isDurable: isStored(objects, sandboxId, sandbox),
  }))
}

/** Whether the object store has this content of a sandbox. */
export function isStored(
  objects: NodeState['objects'],
  sandboxId: string,
  { keptGeneration = 0, keptId }: Pick<PausedSandbox, 'keptGeneration' | 'keptId'>,
): boolean {
  const content = objects?.get(keyOf(sandboxId, keptGeneration))
  return content !== undefined && content.keptId === keptId
}
