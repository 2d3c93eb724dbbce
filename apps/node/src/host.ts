import { join } from 'node:path'
import type { RecordStore } from './state/records.ts'
import { createRecordStore } from './state/records.ts'
import type { NodeConfig } from './config.ts'
import { sandboxDir } from './domain/instance.ts'
import type { Instance } from './domain/instance.ts'
import type { Runtime } from './domain/sandbox.ts'
import { parseSubnet } from './domain/slot.ts'
import type { Subnet } from './domain/slot.ts'
import { createCgroups } from './linux/cgroup.ts'
import type { Cgroups } from './linux/cgroup.ts'
import { plainProcDir } from './linux/mount-namespace.ts'
import type { MountNamespace } from './linux/mount-namespace.ts'
import { findProcesses, killProcess } from './linux/process.ts'
import { createRootfsStore } from './linux/rootfs.ts'
import type { RootfsStore } from './linux/rootfs.ts'
import { createFirewall } from './net/firewall.ts'
import type { Firewall } from './net/firewall.ts'
import { createSlotMaker } from './net/slots.ts'
import type { SlotMaker } from './net/slots.ts'
import { createGvisor } from './oci/gvisor.ts'
import { createRunc } from './oci/runc.ts'

/** Everything of this machine that an instance works with; the agent and the tear-down share it. */
export interface Host {
  readonly instance: Instance
  readonly namespace: MountNamespace
  readonly subnet: Subnet
  readonly records: RecordStore
  readonly cgroups: Cgroups
  readonly rootfs: RootfsStore
  readonly slots: SlotMaker
  readonly firewall: Firewall
  readonly runtimes: Readonly<Record<Runtime['name'], Runtime>>
  /** Removes all of a sandbox but its network slot, whatever of it there is. */
  erase(sandboxId: string): Promise<void>
  /** Ids under which anything is left outside the records. */
  traces(): Promise<string[]>
  /** Ends processes of runtimes that serve none of `keep`: a command killed half way leaves them in no control group. */
  killStrays(keep: ReadonlySet<string>): Promise<void>
}

export function openHost(config: NodeConfig, instance: Instance, namespace: MountNamespace): Host {
  const subnet = parseSubnet(config.ATOLL_SUBNET)
  const records = createRecordStore(instance)
  const cgroups = createCgroups(instance.cgroup)
  const rootfs = createRootfsStore({
    namespace,
    mountsDir: join(instance.runDir, 'mounts'),
    emptyDisksDir: join(instance.dataDir, 'empty-disks'),
    diskImage: (sandboxId) => join(sandboxDir(instance, sandboxId), 'disk.img'),
  })
  const stateDir = join(instance.runDir, 'state')
  const runtimeParts = { namespace, stateDir, cgroupParent: instance.cgroup }
  const runtimes = { gvisor: createGvisor(runtimeParts), runc: createRunc(runtimeParts) }
  const { linkPrefix } = instance
  const slots = createSlotMaker({ namespace, linkPrefix, procDir: plainProcDir(instance.runDir) })

  return {
    instance,
    namespace,
    subnet,
    records,
    cgroups,
    rootfs,
    slots,
    firewall: createFirewall(instance, subnet.cidr),
    runtimes,

    async erase(sandboxId) {
      await cgroups.remove(sandboxId)
      await Promise.all(Object.values(runtimes).map((runtime) => runtime.remove(sandboxId)))
      await rootfs.unmount(sandboxId)
      await records.remove(sandboxId)
    },

    async traces() {
      const ids = await Promise.all([
        cgroups.list(),
        ...Object.values(runtimes).map((runtime) => runtime.list()),
        rootfs.list(),
      ])
      return ids.flat()
    },

    async killStrays(keep) {
      // Of all a runtime's processes only the folder of their bundle tells whose they are.
      const strays = await findProcesses((args) => {
        if (!args.some((arg) => arg.startsWith(`--root=${stateDir}/`))) return false
        const owner = /\/sandboxes\/([a-z0-9]+)\/bundle/.exec(args.join(' '))?.[1]
        return owner === undefined || !keep.has(owner)
      })
      strays.forEach(killProcess)
    },
  }
}
