/**
 * Converts a single-stage Dockerfile to build steps, like the template builder of the SDK, except that quotes,
 * variables and continuation lines work as in Docker. COPY and ADD are refused because a Dockerfile comes without
 * files. Instructions that a build cannot carry out fail; they are never skipped silently.
 */
import {
  type Instruction,
  invalidDockerfile,
  isText,
  readInstructions,
} from './dockerfile-lines.ts'
import { createWordReader, toStepText, type WordReader } from './dockerfile-words.ts'
import type { RecipeStep } from './recipe.ts'

export interface Dockerfile {
  /** Text after FROM: an image, or a template of this installation. */
  readonly from: string
  readonly steps: readonly RecipeStep[]
  /** ENTRYPOINT and CMD as one command line. */
  readonly startCommand: string | undefined
}

/** Throws only `invalid` faults. Runs in time proportional to the length of the text. */
export function parseDockerfile(text: string): Dockerfile {
  const { escape, instructions } = readInstructions(text)
  const stage: Stage = {
    words: createWordReader(escape),
    globals: new Map(),
    variables: new Map(),
    fixed: new Set(),
    steps: [],
  }
  for (const instruction of instructions) apply(instruction, stage)
  if (stage.image === undefined) throw invalidDockerfile('it has no FROM')
  return { from: stage.image, steps: stage.steps, startCommand: toStartCommand(stage) }
}

/** State that earlier instructions leave for later ones. */
interface Stage {
  readonly words: WordReader
  /** ARGs before FROM. */
  readonly globals: Map<string, string>
  readonly variables: Map<string, string>
  /** Variables set by ENV; a later ARG does not change them. */
  readonly fixed: Set<string>
  readonly steps: RecipeStep[]
  image?: string
  entrypoint?: Command
  command?: Command
}

/** Shell command line, or exec form (words without a shell). */
type Command = string | readonly string[]

const handlers: ReadonlyMap<string, (instruction: Instruction, stage: Stage) => void> = new Map([
  ['FROM', applyFrom],
  ['ARG', applyArg],
  ['ENV', applyEnv],
  ['RUN', applyRun],
  ['WORKDIR', applyPlace],
  ['USER', applyPlace],
  ['CMD', applyCommand],
  ['ENTRYPOINT', applyCommand],
  ['COPY', refuseFiles],
  ['ADD', refuseFiles],
  ['SHELL', refuse],
  ['ONBUILD', refuse],
  // No effect on builds or sandboxes.
  ['EXPOSE', ignore],
  ['VOLUME', ignore],
  ['LABEL', ignore],
  ['MAINTAINER', ignore],
  ['STOPSIGNAL', ignore],
  ['HEALTHCHECK', ignore],
])

function apply(instruction: Instruction, stage: Stage): void {
  const { keyword, rest, line } = instruction
  const handler = handlers.get(keyword)
  if (!handler) {
    throw invalidDockerfile(`there is no instruction ${JSON.stringify(keyword.slice(0, 40))}`, line)
  }
  if (stage.image === undefined && keyword !== 'FROM' && keyword !== 'ARG') {
    throw invalidDockerfile(`${keyword} comes before FROM`, line)
  }
  if (rest === '') throw invalidDockerfile(`${keyword} has no arguments`, line)
  handler(instruction, stage)
}

function applyFrom({ rest, line }: Instruction, stage: Stage): void {
  if (stage.image !== undefined) {
    throw invalidDockerfile(
      'there is more than one FROM, and only one stage is supported: build the first stage as a template of its own, and start from that',
      line,
    )
  }
  // Ignore --platform: sandboxes have only one platform.
  const [image = '', as, name, ...more] = rest.replace(/^--platform=\S*\s*/, '').split(/\s+/)
  const isNamed = as?.toUpperCase() === 'AS' && name !== undefined
  if (image === '' || image.startsWith('--') || (as !== undefined && !isNamed) || more.length > 0) {
    throw invalidDockerfile('write FROM as "FROM image" or "FROM image AS name"', line)
  }
  const expanded = stage.words.expand(image, { line, variables: stage.globals })
  if (expanded === '' || /[$\0]/.test(expanded)) {
    throw invalidDockerfile('FROM has a variable without a value: give an ARG before it', line)
  }
  stage.image = expanded
}

function applyArg(instruction: Instruction, stage: Stage): void {
  const isGlobal = stage.image === undefined
  const variables = isGlobal ? stage.globals : stage.variables
  const values = new Map<string, string>()
  for (const word of stage.words.split(instruction.rest)) {
    const [name, written] = readPair(word, instruction, { ...stage, variables })
    const value = written ?? stage.globals.get(name)
    if (value === undefined) {
      // A declared ARG does not come from the image: references expand to the empty string.
      if (!variables.has(name)) variables.set(name, '')
    } else if (!stage.fixed.has(name) && variables.get(name) !== value) {
      values.set(name, value)
    }
  }
  for (const [name, value] of values) variables.set(name, value)
  if (!isGlobal) addEnv(values, stage)
}

function applyEnv(instruction: Instruction, stage: Stage): void {
  const { rest, line } = instruction
  const words = stage.words.split(rest)
  const values = new Map<string, string>()
  for (const word of words[0]?.includes('=') ? words : [toPair(rest)]) {
    const [name, value] = readPair(word, instruction, stage)
    if (value === undefined) {
      throw invalidDockerfile('write ENV as "ENV name=value …" or "ENV name value"', line)
    }
    values.set(name, value)
  }
  for (const [name, value] of values) {
    stage.variables.set(name, value)
    stage.fixed.add(name)
  }
  addEnv(values, stage)
}

/** Converts the form `ENV name value`, where the value is all text after the name. */
function toPair(rest: string): string {
  const end = rest.search(/\s/)
  return end === -1 ? rest : `${rest.slice(0, end)}=${rest.slice(end).trim()}`
}

function readPair(
  word: string,
  { keyword, line }: Instruction,
  { words, variables }: Pick<Stage, 'words' | 'variables'>,
): [name: string, value: string | undefined] {
  const equals = word.indexOf('=')
  const name = words.expand(equals === -1 ? word : word.slice(0, equals), { line, variables })
  if (!/^[^\s=$\0]+$/.test(name)) {
    throw invalidDockerfile(`${keyword} has a name that cannot be one of a variable`, line)
  }
  const value =
    equals === -1 ? undefined : words.expand(word.slice(equals + 1), { line, variables })
  return [name, value]
}

function addEnv(values: ReadonlyMap<string, string>, { steps }: Stage): void {
  if (values.size > 0) steps.push(toStep('ENV', [...values].flat().map(toStepText)))
}

function applyRun(instruction: Instruction, { words, steps }: Stage): void {
  const { rest, line } = instruction
  if (rest.startsWith('--')) {
    throw invalidDockerfile('options of RUN, such as --mount, are not supported', line)
  }
  // Same pattern as BuildKit: `<<<` is not a here-document.
  if (words.split(rest).some((word) => /^\d*<<-?[^<]+$/.test(word))) {
    throw invalidDockerfile('here-documents (<<) are not supported: use "&&" and "\\"', line)
  }
  const command = toCommand(instruction)
  if (command.length === 0) throw invalidDockerfile('RUN has no command', line)
  steps.push(toStep('RUN', [toShell(command)]))
}

function applyPlace(
  { keyword, rest, line }: Instruction,
  { words, variables, steps }: Stage,
): void {
  const value = words.expand(rest, { line, variables })
  if (value.trim() === '') throw invalidDockerfile(`${keyword} is empty`, line)
  steps.push(toStep(keyword, [toStepText(value)]))
}

function applyCommand(instruction: Instruction, stage: Stage): void {
  if (instruction.keyword === 'CMD') stage.command = toCommand(instruction)
  else stage.entrypoint = toCommand(instruction)
}

function refuseFiles({ keyword, line }: Instruction): void {
  throw invalidDockerfile(
    `${keyword} is not supported, since no files come with a Dockerfile: use the template builder of the SDK (Template.build)`,
    line,
  )
}

function refuse({ keyword, line }: Instruction): void {
  throw invalidDockerfile(`${keyword} is not supported`, line)
}

function ignore(): void {}

/** Treats everything except a JSON array of strings as a shell command, like Docker. */
function toCommand({ keyword, rest, line }: Instruction): Command {
  const parsed = rest.startsWith('[') ? parseJson(rest) : undefined
  if (!Array.isArray(parsed) || !parsed.every((word) => typeof word === 'string')) return rest
  if (parsed.every(isText)) return parsed
  throw invalidDockerfile(`${keyword} has characters that are not text`, line)
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** Combines both like Docker: CMD holds the arguments of an ENTRYPOINT in exec form. */
function toStartCommand({ entrypoint = [], command = [] }: Stage): string | undefined {
  if (typeof entrypoint === 'string') return entrypoint
  if (entrypoint.length === 0) return command.length === 0 ? undefined : toShell(command)
  const args = typeof command === 'string' ? ['/bin/sh', '-c', command] : command
  return toShell([...entrypoint, ...args])
}

function toShell(command: Command): string {
  return typeof command === 'string' ? command : command.map(quote).join(' ')
}

function quote(word: string): string {
  return /^[\w@%+:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`
}

export function toStep(type: string, args: readonly string[]): RecipeStep {
  return { type, args, force: false }
}
