import { useState } from 'preact/hooks'
import type { AdminTeam } from '@atoll/client/replies'
import { operatorActions } from '../../data/operator.ts'
import { visibleName } from '../../model/visible-text.ts'
import { Field } from '../../parts/controls.tsx'
import { FormDialog } from '../../parts/dialog.tsx'

const fields = [
  ['concurrentSandboxes', 'Concurrent sandboxes'],
  ['maxSandboxSeconds', 'Longest run of a sandbox, in seconds'],
  ['maxCpuCount', 'CPU cores of a sandbox'],
  ['maxMemoryMB', 'Memory of a sandbox, in MiB'],
  ['maxDiskSizeMB', 'Disk of a sandbox, in MiB'],
  ['concurrentBuilds', 'Concurrent builds'],
  ['keptDiskMB', 'Templates, paused sandboxes and snapshots, in MiB'],
] as const

type Limit = (typeof fields)[number][0]

/** Changes only the limits that were edited; an empty field is the configured default. */
export function LimitsDialog({
  team,
  onClose,
}: {
  readonly team: AdminTeam
  readonly onClose: () => void
}) {
  const [edited, setEdited] = useState<Partial<Record<Limit, string>>>({})
  const save = () =>
    operatorActions.setLimits(
      team.teamID,
      Object.fromEntries(
        Object.entries(edited).map(([name, text]) => [name, text === '' ? null : Number(text)]),
      ),
    )
  return (
    <FormDialog
      title={`Limits of ${visibleName(team.name, 60)}`}
      submit="Save"
      action={save}
      onClose={onClose}
    >
      <p class="soft">An empty field means the default of the server.</p>
      {fields.map(([name, label]) => (
        <Field key={name} label={label}>
          <input
            class="input number"
            type="number"
            min="1"
            value={edited[name] ?? String(team.limits[name])}
            onInput={(event) => setEdited({ ...edited, [name]: event.currentTarget.value })}
          />
        </Field>
      ))}
    </FormDialog>
  )
}
