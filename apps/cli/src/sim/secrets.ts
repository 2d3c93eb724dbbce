import { failure, page } from './http.ts'
import type { Reply, SimulatedRequest } from './http.ts'

/** Secrets by name, with their values. */
export type SimulatedSecrets = Map<string, { value: string; version: number }>

export function answerSecrets(secrets: SimulatedSecrets, request: SimulatedRequest): Reply {
  const { method, rest, body, url } = request
  const [name = String(body['name'])] = rest
  const known = secrets.get(name)
  if (method === 'GET')
    return page(
      [...secrets.keys()].map((each) => describe(secrets, each)),
      url,
    )
  if (rest.length > 0 && !known) return failure(404, `Secret ${name} was not found`)
  if (method === 'DELETE') {
    secrets.delete(name)
    return { status: 204 }
  }
  if (rest.length === 0 && known) return failure(409, `Secret ${name} exists`)
  secrets.set(name, { value: String(body['value']), version: (known?.version ?? 0) + 1 })
  return { status: rest.length > 0 ? 200 : 201, body: describe(secrets, name) }
}

function describe(secrets: SimulatedSecrets, name: string) {
  const time = new Date().toISOString()
  const currentVersion = secrets.get(name)?.version ?? 0
  const times = { createdAt: time, updatedAt: time }
  return { secretID: `sec_${name}`, name, currentVersion, metadata: { by: 'a\x1b[2Jb' }, ...times }
}
