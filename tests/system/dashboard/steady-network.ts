import { createHash, randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readFile, rename } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { run } from '@atoll/kit/run'

const source = join(import.meta.dirname, 'steady-network.c')

/** Returns a library that hides changes of the host's network interfaces from Chromium, as `steady-network.c` explains. */
export async function buildSteadyNetwork(): Promise<string> {
  const hash = createHash('sha256').update(await readFile(source))
  const library = join(tmpdir(), `atoll-steady-network-${hash.digest('hex').slice(0, 16)}.so`)
  if (existsSync(library)) return library
  const fresh = `${library}-${randomUUID()}`
  // Chromium's own C library has the functions.
  const flags = ['-shared', '-fPIC', '-nostdlib', '-Os', '-s', '-Wall', '-Werror']
  await run('musl-gcc', [...flags, '-o', fresh, source])
  await rename(fresh, library) // atomic, because other tests may look for the library right now
  return library
}
