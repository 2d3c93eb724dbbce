import { failure } from './http.ts'
import type { Reply, SimulatedRequest } from './http.ts'

/** Changed files by path. A side without content is binary. */
export type SimulatedChanges = Map<string, { before?: SimulatedSide; after?: SimulatedSide }>

export interface SimulatedSide {
  readonly content?: string
  readonly isTruncated?: boolean
  readonly type?: string
}

/** Returns two changes per page. */
export function answerChanges(changes: SimulatedChanges, { url, rest }: SimulatedRequest): Reply {
  const path = url.searchParams.get('path') ?? '/'
  if (rest[2] === 'content') {
    const { before, after } = changes.get(path) ?? {}
    if (!before && !after) return failure(404, `The sandbox has not changed ${path}`)
    const body = { path, ...(before && { before: toSide(before) }) }
    return { status: 200, body: { ...body, ...(after && { after: toSide(after) }) } }
  }
  const skip = Number(url.searchParams.get('nextToken') ?? 0)
  const all = [...changes].filter(([name]) => name.startsWith(path))
  const listed = all.slice(skip, skip + 2).map(([name, { before, after }]) => ({
    path: name,
    kind: !before ? 'added' : after ? 'modified' : 'deleted',
    type: (after ?? before)?.type ?? 'file',
    sizeBytes: 1,
    mode: 0o644,
    modifiedAt: '2026-01-01T00:00:00Z',
  }))
  const next = all.length > skip + 2 ? { nextToken: String(skip + 2) } : {}
  return { status: 200, body: { changes: listed, isComplete: true, ...next } }
}

function toSide({ type = 'file', isTruncated = false, content }: SimulatedSide) {
  return { type, sizeBytes: 1, mode: 0o644, isTruncated, ...(content !== undefined && { content }) }
}
