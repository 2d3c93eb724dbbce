import { signal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { Button } from './controls.tsx'
import { showError } from './toasts.tsx'

interface DialogProps {
  readonly title: string
  readonly isWide?: boolean
  readonly onClose: () => void
  readonly children: ComponentChildren
}

export function Dialog({ title, isWide, onClose, children }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} class={isWide ? 'wide' : ''} aria-label={title} onClose={onClose}>
      <div class="dialog-head">
        <h2>{title}</h2>
        <Button kind="plain" isSmall aria-label="Close" action={onClose}>
          ✕
        </Button>
      </div>
      {children}
    </dialog>
  )
}

/** A form in a dialog. The server's message stays in the form until the next attempt. */
export function FormDialog({
  action,
  submit,
  isDangerous,
  children,
  ...dialog
}: DialogProps & {
  readonly submit: string
  readonly isDangerous?: boolean
  readonly action: () => Promise<unknown>
}) {
  const [error, setError] = useState('')
  const [isBusy, setBusy] = useState(false)
  const run = async (event: Event) => {
    event.preventDefault()
    setBusy(true)
    setError('')
    try {
      await action()
      dialog.onClose()
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown.message : String(thrown))
      setBusy(false)
    }
  }
  return (
    <Dialog {...dialog}>
      <form class="dialog-body" onSubmit={(event) => void run(event)}>
        {children}
        {error && (
          <div class="note" role="alert">
            {error}
          </div>
        )}
        <div class="dialog-actions">
          <Button action={dialog.onClose}>Cancel</Button>
          <button
            type="submit"
            class={`button ${isDangerous ? 'danger' : 'main'}`}
            disabled={isBusy}
          >
            {isBusy ? 'Working…' : submit}
          </button>
        </div>
      </form>
    </Dialog>
  )
}

interface Question {
  readonly title: string
  readonly text: string
  readonly submit: string
  readonly action: () => Promise<unknown>
}

const question = signal<Question | undefined>(undefined)

/** Asks before something that cannot be undone. */
export function confirmFirst(asked: Question): void {
  question.value = asked
}

export function Confirmation() {
  const asked = question.value
  if (!asked) return null
  return (
    <FormDialog
      title={asked.title}
      submit={asked.submit}
      isDangerous
      action={asked.action}
      onClose={() => (question.value = undefined)}
    >
      <p class="isolated">{asked.text}</p>
    </FormDialog>
  )
}

/** Runs an action for many things, a few at a time, and reports failures together. */
export async function runForEach<Item>(
  items: readonly Item[],
  run: (item: Item) => Promise<unknown>,
): Promise<void> {
  const queue = [...items]
  const failures: unknown[] = []
  const worker = async () => {
    for (let item = queue.shift(); item !== undefined; item = queue.shift()) {
      await run(item).catch((error: unknown) => failures.push(error))
    }
  }
  await Promise.all(Array.from({ length: 6 }, worker))
  if (failures.length === 0) return
  const first = failures[0] instanceof Error ? failures[0].message : String(failures[0])
  showError(new Error(`${failures.length} of ${items.length} failed: ${first}`))
}
