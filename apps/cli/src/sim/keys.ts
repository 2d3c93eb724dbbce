import { randomUUID } from 'node:crypto'
import { failure } from './http.ts'
import type { SimulatedRequest, Reply } from './http.ts'

/** Key names by ID. */
export type SimulatedKeys = Map<string, string>

export function answerKeys(keys: SimulatedKeys, { method, rest, body }: SimulatedRequest): Reply {
  const [id = ''] = rest
  if (method === 'GET') return { status: 200, body: [...keys].map(describeKey) }
  if (method === 'DELETE') {
    return keys.delete(id) ? { status: 204 } : failure(404, `API key ${id} not found`)
  }
  const created = [randomUUID(), String(body['name'])] as const
  keys.set(...created)
  return { status: 201, body: { ...describeKey(created), key: 'e2b_new' } }
}

function describeKey([id, name]: readonly [string, string]) {
  const mask = {
    prefix: 'e2b_',
    valueLength: 40,
    maskedValuePrefix: '12',
    maskedValueSuffix: '89ab',
  }
  return { id, name, mask, createdAt: new Date().toISOString(), createdBy: null, lastUsed: null }
}
