import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Logger } from '@atoll/kit/log'
import { repeat } from '@atoll/kit/repeat'
import { createDiskSpace } from '../app/disk-space/disk-space.ts'
import type { DiskSpace, SpaceReport } from '../app/disk-space/disk-space.ts'
import type { NodeConfig } from '../config.ts'
import { reserveFor } from '../domain/host/disk-space.ts'
import type { SpaceLevel } from '../domain/host/disk-space.ts'
import { spaceLevelFile } from '../domain/host/installation.ts'
import type { Installation } from '../domain/host/installation.ts'
import { createBallast } from '../linux/disks/ballast.ts'
import { createDiscards, punchesHolesSlowly } from '../linux/disks/discards.ts'
import { createMountedDisks } from '../linux/disks/mounted-disks.ts'
import { openNamespaceRoot } from '../linux/mounts/mount-namespace.ts'
import type { MountNamespace } from '../linux/mounts/mount-namespace.ts'

/** Interval for asking whether a pass is due. */
const tickMs = 100
/** Minimum interval between log entries for one level, since the level may change all the time. */
const logIntervalMs = 60_000

/** Limits the disks that are already mounted, then keeps dividing the space among all disks. */
export async function openDiskSpace(parts: {
  readonly config: NodeConfig
  readonly installation: Installation
  readonly namespace: MountNamespace
  readonly log: Logger
}): Promise<DiskSpace & AsyncDisposable> {
  const { config, installation, namespace, log } = parts
  const { dataDir, runDir } = installation
  const root = await openNamespaceRoot(runDir)
  const disksDir = join(runDir, 'mounts', 'disk')
  const onError = (err: unknown) =>
    log.error(
      { err, event: 'node.disk-space' },
      'the division of disk space among sandboxes failed; the next pass tries again',
    )
  const loggedAtMs = new Map<SpaceLevel, number>()
  function logReport(report: SpaceReport): void {
    // The file is on a tmpfs, so a full disk does not affect it.
    writeFileSync(spaceLevelFile(installation), report.level)
    const nowMs = performance.now()
    if (nowMs - (loggedAtMs.get(report.level) ?? -Infinity) < logIntervalMs) return
    loggedAtMs.set(report.level, nowMs)
    logLevel(log, dataDir, report)
  }
  const space = createDiskSpace({
    ...createMountedDisks({ dataDir, disksDir: join(root.path, disksDir) }),
    ...createDiscards(namespace, disksDir),
    isDiscardingSlow: punchesHolesSlowly(dataDir),
    ballast: createBallast(dataDir, namespace),
    reserveBytes: (totalBytes) => reserveFor(totalBytes, config.ATOLL_DISK_RESERVE_MB),
    overcommit: config.ATOLL_DISK_OVERCOMMIT,
    nowMs: () => performance.now(),
    onLevel: logReport,
    onError,
  })
  logReport(space.report())
  const stop = repeat(tickMs, async () => space.runPassIfDue(), onError)
  return {
    ...space,
    async [Symbol.asyncDispose]() {
      await stop()
      root[Symbol.dispose]()
    },
  }
}

function logLevel(log: Logger, dataDir: string, report: SpaceReport): void {
  const fields = { event: 'node.disk-space', ...report }
  if (report.level === 'full') {
    log.error(
      fields,
      `disk full: sandboxes cannot write; delete sandboxes or snapshots, or add space to ${dataDir}`,
    )
  } else if (report.level === 'scarce') {
    log.warn(
      fields,
      `disk space is scarce: delete sandboxes or snapshots, or add space to ${dataDir}`,
    )
  } else {
    log.info(fields)
  }
}
