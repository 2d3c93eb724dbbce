import { createHash } from 'node:crypto'

/** What is in the template `base`. A change here makes the next start build it anew. */
export const baseRecipe = {
  /** Counts changes of the steps in code, which the hash cannot see. */
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
  /** Debian's own npm brings hundreds of packages and a Node.js out of support. */
  npm: '11.21.1',
  user: { name: 'user', id: 1000 },
  /** For dpkg: nobody reads manuals in a sandbox. Licences stay. */
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
