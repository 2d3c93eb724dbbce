import { useState } from 'preact/hooks'
import type { SandboxDetail } from '@atoll/client/replies'
import { navigate } from '../../data/location.ts'
import { sandboxActions, thenReload } from '../../data/sandboxes.ts'
import { parseDuration } from '../../model/format.ts'
import { sandboxPath } from '../../model/route.ts'
import { Button, Field } from '../../parts/controls.tsx'
import { confirmFirst, FormDialog } from '../../parts/dialog.tsx'
import { showToast } from '../../parts/toasts.tsx'
import { ShareDialog } from './share-dialog.tsx'

export function SandboxActions({ sandbox }: { readonly sandbox: SandboxDetail }) {
  const id = sandbox.sandboxID
  const [open, setOpen] = useState<'time' | 'fork' | 'snapshot' | 'share' | undefined>()
  const close = () => setOpen(undefined)
  const kill = () =>
    confirmFirst({
      title: 'Kill this sandbox?',
      text: `${id}: its files and processes are lost.`,
      submit: 'Kill',
      action: async () => {
        await sandboxActions.kill(id)
        navigate('/sandboxes')
      },
    })
  return (
    <div class="row tight">
      {sandbox.state === 'running' ? (
        <>
          <Button action={() => setOpen('time')}>Set time</Button>
          <Button action={() => thenReload(sandboxActions.pause(id))}>Pause</Button>
          <Button action={() => setOpen('fork')}>Fork</Button>
          <Button action={() => setOpen('snapshot')}>Snapshot</Button>
        </>
      ) : (
        <Button kind="main" action={() => setOpen('time')}>
          Resume
        </Button>
      )}
      <Button action={() => setOpen('share')}>Share</Button>
      <Button kind="danger" action={kill}>
        Kill
      </Button>
      {open === 'time' && <TimeDialog sandbox={sandbox} onClose={close} />}
      {open === 'fork' && <ForkDialog id={id} onClose={close} />}
      {open === 'share' && <ShareDialog id={id} onClose={close} />}
      {open === 'snapshot' && <SnapshotDialog id={id} onClose={close} />}
    </div>
  )
}

interface DialogProps {
  readonly id: string
  readonly onClose: () => void
}

function requireDuration(text: string): number {
  const seconds = parseDuration(text)
  if (seconds === undefined) throw new Error('Write a number of seconds, or like 90s, 10m, 2h')
  return seconds
}

function TimeDialog({
  sandbox,
  onClose,
}: {
  readonly sandbox: SandboxDetail
  readonly onClose: () => void
}) {
  const [time, setTime] = useState('1h')
  const isPaused = sandbox.state === 'paused'
  const apply = () => {
    const change = isPaused ? sandboxActions.resume : sandboxActions.setTimeout
    return thenReload(change(sandbox.sandboxID, requireDuration(time)))
  }
  return (
    <FormDialog
      title={isPaused ? 'Resume the sandbox' : 'Set the time left'}
      submit={isPaused ? 'Resume' : 'Set'}
      action={async () => apply()}
      onClose={onClose}
    >
      <Field label="Time from now" hint="for example 90s, 10m, 2h">
        <input
          class="input"
          autoFocus
          value={time}
          onInput={(event) => setTime(event.currentTarget.value)}
        />
      </Field>
    </FormDialog>
  )
}

function ForkDialog({ id, onClose }: DialogProps) {
  const [count, setCount] = useState('1')
  const [time, setTime] = useState('10m')
  const fork = async () => {
    const results = await thenReload(
      sandboxActions.fork(id, { count: Number(count), timeout: requireDuration(time) }),
    )
    const failed = results.find(({ error }) => error)?.error
    if (failed) throw new Error(failed.message)
    const [first] = results
    showToast(`${results.length} ${results.length === 1 ? 'fork runs' : 'forks run'}`)
    if (results.length === 1 && first?.sandbox) navigate(sandboxPath(first.sandbox.sandboxID))
    else navigate('/sandboxes')
  }
  return (
    <FormDialog
      title="Fork: start copies with memory and files"
      submit="Fork"
      action={fork}
      onClose={onClose}
    >
      <Field label="Copies">
        <input
          class="input"
          type="number"
          min="1"
          max="100"
          required
          value={count}
          onInput={(event) => setCount(event.currentTarget.value)}
        />
      </Field>
      <Field label="Timeout of the copies">
        <input class="input" value={time} onInput={(event) => setTime(event.currentTarget.value)} />
      </Field>
    </FormDialog>
  )
}

function SnapshotDialog({ id, onClose }: DialogProps) {
  const [name, setName] = useState('')
  const save = async () => {
    const { snapshotID } = await thenReload(sandboxActions.snapshot(id, name.trim()))
    showToast(`Saved as ${snapshotID}`)
  }
  return (
    <FormDialog title="Save a snapshot" submit="Save" action={save} onClose={onClose}>
      <p class="soft">The sandbox keeps running. New sandboxes can start from the snapshot.</p>
      <Field label="Name" hint="Optional, for example tools or tools:v2">
        <input
          class="input"
          autoFocus
          value={name}
          onInput={(event) => setName(event.currentTarget.value)}
        />
      </Field>
    </FormDialog>
  )
}
