import { spawn } from 'node:child_process'
import type { ChildProcessWithoutNullStreams } from 'node:child_process'
import { fileURLToPath } from 'node:url'

/** Runs the CLI in a process of its own, with only the environment variables of the test. */

export const mainFile = fileURLToPath(new URL('../main.ts', import.meta.url))

/** Loading the modules is most of the work of a short command. */
const compileCache = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => name === 'NODE_COMPILE_CACHE'),
)

export interface Outcome {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

export async function runProgram(
  args: readonly string[],
  env: Record<string, string>,
  input: string | Buffer = '',
): Promise<Outcome> {
  const child = startProgram(args, env)
  child.stdin.on('error', () => {}) // the program may end without reading it all
  child.stdin.end(input)
  return outcomeOf(child)
}

export function startProgram(
  args: readonly string[],
  env: Record<string, string>,
): ChildProcessWithoutNullStreams {
  return spawn(process.execPath, [mainFile, ...args], { env: { ...compileCache, ...env } })
}

export async function outcomeOf(child: ChildProcessWithoutNullStreams): Promise<Outcome> {
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  const [stdout, stderr] = await Promise.all([textOf(child.stdout), textOf(child.stderr)])
  return { code: await ended, stdout, stderr }
}

async function textOf(stream: NodeJS.ReadableStream): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += String(chunk)
  return text
}
