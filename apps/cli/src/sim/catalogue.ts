import { failure } from './http.ts'
import type { Reply, SimulatedRequest } from './http.ts'

/** States that the only template of the catalogue takes, one per request; the last one stays. */
export type SimulatedInstall = object[]

export function answerCatalogue(states: SimulatedInstall, request: SimulatedRequest): Reply {
  const { method, rest } = request
  const state = states.length > 1 ? states.shift() : states[0]
  const entry = { name: 'tools', templateName: 'tools-v1', description: 'Tools', ...state }
  if (method === 'GET') return { status: 200, body: [entry] }
  const isKnown = rest[0] === 'tools'
  return isKnown ? { status: 202, body: entry } : failure(404, `no template ${rest[0]}`)
}
