import type { Spawner } from '../domain/process/process.ts'
import { spawnOnPipes } from './spawn-on-pipes.ts'
import type { PipeTools } from './spawn-on-pipes.ts'
import { loadTerminalAddon } from './pty-addon.ts'
import { spawnOnTerminal } from './spawn-on-terminal.ts'
import { checkWorkingDirectory } from './working-directory.ts'

export interface SpawnerOptions extends PipeTools {
  /** Path of the guest program, which switches to the user and executes the command. */
  readonly guestProgram: string
  /** Path of the native pty addon. If undefined, it is loaded from node_modules. */
  readonly terminalAddon?: string | undefined
}

export function posixSpawner(options: SpawnerOptions): Spawner {
  const { guestProgram, terminalAddon } = options
  return {
    spawnOnPipes: (launch, io) => spawnOnPipes(options, launch, io),
    // Loads the addon at the first terminal, because most sandboxes never open one.
    spawnOnTerminal: async (launch, size) =>
      spawnOnTerminal(loadTerminalAddon(terminalAddon), guestProgram, launch, size),
    checkDirectory: checkWorkingDirectory,
  }
}
