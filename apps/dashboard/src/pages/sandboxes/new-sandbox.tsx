import { useState } from 'preact/hooks'
import type { Template } from '@atoll/client/replies'
import { navigate, query } from '../../data/location.ts'
import { api } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { sandboxActions, thenReload } from '../../data/sandboxes.ts'
import { toCreateRequest } from '../../model/new-sandbox.ts'
import type { NewSandboxForm } from '../../model/new-sandbox.ts'
import { sandboxPath } from '../../model/route.ts'
import { Field } from '../../parts/controls.tsx'
import { FormDialog } from '../../parts/dialog.tsx'

export function NewSandbox({ onClose }: { readonly onClose: () => void }) {
  const templates = useResource('templates', (signal) =>
    api<Template[]>('GET', '/templates', undefined, signal),
  )
  const [form, setForm] = useState<NewSandboxForm>({
    template: query.value.get('from') ?? 'base',
    timeout: '10m',
    onTimeout: 'kill',
    internet: 'all',
    allowed: '',
    variables: '',
    metadata: '',
  })
  const set = (name: keyof NewSandboxForm) => (event: { currentTarget: { value: string } }) =>
    setForm({ ...form, [name]: event.currentTarget.value })
  const create = async () => {
    const { sandboxID } = await thenReload(sandboxActions.create(toCreateRequest(form)))
    setTimeout(() => navigate(sandboxPath(sandboxID, 'terminal')))
  }
  const names = (templates.data ?? []).map(({ names: [name], templateID }) => name ?? templateID)
  return (
    <FormDialog title="New sandbox" submit="Create" action={create} onClose={onClose}>
      <Field label="Template or snapshot">
        <input
          class="input"
          list="template-names"
          required
          value={form.template}
          onInput={set('template')}
        />
        <datalist id="template-names">
          {names.map((name) => (
            <option key={name} value={name} />
          ))}
        </datalist>
      </Field>
      <div class="two" style={{ gridTemplateColumns: '1fr 1fr' }}>
        <Field label="Timeout" hint="for example 90s, 10m, 2h">
          <input class="input" required value={form.timeout} onInput={set('timeout')} />
        </Field>
        <Field label="At its timeout">
          <select class="input" value={form.onTimeout} onChange={set('onTimeout')}>
            <option value="kill">Kill</option>
            <option value="pause">Pause</option>
          </select>
        </Field>
      </div>
      <Internet form={form} set={set} />
      <Pairs form={form} set={set} />
    </FormDialog>
  )
}

type SetField = (
  name: keyof NewSandboxForm,
) => (event: { currentTarget: { value: string } }) => void

function Internet({ form, set }: { readonly form: NewSandboxForm; readonly set: SetField }) {
  return (
    <>
      <Field label="Internet">
        <select class="input" value={form.internet} onChange={set('internet')}>
          <option value="all">Everything public</option>
          <option value="some">Only these destinations</option>
          <option value="none">Nothing</option>
        </select>
      </Field>
      {form.internet === 'some' && (
        <Field
          label="Allowed destinations"
          hint="Domains, addresses or ranges, one per line: pypi.org, *.pythonhosted.org, 1.1.1.1"
        >
          <textarea class="input" value={form.allowed} onInput={set('allowed')} />
        </Field>
      )}
    </>
  )
}

function Pairs({ form, set }: { readonly form: NewSandboxForm; readonly set: SetField }) {
  return (
    <details>
      <summary>Variables and metadata</summary>
      <div class="stack" style={{ marginTop: '10px' }}>
        <Field label="Environment variables" hint="NAME=value, one per line">
          <textarea class="input" value={form.variables} onInput={set('variables')} />
        </Field>
        <Field label="Metadata" hint="name=value, one per line">
          <textarea class="input" value={form.metadata} onInput={set('metadata')} />
        </Field>
      </div>
    </details>
  )
}
