import { createHash } from 'node:crypto'

/** Content of the template `base`. A change makes the next start rebuild it. */
export const baseRecipe = {
  /** Increment it when the build steps in the code change: the hash cannot see them. */
  revision: 2,
  suite: 'bookworm',
  packages: [
    'bash',
    'ca-certificates',
    'coreutils',
    'curl',
    'git',
    'iproute2',
    'less',
    'ncurses-bin',
    'procps',
    'python-is-python3',
    'python3',
    'sudo',
    'util-linux',
  ],
  /** Installed from the npm registry: Debian's npm brings hundreds of packages and an unsupported Node.js. */
  npm: '11.21.1',
  user: { name: 'user', id: 1000 },
  /** dpkg options: manuals are not used in a sandbox; licences stay. */
  excludedPaths: [
    'path-exclude=/usr/share/man/*',
    'path-exclude=/usr/share/info/*',
    'path-exclude=/usr/share/locale/*',
    'path-exclude=/usr/share/doc/*',
    'path-include=/usr/share/doc/*/copyright',
  ],
} as const

export function recipeHash(recipe: object, nodeVersion: string, architecture: string): string {
  const text = JSON.stringify({ recipe, nodeVersion, architecture })
  return createHash('sha256').update(text).digest('hex')
}
