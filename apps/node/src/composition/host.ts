import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { DiskSpace } from '../app/disk-space/disk-space.ts'
import type { RecordKeys } from '../state/record-file.ts'
import type { RecordStore } from '../state/records.ts'
import { createRecordStore } from '../state/records.ts'
import type { NodeConfig } from '../config.ts'
import type { CellRecord } from '../domain/sandboxes/cell.ts'
import type { Disks } from '../domain/host/disks.ts'
import { cellDir, snapshotsDir } from '../domain/host/installation.ts'
import type { Installation } from '../domain/host/installation.ts'
import type { SnapshotStore } from '../domain/sandboxes/snapshot.ts'
import { parseSubnet } from '../domain/network/slot.ts'
import type { Subnet } from '../domain/network/slot.ts'
import { createCgroups } from '../linux/cgroups/cgroups.ts'
import type { Cgroups } from '../linux/cgroups/cgroups.ts'
import { createDisks } from '../linux/disks/disk-images.ts'
import { plainProcDir } from '../linux/mounts/mount-namespace.ts'
import type { MountNamespace } from '../linux/mounts/mount-namespace.ts'
import { findProcesses, killProcess } from '../linux/processes/process.ts'
import { createRootfsStore } from '../linux/mounts/rootfs.ts'
import type { RootfsStore } from '../linux/mounts/rootfs.ts'
import { createUnshiftedMount } from '../linux/mounts/shifted-layers.ts'
import { createEgress } from '../net/egress.ts'
import type { Egress } from '../net/egress.ts'
import { createFirewall } from '../net/firewall.ts'
import type { Firewall } from '../net/firewall.ts'
import { createSlotMaker } from '../net/slots.ts'
import type { SlotMaker } from '../net/slots.ts'
import { releaseOf, runscMemoryFormat } from '../setup/runtime-release.ts'
import { createSnapshotStore } from '../state/snapshots.ts'
import { createGvisor } from '../oci/gvisor.ts'
import { createRunc, shiftedIds } from '../oci/runc.ts'
import type { Runtime } from '../domain/sandboxes/runtime.ts'

/** Host resources of an installation, shared by the agent and the teardown. */
export interface Host {
  readonly installation: Installation
  readonly namespace: MountNamespace
  readonly subnet: Subnet
  readonly records: RecordStore
  readonly cgroups: Cgroups
  readonly rootfs: RootfsStore
  readonly slots: SlotMaker
  readonly firewall: Firewall
  readonly egress: Egress
  readonly runtimes: Readonly<Record<Runtime['name'], Runtime>>
  readonly disks: Disks
  readonly space: Pick<DiskSpace, 'hold' | 'admitDisk' | 'checkSandbox' | 'report'>
  readonly snapshots: SnapshotStore
  readonly prototypes: SnapshotStore
  /** Kills the processes and unmounts the file systems of a cell. Keeps its slot and folder. */
  halt(cellId: string): Promise<void>
  /** Removes everything of a cell except its network slot. */
  erase(cellId: string): Promise<void>
  /** Removes files in the cell's folder that do not belong to this record. */
  tidy(record: CellRecord): Promise<void>
  /** IDs of cells that left anything on the host outside the records. */
  traces(): Promise<string[]>
  /**
   * Kills runtime processes of cells not in `keep`. A command killed half way leaves such processes outside every
   * control group.
   */
  killStrays(keep: ReadonlySet<string>): Promise<void>
}

export function openHost(
  config: NodeConfig,
  installation: Installation,
  parts: {
    readonly namespace: MountNamespace
    readonly keys: RecordKeys
    readonly guest?: string
    readonly space?: Host['space']
    /** See `EgressParts`. */
    readonly certificates?: readonly string[]
    readonly onEgressError?: (error: unknown) => void
    readonly onFirewallError?: (error: unknown) => void
  },
): Host {
  const { namespace, guest, space = unlimitedSpace } = parts
  const subnet = parseSubnet(config.ATOLL_SUBNET)
  const records = createRecordStore(installation, parts.keys)
  const cgroups = createCgroups(installation.cgroup)
  const rootfs = createRootfsStore({
    namespace,
    guest,
    mountsDir: join(installation.runDir, 'mounts'),
    mountUnshifted: createUnshiftedMount(namespace, shiftedIds),
  })
  const stateDir = join(installation.runDir, 'state')
  const { cgroup: cgroupParent } = installation
  const runsc = config.ATOLL_RUNSC ?? 'runsc'
  const runscRelease = releaseOf(runsc)
  const runtimes = {
    gvisor: createGvisor({
      namespace,
      stateDir,
      cgroupParent,
      guest,
      program: runsc,
      release: runscRelease,
      memoryFormat: async () => runscMemoryFormat(await runscRelease()),
    }),
    runc: createRunc({ namespace, stateDir, cgroupParent, release: releaseOf('runc') }),
  }
  const { linkPrefix } = installation
  const slots = createSlotMaker({
    namespace,
    linkPrefix,
    procDir: plainProcDir(installation.runDir),
  })

  const egress = createEgress({
    ...installation,
    subnet: subnet.cidr,
    nameservers: config.ATOLL_NAMESERVERS,
    certificates: parts.certificates ?? [],
    onOpen: (ports) => firewall.redirectTo(ports),
    onError: parts.onEgressError ?? (() => {}),
  })
  const firewall = createFirewall(
    installation,
    subnet.cidr,
    namespace,
    egress,
    parts.onFirewallError,
  )

  async function halt(cellId: string): Promise<void> {
    await cgroups.remove(cellId)
    const removals = Object.values(runtimes).map((runtime) => runtime.remove(cellId))
    await Promise.all([...removals, rootfs.unmount(cellId)])
  }

  return {
    installation,
    namespace,
    subnet,
    records,
    cgroups,
    rootfs,
    slots,
    firewall,
    egress,
    runtimes,

    space,
    disks: createDisks(installation.dataDir, namespace, space.hold),
    snapshots: createSnapshotStore(snapshotsDir(installation), parts.keys),
    prototypes: createSnapshotStore(join(installation.dataDir, 'prototypes'), parts.keys),
    halt,

    async erase(cellId) {
      await halt(cellId)
      await records.remove(cellId)
    },

    async tidy({ cellId, disk, memory }) {
      const folder = cellDir(installation, cellId)
      const keep = new Set(['cell.json', 'bundle', disk, memory === undefined ? '' : 'memory'])
      const others = (await readdir(folder)).filter((name) => !keep.has(name))
      await Promise.all(others.map((name) => rm(join(folder, name), { recursive: true })))
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
      // Only the bundle path in a runtime process's arguments shows which cell it belongs to.
      const strays = await findProcesses((args) => {
        if (!args.some((arg) => arg.startsWith(`--root=${stateDir}/`))) return false
        const owner = /\/cells\/([a-z0-9]+)\/bundle/.exec(args.join(' '))?.[1]
        return owner === undefined || !keep.has(owner)
      })
      strays.forEach(killProcess)
    },
  }
}

/** Used by the teardown, which only removes. */
const unlimitedSpace: Host['space'] = {
  hold: () => ({ [Symbol.dispose]() {} }),
  async admitDisk() {},
  checkSandbox() {},
  report: () => ({ level: 'roomy', totalBytes: 0, freeBytes: 0, reserveBytes: 0, spareBytes: 0 }),
}
