import { useState } from 'preact/hooks'
import type { Secret } from '@atoll/client/replies'
import { now } from '../data/clock.ts'
import { api, listAll } from '../data/request.ts'
import { useResource } from '../data/resource.ts'
import { formatAge } from '../model/format.ts'
import { visibleName } from '../model/visible-text.ts'
import { ActionsHeader, Button, Field, Snippet } from '../parts/controls.tsx'
import { confirmFirst, FormDialog } from '../parts/dialog.tsx'
import { Empty, ErrorNote, Skeleton } from '../parts/status.tsx'

export function SecretsPage() {
  const secrets = useResource(
    'secrets',
    (signal) => listAll<Secret>('/secrets?limit=100', { signal }),
    10_000,
  )
  const [edited, setEdited] = useState<Secret | 'new' | undefined>()
  const remove = ({ secretID, name }: Secret) =>
    confirmFirst({
      title: `Delete the secret ${name}?`,
      text: 'Headers that refer to it are no longer set, in running sandboxes too.',
      submit: 'Delete',
      action: async () => {
        await api('DELETE', `/secrets/${secretID}`)
        await secrets.reload()
      },
    })
  return (
    <div class="page">
      <div class="page-head">
        <h1>Secrets</h1>
        <Button kind="main" action={() => setEdited('new')}>
          New secret
        </Button>
      </div>
      <ErrorNote resource={secrets} />
      {secrets.data === undefined && !secrets.error && <Skeleton />}
      {secrets.data?.length === 0 && <NoSecrets />}
      {secrets.data && secrets.data.length > 0 && (
        <SecretTable secrets={secrets.data} onEdit={setEdited} onDelete={remove} />
      )}
      {edited && (
        <EditSecret
          secret={edited}
          onClose={() => setEdited(undefined)}
          onDone={() => secrets.reload()}
        />
      )}
    </div>
  )
}

function SecretTable({
  secrets,
  onEdit,
  onDelete,
}: {
  readonly secrets: readonly Secret[]
  readonly onEdit: (secret: Secret) => void
  readonly onDelete: (secret: Secret) => void
}) {
  return (
    <div class="panel scroll-x">
      <table class="table">
        <thead>
          <tr>
            <th>Name</th>
            <th>Version</th>
            <th>Changed</th>
            <ActionsHeader />
          </tr>
        </thead>
        <tbody>
          {secrets.map((secret) => (
            <tr key={secret.secretID}>
              <td class="mono isolated">{visibleName(secret.name)}</td>
              <td data-label="Version" class="number">
                {secret.currentVersion}
              </td>
              <td data-label="Changed" class="soft">
                {formatAge(secret.updatedAt, now.value)}
              </td>
              <td class="end">
                <div class="row tight">
                  <Button isSmall action={() => onEdit(secret)}>
                    New value
                  </Button>
                  <Button isSmall kind="danger" action={() => onDelete(secret)}>
                    Delete
                  </Button>
                </div>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function EditSecret({
  secret,
  onClose,
  onDone,
}: {
  readonly secret: Secret | 'new'
  readonly onClose: () => void
  readonly onDone: () => Promise<void>
}) {
  const [name, setName] = useState('')
  const [value, setValue] = useState('')
  const isNew = secret === 'new'
  const save = async () => {
    if (isNew) await api('POST', '/secrets', { name: name.trim(), value })
    else await api('POST', `/secrets/${secret.secretID}`, { value })
    await onDone()
  }
  return (
    <FormDialog
      title={isNew ? 'New secret' : `New value of ${secret.name}`}
      submit="Save"
      action={save}
      onClose={onClose}
    >
      {isNew && (
        <Field label="Name" hint="Letters, digits, _ and -">
          <input
            class="input mono"
            required
            autoFocus
            value={name}
            onInput={(event) => setName(event.currentTarget.value)}
          />
        </Field>
      )}
      <Field label="Value" hint="Never shown again. Running sandboxes use a new value at once.">
        <input
          class="input mono"
          type="password"
          autoComplete="off"
          required
          value={value}
          onInput={(event) => setValue(event.currentTarget.value)}
        />
      </Field>
    </FormDialog>
  )
}

function NoSecrets() {
  return (
    <Empty title="No secrets yet">
      <p class="soft">
        A header rule can use a secret, so that a sandbox calls an API with a key that it never
        sees:
      </p>
      <Snippet
        code={[
          'const sandbox = await Sandbox.create({ network: { rules: {',
          "  'api.example.com': [{ transform: { headers: { Authorization: `Bearer ${Secret.fill('my-key')}` } } }],",
          '} } })',
        ].join('\n')}
      />
    </Empty>
  )
}
