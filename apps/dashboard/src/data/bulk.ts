import { signal } from '@preact/signals'
import { toApiFilter } from '../model/sandbox-filter.ts'
import type { SandboxFilter } from '../model/sandbox-filter.ts'
import { dashboardApi } from './request.ts'

export type BulkAction = 'kill' | 'pause' | 'extend'

/** An action on all matches of a filter, which the server carries out. */
export interface BulkJob {
  readonly id: string
  readonly action: BulkAction
  readonly state: 'prepared' | 'running' | 'finished' | 'stopped'
  readonly total: number
  /** More sandboxes match than one action takes. */
  readonly isCut: boolean
  readonly succeeded: number
  readonly failed: number
  readonly failures: readonly {
    readonly reason: string
    readonly count: number
    readonly sandboxIds: readonly string[]
  }[]
}

/** The action that the user is asked about, or that is under way. */
export const bulkJob = signal<BulkJob | undefined>(undefined)

/** Finds the matches on the server. Nothing is changed before `startBulk`. */
export async function prepareBulk(action: BulkAction, filter: SandboxFilter): Promise<void> {
  const body = { action, filter: toApiFilter(filter) }
  bulkJob.value = await dashboardApi<BulkJob>('POST', '/bulk', body)
}

export async function startBulk({ id }: BulkJob): Promise<void> {
  bulkJob.value = await dashboardApi<BulkJob>('POST', `/bulk/${id}/start`)
}

export async function stopBulk({ id }: BulkJob): Promise<void> {
  await dashboardApi('DELETE', `/bulk/${id}`)
}

export function readBulk(id: string, aborted: AbortSignal): Promise<BulkJob> {
  return dashboardApi<BulkJob>('GET', `/bulk/${id}`, undefined, aborted)
}
