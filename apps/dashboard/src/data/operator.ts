import { signal } from '@preact/signals'
import type { AdminTeam, ListedNode } from '@atoll/client/replies'
import { dashboardApi, RequestError } from './request.ts'
import { reloadAll, useResource } from './resource.ts'
import type { Resource } from './resource.ts'

/** Undefined: not known yet. The operator's session is separate from that of a team. */
export const isOperator = signal<boolean | undefined>(undefined)

export async function loadOperator(): Promise<void> {
  try {
    await dashboardApi('GET', '/operator/session')
    isOperator.value = true
  } catch (error) {
    if (!(error instanceof RequestError) || error.status !== 401) throw error
    isOperator.value = false
  }
}

export async function signInOperator(token: string): Promise<void> {
  await dashboardApi('POST', '/operator/session', { token })
  isOperator.value = true
}

export async function signOutOperator(): Promise<void> {
  await dashboardApi('DELETE', '/operator/session')
  isOperator.value = false
}

async function operatorApi<Body = void>(
  method: string,
  path: string,
  body?: unknown,
): Promise<Body> {
  try {
    return await dashboardApi<Body>(method, `/operator${path}`, body)
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) isOperator.value = false
    throw error
  }
}

const pollMs = 3_000

export function useNodes(): Resource<ListedNode[]> {
  return useResource('operator/nodes', () => operatorApi<ListedNode[]>('GET', '/nodes'), pollMs)
}

export function useTeams(): Resource<AdminTeam[]> {
  return useResource(
    'operator/teams',
    () => operatorApi<AdminTeam[]>('GET', '/admin/teams'),
    pollMs,
  )
}

export function useRunningCounts(): Resource<Record<string, number>> {
  return useResource(
    'operator/counts',
    () => operatorApi<Record<string, number>>('GET', '/admin/sandboxes/running-counts'),
    pollMs,
  )
}

const teamPath = (id: string) => `/admin/teams/${encodeURIComponent(id)}`

export const operatorActions = {
  setNodeStatus: (id: string, status: 'ready' | 'draining') =>
    changed(operatorApi('POST', `/nodes/${encodeURIComponent(id)}`, { status })),
  createTeam: (name: string) => changed(operatorApi('POST', '/admin/teams', { name })),
  setLimits: (id: string, limits: object) =>
    changed(operatorApi('PATCH', teamPath(id), { limits })),
  block: (id: string, block: { level: string; reason: string }) =>
    changed(operatorApi('PUT', `${teamPath(id)}/block`, block)),
  unblock: (id: string) => changed(operatorApi('DELETE', `${teamPath(id)}/block`)),
  killAll: (id: string) =>
    changed(
      operatorApi<{ killedCount: number; failedCount: number }>(
        'POST',
        `${teamPath(id)}/sandboxes/kill`,
      ),
    ),
}

async function changed<Result>(change: Promise<Result>): Promise<Result> {
  try {
    return await change
  } finally {
    void reloadAll('operator')
  }
}
