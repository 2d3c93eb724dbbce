import { useState } from 'preact/hooks'
import type { AdminTeam } from '@atoll/client/replies'
import { operatorActions } from '../../data/operator.ts'
import { visibleName } from '../../model/visible-text.ts'
import { Field } from '../../parts/controls.tsx'
import { FormDialog } from '../../parts/dialog.tsx'

export function BlockDialog({
  team,
  onClose,
}: {
  readonly team: AdminTeam
  readonly onClose: () => void
}) {
  const [level, setLevel] = useState('blocked')
  const [reason, setReason] = useState('')
  return (
    <FormDialog
      title={`Block ${visibleName(team.name, 60)}`}
      submit="Block"
      isDangerous
      action={() => operatorActions.block(team.teamID, { level, reason: reason.trim() })}
      onClose={onClose}
    >
      <p class="soft">Requests of the team are refused at once. Its sandboxes keep running.</p>
      <Field label="Level">
        <select
          class="input"
          value={level}
          onChange={(event) => setLevel(event.currentTarget.value)}
        >
          <option value="blocked">Blocked: may list, read and delete</option>
          <option value="banned">Banned: may do nothing</option>
        </select>
      </Field>
      <Field label="Reason" hint="Shown to the team">
        <input
          class="input"
          required
          maxLength={500}
          value={reason}
          onInput={(event) => setReason(event.currentTarget.value)}
        />
      </Field>
    </FormDialog>
  )
}
