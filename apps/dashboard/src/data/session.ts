import { signal } from '@preact/signals'
import { dashboardApi, RequestError, whenSignedOut } from './request.ts'
import { isOperator } from './operator.ts'
import { connectLive, disconnectLive } from './live.ts'
import { forgetLastLines } from './last-lines.ts'
import { forgetAll } from './resource.ts'

export interface Session {
  readonly teamId: string
  readonly teamName: string
  readonly keyId: string
  readonly limits: {
    readonly concurrentSandboxes: number
    readonly maxSandboxSeconds: number
    readonly concurrentBuilds: number
    readonly maxCpuCount: number
    readonly maxMemoryMb: number
    readonly maxDiskSizeMb: number
    readonly keptDiskMb: number
  }
  readonly addresses: {
    readonly apiUrl: string
    readonly sandboxUrl: string
    readonly sandboxDomain: string
  }
}

/** Undefined: not known yet. Null: signed out. */
export const session = signal<Session | null | undefined>(undefined)
export const sessionError = signal<Error | undefined>(undefined)

export async function loadSession(): Promise<void> {
  whenSignedOut(forgetSession)
  sessionError.value = undefined
  try {
    session.value = await dashboardApi<Session>('GET', '/session')
    connectLive()
  } catch (error) {
    if (error instanceof RequestError && error.status === 401) session.value = null
    else sessionError.value = error instanceof Error ? error : new Error(String(error))
  }
}

export async function signIn(credentials: { apiKey: string } | { link: string }): Promise<void> {
  session.value = await dashboardApi<Session>('POST', '/session', credentials)
  connectLive()
}

export async function signOut(): Promise<void> {
  await dashboardApi('DELETE', '/session')
  forgetSession()
}

function forgetSession(): void {
  disconnectLive()
  forgetAll()
  forgetLastLines()
  session.value = null
  isOperator.value = undefined
}

/** Returns the session. Pages are shown only with one. */
export function currentSession(): Session {
  if (!session.value) throw new Error('there is no session')
  return session.value
}
