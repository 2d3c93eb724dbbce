import { randomUUID } from 'node:crypto'
import { failure } from './reply.ts'
import type { Asked, Reply } from './reply.ts'

/** Names by id. */
export type SimulatedKeys = Map<string, string>

export function answerKeys(keys: SimulatedKeys, { method, rest, body }: Asked): Reply {
  const [id = ''] = rest
  if (method === 'GET') return { status: 200, body: [...keys].map(shownKey) }
  if (method === 'DELETE') {
    return keys.delete(id) ? { status: 204 } : failure(404, `API key ${id} not found`)
  }
  const created = [randomUUID(), String(body['name'])] as const
  keys.set(...created)
  return { status: 201, body: { ...shownKey(created), key: 'e2b_new' } }
}

function shownKey([id, name]: readonly [string, string]) {
  const mask = {
    prefix: 'e2b_',
    valueLength: 40,
    maskedValuePrefix: '12',
    maskedValueSuffix: '89ab',
  }
  return { id, name, mask, createdAt: new Date().toISOString(), createdBy: null, lastUsed: null }
}
