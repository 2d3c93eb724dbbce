import { useState } from 'preact/hooks'
import type { ApiKey, CreatedApiKey } from '@atoll/client/replies'
import { now } from '../data/clock.ts'
import { api } from '../data/request.ts'
import { useResource } from '../data/resource.ts'
import { currentSession } from '../data/session.ts'
import { formatAge, formatBytes, formatDuration } from '../model/format.ts'
import { visibleName } from '../model/visible-text.ts'
import { ActionsHeader, Button, Field, Snippet } from '../parts/controls.tsx'
import { confirmFirst, Dialog, FormDialog } from '../parts/dialog.tsx'
import { ErrorNote, Skeleton } from '../parts/status.tsx'

const mebibyte = 2 ** 20

export function TeamPage() {
  const { keyId } = currentSession()
  const keys = useResource(
    'keys',
    (signal) => api<ApiKey[]>('GET', '/api-keys', undefined, signal),
    15_000,
  )
  const [isMaking, setMaking] = useState(false)
  const [made, setMade] = useState<CreatedApiKey | undefined>()
  return (
    <div class="page">
      <div class="page-head">
        <h1>Team</h1>
      </div>
      <TeamFacts />
      <section class="panel">
        <div class="panel-head">
          <h2>API keys</h2>
          <Button isSmall kind="main" action={() => setMaking(true)}>
            New key
          </Button>
        </div>
        <ErrorNote resource={keys} />
        {keys.data ? (
          <KeyTable keys={keys.data} ownId={keyId} onChange={() => keys.reload()} />
        ) : (
          !keys.error && <Skeleton />
        )}
      </section>
      {isMaking && (
        <NewKey
          onClose={() => setMaking(false)}
          onMade={(key) => {
            setMade(key)
            void keys.reload()
          }}
        />
      )}
      {made && (
        <Dialog title={`The key ${visibleName(made.name, 40)}`} onClose={() => setMade(undefined)}>
          <div class="dialog-body">
            <p>Copy it now. The server keeps only a hash and cannot show it again.</p>
            <Snippet code={made.key} />
          </div>
        </Dialog>
      )}
    </div>
  )
}

function TeamFacts() {
  const { teamName, teamId, limits } = currentSession()
  return (
    <section class="panel">
      <div class="panel-head">
        <h2 class="isolated">{visibleName(teamName)}</h2>
        <span class="mono faint clip">{teamId}</span>
      </div>
      <dl class="facts panel-body">
        <dt>Sandboxes at a time</dt>
        <dd>{limits.concurrentSandboxes}</dd>
        <dt>Longest run of a sandbox</dt>
        <dd>{formatDuration(limits.maxSandboxSeconds)}</dd>
        <dt>Largest sandbox</dt>
        <dd>
          {limits.maxCpuCount} CPU · {formatBytes(limits.maxMemoryMb * mebibyte)} memory ·{' '}
          {formatBytes(limits.maxDiskSizeMb * mebibyte)} disk
        </dd>
        <dt>Builds at a time</dt>
        <dd>{limits.concurrentBuilds}</dd>
        <dt>Disk of templates, paused sandboxes and snapshots</dt>
        <dd>{formatBytes(limits.keptDiskMb * mebibyte)}</dd>
      </dl>
    </section>
  )
}

function KeyTable({
  keys,
  ownId,
  onChange,
}: {
  readonly keys: readonly ApiKey[]
  readonly ownId: string
  readonly onChange: () => Promise<void>
}) {
  const remove = ({ id, name }: ApiKey) =>
    confirmFirst({
      title: `Delete the key ${visibleName(name, 60)}?`,
      text:
        id === ownId
          ? 'You are signed in with this key: you will be signed out, and programs that use it stop working at once.'
          : 'Programs and sessions that use it stop working at once.',
      submit: 'Delete',
      action: async () => {
        await api('DELETE', `/api-keys/${id}`)
        await onChange()
      },
    })
  return (
    <div class="scroll-x">
      <table class="table">
        <thead>
          <tr>
            <th>Name</th>
            <th>Key</th>
            <th>Created</th>
            <th>Last used</th>
            <ActionsHeader />
          </tr>
        </thead>
        <tbody>
          {keys.map((key) => (
            <KeyRow
              key={key.id}
              apiKey={key}
              isOwn={key.id === ownId}
              onRemove={() => remove(key)}
            />
          ))}
        </tbody>
      </table>
    </div>
  )
}

function KeyRow({
  apiKey,
  isOwn,
  onRemove,
}: {
  readonly apiKey: ApiKey
  readonly isOwn: boolean
  readonly onRemove: () => void
}) {
  return (
    <tr>
      <td class="isolated">
        {visibleName(apiKey.name, 80)}
        {isOwn && <span class="faint"> · this session</span>}
      </td>
      <td data-label="Key" class="mono">
        {apiKey.mask.prefix}
        {apiKey.mask.maskedValuePrefix}…{apiKey.mask.maskedValueSuffix}
      </td>
      <td data-label="Created" class="soft">
        {formatAge(apiKey.createdAt, now.value)}
      </td>
      <td data-label="Last used" class="soft">
        {formatAge(apiKey.lastUsed, now.value)}
      </td>
      <td class="end">
        <Button isSmall kind="danger" action={onRemove}>
          Delete
        </Button>
      </td>
    </tr>
  )
}

function NewKey({
  onClose,
  onMade,
}: {
  readonly onClose: () => void
  readonly onMade: (key: CreatedApiKey) => void
}) {
  const [name, setName] = useState('')
  return (
    <FormDialog
      title="New API key"
      submit="Create"
      action={async () => onMade(await api<CreatedApiKey>('POST', '/api-keys', { name }))}
      onClose={onClose}
    >
      <Field label="Name">
        <input
          class="input"
          required
          autoFocus
          maxLength={256}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </Field>
    </FormDialog>
  )
}
