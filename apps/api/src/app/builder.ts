import type { Clock } from '@atoll/kit/clock'
import { Fault } from '@atoll/kit/fault'
import { newTemplateId } from '@atoll/kit/id'
import type { Logger } from '@atoll/kit/log'
import { failures } from '../domain/build.ts'
import type { Build, BuildFailure, BuildOutcome, BuildStore } from '../domain/build.ts'
import type { BuildLogStore } from '../domain/build-log.ts'
import type { BuildNode } from '../domain/build-node.ts'
import type { Recipe } from '../domain/recipe.ts'
import type { TemplateStore } from '../domain/template.ts'
import { createBuildLog } from './build-log.ts'
import type { BuildLog } from './build-log.ts'
import { findParent } from './find-parent.ts'

/**
 * Carries out builds. Which are under way is in the records, with this process as their holder; what it holds there and
 * does not have in hands here is a leftover.
 */
export interface Builder {
  /** Returns once it is under way. A fault when it does not wait. */
  start(order: BuildWork): Promise<void>
  /** Those that this process has in hands and the records say so too. */
  list(): readonly HeldBuild[]
  isUnderway(buildId: string): boolean
  /** Whether the node is making this template for it. */
  isMaking(nodeTemplateId: string): boolean
  /** It ends with this failure, unless there was another before. */
  abort(buildId: string, failure: BuildFailure): void
  /** Aborts all, and returns once the records say so. */
  close(): Promise<void>
}

export interface HeldBuild {
  readonly id: string
  /** Undefined: the node has others to make first. */
  readonly startedAt: Date | undefined
}

export interface BuildWork {
  readonly build: Build
  readonly teamId: string
  readonly recipe: Recipe
}

interface BuilderPorts {
  readonly builds: BuildStore
  readonly logs: BuildLogStore
  readonly templates: TemplateStore
  readonly node: BuildNode
  readonly clock: Clock
  readonly processId: string
  readonly log: Logger
  /** Something of it may have to be removed from the node. */
  readonly onEnded: () => void
}

interface Underway extends BuildWork {
  readonly nodeTemplateId: string
  /** When it was its turn; until then, when it was asked for. */
  startedAt: Date
  hasTurn: boolean
  readonly stop: AbortController
  hasBegun: boolean
  /** Where it is, for failures that do not say. */
  step: string
  /** Why it was aborted: the first reason is kept. */
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
      const work = toUnderway(order, clock.now())
      underway.set(id, work)
      try {
        const by = { holder, nodeTemplateId: work.nodeTemplateId }
        if (!(await builds.begin(id, by, clock.now()))) throw notWaiting(id)
      } catch (error) {
        forget(id)
        throw error
      }
      work.hasBegun = true
      work.ended = carryOut(ports, work).finally(() => forget(id))
    },
    list: () =>
      [...underway.values()]
        .filter(({ hasBegun }) => hasBegun)
        .map(({ build, startedAt, hasTurn }) => ({
          id: build.id,
          startedAt: hasTurn ? startedAt : undefined,
        })),
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

function toUnderway(order: BuildWork, startedAt: Date): Underway {
  return {
    ...order,
    nodeTemplateId: newTemplateId(),
    startedAt,
    hasTurn: false,
    stop: new AbortController(),
    hasBegun: false,
    step: 'base',
    failure: undefined,
    ended: Promise.resolve(),
  }
}

async function carryOut(ports: BuilderPorts, work: Underway): Promise<void> {
  const { builds, logs, clock, processId, log } = ports
  const { id } = work.build
  const buildLog = createBuildLog(logs, id, (error) => {
    log.warn({ err: error, buildId: id }, 'some of what a build said was not kept')
  })
  const outcome = await make(ports, work, buildLog).catch((error: unknown): BuildOutcome => {
    return { failure: work.failure ?? explain(error, work, log) }
  })
  // First: clients stop reading once a build is over and they have seen all that it said.
  await buildLog.flush()
  await builds.finish(id, processId, outcome, clock.now()).catch((error: unknown) => {
    log.warn({ err: error, buildId: id }, 'the end of a build could not be written')
  })
}

async function make(
  { templates, node, clock }: BuilderPorts,
  work: Underway,
  buildLog: BuildLog,
): Promise<BuildOutcome> {
  const { build, teamId, recipe, nodeTemplateId, stop } = work
  const { parent, resources: least } = await findParent(templates, recipe, teamId)
  const { cpuCount, memoryMb, diskSizeMb } = build.resources
  const resources = {
    cpuCount,
    memoryMb,
    diskSizeMb: Math.max(diskSizeMb, least.diskSizeMb),
  }
  const order = { nodeTemplateId, parent, teamId, resources, recipe }
  let outcome: BuildOutcome | undefined
  for await (const event of node.build(order, stop.signal)) {
    if (!work.hasTurn) Object.assign(work, { hasTurn: true, startedAt: clock.now() })
    if (event.type === 'done') outcome = { resources }
    else if (event.type === 'failed') outcome = { failure: event.failure }
    else {
      work.step = event.entry.step
      await buildLog.add(event.entry)
    }
  }
  if (outcome) return outcome
  throw new Error('the node ended a build without saying how it went')
}

/** What the author of the steps can do something about is said; the rest is for our log. */
function explain(error: unknown, { build, step }: Underway, log: Logger): BuildFailure {
  if (error instanceof Fault && error.kind !== 'internal') return { message: error.message, step }
  log.error({ err: error, buildId: build.id }, 'a build failed')
  return { message: 'The build failed inside the server: its log says why; build it again', step }
}

export function notWaiting(id: string): Fault {
  return new Fault(
    'invalid',
    'build_not_waiting',
    `Build ${id} does not wait to be started: ask for another one`,
  )
}

function stopping(): Fault {
  return new Fault('unavailable', 'server_stopping', 'The server is stopping; try again')
}
