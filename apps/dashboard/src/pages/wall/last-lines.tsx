import { useEffect, useRef } from 'preact/hooks'
import type { SandboxLogEntry } from '@atoll/client/replies'
import { api } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { visibleLine } from '../../model/visible-text.ts'

const pollMs = 2_000
const lines = 60
const maxLineLength = 500

/** The last lines that processes of the sandbox printed. The node has them, so the sandbox is not asked. */
export function LastLines({ id }: { readonly id: string }) {
  const box = useRef<HTMLDivElement>(null)
  const log = useResource(
    `last-lines/${id}`,
    async (signal) => {
      const path = `/v2/sandboxes/${encodeURIComponent(id)}/logs?direction=backward&limit=${lines}&level=info`
      const { logs } = await api<{ logs: SandboxLogEntry[] }>('GET', path, undefined, signal)
      return logs.toSorted((a, b) => (a.timestamp < b.timestamp ? -1 : 1))
    },
    pollMs,
  )
  const newest = log.data?.at(-1)?.timestamp
  useEffect(() => {
    if (box.current) box.current.scrollTop = box.current.scrollHeight
  }, [newest])
  return (
    <div ref={box} class="last-lines" tabIndex={0} role="log" aria-label={`Last lines of ${id}`}>
      {log.data?.length === 0 && <div class="soft">No lines yet.</div>}
      {log.data?.map(({ timestamp, level, message }) => (
        <div key={timestamp} class={`isolated ${level}`}>
          {visibleLine(message, maxLineLength)}
        </div>
      ))}
    </div>
  )
}
