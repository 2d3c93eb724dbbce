import type { WordReader } from './words.ts'

export interface DockerfileStep {
  readonly type: 'RUN' | 'COPY' | 'ENV' | 'USER' | 'WORKDIR'
  /** Empty for COPY, whose arguments depend on the files. */
  readonly args: readonly string[]
  /** Only of COPY. */
  readonly copy?: CopiedPaths
  /** Instruction as its author wrote it, on one line. */
  readonly title: string
}

/** Paths and settings of a COPY step. */
export interface CopiedPaths {
  /** Paths or patterns, relative to the build directory. */
  readonly sources: readonly string[]
  readonly target: string
  /** `user`, `user:group` or empty. */
  readonly owner: string
  /** Octal digits, or empty. */
  readonly mode: string
  readonly line: number
}

/** State that earlier instructions leave for later ones. */
export interface Stage {
  readonly words: WordReader
  readonly buildArgs: Readonly<Record<string, string>>
  readonly hasFiles: boolean
  /** ARGs before FROM. */
  readonly globals: Map<string, string>
  readonly variables: Map<string, string>
  /** Variables set by ENV; a later ARG does not change them. */
  readonly fixed: Set<string>
  /** Names that an ARG declares. */
  readonly declaredArgs: Set<string>
  readonly steps: DockerfileStep[]
  image?: string
  entrypoint?: Command
  command?: Command
}

/** Shell command line, or exec form (words without a shell). */
export type Command = string | readonly string[]
