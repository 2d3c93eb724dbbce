import { useState } from 'preact/hooks'
import type { Template } from '@atoll/client/replies'
import { navigate } from '../../data/location.ts'
import { api } from '../../data/request.ts'
import { toBuildRequest } from '../../model/new-template.ts'
import type { NewTemplateForm } from '../../model/new-template.ts'
import { templatePath } from '../../model/route.ts'
import { Field } from '../../parts/controls.tsx'
import { FormDialog } from '../../parts/dialog.tsx'

/** `templateId`: builds this template again instead of a new one. */
export function NewTemplate({
  templateId,
  onClose,
}: {
  readonly templateId?: string
  readonly onClose: () => void
}) {
  const [form, setForm] = useState<NewTemplateForm>({
    name: '',
    dockerfile: 'FROM e2bdev/base\nRUN echo hello > /home/user/hello.txt\n',
    startCommand: '',
    readyCommand: '',
    cpuCount: '2',
    memoryMb: '1024',
  })
  const set = (name: keyof NewTemplateForm) => (event: { currentTarget: { value: string } }) =>
    setForm({ ...form, [name]: event.currentTarget.value })
  const build = async () => {
    const path = templateId ? `/templates/${encodeURIComponent(templateId)}` : '/templates'
    const made = await api<Template>('POST', path, toBuildRequest(form, templateId !== undefined))
    setTimeout(() => navigate(templatePath(made.templateID, made.buildID)))
  }
  return (
    <FormDialog
      isWide
      title={templateId ? 'Build again' : 'New template'}
      submit="Build"
      action={build}
      onClose={onClose}
    >
      {!templateId && (
        <Field label="Name" hint="name or name:tag">
          <input class="input" required autoFocus value={form.name} onInput={set('name')} />
        </Field>
      )}
      <Field
        label="Dockerfile"
        hint="A single stage that copies no files. FROM e2bdev/base, or an image of an allowed registry."
      >
        <textarea
          class="input"
          style={{ minHeight: '180px' }}
          required
          value={form.dockerfile}
          onInput={set('dockerfile')}
        />
      </Field>
      <Commands form={form} set={set} />
    </FormDialog>
  )
}

type SetField = (
  name: keyof NewTemplateForm,
) => (event: { currentTarget: { value: string } }) => void

function Commands({ form, set }: { readonly form: NewTemplateForm; readonly set: SetField }) {
  return (
    <div class="two" style={{ gridTemplateColumns: 'repeat(auto-fit, minmax(180px, 1fr))' }}>
      <Field label="Start command" hint="Runs in every sandbox. Optional.">
        <input class="input mono" value={form.startCommand} onInput={set('startCommand')} />
      </Field>
      <Field label="Ready command" hint="Succeeds once it is ready. Optional.">
        <input class="input mono" value={form.readyCommand} onInput={set('readyCommand')} />
      </Field>
      <Field label="CPU cores">
        <input
          class="input"
          type="number"
          min="1"
          value={form.cpuCount}
          onInput={set('cpuCount')}
        />
      </Field>
      <Field label="Memory in MiB">
        <input
          class="input"
          type="number"
          min="128"
          value={form.memoryMb}
          onInput={set('memoryMb')}
        />
      </Field>
    </div>
  )
}
