import { useState } from 'preact/hooks'
import type { AdminTeam } from '@atoll/client/replies'
import { operatorActions, useRunningCounts, useTeams } from '../../data/operator.ts'
import { formatBytes, formatDuration } from '../../model/format.ts'
import { visibleName } from '../../model/visible-text.ts'
import { ActionsHeader, Button, Field } from '../../parts/controls.tsx'
import { confirmFirst, FormDialog } from '../../parts/dialog.tsx'
import { ErrorNote, Skeleton } from '../../parts/status.tsx'
import { showToast } from '../../parts/toasts.tsx'
import { BlockDialog } from './block-dialog.tsx'
import { LimitsDialog } from './limits-dialog.tsx'

export function Teams() {
  const teams = useTeams()
  const counts = useRunningCounts()
  const [isNew, setNew] = useState(false)
  return (
    <section class="panel scroll-x" aria-label="Teams">
      <div class="panel-head">
        <h2>Teams</h2>
        <Button isSmall action={() => setNew(true)}>
          New team
        </Button>
      </div>
      <ErrorNote resource={teams} />
      {!teams.data && !teams.error && <Skeleton lines={3} />}
      {teams.data && (
        <table class="table">
          <thead>
            <tr>
              <th>Team</th>
              <th>Running</th>
              <th>Longest run</th>
              <th>Size of a sandbox</th>
              <th>Kept on disk</th>
              <th>Access</th>
              <ActionsHeader />
            </tr>
          </thead>
          <tbody>
            {teams.data.map((team) => (
              <TeamRow key={team.teamID} team={team} running={counts.data?.[team.teamID] ?? 0} />
            ))}
          </tbody>
        </table>
      )}
      {isNew && <NewTeam onClose={() => setNew(false)} />}
    </section>
  )
}

function TeamRow({ team, running }: { readonly team: AdminTeam; readonly running: number }) {
  const { name, limits, block } = team
  return (
    <tr>
      <td>
        <span class="isolated">{visibleName(name, 60)}</span>
        <div class="faint mono">{visibleName(team.slug, 60)}</div>
      </td>
      <td data-label="Running" class="number">
        {running}
        <span class="faint"> / {limits.concurrentSandboxes}</span>
      </td>
      <td data-label="Longest run" class="number">
        {formatDuration(limits.maxSandboxSeconds)}
      </td>
      <td data-label="Size" class="number">
        {limits.maxCpuCount} CPU, {formatBytes(limits.maxMemoryMB * 2 ** 20)}
        <div class="faint">{formatBytes(limits.maxDiskSizeMB * 2 ** 20)} disk</div>
      </td>
      <td data-label="Kept on disk" class="number">
        {formatBytes(limits.keptDiskMB * 2 ** 20)}
      </td>
      <td data-label="Access">
        {block ? (
          <span class="state error" title={visibleName(block.reason, 500)}>
            {block.level}
          </span>
        ) : (
          <span class="state running">open</span>
        )}
      </td>
      <td class="end">
        <TeamActions team={team} running={running} />
      </td>
    </tr>
  )
}

function TeamActions({ team, running }: { readonly team: AdminTeam; readonly running: number }) {
  const [open, setOpen] = useState<'limits' | 'block' | undefined>()
  const close = () => setOpen(undefined)
  const { teamID, name } = team
  const killAll = () =>
    confirmFirst({
      title: `Kill all ${running} sandboxes of ${visibleName(name, 60)}?`,
      text: 'Their files and processes are lost. Paused sandboxes stay.',
      submit: 'Kill all',
      action: async () => {
        const { killedCount, failedCount } = await operatorActions.killAll(teamID)
        if (failedCount > 0) throw new Error(`${failedCount} sandboxes could not be killed`)
        showToast(`${killedCount} sandboxes are killed`)
      },
    })
  return (
    <div class="row tight">
      <Button isSmall action={() => setOpen('limits')}>
        Limits
      </Button>
      {team.block ? (
        <Button isSmall action={() => operatorActions.unblock(teamID)}>
          Unblock
        </Button>
      ) : (
        <Button isSmall action={() => setOpen('block')}>
          Block
        </Button>
      )}
      <Button isSmall kind="danger" disabled={running === 0} action={killAll}>
        Kill all
      </Button>
      {open === 'limits' && <LimitsDialog team={team} onClose={close} />}
      {open === 'block' && <BlockDialog team={team} onClose={close} />}
    </div>
  )
}

function NewTeam({ onClose }: { readonly onClose: () => void }) {
  const [name, setName] = useState('')
  return (
    <FormDialog
      title="New team"
      submit="Create"
      action={() => operatorActions.createTeam(name.trim())}
      onClose={onClose}
    >
      <Field label="Name" hint="Create its first key with the operator's API: docs/operate.md">
        <input
          class="input"
          autoFocus
          required
          maxLength={128}
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </Field>
    </FormDialog>
  )
}
