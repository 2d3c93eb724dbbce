import { CommandExitError } from 'e2b'
import type { Sandbox } from 'e2b'

export const runtimes = ['gvisor', 'runc'] as const

export interface ShellResult {
  readonly code: number
  readonly stdout: string
  readonly stderr: string
}

export interface ShellOptions {
  /** Default: root, because an attacker is assumed to be root inside. */
  readonly user?: 'root' | 'user'
  readonly timeoutMs?: number
}

/** Runs a script in a sandbox; a nonzero exit code does not throw. */
export async function shell(
  sandbox: Sandbox,
  script: string,
  { user = 'root', timeoutMs = 600_000 }: ShellOptions = {},
): Promise<ShellResult> {
  try {
    const { exitCode, stdout, stderr } = await sandbox.commands.run(script, { user, timeoutMs })
    return { code: exitCode, stdout, stderr }
  } catch (error) {
    if (!(error instanceof CommandExitError)) throw error
    return { code: error.exitCode, stdout: error.stdout, stderr: error.stderr }
  }
}

/** Runs a Python program in a sandbox and parses the JSON that it prints. */
export async function python(
  sandbox: Sandbox,
  program: string,
  args: readonly unknown[] = [],
  options: ShellOptions = {},
): Promise<unknown> {
  const source = `import json, sys\nargs = json.loads(sys.argv[1])\n${program}`
  const words = [source, JSON.stringify(args)].map(quote)
  const { code, stdout, stderr } = await shell(sandbox, `python3 -c ${words.join(' ')}`, options)
  if (code !== 0) throw new Error(`the program ended with ${code}: ${stderr}`)
  return JSON.parse(stdout)
}

function quote(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`
}
