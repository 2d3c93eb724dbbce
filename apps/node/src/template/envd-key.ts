import { keyOfSources } from '../linux/files/source-key.ts'

/** All sources that end up in the runtime, and the lockfile for dependencies. */
const sources = [
  'apps/envd/src/**/*.ts',
  'apps/envd/guest/*.{c,h}',
  'apps/envd/preload/*.c',
  'apps/node/src/template/envd-build.ts',
  'packages/kit/src/**/*.ts',
  'packages/contracts/gen/**/*.js',
  'package-lock.json',
]

/** Returns a key that changes when the runtime would. */
export function sourceKey(repository: string, nodeVersion: string): Promise<string> {
  return keyOfSources(repository, sources, nodeVersion)
}
