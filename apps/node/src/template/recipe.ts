import { createHash } from 'node:crypto'

/** Debian packages and additions that make up a root file system. */
export interface DebianRecipe {
  /** Part of the names of the record, the lock and the work folders. */
  readonly name: string
  /** Increment the revision when the build steps in the code change: `recipeHash` does not cover them. */
  readonly revision: number
  /** Debian release, such as bookworm. */
  readonly suite: string
  readonly packages: readonly string[]
  /** Packages of which only a folder is used, without their dependencies. */
  readonly unpacked?: readonly UnpackedFolder[]
  /**
   * Version of npm. It comes from the npm registry: Debian's npm brings hundreds of packages and an unsupported
   * Node.js.
   */
  readonly npm: string
  readonly user: { readonly name: string; readonly id: number }
  /** dpkg options (path-exclude, path-include) that leave out files. */
  readonly excludedPaths: readonly string[]
  /** Shell command that runs each installed program once as the user. If it fails, the template is not used. */
  readonly check: string
  /** Number of lines that mmdebstrap prints; used only for the progress bar. */
  readonly expectedSteps: number
}

export interface UnpackedFolder {
  readonly package: string
  /** Folder in the package, without a slash at the start. */
  readonly from: string
  /** Folder in the template, without a slash at the start. */
  readonly to: string
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
    // Static library (40 MB) that only programs with an embedded Python need.
    'path-exclude=/usr/lib/python3*/config-*/*.a',
    'path-exclude=/usr/lib/*/libpython3*.a',
    // Tool (32 MB) for debugging the link-time optimization of GCC.
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
