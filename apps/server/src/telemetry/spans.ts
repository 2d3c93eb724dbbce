/** Spans of one process: the current one follows asynchronous calls. */
import { AsyncLocalStorage } from 'node:async_hooks'
import { randomBytes } from 'node:crypto'

export interface Span {
  readonly traceId: string
  readonly spanId: string
  readonly parentId?: string | undefined
  readonly isServer: boolean
  readonly startMs: number
  name: string
  endMs: number
  hasFailed: boolean
  readonly attributes: Record<string, string | number>
}

/** Context of a caller, from its `traceparent` header (W3C Trace Context). */
export interface RemoteParent {
  readonly traceId: string
  readonly parentId: string
  readonly isSampled: boolean
}

export function parseTraceparent(header: unknown): RemoteParent | undefined {
  const pattern = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:-|$)/
  const [, traceId, parentId, flags = '00'] = pattern.exec(String(header)) ?? []
  if (!traceId || !parentId || /^0+$/.test(traceId) || /^0+$/.test(parentId)) return undefined
  return { traceId, parentId, isSampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

export type IsSampled = (traceId: string, parent: RemoteParent | undefined) => boolean

export interface Spans {
  /** Starts a trace, or continues that of the caller. Returns undefined if the trace is not sampled. */
  startRequest(name: string, parent: RemoteParent | undefined): Span | undefined
  /** Runs work in the context of a span. */
  within<T>(span: Span, work: () => T): T
  current(): Span | undefined
  end(span: Span): void
  /** Runs a step as a child of the current span; without one, runs it plainly. */
  step<T>(name: string, work: () => Promise<T>): Promise<T>
}

export function createSpans(isSampled: IsSampled, onEnd: (span: Span) => void): Spans {
  const context = new AsyncLocalStorage<Span>()
  const start = (
    name: string,
    { traceId, parentId, isServer }: Pick<Span, 'traceId' | 'parentId' | 'isServer'>,
  ): Span => {
    const ids = { traceId, spanId: randomHex(8), parentId }
    return { ...ids, isServer, startMs: nowMs(), name, endMs: 0, hasFailed: false, attributes: {} }
  }
  const end = (span: Span) => {
    span.endMs = nowMs()
    onEnd(span)
  }
  return {
    startRequest(name, parent) {
      const traceId = parent?.traceId ?? randomHex(16)
      if (!isSampled(traceId, parent)) return undefined
      return start(name, { traceId, parentId: parent?.parentId, isServer: true })
    },
    within: (span, work) => context.run(span, work),
    current: () => context.getStore(),
    end,
    async step(name, work) {
      const parent = context.getStore()
      if (!parent) return work()
      const { traceId, spanId: parentId } = parent
      const span = start(name, { traceId, parentId, isServer: false })
      try {
        return await context.run(span, work)
      } catch (error) {
        span.hasFailed = true
        throw error
      } finally {
        end(span)
      }
    },
  }
}

function randomHex(bytes: number): string {
  return randomBytes(bytes).toString('hex')
}

function nowMs(): number {
  return performance.timeOrigin + performance.now()
}
