import type { Spawner } from '../domain/process/process.ts'
import { spawnOnPipes } from './spawn-on-pipes.ts'
import type { PipeTools } from './spawn-on-pipes.ts'
import { loadTerminalAddon } from './pty-addon.ts'
import { spawnOnTerminal } from './spawn-on-terminal.ts'
import { checkWorkingDirectory } from './working-directory.ts'

export interface SpawnerOptions extends PipeTools {
  /** The helper program that takes on the identity and becomes the command. */
  readonly guestProgram: string
  /** The native part of the terminal library; undefined: where npm put it. */
  readonly terminalAddon?: string | undefined
}

export function posixSpawner(options: SpawnerOptions): Spawner {
  const { guestProgram, terminalAddon } = options
  return {
    spawnOnPipes: (launch, io) => spawnOnPipes(options, launch, io),
    // Loaded at the first terminal: most sandboxes never open one.
    spawnOnTerminal: async (launch, size) =>
      spawnOnTerminal(loadTerminalAddon(terminalAddon), guestProgram, launch, size),
    checkDirectory: checkWorkingDirectory,
  }
}
