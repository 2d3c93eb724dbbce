/** Compares two texts line by line. Time and memory are bounded, because both texts may be hostile. */

export interface DiffLine {
  readonly kind: 'same' | 'removed' | 'added'
  readonly text: string
}

export interface DiffHunk {
  /** Numbers of the first lines, from 1. */
  readonly beforeStart: number
  readonly afterStart: number
  readonly beforeCount: number
  readonly afterCount: number
  readonly lines: readonly DiffLine[]
}

/** Edits that the search looks for. Texts that differ more have one hunk that replaces everything in between. */
const maxEdits = 400
const contextLines = 3

/** Returns the places where the texts differ, with a few lines around each. */
export function diffText(before: string, after: string): DiffHunk[] {
  return toHunks(diffLines(splitLines(before), splitLines(after)))
}

/** Formats hunks as `diff -u` does, without the names of the files. */
export function formatHunks(hunks: readonly DiffHunk[]): string[] {
  const signs = { same: ' ', removed: '-', added: '+' } as const
  return hunks.flatMap((hunk) => [
    hunkHead(hunk),
    ...hunk.lines.map(({ kind, text }) => `${signs[kind]}${text}`),
  ])
}

export function hunkHead({ beforeStart, beforeCount, afterStart, afterCount }: DiffHunk): string {
  const range = (start: number, count: number) => `${count === 0 ? start - 1 : start},${count}`
  return `@@ -${range(beforeStart, beforeCount)} +${range(afterStart, afterCount)} @@`
}

/** A last line without a line break differs from the same line with one. */
function splitLines(text: string): string[] {
  if (text === '') return []
  const lines = text.split('\n')
  if (lines.at(-1) === '') return lines.slice(0, -1)
  return [...lines.slice(0, -1), `${lines.at(-1)}\n\\ No newline at end of file`]
}

function diffLines(before: readonly string[], after: readonly string[]): DiffLine[] {
  let start = 0
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1
  let end = 0
  const shortest = Math.min(before.length, after.length) - start
  while (end < shortest && before.at(-1 - end) === after.at(-1 - end)) end += 1
  const removed = before.slice(start, before.length - end)
  const added = after.slice(start, after.length - end)
  return [
    ...before.slice(0, start).map((text) => line('same', text)),
    ...(findEdits(removed, added) ?? replaceAll(removed, added)),
    ...before.slice(before.length - end).map((text) => line('same', text)),
  ]
}

function line(kind: DiffLine['kind'], text: string): DiffLine {
  return { kind, text }
}

function replaceAll(removed: readonly string[], added: readonly string[]): DiffLine[] {
  return [
    ...removed.map((text) => line('removed', text)),
    ...added.map((text) => line('added', text)),
  ]
}

/** Finds the fewest edits with the algorithm of Myers (1986). Returns undefined if there are more than `maxEdits`. */
function findEdits(before: readonly string[], after: readonly string[]): DiffLine[] | undefined {
  const furthest = new Int32Array(2 * maxEdits + 3)
  const at = (diagonal: number) => furthest[diagonal + maxEdits + 1] ?? 0
  const trace: Int32Array[] = []
  for (let edits = 0; edits <= maxEdits; edits += 1) {
    trace.push(furthest.slice())
    for (let diagonal = -edits; diagonal <= edits; diagonal += 2) {
      const isDown =
        diagonal === -edits || (diagonal !== edits && at(diagonal - 1) < at(diagonal + 1))
      let x = isDown ? at(diagonal + 1) : at(diagonal - 1) + 1
      let y = x - diagonal
      while (x < before.length && y < after.length && before[x] === after[y]) {
        x += 1
        y += 1
      }
      furthest[diagonal + maxEdits + 1] = x
      if (x >= before.length && y >= after.length) return walkBack(before, after, trace)
    }
  }
  return undefined
}

function walkBack(
  before: readonly string[],
  after: readonly string[],
  trace: readonly Int32Array[],
): DiffLine[] {
  const lines: DiffLine[] = []
  let x = before.length
  let y = after.length
  for (let edits = trace.length - 1; edits >= 0; edits -= 1) {
    const at = (diagonal: number) => trace[edits]?.[diagonal + maxEdits + 1] ?? 0
    const diagonal = x - y
    const isDown =
      diagonal === -edits || (diagonal !== edits && at(diagonal - 1) < at(diagonal + 1))
    const previous = isDown ? diagonal + 1 : diagonal - 1
    const fromX = edits === 0 ? 0 : at(previous)
    const fromY = edits === 0 ? 0 : fromX - previous
    while (x > fromX && y > fromY) {
      x -= 1
      y -= 1
      lines.push(line('same', before[x] ?? ''))
    }
    if (edits === 0) break
    lines.push(isDown ? line('added', after[fromY] ?? '') : line('removed', before[fromX] ?? ''))
    x = fromX
    y = fromY
  }
  return lines.toReversed()
}

function toHunks(lines: readonly DiffLine[]): DiffHunk[] {
  const hunks: DiffHunk[] = []
  let beforeLine = 1
  let afterLine = 1
  let index = 0
  while (index < lines.length) {
    if (lines[index]?.kind === 'same') {
      beforeLine += 1
      afterLine += 1
      index += 1
      continue
    }
    const lead = Math.min(contextLines, index)
    const end = endOfHunk(lines, index)
    const part = lines.slice(index - lead, end)
    const countOf = (other: DiffLine['kind']) => part.filter(({ kind }) => kind !== other).length
    const hunk = {
      beforeStart: beforeLine - lead,
      afterStart: afterLine - lead,
      beforeCount: countOf('added'),
      afterCount: countOf('removed'),
      lines: part,
    }
    hunks.push(hunk)
    beforeLine = hunk.beforeStart + hunk.beforeCount
    afterLine = hunk.afterStart + hunk.afterCount
    index = end
  }
  return hunks
}

/** Changes with few lines between them share a hunk. */
function endOfHunk(lines: readonly DiffLine[], start: number): number {
  let last = start
  for (let index = start; index < lines.length && index - last <= 2 * contextLines; index += 1) {
    if (lines[index]?.kind !== 'same') last = index
  }
  return Math.min(last + 1 + contextLines, lines.length)
}
