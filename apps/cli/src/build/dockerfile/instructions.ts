import { UsageError } from '../../failure.ts'

/** One instruction of a Dockerfile, with its continuation lines joined. */
export interface Instruction {
  /** Upper case. */
  readonly keyword: string
  readonly rest: string
  /** First line, from 1. */
  readonly line: number
}

export interface DockerfileText {
  /** Escape character: a backslash, or a backtick by directive. */
  readonly escape: string
  readonly instructions: readonly Instruction[]
}

const sizeLimit = 256 * 1024

export function splitDockerfile(text: string): DockerfileText {
  if (text.length > sizeLimit) throw new UsageError('The Dockerfile is larger than 256 KiB.')
  if (text.includes('\0')) throw new UsageError('The Dockerfile is not a text file.')
  const lines = text.replace(/^\uFEFF/, '').split(/\r?\n/)
  const escape = escapeOf(lines)
  const instructions: Instruction[] = []
  let joined = ''
  let line = 0
  for (const [index, content] of [...lines, ''].entries()) {
    const isLast = index === lines.length
    const isBlank = content.trim() === '' || content.trimStart().startsWith('#')
    if (isBlank && !isLast) continue
    if (joined === '') line = index + 1
    const trimmed = content.trimEnd()
    const continues = trimmed.endsWith(escape) && !trimmed.endsWith(escape + escape)
    joined += continues ? trimmed.slice(0, -1) : trimmed
    if (continues) continue
    const [, keyword, rest = ''] = /^\s*(\S+)\s*([^]*)$/.exec(joined) ?? []
    if (keyword) instructions.push({ keyword: keyword.toUpperCase(), rest: rest.trim(), line })
    joined = ''
  }
  return { escape, instructions }
}

/** Directives are the comments at the very start. */
function escapeOf(lines: readonly string[]): string {
  for (const line of lines) {
    const [, name, value] = /^\s*#\s*(\w+)\s*=\s*(.*?)\s*$/.exec(line) ?? []
    if (name === undefined) return '\\'
    if (name.toLowerCase() === 'escape') return value === '`' ? '`' : '\\'
  }
  return '\\'
}

export function dockerfileError(line: number, message: string): UsageError {
  return new UsageError(`Line ${line} of the Dockerfile: ${message}`)
}
