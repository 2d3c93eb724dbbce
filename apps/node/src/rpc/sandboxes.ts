import type { NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Fault } from '@atoll/kit/fault'
import type { ServiceImpl } from '@connectrpc/connect'
import type { SandboxEvents } from '../app/lifecycle/events.ts'
import type { Sandboxes } from '../app/lifecycle/sandboxes.ts'
import type { ObjectAccess } from '../app/objects/object-access.ts'
import type { WarmPools } from '../app/pools/warm-pools.ts'
import { checkId, shapeOf } from '../domain/sandboxes/cell.ts'
import type { PausedSandbox, RunningSandbox } from '../domain/sandboxes/sandbox.ts'
import {
  pausing,
  started,
  toEvent,
  toMessage,
  toPolicy,
  toQuarantinedMessage,
  toRules,
} from './messages.ts'

type Service = ServiceImpl<typeof NodeService>

/** Bounds how long the object store is asked for one call. */
const maxStoredQuery = 200

/** Methods that change sandboxes. */
export function sandboxMethods(
  sandboxes: Sandboxes,
  pools: WarmPools,
): Pick<
  Service,
  | 'createSandbox'
  | 'nameReadySandbox'
  | 'pauseSandbox'
  | 'resumeSandbox'
  | 'snapshotSandbox'
  | 'updateNetwork'
> {
  return {
    async createSandbox(request, { signal }) {
      const { sandboxId, generation, envVars, accessToken, snapshotId, isNamed } = request
      const created = await sandboxes.create({
        shape: shapeOf(request),
        owner: { sandboxId, ...(generation && { generation }), envVars, ...toPolicy(request) },
        accessToken,
        snapshotId,
        isNamed,
        signal,
      })
      return { sandbox: toMessage(created) }
    },

    async nameReadySandbox({ sandboxId, accessToken }, { signal }) {
      checkId(sandboxId)
      return pools.preassign({ sandboxId, accessToken }, signal)
    },

    async pauseSandbox({ sandboxId, keepMemory, generation }) {
      const paused = await sandboxes.pause(sandboxId, { keepMemory, generation })
      return { sizeBytes: BigInt(paused.sizeBytes), keptId: paused.keptId ?? '' }
    },

    async resumeSandbox(message, { signal }) {
      const { sandboxId, accessToken, boot, generation, keptGeneration } = message
      const content = { sandboxId, boot, generation, keptGeneration }
      const request = { ...content, accessToken, ...toPolicy(message), signal }
      return { sandbox: toMessage(await sandboxes.resume(request)) }
    },

    async snapshotSandbox({ sandboxId, snapshotId, generation, copies }) {
      const taken = await sandboxes.snapshot(sandboxId, snapshotId, { generation, copies })
      const { keepsMemory, sizeBytes } = taken
      return { keepsMemory, sizeBytes: BigInt(sizeBytes) }
    },

    async updateNetwork({ sandboxId, network, generation }) {
      const rules = network ? toRules(network) : { allowOut: [], denyOut: [] }
      await sandboxes.setNetwork(sandboxId, rules, generation)
      return {}
    },
  }
}

/** Methods that also concern the object store. */
export function movingMethods(
  sandboxes: Pick<Sandboxes, 'kill'>,
  objects: ObjectAccess,
): Pick<Service, 'fetchSandbox' | 'killSandbox' | 'deleteObjects' | 'findStored'> {
  return {
    async fetchSandbox({ sandboxId, keptGeneration, keptId, generation, boot, waitSeconds }) {
      checkId(sandboxId)
      if (keptId !== '') checkId(keptId)
      const content = { keptGeneration, ...(keptId !== '' && { keptId }) }
      const request = { sandboxId, ...content, generation, boot }
      const waitMs = waitSeconds === 0 ? undefined : waitSeconds * 1_000
      const { isUnderway, receivedBytes } = await objects.fetchSandbox(request, waitMs)
      return { isUnderway, receivedBytes: BigInt(receivedBytes) }
    },

    async killSandbox({ sandboxId, generation, deleteObjects }) {
      const isElsewhere = objects.hasObjects && !deleteObjects
      await sandboxes.kill(sandboxId, { generation, isElsewhere })
      // Not before: a kill for an older generation is refused.
      if (deleteObjects) await objects.deleteObjects('sandboxes', sandboxId)
      else await objects.forgetSandbox(sandboxId)
      return {}
    },

    async deleteObjects({ sandboxes: ended }) {
      for (const { sandboxId } of ended) checkId(sandboxId)
      await objects.deleteEnded(ended)
      return {}
    },

    async findStored({ contents, snapshotIds, templateIds }, { signal }) {
      const paused = contents.flatMap(({ sandboxId, keptId }) => [sandboxId, keptId])
      const count = contents.length + snapshotIds.length + templateIds.length
      if (count > maxStoredQuery) {
        const message = `Ask for at most ${maxStoredQuery} contents at a time, not ${count}`
        throw new Fault('invalid', 'too_many_ids', message)
      }
      ;[...paused, ...snapshotIds, ...templateIds].forEach(checkId)
      const found = await objects.findStored({ contents, snapshotIds, templateIds }, signal)
      return {
        contents: [...found.contents],
        snapshotIds: [...found.snapshotIds],
        templateIds: [...found.templateIds],
      }
    },
  }
}

/** Methods that list sandboxes and report their changes. */
export function sandboxViewMethods(
  sandboxes: Sandboxes,
  events: SandboxEvents,
  objects: ObjectAccess,
): Pick<Service, 'getSandbox' | 'listSandboxes' | 'watchSandboxes'> {
  /** Running sandboxes are in the store at most with older content. */
  const describe = (sandbox: RunningSandbox | PausedSandbox) => {
    if ('slot' in sandbox) {
      return toMessage(sandbox, sandboxes.isPausing(sandbox.record.owner.sandboxId))
    }
    return { ...toMessage(sandbox), isDurable: objects.isDurable(sandbox) }
  }
  return {
    getSandbox({ sandboxId }) {
      const sandbox = sandboxes.get(sandboxId)
      if (!sandbox && sandboxes.isQuarantined(sandboxId)) {
        return { sandbox: toQuarantinedMessage(sandboxId) }
      }
      if (!sandbox)
        throw new Fault(
          'not_found',
          'sandbox_not_found',
          `Sandbox ${sandboxId} does not exist on this node`,
        )
      return { sandbox: describe(sandbox) }
    },

    listSandboxes: () => ({
      sandboxes: [
        ...sandboxes.running().map(describe),
        ...sandboxes.paused().map(describe),
        ...sandboxes.quarantined().map(toQuarantinedMessage),
      ],
    }),

    async *watchSandboxes(_request, { signal }) {
      // Subscribe before reading the list: an event in between is seen twice rather than never.
      const changes = events.watch(signal)
      for (const sandbox of sandboxes.running()) {
        yield started(sandbox)
        const { sandboxId } = sandbox.record.owner
        if (sandboxes.isPausing(sandboxId)) yield pausing(sandboxId)
      }
      yield { event: { case: 'synced' as const, value: {} } }
      for await (const event of changes) yield toEvent(event)
    },
  }
}
