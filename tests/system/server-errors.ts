import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Returns the last errors that the server has logged, with their causes. */
export async function serverErrors(dataDir: string, limit = 8): Promise<string> {
  const log = await readFile(join(dataDir, 'logs/server.log'), 'utf8')
  const lines = log.split('\n').filter((line) => line.includes('"level":50'))
  return lines
    .slice(-limit)
    .map((line) => line.slice(0, 1500))
    .join('\n')
}
