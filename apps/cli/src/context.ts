import type { PlatformClient } from '@atoll/client/platform'
import { findAccess } from './access.ts'
import type { Access } from './access.ts'
import type { CliConfig } from './config.ts'
import { visibleJson, visibleText } from './output/visible-text.ts'

/** The process environment of a command. Only `main.ts` reads globals, so tests can replace all of it. */
export interface Host {
  readonly env: Record<string, string | undefined>
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WriteStream
  readonly stderr: NodeJS.WriteStream
  /** Used for signals, and to restore the terminal on exit. */
  readonly process: Pick<NodeJS.Process, 'on' | 'off'>
}

export interface CliContext extends Omit<Host, 'env'> {
  readonly config: CliConfig
  /** Sets the exit code of the program. */
  exitWith(code: number): void
}

export interface Connection {
  readonly access: Access
  readonly platform: PlatformClient
}

/** Imports the client lazily, so that help and usage errors come fast. */
export async function openPlatform(context: CliContext): Promise<Connection> {
  const { createPlatformClient } = await import('@atoll/client/platform')
  const access = await findAccess(context.config)
  const { adminToken } = context.config
  const platform = createPlatformClient({
    ...{ url: access.apiUrl, apiKey: access.apiKey, adminToken },
  })
  return { access, platform }
}

/** Prints text of one or more lines. Its hostile characters become visible. */
export function printLine(stream: NodeJS.WritableStream, line: string): void {
  stream.write(`${visibleText(line)}\n`)
}

export function printJson(stream: NodeJS.WritableStream, value: unknown): void {
  stream.write(`${visibleJson(JSON.stringify(value, null, 2))}\n`)
}

/** Prints text that contains styles of our own; the caller made everything else in it visible. */
export function printStyled(stream: NodeJS.WritableStream, text: string): void {
  stream.write(`${text}\n`)
}
