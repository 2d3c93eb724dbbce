import { keyOfSources } from '../linux/source-key.ts'

/** Everything of ours that ends up in the runtime, and the lockfile for what is not ours. */
const sources = [
  'apps/envd/src/**/*.ts',
  'apps/envd/guest/*.{c,h}',
  'apps/node/src/template/envd-build.ts',
  'packages/kit/src/**/*.ts',
  'packages/contracts/gen/**/*.js',
  'package-lock.json',
]

/** Changes when the runtime would. */
export function sourceKey(repository: string, nodeVersion: string): Promise<string> {
  return keyOfSources(repository, sources, nodeVersion)
}
