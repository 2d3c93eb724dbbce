import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { CommandOptions, OciCommands } from './commands.ts'
import { callSandbox } from './gvisor-socket.ts'
import type { SocketCall } from './gvisor-socket.ts'
import { correctStateFile } from './gvisor-state-file.ts'

/** Calls to the kernel of a gVisor sandbox. */
export interface GvisorControl {
  /** Stops are counted: a second freeze needs a second thaw. */
  freeze(cellId: string): Promise<void>
  /** Crashes the kernel of a sandbox that is not frozen. */
  thaw(cellId: string): Promise<void>
  /** Writes the state of a frozen sandbox to an empty folder. */
  save(cellId: string, dir: string): Promise<void>
  /** Aborts the outside connections of a frozen sandbox. May use the folder for files, and leaves it as it was. */
  closeConnections(cellId: string, emptyDir: string): Promise<void>
}

export interface GvisorSocketControl extends GvisorControl {
  /** Path of the control socket. */
  socketOf(cellId: string): string
  /** Restores a saved state into a sandbox that was created and has its network. The sandbox then runs. */
  restore(cellId: string, dir: string): Promise<void>
}

/** Talks to the control socket. Its protocol may differ from release to release. */
export function createSocketControl(root: string): GvisorSocketControl {
  const socketOf = (cellId: string) => join(root, `runsc-${cellId}.sock`)

  /** Calls the kernel with the three files of a checkpoint, in the order that gVisor expects. */
  async function callWithFiles(
    cellId: string,
    paths: readonly string[],
    { flags, ...call }: Pick<SocketCall, 'method' | 'arg'> & { readonly flags: string },
  ): Promise<void> {
    await using files = new AsyncDisposableStack()
    const descriptors: number[] = []
    for (const path of paths) descriptors.push(files.use(await open(path, flags, 0o600)).fd)
    await callSandbox(socketOf(cellId), { ...call, descriptors, timeoutMs: saveLimitMs })
  }

  const save = (cellId: string, paths: readonly string[], flags: string) =>
    callWithFiles(cellId, paths, {
      flags,
      method: 'containerManager.Checkpoint',
      arg: {
        metadata: { compression: 'none' },
        MemoryFileSaveOpts: { ExcludeCommittedZeroPages: true },
        have_pages_file: true,
        Resume: true,
      },
    })
  const filesIn = (dir: string) => imageFiles.map((name) => join(dir, name))

  return {
    freeze: (cellId) => callSandbox(socketOf(cellId), { method: 'containerManager.Pause' }),
    thaw: (cellId) => callSandbox(socketOf(cellId), { method: 'containerManager.Resume' }),
    save: (cellId, dir) => save(cellId, filesIn(dir), 'wx+'),
    // gVisor aborts connections while it saves, wherever the state goes.
    closeConnections: (cellId) =>
      save(
        cellId,
        imageFiles.map(() => '/dev/null'),
        'r+',
      ),
    socketOf,
    restore: (cellId, dir) =>
      callWithFiles(cellId, filesIn(dir), {
        flags: 'r',
        method: 'containerManager.Restore',
        arg: { HavePagesFile: true, HaveDeviceFile: false },
      }),
  }
}

/** Runs a runsc command for each call: slower, but stable across releases. */
export function createCommandControl(commands: OciCommands, root: string): GvisorControl {
  const checkpoint = (cellId: string, dir: string, options?: CommandOptions) =>
    commands.execute('checkpoint', [...saveFlags, '--image-path', dir, cellId], options)

  return {
    async freeze(cellId) {
      await correctStateFile(root, cellId, 'running')
      await commands.execute('pause', [cellId])
    },
    async thaw(cellId) {
      await correctStateFile(root, cellId, 'paused')
      await commands.execute('resume', [cellId])
    },
    save: (cellId, dir) => checkpoint(cellId, dir, { timeoutMs: saveLimitMs }),
    async closeConnections(cellId, emptyDir) {
      try {
        await checkpoint(cellId, emptyDir, { timeoutMs: saveLimitMs })
      } finally {
        for (const name of imageFiles) await rm(join(emptyDir, name), { force: true })
      }
    },
  }
}

const imageFiles = ['checkpoint.img', 'pages_meta.img', 'pages.img'] as const

/** Allows time to write gigabytes to a busy disk. */
const saveLimitMs = 240_000

const saveFlags = ['--leave-running', '--compression=none', '--exclude-committed-zero-pages']
