import { createHash } from 'node:crypto'
import { chmod, cp, mkdir, readdir, readFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'

/** Programs of this repository that belong into a template. */
export interface Program {
  readonly from: string
  /** Folders below `from`. */
  readonly folders: readonly string[]
  /** Folder in the template, without a slash at the start. */
  readonly to: string
}

/** Returns a hash of the names and contents of all files. */
export async function hashProgram(program: Program): Promise<string> {
  const hash = createHash('sha256')
  for (const path of await listFiles(program)) {
    hash.update(JSON.stringify([path, await readFile(join(program.from, path), 'base64')]))
  }
  return hash.update(program.to).digest('hex')
}

/** Copies the files below `root`, readable by every user. Returns their size in bytes. */
export async function copyProgram(program: Program, root: string): Promise<number> {
  let bytes = 0
  for (const path of await listFiles(program)) {
    const target = join(root, program.to, path)
    await mkdir(dirname(target), { recursive: true, mode: 0o755 })
    const content = await readFile(join(program.from, path))
    await cp(join(program.from, path), target)
    await chmod(target, 0o644)
    bytes += content.length
  }
  return bytes
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
