import { randomUUID } from 'node:crypto'
import { mkdir, realpath, stat } from 'node:fs/promises'
import { hostname } from 'node:os'
import { basename, join } from 'node:path'
import type { Logger } from '@atoll/kit/log'
import { repeat } from '@atoll/kit/repeat'
import type { Transport } from '@connectrpc/connect'
import manifest from '../package.json' with { type: 'json' }
import { createSandboxEvents } from './app/events.ts'
import { reclaim } from './app/reclaim.ts'
import { sampleSandboxes } from './app/sample.ts'
import { createSandboxes } from './app/sandboxes.ts'
import type { Rootfs, SandboxPorts } from './app/sandboxes.ts'
import { createSlotPool } from './app/slot-pool.ts'
import type { NodeConfig } from './config.ts'
import { sandboxDir, toInstance } from './domain/instance.ts'
import type { Runtime, SandboxSpec } from './domain/sandbox.ts'
import { introduceEnvd } from './envd/introduce.ts'
import { openHost } from './host.ts'
import type { Host } from './host.ts'
import { openCgroupUsage } from './linux/cgroup-usage.ts'
import { createMeasure, readMachine } from './linux/machine.ts'
import { openMountNamespace } from './linux/mount-namespace.ts'
import { ageNsOf, isAlive } from './linux/process.ts'
import { mountReadOnly, unmountReadOnly } from './linux/read-only.ts'
import { createShiftedLayers } from './linux/shifted-layers.ts'
import { checkSubnetIsFree } from './net/free-subnet.ts'
import { shiftedIds } from './oci/runc.ts'
import { serveInMemory } from './rpc/service.ts'
import { chooseRuntime } from './setup/choose-runtime.ts'
import { ensureBaseTemplate } from './template/base.ts'
import { ensureEnvdRuntime, removeEnvdRuntimes } from './template/envd-runtime.ts'

export interface NodeParts {
  readonly log: Logger
  /** Told of work that takes long at a first start. */
  readonly progress?: (label: string, fraction: number) => void
}

export interface RunningNode {
  readonly transport: Transport
  /** Stops the agent; sandboxes go on and are adopted by the next one. */
  close(): Promise<void>
}

/** How often the first processes of sandboxes are looked at. A look at one costs microseconds. */
const reapIntervalMs = 250

export async function startNode(config: NodeConfig, parts: NodeParts): Promise<RunningNode> {
  const { log, progress = () => {} } = parts
  await mkdir(config.ATOLL_DATA_DIR, { recursive: true, mode: 0o700 })
  const instance = toInstance(await realpath(config.ATOLL_DATA_DIR))
  checkSubnetIsFree(config.ATOLL_SUBNET, instance.linkPrefix)
  const namespace = await openMountNamespace(instance.runDir)
  const host = openHost(config, instance, namespace)
  const runtime = host.runtimes[await chooseRuntime(config.ATOLL_RUNTIME)]
  const layersDir = config.ATOLL_LAYERS_DIR ?? join(instance.dataDir, 'layers')
  const envdDirs = { built: join(instance.dataDir, 'envd'), mounted: join(instance.runDir, 'envd') }
  const [base, envd] = await Promise.all([
    ensureBaseTemplate({
      layersDir,
      progress: (label, fraction) => progress(`base template: ${label}`, fraction),
    }),
    ensureEnvdRuntime({ dir: envdDirs.built }),
  ])
  const envdDir = await mountReadOnly(namespace, envd.dir, envdDirs.mounted)

  const { subnet } = host
  const { linkPrefix } = instance
  const removeSlot = async (slot: Parameters<Host['slots']['remove']>[0]) => {
    await host.slots.remove(slot)
    await host.firewall.expel(slot)
  }
  const adopted = await reclaim(
    { ...host, isAlive, slotNames: host.slots.list, removeSlot: host.slots.remove },
    subnet,
    linkPrefix,
  )
  await host.firewall.install(adopted.map((sandbox) => sandbox.slot))
  const envdsInUse = new Set([basename(envdDir), ...adopted.map(({ record }) => record.envd)])
  await unmountReadOnly(namespace, envdDirs.mounted, envdsInUse)
  await removeEnvdRuntimes(envdDirs.built, envdsInUse)

  const slots = createSlotPool({
    ports: {
      // The rules know the slot before it has a cable.
      make: async (slot) => {
        await host.firewall.admit(slot)
        await host.slots.make(slot)
      },
      remove: removeSlot,
    },
    subnet,
    linkPrefix,
    ready: config.ATOLL_READY_SLOTS,
    inUse: adopted.map((sandbox) => sandbox.slot.number),
    onError: (err) =>
      log.error({ err, event: 'node.slots' }, 'a network slot could not be prepared'),
  })
  const events = createSandboxEvents((sandboxId, reason) =>
    log.info({ event: 'sandbox.end', sandboxId, reason }),
  )
  const ports = sandboxPorts(
    host,
    runtime,
    envdDir,
    mountBase(config, host, runtime, base.layerDir),
  )
  const sandboxes = createSandboxes({ ports, slots, events, adopted })
  const stopReaping = repeat(reapIntervalMs, sandboxes.reap, (err) =>
    log.error({ err, event: 'node.reap' }, 'a dead sandbox could not be removed'),
  )
  log.info({ event: 'node.start', runtime: runtime.name, adopted: adopted.length })

  const facts = {
    nodeId: hostname(),
    runtime: runtime.name,
    envdVersion: envd.version,
    templateIds: ['base'],
    instanceId: randomUUID(),
    version: manifest.version,
    machine: await readMachine(),
  }
  const measure = createMeasure(instance.dataDir)
  const { read: readGroup } = await openCgroupUsage(instance.cgroup)
  const sample = () =>
    sampleSandboxes({
      list: sandboxes.list,
      readGroup,
      readDisks: host.rootfs.usage,
      ageNs: ({ record }) => record.process && ageNsOf(record.process),
      nowNs: process.hrtime.bigint,
    })
  return {
    transport: serveInMemory({ sandboxes, events, sample, facts, measure }, log),
    async close() {
      await stopReaping()
      await sandboxes.settle()
      await slots.close()
    },
  }
}

function sandboxPorts(
  host: Host,
  runtime: Runtime,
  envdDir: string,
  mountRootfs: SandboxPorts['mountRootfs'],
): SandboxPorts {
  return {
    records: host.records,
    runtime,
    mountRootfs,
    isAlive,
    introduce: (slot, initToken, introduction, alive) =>
      introduceEnvd(slot.sandboxAddress, initToken, introduction, { isAlive: alive }),
    oomKills: host.cgroups.oomKills,
    bundleDir: (sandboxId) => join(sandboxDir(host.instance, sandboxId), 'bundle'),
    envdDir: () => envdDir,
    erase: host.erase,
  }
}

/** The built-in template is one layer; as yet there are no others. */
function mountBase(
  config: NodeConfig,
  host: Host,
  runtime: Runtime,
  layerDir: string,
): (spec: SandboxSpec) => Promise<Rootfs | undefined> {
  const shifted = createShiftedLayers({
    namespace: host.namespace,
    dir: join(host.instance.runDir, 'layers'),
    ...shiftedIds,
  })
  return async ({ sandboxId, templateId, diskSizeMb }) => {
    if (templateId !== 'base') return undefined
    const layer = runtime.idShift === 0 ? layerDir : await shifted.ensure(layerDir)
    const path = await host.rootfs.mount({
      sandboxId,
      layers: [layer],
      diskSizeMb,
      nameservers: config.ATOLL_NAMESERVERS,
      idShift: runtime.idShift,
    })
    return { path, hasSudo: await exists(join(layerDir, 'usr/bin/sudo')) }
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
