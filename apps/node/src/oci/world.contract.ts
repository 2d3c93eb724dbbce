import { mkdtemp, realpath, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { randomLabel } from '@atoll/kit/id'
import { loadNodeConfig } from '../config.ts'
import { cellDir, toInstallation } from '../domain/host/installation.ts'
import { toSlot } from '../domain/network/slot.ts'
import { initEnvd } from '../envd/init.ts'
import { openHost } from '../composition/host.ts'
import { openMountNamespace, removeMountNamespace } from '../linux/mounts/mount-namespace.ts'
import { isAlive } from '../linux/processes/process.ts'
import { mountReadOnly } from '../linux/mounts/read-only-mounts.ts'
import { createShiftedLayers } from '../linux/mounts/shifted-layers.ts'
import { noKeys } from '../state/private-values.ts'
import { ensureBaseTemplate } from '../template/base.ts'
import { ensureEnvdRuntime } from '../template/envd-runtime.ts'
import { shareEnvd } from '../testing/shared-envd.ts'
import { shiftedIds } from './runc.ts'
import type { ProcessIdentity } from '../domain/sandboxes/process-identity.ts'
import type { Runtime, StartRequest } from '../domain/sandboxes/runtime.ts'

/** Record of a cell that is being made. */
export function contractCell(cellId: string) {
  return {
    cellId,
    templateId: 'base',
    cpuCount: 1,
    memoryMb: 256,
    diskSizeMb: 64,
    phase: 'making',
    runtime: 'gvisor',
    layer: 'l1',
    envd: 'e1',
    initToken,
    disk: 'disk.img',
  } as const
}

interface Origin {
  readonly image: string
  readonly memoryDir: string
  readonly isBlank?: boolean
}

export type ContractWorld = Awaited<ReturnType<typeof openContractWorld>>

/** Opens a host with real disks and slots, and starts sandboxes on it. */
export async function openContractWorld(name: Runtime['name'], subnet: string) {
  const dataDir = await realpath(await mkdtemp('/var/tmp/atoll-contract-'))
  const installation = toInstallation(dataDir)
  const config = loadNodeConfig({ ATOLL_DATA_DIR: dataDir, ATOLL_SUBNET: subnet })
  const namespace = await openMountNamespace(installation.runDir)
  const { layerDir } = await ensureBaseTemplate({
    layersDir: '/var/lib/atoll/layers',
    progress: () => {},
  })
  await shareEnvd(dataDir)
  const envd = await ensureEnvdRuntime({ dir: join(dataDir, 'envd') })
  const host = openHost(config, installation, {
    namespace,
    guest: join(envd.dir, 'guest'),
    keys: noKeys,
  })
  const runtime = host.runtimes[name]
  const envdDir = await mountReadOnly(namespace, envd.dir, join(installation.runDir, 'envd'))
  const layers = createShiftedLayers({
    namespace,
    dir: join(installation.runDir, 'layers'),
    ...shiftedIds,
  })
  await host.firewall.install([])
  let slots = 0

  function requestFor(id: string, slotNumber: number): StartRequest {
    const bundleDir = join(cellDir(installation, id), 'bundle')
    const slot = toSlot(host.subnet, installation.linkPrefix, slotNumber)
    return { cell: contractCell(id), slot, rootfs: '', bundleDir, envdDir, hasSudo: true }
  }

  async function startAt(
    id: string,
    rootfs: string,
    { slotNumber = 0, memoryDir, isBlank }: { slotNumber?: number } & Partial<Origin> = {},
  ): Promise<ProcessIdentity> {
    const request = { ...requestFor(id, slotNumber), rootfs }
    if (memoryDir === undefined) return runtime.start(request)
    return ((isBlank && runtime.blanks) || runtime).restore(request, memoryDir)
  }

  return {
    host,
    startAt,
    async start(from?: Origin) {
      const id = `c${randomLabel(20)}`
      const slot = toSlot(host.subnet, installation.linkPrefix, slots++)
      await host.records.create(contractCell(id))
      const image = join(cellDir(installation, id), 'disk.img')
      await (from ? host.disks.copy(from.image, image) : host.disks.create(image, 64))
      await host.firewall.addSlot(slot)
      await host.slots.make(slot, runtime.name)
      if (from?.isBlank) await runtime.blanks?.create(requestFor(id, slot.number))
      const layer = runtime.idShift === 0 ? layerDir : await layers.ensure(layerDir)
      const rootfs = await host.rootfs.mount({
        cellId: id,
        image,
        layers: [layer],
        nameservers: ['8.8.8.8'],
        idShift: runtime.idShift,
      })
      const process = await startAt(id, rootfs, { slotNumber: slot.number, ...from })
      const init = {
        sandboxId: 'i1',
        templateId: 'base',
        accessToken: undefined,
        defaultUser: 'user',
        defaultWorkdir: undefined,
        envVars: {},
        cpuCount: 1,
        memoryMb: 256,
      }
      await initEnvd(slot.sandboxAddress, initToken, init, {
        isAlive: () => isAlive(process),
      })
      return {
        id,
        process,
        image,
        address: slot.sandboxAddress,
        async [Symbol.asyncDispose]() {
          await host.erase(id)
          await host.slots.remove(slot)
          await host.firewall.removeSlot(slot)
        },
      }
    },
    async close() {
      await host.cgroups.removeAll()
      await host.firewall.uninstall()
      await removeMountNamespace(installation.runDir)
      await rm(dataDir, { recursive: true, force: true })
    },
  }
}

const initToken = 'the-token-of-the-test'
