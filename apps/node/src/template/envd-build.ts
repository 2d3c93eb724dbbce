import { chmod, copyFile, glob, link, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { build } from 'esbuild'
import type { Plugin } from 'esbuild'
import { envdNodeFlags } from '@atoll/envd/node-flags'
import { run } from '@atoll/kit/run'

/** A busy machine takes twenty times as long as a quiet one, and without these files no server starts. */
const stepTimeoutMs = 600_000

export interface EnvdBuild {
  /** Empty output folder. */
  readonly dir: string
  readonly repository: string
  readonly nodeBinary: string
}

/** Fills `dir` with everything that a sandbox needs to run envd, whatever its image contains. */
export async function buildEnvdRuntime({ dir, repository, nodeBinary }: EnvdBuild): Promise<void> {
  const envd = join(repository, 'apps/envd')
  const addons = [terminalAddon(envd), libcAddon(envd)]
  await mkdir(join(dir, 'lib'))
  await Promise.all([
    bundleEnvd(dir, envd),
    compileGuest(dir, join(envd, 'guest')),
    compilePreload(dir, join(envd, 'preload/node-memory.c')),
    linkOrCopy(nodeBinary, join(dir, 'node')),
    ...addons.map((addon) => copyFile(addon, join(dir, basename(addon)))),
    copyLibraries(join(dir, 'lib'), [nodeBinary, ...addons]),
  ])
  await fillCompileCache(dir, nodeBinary)
  // Sandboxes run these files as any user, whatever the server's umask.
  await run('chmod', ['--recursive', 'u=rwX,go=rX', dir])
}

/** Bundles envd into one CommonJS script, which starts faster than a module. Keeps names for readable stack traces. */
async function bundleEnvd(dir: string, envd: string): Promise<void> {
  await build({
    entryPoints: [join(envd, 'src/main.ts')],
    outfile: join(dir, 'envd.js'),
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node24',
    minifySyntax: true,
    minifyWhitespace: true,
    legalComments: 'none',
    logLevel: 'silent',
    plugins: [useSingleCopy('@bufbuild/protobuf', envd)],
  })
  // Node.js would otherwise look for a package.json in the root of the sandbox.
  await writeFile(join(dir, 'package.json'), '{ "type": "commonjs" }\n')
}

/** Resolves all imports of a package to the copy that `folder` uses: each further copy costs time at every start. */
function useSingleCopy(name: string, folder: string): Plugin {
  return {
    name: 'one-package',
    setup({ onResolve, resolve }) {
      onResolve({ filter: new RegExp(`^${name}(/|$)`) }, ({ path, kind, pluginData }) => {
        if (pluginData === name) return undefined
        return resolve(path, { kind, resolveDir: folder, pluginData: name })
      })
    },
  }
}

/**
 * Starts envd once to fill the compile cache of Node.js, which later starts read. Node.js ignores a cache that does not
 * match its version or the script.
 */
async function fillCompileCache(dir: string, nodeBinary: string): Promise<void> {
  const folder = await mkdtemp(join(tmpdir(), 'atoll-rehearsal-'))
  try {
    await run(nodeBinary, [...envdNodeFlags, join(dir, 'envd.js'), 'warm-compile-cache'], {
      env: {
        NODE_COMPILE_CACHE: join(dir, 'cache'),
        NODE_COMPILE_CACHE_PORTABLE: '1',
        ATOLL_STATE_FILE: join(folder, 'envd.json'),
        ATOLL_GUEST: join(dir, 'guest'),
      },
      timeoutMs: stepTimeoutMs,
    })
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** Compiles the guest program and links it as `sudo`: called by this name, the program acts as sudo. */
export async function compileGuest(dir: string, sourceDir: string): Promise<void> {
  const sources = await Array.fromAsync(glob(join(sourceDir, '*.c')))
  const program = join(dir, 'guest')
  await run('musl-gcc', ['-static', '-Os', '-s', '-o', program, ...sources], {
    timeoutMs: stepTimeoutMs,
  })
  await link(program, join(dir, 'sudo'))
}

/** Compiles the library that the loader puts before Node.js. It needs no other library. */
async function compilePreload(dir: string, source: string): Promise<void> {
  const flags = ['-shared', '-fPIC', '-nostdlib', '-Os', '-s']
  await run('musl-gcc', [...flags, '-o', join(dir, 'lib/node-memory.so'), source], {
    timeoutMs: stepTimeoutMs,
  })
}

/** Finds the native addon of the terminal library, which has a separate package per platform. */
function terminalAddon(envd: string): string {
  const require = createRequire(join(envd, 'package.json'))
  const library = createRequire(require.resolve('@lydell/node-pty'))
  return library.resolve(`@lydell/node-pty-linux-${process.arch}/pty.node`)
}

function libcAddon(envd: string): string {
  const require = createRequire(join(envd, 'package.json'))
  const library = createRequire(require.resolve('koffi'))
  const { arch } = process
  return library.resolve(`@koromix/koffi-linux-${arch}/linux_${arch}/koffi.node`)
}

/** Copies the shared libraries of the programs. Links the loader as `ld.so`, a name for every architecture. */
async function copyLibraries(dir: string, programs: readonly string[]): Promise<void> {
  const listings = await Promise.all(programs.map((program) => run('ldd', [program])))
  const libraries = new Set(listings.flatMap(parseLdd))
  for (const library of libraries) {
    const name = basename(library)
    await copyFile(library, join(dir, name))
    if (!name.startsWith('ld-linux')) continue
    await chmod(join(dir, name), 0o755)
    await link(join(dir, name), join(dir, 'ld.so'))
  }
}

/** Parses lines such as `libm.so.6 => /lib/libm.so.6 (0x7f…)` and `/lib64/ld-linux-x86-64.so.2 (0x7f…)`. */
export function parseLdd(listing: string): string[] {
  return listing.split('\n').flatMap((line) => /(?:^|=>)\s*(\/\S+)\s+\(0x/.exec(line)?.[1] ?? [])
}

async function linkOrCopy(from: string, to: string): Promise<void> {
  await link(from, to).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'EXDEV' && error.code !== 'EPERM') throw error
    return copyFile(from, to)
  })
}
