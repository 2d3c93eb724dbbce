import { once } from 'node:events'
import { get } from 'node:http'
import { dirname, join } from 'node:path'
import type { Config } from './config.ts'
import { startEnvd } from './envd.ts'

/**
 * Starts envd, answers one request and stops, so that Node.js fills its compile cache. This runs on the host, at
 * build time: it must not touch files outside the folder of the state file, and must listen on loopback only.
 */
export async function warmCompileCache(config: Config): Promise<void> {
  const folder = dirname(config.stateFile)
  const envd = await startEnvd({
    ...config,
    port: 0,
    host: '127.0.0.1',
    variableFolder: join(folder, 'variables'),
    metadataFolder: join(folder, 'metadata'),
  })
  const request = get({ host: '127.0.0.1', port: envd.port, path: '/health', agent: false })
  const [response] = await once(request, 'response')
  response.resume()
  await once(response, 'end')
  await envd.close()
}
