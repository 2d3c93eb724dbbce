/**
 * The native part of node-pty, used without the JavaScript around it: that decodes output, invents variables (TERM, PWD)
 * and gives up on output 200 ms after the exit, none of which fits here.
 */
import { createRequire } from 'node:module'
import { arch, platform } from 'node:os'
import { Fault } from '@atoll/kit/fault'

export interface TerminalAddon {
  /** `env` is a list of NAME=value; ids of -1 leave the identity alone. */
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
    // A bundle has no node_modules around it, so it is told where the file lies.
    if (path !== undefined) return createRequire('/')(path)
    // The binary is a dependency of the library and may lie below it.
    const require = createRequire(import.meta.url)
    const library = createRequire(require.resolve('@lydell/node-pty'))
    return library(`@lydell/node-pty-${platform()}-${arch()}/pty.node`)
  } catch (cause) {
    throw new Fault('invalid', 'no_terminals', 'Terminals are not available here', { cause })
  }
}
