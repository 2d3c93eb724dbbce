import { mkdir, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { isAlive, identify } from '../linux/processes/process.ts'
import type { MountNamespace } from '../linux/mounts/mount-namespace.ts'
import type { ProcessIdentity } from '../domain/sandboxes/process-identity.ts'
import type { BlankRuntime, StartRequest } from '../domain/sandboxes/runtime.ts'
import type { OciCommands } from './commands.ts'
import { gvisorBinds } from './gvisor-bundle.ts'
import type { GvisorSocketControl } from './gvisor-control.ts'
import { networkCall, slotLink } from './gvisor-network.ts'
import { correctStateFile } from './gvisor-state-file.ts'

/**
 * Creates gVisor sandboxes ahead, and restores checkpoints into them.
 *
 * `runsc create` starts the sandbox's kernel and its file server (gofer), which is confined to an empty folder. The
 * kernel then gets its network. What is left for a restore takes no runsc command, only a call to the kernel.
 *
 * The file server opens its root only during the restore. So just before, `guest gvisor-root` replaces the folder by the
 * root file system of the sandbox.
 */
export function createGvisorBlanks(parts: {
  readonly namespace: MountNamespace
  readonly commands: Pick<OciCommands, 'create'>
  readonly control: Pick<GvisorSocketControl, 'restore' | 'socketOf'>
  /** Folder of runsc's state files. */
  readonly root: string
  readonly guest: string
  isSupported(): Promise<boolean>
  writeBundle(request: StartRequest): Promise<void>
}): BlankRuntime {
  const { commands, control, namespace, guest, root } = parts

  /** Finds the processes of a sandbox that has not started yet. */
  async function findProcesses(cellId: string) {
    const path = join(root, `${cellId}_sandbox:${cellId}.state`)
    const { goferPid, sandbox } = CreatedState.parse(JSON.parse(await readFile(path, 'utf8')))
    return {
      fileServer: identifyProcess(goferPid, `the file server of ${cellId}`),
      kernel: identifyProcess(sandbox.pid, `the kernel of ${cellId}`),
    }
  }

  return {
    isSupported: parts.isSupported,

    async create(request) {
      const rootfs = blankRoot(request)
      await parts.writeBundle({ ...request, rootfs })
      await mkdir(rootfs, { mode: 0o755 })
      const { cellId } = request.cell
      const process = await commands.create(cellId, request.bundleDir)
      const { slot } = request
      const link = [`/run/netns/${slot.namespace}`, slotLink]
      const call = JSON.stringify(networkCall(slot))
      await namespace.run(guest, ['gvisor-network', ...link, control.socketOf(cellId), call])
      return process
    },

    async restore(request, memoryDir) {
      const { cellId } = request.cell
      const { fileServer, kernel } = await findProcesses(cellId)
      const binds = gvisorBinds(request).flatMap((bind) => [bind.source, bind.destination])
      const folders = [blankRoot(request), request.rootfs, ...binds]
      await namespace.run(guest, ['gvisor-root', `${fileServer.pid}`, ...folders])
      if (!isAlive(fileServer)) throw new Error(`the file server of ${cellId} has ended`)
      await control.restore(cellId, memoryDir)
      // A call to the kernel leaves the file as it was.
      await correctStateFile(root, cellId, 'running')
      return kernel
    },
  }
}

function identifyProcess(pid: number, what: string): ProcessIdentity {
  const process = identify(pid)
  if (!process) throw new Error(`${what} has ended`)
  return process
}

function blankRoot({ bundleDir }: Pick<StartRequest, 'bundleDir'>): string {
  return join(bundleDir, 'root')
}

/** The part of runsc's state file that is needed here. */
const CreatedState = z.object({
  status: z.literal('created'),
  goferPid: z.int().min(2),
  sandbox: z.object({ pid: z.int().min(2) }),
})
