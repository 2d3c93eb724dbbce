import { basename } from 'node:path'
import type { Logger } from '@atoll/kit/log'
import { reclaim } from '../app/lifecycle/reclaim.ts'
import type { Reclaimed } from '../app/lifecycle/reclaim.ts'
import type { NetworkRules } from '@atoll/contracts/network/rules'
import { hasSameParts } from '../domain/sandboxes/cell.ts'
import type { CellRecord } from '../domain/sandboxes/cell.ts'
import type { Runtime } from '../domain/sandboxes/runtime.ts'
import { isEvicted } from '../domain/sandboxes/sandbox.ts'
import type { RunningSandbox } from '../domain/sandboxes/sandbox.ts'
import { isAlive } from '../linux/processes/process.ts'
import { removeUnusedEnvds } from './envd-files.ts'
import type { EnvdFiles } from './envd-files.ts'
import type { Host } from './host.ts'
import { listQuarantined, logQuarantined } from './stored-files.ts'
import type { TemplateFiles } from './template-files.ts'

export interface AdoptionParts {
  readonly host: Host
  readonly runtime: Runtime
  readonly files: TemplateFiles
  readonly envd: EnvdFiles
  readonly log: Logger
}

/** Adopts the cells of the last agent, installs their network rules, and removes files that no record refers to. */
export async function adoptCells(parts: AdoptionParts): Promise<Reclaimed> {
  const { host } = parts
  const adopted = await reclaimCells(parts)
  const liveCells = [...adopted.running, ...adopted.ready]
  await host.firewall.install(
    liveCells.map(({ slot }) => slot),
    rulesOf(adopted.running),
  )
  await host.snapshots.sweep()
  const keptRecords = [
    ...liveCells.map(({ record }) => record),
    ...adopted.paused.filter((one) => !isEvicted(one)),
    ...(await host.snapshots.list()),
  ]
  const quarantined = await listQuarantined(host, parts.files)
  logQuarantined(quarantined, parts.log)
  // Keep all envds while a record cannot be read: it may refer to any of them.
  if (quarantined.length === 0) {
    const used = keptRecords.map(({ envd }) => envd)
    await removeUnusedEnvds(host.namespace, parts.envd, used)
  }
  return adopted
}

async function reclaimCells({
  host,
  runtime,
  files,
  envd,
  log,
}: AdoptionParts): Promise<Reclaimed> {
  const current = {
    runtime: runtime.name,
    release: await runtime.release(),
    envd: basename(envd.currentDir),
  }
  const isCurrent = (record: CellRecord) => {
    const template = files.find(record.templateId)
    return template !== undefined && hasSameParts(record, { ...current, ...template })
  }
  const { thaw, dropBootPriority } = host.cgroups
  const ports = {
    ...host,
    isAlive,
    isCurrent,
    thaw: (record: CellRecord) => host.runtimes[record.runtime].thaw(record.cellId),
    thawClaimed: async (cellId: string) =>
      void (await Promise.all([thaw(cellId), dropBootPriority(cellId)])),
    slotNames: host.slots.list,
    removeSlot: host.slots.remove,
    onError: (err: unknown) =>
      log.error(
        { err, event: 'node.reclaim' },
        'an adopted sandbox was frozen for a copy and could not be thawed; the thaw is retried',
      ),
  }
  return reclaim(ports, host.subnet, host.installation.linkPrefix)
}

function rulesOf(running: readonly RunningSandbox[]): ReadonlyMap<number, NetworkRules> {
  return new Map(
    running.flatMap(({ record, slot }) =>
      record.owner.network ? [[slot.number, record.owner.network] as const] : [],
    ),
  )
}
