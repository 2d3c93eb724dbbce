import type { Spawner } from '../domain/process/process.ts'
import { spawnOnPipes } from './pipes.ts'
import type { PipeTools } from './pipes.ts'
import { loadTerminalAddon } from './pty-addon.ts'
import { spawnOnTerminal } from './terminal.ts'
import { checkWorkingDirectory } from './working-directory.ts'

export interface SpawnerOptions extends PipeTools {
  /** The helper program that takes on the identity and becomes the command. */
  readonly helper: string
  /** The native part of the terminal library; undefined: where npm put it. */
  readonly terminalAddon?: string | undefined
}

export function posixSpawner(options: SpawnerOptions): Spawner {
  const { helper, terminalAddon } = options
  return {
    onPipes: (launch, io) => spawnOnPipes(options, launch, io),
    // Loaded at the first terminal: most sandboxes never open one.
    onTerminal: async (launch, size) =>
      spawnOnTerminal(loadTerminalAddon(terminalAddon), helper, launch, size),
    checkDirectory: checkWorkingDirectory,
  }
}
