import { rotateEncryptionKey } from '@atoll/contracts/encryption'
import type { FastifyInstance } from 'fastify'
import type { Rotation } from '../app/encryption/rotate.ts'
import type { Authenticate } from '../app/teams/auth.ts'
import { addAdminRoute } from './server/route.ts'

export function addEncryptionRoutes(
  server: FastifyInstance,
  routes: { readonly authenticate: Authenticate; readonly rotation: Rotation },
): void {
  addAdminRoute(server, rotateEncryptionKey, routes.authenticate, async () => {
    const { currentKeyId, droppedKeyIds, keptKeyIds, ...result } = await routes.rotation.rotate()
    const body = {
      ...{ ...result, currentKeyID: currentKeyId },
      ...{ droppedKeyIDs: [...droppedKeyIds], keptKeyIDs: [...keptKeyIds] },
    }
    return { status: 200, body }
  })
}
