import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { newTemplateId } from '@atoll/kit/id'
import type { Logger } from '@atoll/kit/log'
import { failures } from '../../domain/builds/build.ts'
import type { Build, BuildFailure, BuildOutcome, BuildStore } from '../../domain/builds/build.ts'
import type { BuildLogStore } from '../../domain/builds/build-log.ts'
import type { Recipe } from '../../domain/builds/recipe.ts'
import type { TemplateStore } from '../../domain/template.ts'
import { checkIsAt } from './build-home.ts'
import type { BuildHome, BuildHomeNode } from './build-home.ts'
import { createBuildLog } from './build-log.ts'
import type { BuildLog } from './build-log.ts'
import { findParent } from './find-parent.ts'
import type { ParentPorts } from './find-parent.ts'

/**
 * Runs builds. The store records this process as the holder of each running build; a build that the store assigns to
 * this process but that is not in its memory is orphaned.
 */
export interface Builder {
  /** Returns once the build is running. Throws a fault when the build is not waiting. */
  start(order: BuildWork): Promise<void>
  /** Lists the builds that run here and are recorded as running. */
  list(): readonly HeldBuild[]
  isUnderway(buildId: string): boolean
  /** Whether a running build is making this template on the node. */
  isMaking(nodeTemplateId: string): boolean
  /** Fails the build with this failure, unless an earlier one is set. */
  abort(buildId: string, failure: BuildFailure): void
  /** Aborts all builds and returns once the store has their outcome. */
  close(): Promise<void>
}

export interface HeldBuild {
  readonly id: string
  /** Undefined while the build is queued on the node. */
  readonly startedAt: Date | undefined
}

export interface BuildWork {
  readonly build: Build
  readonly teamId: string
  readonly recipe: Recipe
}

interface BuilderPorts extends ParentPorts {
  readonly builds: BuildStore
  readonly logs: BuildLogStore
  readonly templates: TemplateStore
  readonly homeOf: BuildHome
  /** Throws a fault when the team, with the templates on the node, uses more disk than its quota. */
  readonly checkKept: (teamId: string) => Promise<void>
  readonly clock: Clock
  readonly processId: string
  readonly log: Logger
  /** Called when a build ends: the node may have leftovers to remove. */
  readonly onEnded: () => void
}

interface Underway extends BuildWork {
  readonly nodeTemplateId: string
  /** Node that runs the build; undefined until it is chosen. */
  home: BuildHomeNode | undefined
  /** Undefined while the build is queued on the node. */
  startedAt: Date | undefined
  readonly stop: AbortController
  isRecorded: boolean
  /** Current step, for failures that do not name one. */
  step: string
  /** Reason for the abort; the first one wins. */
  failure: BuildFailure | undefined
  ended: Promise<void>
}

export function createBuilder(ports: BuilderPorts): Builder {
  const { builds, clock, processId: holder, onEnded } = ports
  const underway = new Map<string, Underway>()
  let isClosing = false

  const abort = (id: string, failure: BuildFailure): void => {
    const work = underway.get(id)
    if (!work) return
    work.failure ??= failure
    work.stop.abort()
  }
  const forget = (id: string): void => {
    underway.delete(id)
    onEnded()
  }

  return {
    async start(order) {
      const { id } = order.build
      if (isClosing) throw stopping()
      if (underway.has(id)) throw notWaiting(id)
      const work = toUnderway(order)
      underway.set(id, work)
      try {
        work.home = await ports.homeOf(order.teamId)
        const by = { holder, nodeId: work.home.id, nodeTemplateId: work.nodeTemplateId }
        if (!(await builds.begin(id, by, clock.now()))) throw notWaiting(id)
      } catch (error) {
        forget(id)
        throw error
      }
      work.isRecorded = true
      work.ended = runBuild(ports, work).finally(() => forget(id))
    },
    list: () =>
      [...underway.values()]
        .filter(({ isRecorded }) => isRecorded)
        .map(({ build, startedAt }) => ({ id: build.id, startedAt })),
    isUnderway: (id) => underway.has(id),
    isMaking: (nodeTemplateId) =>
      [...underway.values()].some((work) => work.nodeTemplateId === nodeTemplateId),
    abort,
    async close() {
      isClosing = true
      for (const id of underway.keys()) abort(id, failures.abandoned)
      await Promise.all([...underway.values()].map(({ ended }) => ended))
    },
  }
}

function toUnderway(order: BuildWork): Underway {
  return {
    ...order,
    nodeTemplateId: newTemplateId(),
    home: undefined,
    startedAt: undefined,
    stop: new AbortController(),
    isRecorded: false,
    step: 'base',
    failure: undefined,
    ended: Promise.resolve(),
  }
}

async function runBuild(ports: BuilderPorts, work: Underway): Promise<void> {
  const { builds, logs, clock, processId, log } = ports
  const { id } = work.build
  const buildLog = createBuildLog(logs, id, (error) => {
    log.warn({ err: error, buildId: id }, 'part of a build log could not be stored')
  })
  const outcome = await make(ports, work, buildLog).catch((error: unknown): BuildOutcome => {
    return { failure: work.failure ?? explain(error, work, log) }
  })
  // Flush first: clients stop reading once a build has ended and they have its whole log.
  await buildLog.flush()
  await builds.finish(id, processId, outcome, clock.now()).catch((error: unknown) => {
    log.warn(
      { err: error, buildId: id },
      'the result of a build could not be stored; the reconciler closes the build',
    )
  })
}

async function make(
  ports: BuilderPorts,
  work: Underway,
  buildLog: BuildLog,
): Promise<BuildOutcome> {
  const { build, teamId, recipe, nodeTemplateId, stop, home } = work
  const { clock } = ports
  if (!home) throw new Error('no node was chosen for a build')
  const { originNote } = recipe
  if (originNote !== undefined) {
    const message = `[base] ${originNote}`
    await buildLog.add({ at: clock.now(), level: 'info', step: 'base', message })
  }
  const by = { teamId, signal: stop.signal }
  const { parent, resources: least, ...origin } = await findParent(ports, recipe, by)
  checkIsAt(recipe.fromTemplate ?? 'base', origin, home)
  const { cpuCount, memoryMb, diskSizeMb } = build.resources
  const resources = {
    cpuCount,
    memoryMb,
    diskSizeMb: Math.max(diskSizeMb, least.diskSizeMb),
  }
  const order = { nodeTemplateId, parent, teamId, resources, recipe }
  let outcome: BuildOutcome | undefined
  for await (const event of home.builds.build(order, stop.signal)) {
    if (event.type === 'started') work.startedAt = clock.now()
    else if (event.type === 'done') {
      work.step = 'finalize'
      await ports.checkKept(teamId)
      outcome = { resources }
    } else if (event.type === 'failed') outcome = { failure: event.failure }
    else {
      work.step = event.entry.step
      await buildLog.add(event.entry)
    }
  }
  if (outcome) return outcome
  throw new Error('the node ended a build without a result')
}

/** Returns errors that the author of the recipe can fix; logs all others and hides them from the client. */
function explain(error: unknown, { build, step }: Underway, log: Logger): BuildFailure {
  if (error instanceof Fault && error.kind !== 'internal') return { message: error.message, step }
  log.error({ err: error, buildId: build.id }, 'a build failed with an unexpected error')
  return {
    message: 'The build failed with an internal error; the server log has the reason. Try again',
    step,
  }
}

export function notWaiting(id: string): Fault {
  return new Fault(
    'invalid',
    'build_not_waiting',
    `Build ${id} has already been started: request a new build`,
  )
}

function stopping(): Fault {
  return new Fault(
    'unavailable',
    'server_stopping',
    'The server is shutting down; try again in a moment',
  )
}
