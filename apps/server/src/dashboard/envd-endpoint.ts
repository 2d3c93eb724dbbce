import { createServer } from 'node:http'
import { once } from 'node:events'
import { edgeServerOptions } from '@atoll/edge'
import type { Edge } from '@atoll/edge'

/**
 * Listens on loopback for the dashboard's own requests to envd. Its edge cannot resume sandboxes, so viewing a paused
 * sandbox never resumes it. envd checks its token here as everywhere.
 */
export async function openEnvdEndpoint(
  edge: Edge,
): Promise<{ url: string; close(): Promise<void> }> {
  const server = createServer(edgeServerOptions, (req, res) => edge.handle(req, res))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const address = server.address()
  if (address === null || typeof address === 'string') throw new Error('no port for the dashboard')
  return {
    url: `http://127.0.0.1:${address.port}`,
    async close() {
      server.closeAllConnections()
      server.close()
      await edge.close()
    },
  }
}
