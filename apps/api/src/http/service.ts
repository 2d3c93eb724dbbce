import { toOpenApi } from '@atoll/contracts/openapi'
import { operations } from '@atoll/contracts/operations'
import { getDocs, getHealth, getOpenApi } from '@atoll/contracts/service'
import { Fault } from '@atoll/kit/fault'
import type { FastifyInstance } from 'fastify'
import { renderReference } from './reference/reference-page.ts'
import { addOpenRoute } from './server/route.ts'

/** Version of the API, not of Atoll. */
const interfaceVersion = '0.1.0'

export function addServiceRoutes(
  server: FastifyInstance,
  /** Runs a cheap query on the store. */
  { probe }: { readonly probe: () => Promise<unknown> },
): void {
  // Created on first use: both together take a good part of a second.
  const document = once(() => toOpenApi(operations, interfaceVersion))
  const page = once(() => renderReference(document()))
  addOpenRoute(server, getOpenApi, async () => ({ status: 200, body: document() }))
  addOpenRoute(server, getDocs, async () => ({ status: 200, ...page() }))
  addOpenRoute(server, getHealth, async () => {
    await probe().catch((error: unknown) => {
      throw new Fault('unavailable', 'unhealthy', 'The database does not answer; try again', {
        cause: error,
      })
    })
    return { status: 200, body: 'Health check successful' }
  })
}

function once<T>(make: () => T): () => T {
  let made: { readonly value: T } | undefined
  return () => (made ??= { value: make() }).value
}
