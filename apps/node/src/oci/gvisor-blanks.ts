import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { isAlive, identify } from '../linux/processes/process.ts'
import type { MountNamespace } from '../linux/mounts/mount-namespace.ts'
import type { ProcessIdentity } from '../domain/sandboxes/process-identity.ts'
import type { BlankRuntime, StartRequest } from '../domain/sandboxes/runtime.ts'
import type { OciCommands } from './commands.ts'
import { gvisorBinds } from './gvisor-bundle.ts'

/**
 * Creates gVisor sandboxes ahead, and restores checkpoints into them.
 *
 * `runsc create` starts the sandbox's kernel and its file server (gofer), which is confined to an empty folder. The
 * file server opens its root only during the restore. So just before, `guest gvisor-root` replaces the folder by the
 * root file system of the sandbox.
 */
export function createGvisorBlanks(parts: {
  readonly namespace: MountNamespace
  readonly commands: Pick<OciCommands, 'create' | 'restore'>
  /** Folder of runsc's state files. */
  readonly root: string
  readonly guest: string
  isSupported(): Promise<boolean>
  writeBundle(request: StartRequest): Promise<void>
}): BlankRuntime {
  const { commands } = parts

  /** Finds the file server of a sandbox that has not started yet. */
  async function findFileServer(cellId: string): Promise<ProcessIdentity> {
    const path = join(parts.root, `${cellId}_sandbox:${cellId}.state`)
    const { goferPid } = CreatedState.parse(JSON.parse(await readFile(path, 'utf8')))
    const server = identify(goferPid)
    if (!server) throw new Error(`the prepared sandbox ${cellId} has no file server`)
    return server
  }

  return {
    isSupported: parts.isSupported,

    async create(request) {
      const rootfs = blankRoot(request)
      await parts.writeBundle({ ...request, rootfs })
      await mkdir(rootfs, { mode: 0o755 })
      return commands.create(request.cell.cellId, request.bundleDir)
    },

    async restore(request, memoryDir) {
      const { cellId } = request.cell
      const server = await findFileServer(cellId)
      const binds = gvisorBinds(request).flatMap((bind) => [bind.source, bind.destination])
      const folders = [blankRoot(request), request.rootfs, ...binds]
      await parts.namespace.run(parts.guest, ['gvisor-root', `${server.pid}`, ...folders])
      if (!isAlive(server)) throw new Error(`the file server of ${cellId} has ended`)
      return commands.restore(cellId, request.bundleDir, memoryDir)
    },
  }
}

function blankRoot({ bundleDir }: Pick<StartRequest, 'bundleDir'>): string {
  return join(bundleDir, 'root')
}

/** The part of runsc's state file that is needed here. */
const CreatedState = z.object({ status: z.literal('created'), goferPid: z.int().min(2) })
