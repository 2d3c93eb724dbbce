import type { CopySource } from '../copy-source.ts'
import { dockerfileError } from './instructions.ts'
import { expandWord } from './words.ts'
import type { Expansion } from './words.ts'

export interface RecipeStep {
  readonly type: 'RUN' | 'COPY' | 'USER' | 'WORKDIR' | 'ENV'
  readonly args: readonly string[]
  /** Only of COPY. */
  readonly copy?: CopySource
  /** Instruction as the user wrote it, to name a step that failed. */
  readonly title: string
}

/** State that earlier instructions leave for later ones. */
export interface Stage {
  readonly escape: string
  readonly buildArgs: Readonly<Record<string, string>>
  /** ARGs before FROM. */
  readonly globals: Map<string, string>
  /** Values by name; undefined for a value that only the server knows. */
  readonly variables: Map<string, string | undefined>
  readonly setByEnv: Set<string>
  readonly usedArgs: Set<string>
  readonly steps: RecipeStep[]
  image?: string
  entrypoint?: string | readonly string[]
  command?: string | readonly string[]
}

export interface Place {
  readonly line: number
  readonly stage: Stage
  readonly lookup?: ((name: string) => string | undefined) | undefined
}

/** Expands to the final text, for values that the server takes as they are. */
export function expand(word: string, { line, stage, lookup }: Place): string {
  return expandWith(word, line, {
    escape: stage.escape,
    lookup: lookup ?? ((name) => stage.variables.get(name)),
    literal: (text) => text,
    unknown: (name) => {
      throw new Error(`\${${name}} has no value here: set it by ARG or ENV before`)
    },
  })
}

/** Leaves variables that the image may set to the server, which expands the text once more. */
export function expandForServer(word: string, { line, stage }: Place): string {
  return expandWith(word, line, {
    escape: stage.escape,
    lookup: (name) => stage.variables.get(name),
    literal: escapeDollars,
    unknown: (name) => `\${${name}}`,
  })
}

/** Returns undefined if the value depends on a variable that the image may set. */
export function knownValue(word: string, { line, stage }: Place): string | undefined {
  let isKnown = true
  const unknown = () => {
    isKnown = false
    return ''
  }
  const lookup = (name: string) => stage.variables.get(name)
  const literal = (text: string) => text
  const value = expandWith(word, line, { escape: stage.escape, lookup, literal, unknown })
  return isKnown ? value : undefined
}

function expandWith(word: string, line: number, expansion: Expansion): string {
  try {
    return expandWord(word, expansion)
  } catch (thrown) {
    throw dockerfileError(line, thrown instanceof Error ? thrown.message : String(thrown))
  }
}

export function escapeDollars(text: string): string {
  return text.replaceAll('$', String.raw`\$`)
}

/** A JSON array of texts is the exec form; everything else is a shell command. */
export function readWords(rest: string): readonly string[] | undefined {
  if (!rest.startsWith('[')) return undefined
  try {
    const parsed: unknown = JSON.parse(rest)
    const isWords = Array.isArray(parsed) && parsed.every((word) => typeof word === 'string')
    return isWords ? parsed : undefined
  } catch {
    return undefined
  }
}
