import { useEffect, useState } from 'preact/hooks'
import type { SandboxLogEntry, SandboxMetric } from '@atoll/client/replies'
import { now } from '../data/clock.ts'
import { readShared, RequestError } from '../data/request.ts'
import { useResource } from '../data/resource.ts'
import { formatAge, formatDuration, secondsUntil } from '../model/format.ts'
import { visibleName } from '../model/visible-text.ts'
import { State } from '../parts/controls.tsx'
import { ErrorNote, Skeleton } from '../parts/status.tsx'
import { Lines } from './sandbox/logs.tsx'
import { UsagePoints } from './sandbox/usage-plots.tsx'

interface SharedSandbox {
  readonly sandboxID: string
  readonly state: string
  /** Unix milliseconds. */
  readonly expiresAt: number
  /** Why there are no details: the sandbox has ended. */
  readonly message?: string
  readonly templateID?: string
  readonly alias?: string
  readonly startedAt?: string
  readonly endAt?: string
  readonly cpuCount?: number
  readonly memoryMB?: number
  readonly diskSizeMB?: number
}

const pollMs = 3_000

/** One sandbox for a visitor with a link. The token is in the fragment, which browsers never send to a server. */
export function SharedPage() {
  const [token, setToken] = useState(readToken)
  useEffect(() => {
    // Another link in the same tab differs in the fragment alone, so the browser does not load the page again.
    const read = () => setToken(readToken())
    addEventListener('hashchange', read)
    return () => removeEventListener('hashchange', read)
  }, [])
  return <SharedView key={token} token={token} />
}

const readToken = () => location.hash.slice(1)

function SharedView({ token }: { readonly token: string }) {
  const sandbox = useResource(
    `shared/sandbox/${token}`,
    (signal) => readShared<SharedSandbox>(token, 'sandbox', signal),
    pollMs,
  )
  const { data, error } = sandbox
  if (error instanceof RequestError && error.status === 401) {
    return (
      <main class="sign-in">
        <div class="stack" style={{ textAlign: 'center' }}>
          <h1>This link does not work any more</h1>
          <p class="soft">{error.message}</p>
        </div>
      </main>
    )
  }
  return (
    <main class="page shared">
      <ErrorNote resource={sandbox} />
      {!data && !error && <Skeleton lines={6} />}
      {data && <Shared token={token} sandbox={data} />}
    </main>
  )
}

function Shared({ token, sandbox }: { readonly token: string; readonly sandbox: SharedSandbox }) {
  const { sandboxID, state, startedAt, endAt, message } = sandbox
  const metrics = useResource(
    `shared/metrics/${token}`,
    (signal) => readShared<SandboxMetric[]>(token, 'metrics', signal),
    pollMs,
  )
  const log = useResource(
    `shared/logs/${token}`,
    (signal) => readShared<{ logs: SandboxLogEntry[] }>(token, 'logs', signal),
    pollMs,
  )
  const size = [
    sandbox.cpuCount !== undefined && `${sandbox.cpuCount} CPU`,
    sandbox.memoryMB !== undefined && `${sandbox.memoryMB} MiB memory`,
    startedAt !== undefined && `started ${formatAge(startedAt, now.value)}`,
    state === 'running' &&
      endAt !== undefined &&
      `${formatDuration(secondsUntil(endAt, now.value))} left`,
  ]
  return (
    <>
      <div class="page-head">
        <div class="row">
          <h1 class="mono" style={{ fontSize: '15px' }}>
            {sandboxID}
          </h1>
          <State state={state} />
          <span class="soft isolated">
            {visibleName(sandbox.alias ?? sandbox.templateID ?? '', 60)}
          </span>
        </div>
        <span class="soft">
          read-only, for {formatDuration((sandbox.expiresAt - now.value) / 1000)}
        </span>
      </div>
      <p class="soft">{size.filter(Boolean).join(' · ')}</p>
      {message !== undefined && <div class="note warn">{visibleName(message, 300)}</div>}
      <UsagePoints points={metrics.data} />
      <section class="panel">
        <div class="panel-head">
          <h2>Last lines</h2>
        </div>
        <ErrorNote resource={log} />
        {log.data && <Lines lines={log.data.logs.toReversed()} follows isPlain />}
      </section>
    </>
  )
}
