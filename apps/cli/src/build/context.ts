/** Files of a build directory, and which of them a COPY step takes. */
import { readFile, realpath } from 'node:fs/promises'
import { join, posix, relative, sep } from 'node:path'
import type { CopiedPaths } from '@atoll/kit/dockerfile/stage'
import { UsageError } from '../failure.ts'
import { listTree } from '../tar/local-tree.ts'
import type { TarEntry } from '../tar/write.ts'
import { hasWildcard, readIgnore, toMatcher } from './ignore.ts'

export interface BuildContext {
  /** Arguments and archive of the COPY step. */
  select(copy: CopiedPaths): Promise<CopiedFiles>
}

export interface CopiedFiles {
  /** Source inside the archive, target, owner and mode. */
  readonly args: readonly string[]
  readonly entries: readonly TarEntry[]
}

/** Lists the directory once. An unreadable directory fails with the error of the system. */
export async function openContext(directory: string): Promise<BuildContext> {
  const root = await realpath(directory)
  const ignore = readIgnore(await readIgnoreFile(root))
  const listed = await listTree(root, ignore)
  // The same files give the same archive, whatever their times.
  const entries = listed.map((entry) => ({ ...entry, modifiedSeconds: 0 }))
  const byPath = new Map(entries.map((entry) => [entry.path, entry]))
  return {
    async select(copy) {
      const found = await Promise.all(copy.sources.map((source) => match(source, copy.line)))
      const matches = found.flat()
      const [only] = matches
      if (only !== undefined && matches.length === 1) {
        const target = only.kind === 'directory' ? withSlash(copy.target) : copy.target
        return { args: toArgs(only.path || '.', target, copy), entries: treeOf(only) }
      }
      const merged = new Map(matches.flatMap(flatten).map((entry) => [entry.path, entry]))
      return { args: toArgs('.', withSlash(copy.target), copy), entries: [...merged.values()] }
    },
  }

  async function match(source: string, line: number): Promise<TarEntry[]> {
    const path = posix.normalize(source).replace(/^\/+|\/+$/g, '')
    if (path === '..' || path.startsWith('../')) throw outside(source, line)
    const exact = byPath.get(await followed(path, source, line))
    if (exact) return [exact]
    const matcher = toMatcher(path)
    const found = hasWildcard(path) ? entries.filter((entry) => matcher.test(entry.path)) : []
    if (found.length > 0) return found
    const reason = ignore.excludes(path) ? 'is excluded by .dockerignore' : `is not in ${directory}`
    throw new UsageError(`Line ${line} of the Dockerfile: ${source} ${reason}.`)
  }

  /** Follows symlinks, as long as they stay inside the directory. */
  async function followed(path: string, source: string, line: number): Promise<string> {
    const real = await realpath(join(root, path)).catch(() => undefined)
    if (real === undefined) return path === '.' ? '' : path
    const inside = relative(root, real)
    if (inside === '..' || inside.startsWith(`..${sep}`)) throw outside(source, line)
    return inside.split(sep).join('/')
  }

  function treeOf(entry: TarEntry): TarEntry[] {
    if (entry.kind !== 'directory') return [entry]
    const start = entry.path === '' ? '' : `${entry.path}/`
    const content = entries.filter(({ path }) => path !== '' && path.startsWith(start))
    return entry.path === '' ? content : [entry, ...content]
  }

  /** Gives files their base name, and puts the content of folders at the top. */
  function flatten(entry: TarEntry): TarEntry[] {
    if (entry.kind !== 'directory') return [{ ...entry, path: posix.basename(entry.path) }]
    const skipped = entry.path === '' ? 0 : entry.path.length + 1
    const content = treeOf(entry).filter(({ path }) => path.length > skipped)
    return content.map((each) => ({ ...each, path: each.path.slice(skipped) }))
  }
}

async function readIgnoreFile(root: string): Promise<string> {
  return readFile(join(root, '.dockerignore'), 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return ''
    throw error
  })
}

function toArgs(source: string, target: string, { owner, mode }: CopiedPaths): string[] {
  // Docker copies as root, whatever USER says.
  return [source, target, owner || 'root', mode]
}

function withSlash(target: string): string {
  return target.endsWith('/') ? target : `${target}/`
}

function outside(source: string, line: number): UsageError {
  return new UsageError(
    `Line ${line} of the Dockerfile: ${source} is outside of the build directory.`,
  )
}
