import { LogLevel } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { BuildTemplateRequest, NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ServiceImpl } from '@connectrpc/connect'
import type { NodeState } from './sandbox.ts'

/** Simulated builds, with log entries and results that the test sets. */
export interface SimulatedBuilds {
  /** Received build requests, in order. */
  readonly requests: readonly BuildTemplateRequest[]
  /** IDs of built templates. */
  readonly templates: ReadonlySet<string>
  /** Received archives, keyed by `owner/hash`. */
  readonly files: ReadonlyMap<string, Buffer>
  /** Number of messages of the last archive, and the size of the largest one. */
  readonly lastTransfer: { readonly pieces: number; readonly largestPiece: number }
  /** Sets the log entries of all later builds. */
  setLog(...entries: readonly SimulatedBuildEntry[]): void
  /** Makes all later builds fail at `step`; undefined makes them succeed again. */
  failAt(step: string | undefined, message?: string): void
  /** Sets the size of all later templates. */
  setSize(sizeBytes: number): void
  /** Makes all later builds wait in the queue of the node, or start at once again. */
  setFull(isFull: boolean): void
  /** Number of running builds. */
  readonly running: number
  /** Adds a template without a request, as an orphan. */
  addOrphan(templateId: string): void
}

export interface SimulatedBuildEntry {
  readonly at?: number
  readonly level?: 'debug' | 'info' | 'warn' | 'error'
  readonly step?: string
  readonly message: string
}

type Methods = Pick<
  ServiceImpl<typeof NodeService>,
  | 'buildTemplate'
  | 'deleteTemplate'
  | 'listTemplates'
  | 'measureTemplates'
  | 'findBuildFiles'
  | 'putBuildFiles'
>

interface BuildState {
  readonly requests: BuildTemplateRequest[]
  readonly templates: Set<string>
  readonly files: Map<string, Buffer>
  readonly failures: NodeState['failures']
  readonly durableFiles: ReadonlySet<string>
  readonly objects: NodeState['objects']
  log: readonly SimulatedBuildEntry[]
  failure: { readonly step: string; readonly message: string } | undefined
  isFull: boolean
  sizeBytes: number
  readonly sizes: Map<string, number>
  running: number
  lastTransfer: SimulatedBuilds['lastTransfer']
}

export function simulateBuilds(
  shared: Pick<NodeState, 'failures' | 'durableFiles' | 'objects'>,
): SimulatedBuilds & { readonly methods: Methods } {
  const state: BuildState = {
    ...{ requests: [], templates: new Set(), files: new Map(), ...shared },
    ...{ log: [], failure: undefined, isFull: false, running: 0 },
    ...{ sizeBytes: 1, sizes: new Map<string, number>() },
    lastTransfer: { pieces: 0, largestPiece: 0 },
  }
  return {
    methods: { ...templateMethods(state), ...fileMethods(state) },
    requests: state.requests,
    templates: state.templates,
    files: state.files,
    get lastTransfer() {
      return state.lastTransfer
    },
    get running() {
      return state.running
    },
    setLog: (...entries) => void (state.log = entries),
    failAt(step, message = 'simulated failure') {
      state.failure = step === undefined ? undefined : { step, message }
    },
    setSize: (sizeBytes) => void (state.sizeBytes = sizeBytes),
    setFull: (isFull) => void (state.isFull = isFull),
    addOrphan: (templateId) => void state.templates.add(templateId),
  }
}

function templateMethods(
  state: BuildState,
): Pick<Methods, 'buildTemplate' | 'deleteTemplate' | 'listTemplates' | 'measureTemplates'> {
  const { templates, failures } = state
  return {
    async *buildTemplate(request, { signal }) {
      failures.throwIfDown()
      if (templates.has(request.templateId)) throw new ConnectError('taken', Code.AlreadyExists)
      state.requests.push(request)
      state.running += 1
      try {
        fetchFiles(state, request)
        if (!state.isFull) yield started
        for (const entry of state.log) yield { event: { case: 'log', value: toMessage(entry) } }
        await Promise.race([failures.apply('build'), aborted(signal)])
        if (state.failure) {
          yield { event: { case: 'failed', value: state.failure } }
          return
        }
        templates.add(request.templateId)
        state.sizes.set(request.templateId, state.sizeBytes)
        yield { event: { case: 'done', value: { sizeBytes: 1n } } }
      } finally {
        state.running -= 1
      }
    },
    async deleteTemplate({ templateId }) {
      await failures.apply('deleteTemplate')
      templates.delete(templateId)
      return {}
    },
    measureTemplates({ templateIds }) {
      failures.throwIfDown()
      const sizes = templateIds.map((id) => (templates.has(id) ? (state.sizes.get(id) ?? 0) : 0))
      return { sizeBytes: BigInt(sizes.reduce((sum, size) => sum + size, 0)) }
    },
    listTemplates() {
      failures.throwIfDown()
      const templateIds = [...templates]
      return { templateIds, durableIds: templateIds.filter((id) => state.durableFiles.has(id)) }
    },
  }
}

/** A build fetches files that the node lacks, if the object store has them. */
function fetchFiles(
  { files, objects }: BuildState,
  { ownerId, steps }: Pick<BuildTemplateRequest, 'ownerId' | 'steps'>,
): void {
  if (!objects || objects.isDown) return
  for (const { filesHash } of steps) {
    const key = `${ownerId}/${filesHash}`
    const stored = objects.buildFiles.get(key)
    if (stored && !files.has(key)) files.set(key, stored)
  }
}

function fileMethods(state: BuildState): Pick<Methods, 'findBuildFiles' | 'putBuildFiles'> {
  const { files, failures, objects } = state
  const isStored = (key: string) => !objects?.isDown && objects?.buildFiles.has(key) === true
  return {
    findBuildFiles({ ownerId, hash }) {
      failures.throwIfDown()
      const key = `${ownerId}/${hash}`
      return { present: files.has(key) || isStored(key) }
    },
    async putBuildFiles(messages) {
      await failures.apply('putFiles')
      let key = ''
      const pieces: Uint8Array[] = []
      for await (const { part } of messages) {
        if (part.case === 'files') key = `${part.value.ownerId}/${part.value.hash}`
        if (part.case === 'piece') pieces.push(part.value)
      }
      files.set(key, Buffer.concat(pieces))
      if (objects && !objects.isDown) objects.buildFiles.set(key, Buffer.concat(pieces))
      const largestPiece = Math.max(0, ...pieces.map(({ length }) => length))
      state.lastTransfer = { pieces: pieces.length, largestPiece }
      return {}
    },
  }
}

function toMessage({ at = 0, level = 'info', step = 'base', message }: SimulatedBuildEntry) {
  return { atMs: BigInt(at), level: levels[level], step, message }
}

function aborted(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = () => reject(new ConnectError('canceled by the client', Code.Canceled))
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop)
  return promise
}

const started = { event: { case: 'started', value: {} } } as const

const levels = {
  debug: LogLevel.DEBUG,
  info: LogLevel.INFO,
  warn: LogLevel.WARN,
  error: LogLevel.ERROR,
} as const
