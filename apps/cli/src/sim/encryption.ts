import { failure } from './http.ts'
import type { Reply, SimulatedRequest } from './http.ts'

/** Answers a rotation in which one record could not be read. */
export function answerRotation({ method, rest }: SimulatedRequest): Reply {
  if (method !== 'POST' || rest.join('/') !== 'encryption/rotate') return failure(404, 'not here')
  return {
    status: 200,
    body: {
      ...{ currentKeyID: 'bb', isNewKey: true, resealed: 5, unreadable: 1 },
      ...{ droppedKeyIDs: [], keptKeyIDs: ['aa'] },
    },
  }
}
