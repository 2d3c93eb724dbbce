/**
 * Converts a single-stage Dockerfile to build steps, like the template builder of the SDK, except that quotes,
 * variables and continuation lines work as in Docker. Instructions that a build cannot carry out fail; they are never
 * skipped silently.
 */
import { applyCommand, applyRun, toStartCommand } from './commands.ts'
import { applyCopy } from './copy.ts'
import { type Instruction, invalidDockerfile, readInstructions } from './instructions.ts'
import type { DockerfileStep, Stage } from './stage.ts'
import { applyArg, applyEnv } from './variables.ts'
import { createWordReader, toStepText } from './words.ts'

export interface Dockerfile {
  /** Text after FROM: an image, or a template of this installation. */
  readonly from: string
  readonly steps: readonly DockerfileStep[]
  /** ENTRYPOINT and CMD as one command line. */
  readonly startCommand: string | undefined
  /** Names that an ARG declares. */
  readonly declaredArgs: ReadonlySet<string>
}

export interface DockerfileOptions {
  /** Values for ARG by name, which win over its default. */
  readonly buildArgs?: Readonly<Record<string, string>>
  /** Whether the Dockerfile comes with a build directory. Without one, COPY and ADD are refused. */
  readonly hasFiles: boolean
}

/** Throws only `invalid` faults. Runs in time proportional to the length of the text. */
export function parseDockerfile(text: string, options: DockerfileOptions): Dockerfile {
  const { escape, instructions } = readInstructions(text)
  const stage: Stage = {
    words: createWordReader(escape),
    buildArgs: options.buildArgs ?? {},
    hasFiles: options.hasFiles,
    globals: new Map(),
    variables: new Map(),
    fixed: new Set(),
    declaredArgs: new Set(),
    steps: [],
  }
  for (const instruction of instructions) apply(instruction, stage)
  const { image: from, steps, declaredArgs } = stage
  if (from === undefined) throw invalidDockerfile('has no FROM')
  return { from, steps, startCommand: toStartCommand(stage), declaredArgs }
}

const handlers: ReadonlyMap<string, (instruction: Instruction, stage: Stage) => void> = new Map([
  ['FROM', applyFrom],
  ['ARG', applyArg],
  ['ENV', applyEnv],
  ['RUN', applyRun],
  ['WORKDIR', applyWorkdir],
  ['USER', applyUser],
  ['CMD', applyCommand],
  ['ENTRYPOINT', applyCommand],
  ['COPY', applyCopy],
  ['ADD', applyCopy],
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
    throw invalidDockerfile(
      'FROM has a variable without a value: set it with ARG before FROM',
      line,
    )
  }
  stage.image = expanded
}

function applyUser(instruction: Instruction, stage: Stage): void {
  stage.steps.push({ type: 'USER', ...readValue(instruction, stage) })
}

function applyWorkdir(instruction: Instruction, stage: Stage): void {
  stage.steps.push({ type: 'WORKDIR', ...readValue(instruction, stage) })
}

function readValue(
  { keyword, rest, line }: Instruction,
  { words, variables }: Stage,
): Pick<DockerfileStep, 'args' | 'title'> {
  const value = words.expand(rest, { line, variables })
  if (value.trim() === '') throw invalidDockerfile(`${keyword} is empty`, line)
  return { args: [toStepText(value)], title: `${keyword} ${rest}` }
}

function refuse({ keyword, line }: Instruction): void {
  throw invalidDockerfile(`${keyword} is not supported`, line)
}

function ignore(): void {}
