import { useState } from 'preact/hooks'
import { now } from '../../data/clock.ts'
import { dashboardApi } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { formatDuration } from '../../model/format.ts'
import { Button, CopyButton, Field } from '../../parts/controls.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { ErrorNote } from '../../parts/status.tsx'

interface Share {
  readonly id: string
  /** Unix milliseconds. */
  readonly expiresAt: number
}

const times = [
  [3_600, '1 hour'],
  [86_400, '1 day'],
  [7 * 86_400, '7 days'],
] as const

/** Links that show this sandbox to people without an account. */
export function ShareDialog({
  id,
  onClose,
}: {
  readonly id: string
  readonly onClose: () => void
}) {
  const path = `/sandboxes/${encodeURIComponent(id)}/shares`
  const shares = useResource(`shares/${id}`, () =>
    dashboardApi<{ shares: readonly Share[] }>('GET', path),
  )
  const [seconds, setSeconds] = useState('3600')
  const [url, setUrl] = useState('')
  const create = async () => {
    const { token } = await dashboardApi<{ token: string }>('POST', path, {
      seconds: Number(seconds),
    })
    setUrl(`${location.origin}/share#${token}`)
    await shares.reload()
  }
  const revoke = async (share: Share) => {
    await dashboardApi('DELETE', `/shares/${share.id}`)
    await shares.reload()
  }
  return (
    <Dialog title="Share this sandbox" onClose={onClose}>
      <div class="dialog-body">
        <p class="soft">
          People with the link see state, usage and the last log lines, without an account, and can
          change nothing. Output of programs can contain secrets.
        </p>
        <div class="row">
          <Field label="Valid for">
            <select
              class="input"
              value={seconds}
              onChange={(event) => setSeconds(event.currentTarget.value)}
            >
              {times.map(([value, label]) => (
                <option key={value} value={value}>
                  {label}
                </option>
              ))}
            </select>
          </Field>
          <span class="grow" />
          <Button kind="main" action={create}>
            Create a link
          </Button>
        </div>
        {url && <NewLink url={url} />}
        <ErrorNote resource={shares} />
        <Links shares={shares.data?.shares ?? []} onRevoke={revoke} />
      </div>
    </Dialog>
  )
}

function NewLink({ url }: { readonly url: string }) {
  return (
    <>
      <div class="snippet">
        <pre class="code wrapped" tabIndex={0} aria-label="Link">
          {url}
        </pre>
        <CopyButton text={url} />
      </div>
      <p class="soft">The link is shown only now: the server keeps a hash of it.</p>
    </>
  )
}

function Links({
  shares,
  onRevoke,
}: {
  readonly shares: readonly Share[]
  readonly onRevoke: (share: Share) => Promise<void>
}) {
  if (shares.length === 0) return null
  return (
    <ul class="attention" aria-label="Links">
      {shares.map((share) => (
        <li key={share.id}>
          <span class="grow">
            <span class="mono">{share.id.slice(0, 8)}</span>{' '}
            <span class="soft">ends in {formatDuration((share.expiresAt - now.value) / 1000)}</span>
          </span>
          <Button
            isSmall
            kind="danger"
            aria-label={`Revoke ${share.id.slice(0, 8)}`}
            action={() => onRevoke(share)}
          >
            Revoke
          </Button>
        </li>
      ))}
    </ul>
  )
}
