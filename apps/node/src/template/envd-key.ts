import { createHash } from 'node:crypto'
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'

/** Everything of ours that ends up in the runtime, and the lockfile for what is not ours. */
const sources = [
  'apps/envd/src/**/*.ts',
  'apps/envd/guest/*.{c,h}',
  'apps/node/src/template/envd-build.ts',
  'packages/kit/src/*.ts',
  'packages/contracts/gen/**/*.js',
  'package-lock.json',
]

/** Sixteen hex digits that change when the runtime would. Reading the sources takes about 10 ms. */
export async function sourceKey(repository: string, nodeVersion: string): Promise<string> {
  const found = await Array.fromAsync(glob(sources, { cwd: repository }))
  const paths = found.filter((path) => !path.endsWith('.test.ts'))
  paths.sort((a, b) => (a < b ? -1 : 1))
  const hash = createHash('sha256').update(`${nodeVersion} ${process.arch}`)
  const contents = await Promise.all(paths.map((path) => readFile(join(repository, path))))
  for (const [index, content] of contents.entries()) {
    hash.update(`\0${paths[index]}\0${content.length}\0`).update(content)
  }
  return hash.digest('hex').slice(0, 16)
}
