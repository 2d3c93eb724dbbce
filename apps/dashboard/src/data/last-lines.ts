import { signal } from '@preact/signals'
import { api } from './request.ts'
import { useResource } from './resource.ts'

interface LastLine {
  readonly timestamp: string
  /** Hostile: a program printed it. */
  readonly text: string
}

export type LastLines = Readonly<Record<string, LastLine>>

const everyMs = 3_000
/** Limit of the API for one request. */
const maxIds = 100
/** Sandboxes whose line stays for their return into view. */
const maxRecent = 500

const recent = signal<LastLines>({})

export function forgetLastLines(): void {
  recent.value = {}
}

/** Follows the last line that each sandbox in view has printed. */
export function useLastLines(ids: readonly string[]): LastLines {
  const asked = ids.slice(0, maxIds)
  useResource(
    `printed-lines/${asked.join()}`,
    async (aborted) => {
      if (asked.length === 0) return {}
      const path = `/sandboxes/last-lines?sandbox_ids=${asked.join(',')}`
      const reply = await api<{ sandboxes: LastLines }>('GET', path, undefined, aborted)
      const known = Object.entries(recent.value).slice(-maxRecent)
      recent.value = { ...Object.fromEntries(known), ...reply.sandboxes }
      return reply.sandboxes
    },
    everyMs,
  )
  return recent.value
}
