import { closeSync } from 'node:fs'
import type { Stats } from 'node:fs'
import { isOpaque, isWhiteout, openDirectory, statOf } from './open-below.ts'

/** Directory on the disk of a sandbox, and the same directory in the layers below. */
export interface ChangedDirectory extends Disposable {
  /** Descriptor of the directory on the disk. */
  readonly upper: number
  /** Descriptors of the directory in the layers that show it, the topmost first. */
  readonly lowers: readonly number[]
  /** Whether the sandbox sees only what is on the disk. */
  readonly isOpaque: boolean
}

/** Entry of the layers, as the sandbox saw it before it changed anything. */
export interface LowerEntry {
  readonly parent: number
  readonly stat: Stats
}

export function findBefore(lowers: readonly number[], name: Buffer): LowerEntry | undefined {
  for (const parent of lowers) {
    const stat = statOf(parent, name)
    if (stat) return isWhiteout(stat) ? undefined : { parent, stat }
  }
  return undefined
}

/** Opens a directory below. Returns undefined if the disk has no directory with this name. */
export function enter(directory: ChangedDirectory, name: Buffer): ChangedDirectory | undefined {
  const upper = openDirectory(directory.upper, name)
  if (upper === undefined) return undefined
  return changedDirectory(upper, openLowers(directory.lowers, name), directory.isOpaque)
}

export function changedDirectory(
  upper: number,
  lowers: readonly number[],
  isBelowOpaque: boolean,
): ChangedDirectory {
  return {
    upper,
    lowers,
    isOpaque: isBelowOpaque || isOpaque(upper),
    [Symbol.dispose]() {
      for (const fd of [upper, ...lowers]) closeSync(fd)
    },
  }
}

/** Opens the directory in each layer, down to the one that hides those below it. */
function openLowers(parents: readonly number[], name: Buffer): number[] {
  const opened: number[] = []
  for (const parent of parents) {
    const stat = statOf(parent, name)
    if (!stat) continue
    const fd = stat.isDirectory() ? openDirectory(parent, name) : undefined
    if (fd === undefined) break
    opened.push(fd)
    if (isOpaque(fd)) break
  }
  return opened
}
