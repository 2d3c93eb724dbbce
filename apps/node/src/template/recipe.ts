import { createHash } from 'node:crypto'

/** Debian packages and additions that make up a root file system. */
export interface DebianRecipe {
  /** Names the record, the lock and the work folders of this recipe. */
  readonly name: string
  /** Increment it when the build steps in the code change: the hash cannot see them. */
  readonly revision: number
  readonly suite: string
  readonly packages: readonly string[]
  /** Installed from the npm registry: Debian's npm brings hundreds of packages and an unsupported Node.js. */
  readonly npm: string
  readonly user: { readonly name: string; readonly id: number }
  /** dpkg options. */
  readonly excludedPaths: readonly string[]
  /** Shell command that runs each part once as the user: a template with a broken part must never be used. */
  readonly check: string
  /** Number of lines that mmdebstrap prints; used only for the progress bar. */
  readonly expectedSteps: number
}

/** Content of the template `base`. A change makes the next start rebuild it. */
export const baseRecipe = {
  name: 'base',
  revision: 3,
  suite: 'bookworm',
  packages: [
    'bash',
    'ca-certificates',
    'coreutils',
    'curl',
    'g++',
    'gcc',
    'git',
    'iproute2',
    'jq',
    'less',
    'libc6-dev',
    'make',
    'ncurses-bin',
    'procps',
    'python-is-python3',
    'python3',
    'python3-dev',
    'python3-pip',
    'python3-venv',
    'ripgrep',
    'sudo',
    'unzip',
    'util-linux',
    'wget',
    'xz-utils',
  ],
  npm: '11.21.1',
  user: { name: 'user', id: 1000 },
  excludedPaths: [
    // Manuals are not used in a sandbox; licences stay.
    'path-exclude=/usr/share/man/*',
    'path-exclude=/usr/share/info/*',
    'path-exclude=/usr/share/locale/*',
    'path-exclude=/usr/share/doc/*',
    'path-include=/usr/share/doc/*/copyright',
    // Static library of 40 MB that only programs with an embedded Python link.
    'path-exclude=/usr/lib/python3*/config-*/*.a',
    'path-exclude=/usr/lib/*/libpython3*.a',
    // Prints what a compiler's intermediate files hold; 32 MB.
    'path-exclude=/usr/bin/*lto-dump*',
    // This marker makes `pip install` refuse to work outside a virtual environment.
    'path-exclude=/usr/lib/python3*/EXTERNALLY-MANAGED',
  ],
  check: [
    'sudo --non-interactive true',
    'python --version',
    'pip --version',
    "python -c 'import ensurepip, venv'",
    'git --version',
    'curl --version',
    'wget --version',
    'jq --version',
    'rg --version',
    'unzip -v',
    'node --version',
    'npm --version',
    'npx --version',
    "echo 'int main() { return 0; }' > /tmp/check.cc",
    'make -C /tmp check',
    '/tmp/check',
  ].join(' && '),
  expectedSteps: 630,
} as const satisfies DebianRecipe

export function recipeHash(recipe: object, nodeVersion: string, architecture: string): string {
  const text = JSON.stringify({ recipe, nodeVersion, architecture })
  return createHash('sha256').update(text).digest('hex')
}
