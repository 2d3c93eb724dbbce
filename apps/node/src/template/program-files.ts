import { createHash } from 'node:crypto'
import { chmod, cp, mkdir, readdir, readFile, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { run } from '@atoll/kit/run'

/** Programs of this repository that belong into a template. */
export interface Program {
  readonly from: string
  /** Folders below `from`. */
  readonly folders: readonly string[]
  /** Folder in the template, without a slash at the start. Empty: the root folder. */
  readonly to: string
  /** Library that the loader of the template loads into all its programs. */
  readonly library?: Library
}

export interface Library {
  /** C source. It may use functions of the template's C library, and nothing else. */
  readonly source: string
  /** Path in the template, without a slash at the start. */
  readonly to: string
}

/** Returns a hash of the names, modes and contents of all files. */
export async function hashProgram(program: Program): Promise<string> {
  const { from, to, library } = program
  const hash = createHash('sha256')
  for (const path of await listFiles(program)) {
    const file = join(from, path)
    hash.update(JSON.stringify([path, await modeOf(file), await readFile(file, 'base64')]))
  }
  if (library) hash.update(JSON.stringify([library.to, await readFile(library.source, 'utf8')]))
  return hash.update(to).digest('hex')
}

/** Copies the files below `root`, readable by every user. Returns their size in bytes. */
export async function copyProgram(program: Program, root: string): Promise<number> {
  let bytes = 0
  for (const path of await listFiles(program)) {
    const source = join(program.from, path)
    const target = join(root, program.to, path)
    await mkdir(dirname(target), { recursive: true, mode: 0o755 })
    await cp(source, target)
    await chmod(target, await modeOf(source))
    bytes += (await stat(target)).size
  }
  if (program.library) bytes += await compile(program.library, root)
  return bytes
}

/**
 * Compiles without a C library: the compiler's is the one of the host, and the loader of the template finds the
 * functions in its own.
 */
async function compile(library: Library, root: string): Promise<number> {
  const target = join(root, library.to)
  await mkdir(dirname(target), { recursive: true, mode: 0o755 })
  const flags = ['-shared', '-fPIC', '-nostdlib', '-Os', '-s', '-Wall', '-Werror']
  await run('musl-gcc', [...flags, '-o', target, library.source])
  await chmod(target, 0o755)
  return (await stat(target)).size
}

async function modeOf(file: string): Promise<number> {
  return (await stat(file)).mode & 0o100 ? 0o755 : 0o644
}

async function listFiles({ from, folders }: Program): Promise<string[]> {
  const found: string[] = []
  for (const folder of folders) {
    const entries = await readdir(join(from, folder), { recursive: true, withFileTypes: true })
    for (const entry of entries.filter((one) => one.isFile() && isShipped(one.name))) {
      found.push(join(entry.parentPath, entry.name).slice(from.length + 1))
    }
  }
  return found.toSorted()
}

function isShipped(name: string): boolean {
  return !/\.(test\.ts|pyc)$/.test(name)
}
