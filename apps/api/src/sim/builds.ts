import { LogLevel } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { BuildTemplateRequest, NodeService } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import { Code, ConnectError } from '@connectrpc/connect'
import type { ServiceImpl } from '@connectrpc/connect'
import type { Trouble } from './trouble.ts'

/** Simulated builds, with log entries and results that the test sets. */
export interface SimulatedBuilds {
  /** Received build requests, in order. */
  readonly orders: readonly BuildTemplateRequest[]
  /** IDs of built templates. */
  readonly templates: ReadonlySet<string>
  /** Received archives, keyed by `owner/hash`. */
  readonly files: ReadonlyMap<string, Buffer>
  /** Number of messages of the last archive, and the size of the largest one. */
  readonly lastTransfer: { readonly pieces: number; readonly largestPiece: number }
  /** Sets the log entries of all later builds. */
  say(...entries: readonly SimulatedBuildEntry[]): void
  /** Makes all later builds fail at `step`; undefined makes them succeed again. */
  failAt(step: string | undefined, message?: string): void
  /** Number of running builds. */
  readonly underway: number
  /** Adds a template without a request, as an orphan. */
  plant(templateId: string): void
}

export interface SimulatedBuildEntry {
  readonly at?: number
  readonly level?: 'debug' | 'info' | 'warn' | 'error'
  readonly step?: string
  readonly message: string
}

type Methods = Pick<
  ServiceImpl<typeof NodeService>,
  'buildTemplate' | 'deleteTemplate' | 'listTemplates' | 'findBuildFiles' | 'putBuildFiles'
>

export function simulateBuilds(trouble: Trouble): SimulatedBuilds & { readonly methods: Methods } {
  const orders: BuildTemplateRequest[] = []
  const templates = new Set<string>()
  const files = new Map<string, Buffer>()
  let lastTransfer = { pieces: 0, largestPiece: 0 }
  let entries: readonly SimulatedBuildEntry[] = []
  let failure: { readonly step: string; readonly message: string } | undefined
  let underway = 0

  const methods: Methods = {
    async *buildTemplate(order, { signal }) {
      trouble.refuse()
      if (templates.has(order.templateId)) throw new ConnectError('taken', Code.AlreadyExists)
      orders.push(order)
      underway += 1
      try {
        for (const entry of entries) yield { event: { case: 'log', value: toMessage(entry) } }
        await Promise.race([trouble.meet('build'), aborted(signal)])
        if (failure) {
          yield { event: { case: 'failed', value: failure } }
          return
        }
        templates.add(order.templateId)
        yield { event: { case: 'done', value: { sizeBytes: 1n } } }
      } finally {
        underway -= 1
      }
    },
    async deleteTemplate({ templateId }) {
      await trouble.meet('deleteTemplate')
      templates.delete(templateId)
      return {}
    },
    listTemplates() {
      trouble.refuse()
      return { templateIds: [...templates] }
    },
    findBuildFiles({ ownerId, hash }) {
      trouble.refuse()
      return { present: files.has(`${ownerId}/${hash}`) }
    },
    async putBuildFiles(messages) {
      await trouble.meet('putFiles')
      let key = ''
      const pieces: Uint8Array[] = []
      for await (const { part } of messages) {
        if (part.case === 'files') key = `${part.value.ownerId}/${part.value.hash}`
        if (part.case === 'piece') pieces.push(part.value)
      }
      files.set(key, Buffer.concat(pieces))
      const largestPiece = Math.max(0, ...pieces.map(({ length }) => length))
      lastTransfer = { pieces: pieces.length, largestPiece }
      return {}
    },
  }

  return {
    methods,
    orders,
    templates,
    files,
    get lastTransfer() {
      return lastTransfer
    },
    get underway() {
      return underway
    },
    say: (...said) => void (entries = said),
    failAt(step, message = 'simulated failure') {
      failure = step === undefined ? undefined : { step, message }
    },
    plant: (templateId) => void templates.add(templateId),
  }
}

function toMessage({ at = 0, level = 'info', step = 'base', message }: SimulatedBuildEntry) {
  return { atMs: BigInt(at), level: levels[level], step, message }
}

function aborted(signal: AbortSignal): Promise<never> {
  const { promise, reject } = Promise.withResolvers<never>()
  const stop = () => reject(new ConnectError('nobody waits', Code.Canceled))
  if (signal.aborted) stop()
  else signal.addEventListener('abort', stop)
  return promise
}

const levels = {
  debug: LogLevel.DEBUG,
  info: LogLevel.INFO,
  warn: LogLevel.WARN,
  error: LogLevel.ERROR,
} as const
