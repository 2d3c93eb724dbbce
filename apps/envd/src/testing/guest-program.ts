import { createHash, randomUUID } from 'node:crypto'
import { access, glob, readFile, rename } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'

/** Compiles the guest program, once for each version of its sources. */
export async function buildGuestProgram(): Promise<string> {
  const folder = join(import.meta.dirname, '../../guest')
  const sources = await Array.fromAsync(glob(join(folder, '*.{c,h}')))
  const hash = createHash('sha256')
  for (const source of sources.toSorted()) hash.update(await readFile(source))
  const program = join(tmpdir(), `atoll-guest-${hash.digest('hex').slice(0, 16)}`)
  if (await exists(program)) return program
  const fresh = `${program}-${randomUUID()}`
  const code = sources.filter((source) => source.endsWith('.c'))
  await run('musl-gcc', ['-static', '-O1', '-o', fresh, ...code])
  await rename(fresh, program) // atomic, because other tests may look for the program right now
  return program
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
