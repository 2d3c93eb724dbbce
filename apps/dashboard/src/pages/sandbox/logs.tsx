import { useEffect, useRef, useState } from 'preact/hooks'
import type { SandboxLogEntry } from '@atoll/client/replies'
import { api } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { formatClock } from '../../model/format.ts'
import { mergeLog, nextCursor } from '../../model/log-lines.ts'
import { visibleLine } from '../../model/visible-text.ts'
import { useKey } from '../../parts/keys.ts'
import { ErrorNote, Skeleton } from '../../parts/status.tsx'

const pollMs = 1_500
const firstLines = 500
const lastLines = 50

/** `isPlain`: only the last lines, without controls. */
export function LogsTab({
  id,
  isPlain = false,
}: {
  readonly id: string
  readonly isPlain?: boolean
}) {
  const [level, setLevel] = useState('info')
  const [search, setSearch] = useState('')
  const [follows, setFollows] = useState(true)
  const known = useRef<{ key: string; entries: readonly SandboxLogEntry[] }>({
    key: '',
    entries: [],
  })
  const key = `log/${id}/${level}/${search}`
  const log = useResource(
    key,
    async (signal) => {
      if (known.current.key !== key) known.current = { key, entries: [] }
      const more = await readLog(id, { level, search, entries: known.current.entries, signal })
      known.current = { key, entries: mergeLog(known.current.entries, more) }
      return known.current.entries
    },
    isPlain ? undefined : pollMs,
  )
  useKey('/', () => document.getElementById('log-search')?.focus())
  const lines = isPlain ? (log.data ?? []).slice(-lastLines) : (log.data ?? [])
  return (
    <>
      {!isPlain && <LogControls {...{ level, search, follows, setLevel, setSearch, setFollows }} />}
      <ErrorNote resource={log} />
      {log.data === undefined && !log.error && <Skeleton />}
      {log.data && <Lines lines={lines} follows={follows} isPlain={isPlain} />}
    </>
  )
}

function LogControls({
  level,
  search,
  follows,
  setLevel,
  setSearch,
  setFollows,
}: {
  readonly level: string
  readonly search: string
  readonly follows: boolean
  readonly setLevel: (level: string) => void
  readonly setSearch: (search: string) => void
  readonly setFollows: (follows: boolean) => void
}) {
  return (
    <div class="row">
      <input
        id="log-search"
        class="input auto grow"
        style={{ maxWidth: '360px' }}
        type="search"
        aria-label="Search the log"
        placeholder="Search  ( / )"
        value={search}
        maxLength={256}
        onInput={(event) => setSearch(event.currentTarget.value)}
      />
      <select
        class="input auto"
        aria-label="Level"
        value={level}
        onChange={(event) => setLevel(event.currentTarget.value)}
      >
        <option value="">All levels</option>
        <option value="info">Info and above</option>
        <option value="warn">Warnings and errors</option>
        <option value="error">Errors</option>
      </select>
      <label class="check">
        <input type="checkbox" checked={follows} onChange={() => setFollows(!follows)} /> Follow
      </label>
    </div>
  )
}

export function Lines({
  lines,
  follows,
  isPlain,
}: {
  readonly lines: readonly SandboxLogEntry[]
  readonly follows: boolean
  readonly isPlain: boolean
}) {
  const box = useRef<HTMLDivElement>(null)
  const newest = lines.at(-1)?.timestamp
  useEffect(() => {
    if (follows && box.current) box.current.scrollTop = box.current.scrollHeight
  }, [newest, follows])
  return (
    <div ref={box} class={isPlain ? 'log' : 'panel log'} tabIndex={0} role="log" aria-label="Log">
      {lines.length === 0 && (
        <div class="panel-body soft">No lines. Output of commands and processes appears here.</div>
      )}
      {lines.map(({ timestamp, level, message, fields }) => (
        <div key={timestamp} class={`log-line ${level}`}>
          <time class="time" dateTime={timestamp} title={timestamp}>
            {formatClock(timestamp)}
          </time>
          <span
            class="level"
            title={`${fields['logger'] ?? ''} ${fields['pid'] ? `pid ${fields['pid']}` : ''}`}
          >
            {fields['stream'] === 'stderr' ? 'stderr' : level}
          </span>
          <span class="text isolated">{visibleLine(message)}</span>
        </div>
      ))}
    </div>
  )
}

async function readLog(
  id: string,
  want: { level: string; search: string; entries: readonly SandboxLogEntry[]; signal: AbortSignal },
): Promise<SandboxLogEntry[]> {
  const cursor = nextCursor(want.entries)
  const query = new URLSearchParams({ limit: cursor === undefined ? String(firstLines) : '1000' })
  if (cursor !== undefined) query.set('cursor', String(cursor))
  query.set('direction', cursor === undefined ? 'backward' : 'forward')
  if (want.level) query.set('level', want.level)
  if (want.search) query.set('search', want.search)
  const path = `/v2/sandboxes/${encodeURIComponent(id)}/logs?${query}`
  return (await api<{ logs: SandboxLogEntry[] }>('GET', path, undefined, want.signal)).logs
}
