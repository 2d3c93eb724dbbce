import { realpath } from 'node:fs/promises'
import { snapshotsDir, toInstallation } from '../domain/host/installation.ts'
import { noKeys } from '../state/private-values.ts'
import { createRecordStore } from '../state/records.ts'
import { createSnapshotStore } from '../state/snapshots.ts'
import type { Finding } from './finding.ts'

/** Finds paused sandboxes and snapshots whose memory was saved by another release of runsc. */
export async function checkSavedMemory(dataDir: string, release: string): Promise<Finding> {
  const installation = toInstallation(await realpath(dataDir).catch(() => dataDir))
  const cells = (await createRecordStore(installation, noKeys).list()).flatMap(
    ({ record }) => record ?? [],
  )
  const snapshots = await createSnapshotStore(snapshotsDir(installation), noKeys).list()
  const writers = [...cells, ...snapshots].flatMap(({ memory }) => memory ?? [])
  const others = writers.filter((writer) => writer !== release)
  const name = 'saved memory'
  const all = `${writers.length} paused sandboxes and snapshots`
  if (others.length === 0) return { name, state: 'ok', detail: `${all}, all readable` }
  const saved = [...new Set(others)].join(', ')
  return {
    name,
    state: 'warn',
    detail: `${others.length} of ${all} were saved by ${saved}, which ${release} cannot read`,
    fix: 'use that release again (ATOLL_RUNSC), or resume with memory: false, which boots from the files',
  }
}
