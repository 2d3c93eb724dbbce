/**
 * Splits a Dockerfile into instructions by the rules of BuildKit's parser: each instruction on one line, without
 * directives, comments and continuation lines. Does not interpret the instructions.
 *
 * Threats: the text is untrusted. Each line is scanned once, without backtracking patterns, so that no input takes more
 * than linear time.
 */
import { Fault } from '../fault.ts'

export interface Instruction {
  /** Upper case. */
  readonly keyword: string
  /** Trimmed text after the keyword. */
  readonly rest: string
  /** Number of the first line; lines start at 1. */
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
    throw invalidDockerfile(`has more than ${instructionLimit} instructions`)
  }
  return { escape, instructions }
}

/** Creates the fault for a mistake in a Dockerfile. Without a line, the message continues "The Dockerfile …". */
export function invalidDockerfile(message: string, line?: number): Fault {
  const start = line === undefined ? 'The Dockerfile' : `Line ${line} of the Dockerfile:`
  return new Fault('invalid', 'invalid_dockerfile', `${start} ${message}`)
}

function checkText(text: string): void {
  if (Buffer.byteLength(text) > sizeLimitKib * 1024) {
    throw invalidDockerfile(`is larger than ${sizeLimitKib} KiB`)
  }
  if (!isText(text)) throw invalidDockerfile('has characters that are not text')
}

/** Rejects unpaired surrogates and NUL, which ends a string in the kernel. */
export function isText(text: string): boolean {
  return text.isWellFormed() && !text.includes('\0')
}

/** Directives must come before everything else, including other comments. */
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

/** Ignores white space after the escape character. A doubled escape character is a literal one. */
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
