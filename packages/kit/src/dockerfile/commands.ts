/** RUN, CMD and ENTRYPOINT: their two forms, and their command lines for a shell. */
import { invalidDockerfile, isText } from './instructions.ts'
import type { Instruction } from './instructions.ts'
import type { Command, Stage } from './stage.ts'

export function applyRun(instruction: Instruction, { words, steps }: Stage): void {
  const { rest, line } = instruction
  if (rest.startsWith('--')) {
    throw invalidDockerfile('options of RUN, such as --mount, are not supported', line)
  }
  // Same pattern as BuildKit: `<<<` is not a here-document.
  if (words.split(rest).some((word) => /^\d*<<-?[^<]+$/.test(word))) {
    throw invalidDockerfile(
      'here-documents (<<) are not supported: join commands with "&&" and "\\"',
      line,
    )
  }
  const command = toCommand(instruction)
  if (command.length === 0) throw invalidDockerfile('RUN has no command', line)
  steps.push({ type: 'RUN', args: [toShell(command)], title: `RUN ${rest}` })
}

export function applyCommand(instruction: Instruction, stage: Stage): void {
  if (instruction.keyword === 'CMD') stage.command = toCommand(instruction)
  else stage.entrypoint = toCommand(instruction)
}

/** Combines both like Docker: CMD holds the arguments of an ENTRYPOINT in exec form. */
export function toStartCommand({ entrypoint = [], command = [] }: Stage): string | undefined {
  if (typeof entrypoint === 'string') return entrypoint
  if (entrypoint.length === 0) return command.length === 0 ? undefined : toShell(command)
  const args = typeof command === 'string' ? ['/bin/sh', '-c', command] : command
  return toShell([...entrypoint, ...args])
}

/** Treats everything except a JSON array of strings as a shell command, like Docker. */
function toCommand({ keyword, rest, line }: Instruction): Command {
  const words = readJsonWords(rest)
  if (!words) return rest
  if (words.every(isText)) return words
  throw invalidDockerfile(`${keyword} has characters that are not text`, line)
}

/** Returns undefined if the text is not a JSON array of strings. */
export function readJsonWords(text: string): readonly string[] | undefined {
  const parsed = text.startsWith('[') ? parseJson(text) : undefined
  const isWords = Array.isArray(parsed) && parsed.every((word) => typeof word === 'string')
  return isWords ? parsed : undefined
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

function toShell(command: Command): string {
  return typeof command === 'string' ? command : command.map(quote).join(' ')
}

function quote(word: string): string {
  return /^[\w@%+:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}
