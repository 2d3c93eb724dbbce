import { once } from 'node:events'
import { get } from 'node:http'
import { dirname, join } from 'node:path'
import type { Config } from './config.ts'
import { startEnvd } from './envd.ts'

/**
 * Starts, answers once and ends, so that Node.js compiles what every start needs. This is not yet inside a sandbox:
 * nothing outside the folder of the state file may be touched, and nobody else be answered.
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
