import type { Logger } from '@atoll/kit/log'
import type { CatalogueParts } from './catalogue.ts'
import { createEndChanges } from '../app/end-changes.ts'
import type { LiveApis } from '../app/live-apis.ts'
import { startLoop } from '../app/loop.ts'
import { reportOnce } from '../app/report-once.ts'
import type { Loop } from '../app/loop.ts'
import type { Member } from '../app/nodes/fleet.ts'
import { startVisits } from '../app/nodes/visits.ts'
import { createSandboxCreation } from '../app/sandboxes/create-sandbox.ts'
import type { CreateSandbox } from '../app/sandboxes/create-sandbox.ts'
import { deleteObjectsOfEnded } from '../app/sandboxes/delete-objects.ts'
import { createEnding } from '../app/sandboxes/ending.ts'
import type { Ending } from '../app/sandboxes/ending.ts'
import { createExpiry } from '../app/sandboxes/expire.ts'
import type { OwnerPorts } from '../app/sandboxes/find-abandoned.ts'
import { createLaunching } from '../app/sandboxes/launch-sandbox.ts'
import type { Launching } from '../app/sandboxes/launch-sandbox.ts'
import { createMoveIfNeeded } from '../app/sandboxes/move-sandbox.ts'
import { createPausing } from '../app/sandboxes/pause-sandbox.ts'
import type { Pausing } from '../app/sandboxes/pause-sandbox.ts'
import { startNamesOfNodes } from '../app/sandboxes/ready-names.ts'
import { deleteEnded, reconcileSandboxes } from '../app/sandboxes/reconcile.ts'
import { createRecoverResumes } from '../app/sandboxes/recover-resumes.ts'
import type { RecoverResumes } from '../app/sandboxes/recover-resumes.ts'
import { createSandboxes } from '../app/sandboxes/sandboxes.ts'
import type { Sandboxes } from '../app/sandboxes/sandboxes.ts'
import { createSettle } from '../app/sandboxes/settle.ts'
import { createStartSandbox } from '../app/sandboxes/start-sandbox.ts'
import type { StartSandbox } from '../app/sandboxes/start-sandbox.ts'
import { createTransitions } from '../app/sandboxes/transitions.ts'
import { startWatch } from '../app/sandboxes/watch.ts'
import { createCopying } from '../app/snapshots/copy-sandbox.ts'
import type { Copying } from '../app/snapshots/copy-sandbox.ts'
import { createEstimateSize } from '../app/snapshots/estimate-size.ts'
import type { FindOrInstall } from '../app/catalogue/find-or-install.ts'
import { atMost } from './at-most.ts'
import type { Core } from './core.ts'
import type { Network } from './network.ts'
import type { SandboxAccess } from './sandbox-access.ts'

/** Use cases for sandboxes, and the loops that keep records and node in agreement. */
export interface SandboxParts extends SandboxUseCases {
  /** Resolves once records and node agree after a crash, even if the node does not answer. */
  readonly reconciled: Promise<void>
  readonly recoverResumes: RecoverResumes
  /** Cancels creates in progress. */
  cancelCreates(): void
  /** Stops all loops. Waits a few seconds for kills, pauses, resumes and copies in progress. */
  close(): Promise<void>
}

interface SandboxUseCases {
  readonly sandboxes: Sandboxes
  readonly create: CreateSandbox
  readonly launching: Launching
  readonly start: StartSandbox
  readonly pausing: Pausing
  readonly copying: Copying
  readonly ending: Ending
}

interface Shared {
  readonly core: Core
  readonly network: Network
  readonly access: SandboxAccess
  readonly findOrInstall: FindOrInstall
  readonly catalogueNodes: CatalogueParts['nodes']
}

const settleLimitMs = 5_000

export function startSandboxes(shared: Shared): SandboxParts {
  const { core } = shared
  const { clock, log } = core
  const closing = new AsyncDisposableStack()
  const stopping = new AbortController()
  const work = createSandboxWork(core)
  closing.defer(() => atMost(settleLimitMs, work.ending.settle()))
  closing.defer(() => atMost(settleLimitMs, work.transitions.settle()))
  const pausing = createPausing(work)
  const expiry = startLoop('expiry', createExpiry({ ...work, pausing, clock, log }), log)
  closing.defer(() => expiry.close())
  const useCases = createUseCases(shared, { work, pausing, expiry, stopping, closing })
  const owners = ownerPorts(core, work, useCases.launching)
  const reconciling = startReconciling(core, work, owners)
  closing.defer(() => reconciling.close())
  return {
    ...useCases,
    reconciled: reconciling.first,
    recoverResumes: createRecoverResumes({ ...work, ...owners }),
    cancelCreates: () => stopping.abort(),
    close: () => closing.disposeAsync(),
  }
}

type Work = ReturnType<typeof createSandboxWork>

/** Creates what several use cases share: kills, transitions and the agreement with the node. */
function createSandboxWork(core: Core) {
  const { stores, fleet, clock, log, limitsOf, templateBytes, checkKept, processId } = core
  const store = stores.sandboxes
  return {
    ...{ store, fleet, clock, limitsOf, templateBytes, checkKept, processId },
    ending: createEnding({ store, fleet, clock, log }),
    transitions: createTransitions({ store }),
    settle: createSettle({ store, fleet, clock, limitsOf }),
    estimateSize: createEstimateSize(fleet),
  }
}

function createUseCases(
  { core, network, access, findOrInstall, catalogueNodes }: Shared,
  parts: {
    readonly work: Work
    readonly pausing: Pausing
    readonly expiry: Loop
    readonly stopping: AbortController
    readonly closing: AsyncDisposableStack
  },
): SandboxUseCases {
  const { work, pausing } = parts
  const { fleet, placing, log, limitsOf, tokenSeed } = core
  const { templates, snapshots } = core.stores
  const { networkAccessOf } = access
  const onEndChanged = createEndChanges(core.clock, () => parts.expiry.nudge())
  const moveIfNeeded = createMoveIfNeeded({ ...work, fleet, placing })
  const start = createStartSandbox({
    moveIfNeeded,
    ...{ ...work, networkAccessOf, onEndChanged, tokenOf: access.requiredTokenOf },
  })
  const names = startNamesOfNodes(fleet, access.envdTokenOf, log)
  parts.closing.defer(() => names.close())
  const launching = createLaunching({
    ...{ ...work, readyNames: names.of, tokenSeed, networkAccessOf, onEndChanged },
    stopping: parts.stopping.signal,
  })
  return {
    sandboxes: createSandboxes({ ...work, templates, start, onEndChanged }),
    create: createSandboxCreation({
      ...{ findOrInstall, catalogueNodes, launching, limitsOf, placing, rules: network.rules },
    }),
    ...{ launching, start, pausing, ending: work.ending },
    copying: createCopying({ ...work, snapshots, log, onEndChanged }),
  }
}

function ownerPorts({ stores, clock }: Core, work: Work, launching: Launching): OwnerPorts {
  return {
    clock,
    leases: stores.background.leases,
    processId: work.processId,
    isUnderway: (id) => launching.isCreating(id) || work.transitions.isUnderway(id),
  }
}

/** Keeps the records of each node in agreement with it. `first` resolves after the first pass for the nodes of now. */
function startReconciling(core: Core, work: Work, owners: OwnerPorts) {
  const { log, fleet, liveApis } = core
  const { sandboxes: store } = core.stores.background
  const ports = { ...work, store, ...owners, onUnknown: createUnknownReport(log) }
  const loops = new Map<Member, Loop>()
  const reconciling = fleet.forEach((member) => {
    const pass = async (signal: AbortSignal) => {
      // Records end only for answers of the epoch that the store knows.
      const { id } = await registerNoted(liveApis, member, signal)
      const node = { id, sandboxes: member.sandboxes }
      return reconcileSandboxes(ports, node, signal)
    }
    const loop = startVisits('reconcile', pass, { fleet, log, isUrgent: true })
    loops.set(member, loop)
    return {
      async close() {
        loops.delete(member)
        await loop.close()
        noteReach(liveApis, member, true)
      },
    }
  })
  const firsts = [...loops.values()].map(({ first }) => first)
  const watching = fleet.forEachRegistered((member) => {
    const onLost = () => loops.get(member)?.nudge()
    return startWatch({ member, ending: work.ending, log, onLost })
  })
  const deletion = startLoop('delete ended sandboxes', () => deleteEnded(work), log)
  const objects = startLoop(
    'delete objects of ended sandboxes',
    (signal) => deleteObjectsOfEnded(work, signal),
    log,
  )
  const waitForAll = async () => void (await Promise.all([deletion.first, ...firsts]))
  return {
    first: waitForAll(),
    async close() {
      await Promise.all([deletion.close(), objects.close(), watching.close(), reconciling.close()])
    },
  }
}

/** Registers a node, and notes whether this process reaches it. */
async function registerNoted(liveApis: LiveApis, member: Member, signal: AbortSignal) {
  try {
    const facts = await member.register(signal)
    noteReach(liveApis, member, true)
    return facts
  } catch (error) {
    noteReach(liveApis, member, false)
    throw error
  }
}

function noteReach(liveApis: LiveApis, member: Member, isReached: boolean): void {
  const id = member.id()
  if (id !== undefined) liveApis.noteReach(id, isReached)
}

function createUnknownReport(log: Logger): (sandboxId: string) => void {
  return reportOnce((sandboxId) =>
    log.warn(
      { event: 'sandbox.unknown', sandboxId },
      'The node has a paused sandbox that no record in the store explains. Atoll keeps it; if the store was restored from an older backup, restore a newer one.',
    ),
  )
}
