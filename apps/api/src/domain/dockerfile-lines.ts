/**
 * The instructions of a Dockerfile, each on one line, by the rules of BuildKit's parser: directives, comments and
 * continuation lines are gone. What an instruction means is not decided here.
 *
 * Threats: strangers write the text. Each line is looked at once, without patterns that go back, so that no text takes
 * long.
 */
import { Fault } from '@atoll/kit/fault'

export interface Instruction {
  /** In capitals. */
  readonly keyword: string
  /** What follows the keyword, without white space around it. */
  readonly rest: string
  /** Where it begins, counted from one. */
  readonly line: number
}

export interface Instructions {
  readonly escape: string
  readonly instructions: readonly Instruction[]
}

const sizeLimitKib = 256
const instructionLimit = 200

export function readInstructions(text: string): Instructions {
  checkText(text)
  const lines = text.replace(/^\uFEFF/, '').split('\n')
  const escape = findEscape(lines)
  const instructions: Instruction[] = []
  let begun: { readonly line: number; text: string } | undefined
  for (const [index, line] of lines.entries()) {
    const content = line.trim()
    if (content === '' || content.startsWith('#')) continue
    const { kept, continues } = cutContinuation(line, escape)
    begun ??= { line: index + 1, text: '' }
    begun.text += kept
    if (continues) continue
    instructions.push(toInstruction(begun))
    begun = undefined
  }
  if (begun && begun.text.trim() !== '') instructions.push(toInstruction(begun))
  if (instructions.length > instructionLimit) {
    throw invalidDockerfile(`it has more than ${instructionLimit} instructions`)
  }
  return { escape, instructions }
}

/** A mistake in a Dockerfile; everything that is wrong with one is told by this. */
export function invalidDockerfile(message: string, line?: number): Fault {
  const place = line === undefined ? 'The Dockerfile' : `Line ${line} of the Dockerfile`
  return new Fault('invalid', 'invalid_dockerfile', `${place}: ${message}`)
}

function checkText(text: string): void {
  if (Buffer.byteLength(text) > sizeLimitKib * 1024) {
    throw invalidDockerfile(`it is larger than ${sizeLimitKib} KiB`)
  }
  if (!isText(text)) throw invalidDockerfile('it has characters that are not text')
}

/** Neither half characters nor what ends a string for the kernel. */
export function isText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

/** Directives stand before everything else, even before other comments. */
function findEscape(lines: readonly string[]): string {
  for (const [index, line] of lines.entries()) {
    const [start, name] = /^\s*#\s*([a-z][a-z0-9]*)\s*=/i.exec(line) ?? []
    if (start === undefined) break
    if (name?.toLowerCase() !== 'escape') continue
    const value = line.slice(start.length).trim()
    if (value === '\\' || value === '`') return value
    throw invalidDockerfile('the escape directive takes "\\" or "`"', index + 1)
  }
  return '\\'
}

/** White space after the escape character does not count; two of them stand for one that is meant as such. */
function cutContinuation(line: string, escape: string): { kept: string; continues: boolean } {
  const trimmed = line.trimEnd()
  if (!trimmed.endsWith(escape) || trimmed.endsWith(escape + escape)) {
    return { kept: trimmed, continues: false }
  }
  return { kept: trimmed.slice(0, -1), continues: true }
}

function toInstruction({ line, text }: { line: number; text: string }): Instruction {
  const trimmed = text.trim()
  const end = trimmed.search(/\s/)
  const keyword = end === -1 ? trimmed : trimmed.slice(0, end)
  const rest = end === -1 ? '' : trimmed.slice(end).trim()
  return { keyword: keyword.toUpperCase(), rest, line }
}
