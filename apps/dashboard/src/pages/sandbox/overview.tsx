import { useState } from 'preact/hooks'
import type { SandboxDetail } from '@atoll/client/replies'
import { now } from '../../data/clock.ts'
import { currentSession } from '../../data/session.ts'
import { formatAge } from '../../model/format.ts'
import { portUrl } from '../../model/port-url.ts'
import { visibleName } from '../../model/visible-text.ts'
import { Snippet } from '../../parts/controls.tsx'
import { Timeline } from './timeline.tsx'

export function OverviewTab({ sandbox }: { readonly sandbox: SandboxDetail }) {
  const { apiUrl, sandboxUrl } = currentSession().addresses
  return (
    <>
      <Timeline id={sandbox.sandboxID} hasConnections={sandbox.state === 'running'} />
      <div class="two">
        <Facts sandbox={sandbox} />
        <section class="panel">
          <div class="panel-head">
            <h2>Use it</h2>
          </div>
          <div class="panel-body stack">
            {sandbox.state === 'running' && <OpenPort id={sandbox.sandboxID} />}
            <Snippet
              code={[
                "import { Sandbox } from 'e2b'",
                `const sandbox = await Sandbox.connect('${sandbox.sandboxID}', {`,
                `  apiUrl: '${apiUrl}', sandboxUrl: '${sandboxUrl}',`,
                '})',
                "console.log((await sandbox.commands.run('id')).stdout)",
              ].join('\n')}
            />
          </div>
        </section>
      </div>
    </>
  )
}

function Facts({ sandbox }: { readonly sandbox: SandboxDetail }) {
  const metadata = Object.entries(sandbox.metadata ?? {})
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>Facts</h2>
      </div>
      <dl class="facts panel-body">
        <dt>Started</dt>
        <dd title={sandbox.startedAt}>{formatAge(sandbox.startedAt, now.value)}</dd>
        <dt>{sandbox.state === 'running' ? 'Ends' : 'Paused'}</dt>
        <dd>
          {new Date(sandbox.endAt).toLocaleString()}
          {sandbox.state === 'running' &&
            `, then ${sandbox.lifecycle.onTimeout === 'pause' ? 'pauses' : 'is killed'}`}
        </dd>
        <dt>Size</dt>
        <dd>
          {sandbox.cpuCount} CPU · {sandbox.memoryMB} MiB memory · {sandbox.diskSizeMB} MiB disk
        </dd>
        <dt>Template</dt>
        <dd class="mono isolated">{visibleName(sandbox.templateID)}</dd>
        <dt>Resumes on traffic</dt>
        <dd>{sandbox.lifecycle.autoResume ? 'yes' : 'no'}</dd>
        <dt>envd</dt>
        <dd>{sandbox.envdVersion}</dd>
        {metadata.map(([key, value]) => (
          <>
            <dt key={key} class="isolated">
              {visibleName(key, 60)}
            </dt>
            <dd class="mono isolated">{visibleName(value, 500)}</dd>
          </>
        ))}
      </dl>
    </section>
  )
}

/** Opens a server of the sandbox on its own origin, without a reference back to this page. */
function OpenPort({ id }: { readonly id: string }) {
  const [port, setPort] = useState('3000')
  const url = portUrl(currentSession().addresses, id, port)
  return (
    <div class="row">
      <label class="row">
        Port
        <input
          class="input auto number"
          style={{ width: '84px' }}
          inputMode="numeric"
          value={port}
          onInput={(event) => setPort(event.currentTarget.value)}
        />
      </label>
      {url ? (
        <a class="button" href={url} target="_blank" rel="noopener noreferrer">
          Open in a new tab ↗
        </a>
      ) : (
        <span class="bad">A port is a number from 1 to 65535</span>
      )}
    </div>
  )
}
