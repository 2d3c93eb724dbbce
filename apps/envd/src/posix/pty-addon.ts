/**
 * Native addon of node-pty, without its JavaScript wrapper, which decodes output, adds variables (TERM, PWD) and
 * drops output that arrives more than 200 ms after the exit.
 */
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
import { Fault } from '@atoll/kit/fault'

export interface TerminalAddon {
  /** `env` is a list of NAME=value; IDs of -1 keep the current user. */
  fork(
    file: string,
    args: readonly string[],
    env: readonly string[],
    cwd: string,
    cols: number,
    rows: number,
    uid: number,
    gid: number,
    utf8: boolean,
    unusedOnLinux: string,
    onExit: (code: number, signal: number) => void,
  ): { readonly fd: number; readonly pid: number }
  resize(fd: number, cols: number, rows: number): void
}

let loaded: TerminalAddon | undefined

export function loadTerminalAddon(path?: string): TerminalAddon {
  loaded ??= load(path)
  return loaded
}

function load(path: string | undefined): TerminalAddon {
  try {
    // The bundle has no node_modules, so the node passes the path.
    if (path !== undefined) return createRequire('/')(path)
    // The native addon is a dependency of node-pty and may be installed below it.
    const require = createRequire(import.meta.url)
    const library = createRequire(require.resolve('@lydell/node-pty'))
    return library(`@lydell/node-pty-${platform()}-${arch()}/pty.node`)
  } catch (cause) {
    throw new Fault(
      'invalid',
      'no_terminals',
      'Terminals are not available in this sandbox. Start the process without pty.',
      { cause },
    )
  }
}
