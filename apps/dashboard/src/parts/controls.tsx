import type { ComponentChildren, JSX } from 'preact'
import { useState } from 'preact/hooks'
import { showError } from './toasts.tsx'

type ButtonKind = 'main' | 'danger' | 'plain'

interface ButtonProps extends Omit<JSX.IntrinsicElements['button'], 'onClick' | 'ref'> {
  readonly kind?: ButtonKind
  readonly isSmall?: boolean
  readonly children: ComponentChildren
  /** The button is disabled until the action ends. Failures become a notice. */
  readonly action?: () => unknown
}

export function Button({ kind, isSmall, action, disabled, ...rest }: ButtonProps) {
  const [isBusy, setBusy] = useState(false)
  const run = async () => {
    setBusy(true)
    try {
      await action?.()
    } catch (error) {
      showError(error)
    } finally {
      setBusy(false)
    }
  }
  const classes = ['button', kind, isSmall && 'small'].filter(Boolean).join(' ')
  return (
    <button
      type="button"
      {...rest}
      class={classes}
      disabled={disabled === true || isBusy}
      {...(action && { onClick: () => void run() })}
    />
  )
}

export function Field({
  label,
  hint,
  children,
}: {
  readonly label: string
  readonly hint?: string
  readonly children: ComponentChildren
}) {
  return (
    <label class="field">
      <span>{label}</span>
      {children}
      {hint && <small>{hint}</small>}
    </label>
  )
}

export function CopyButton({
  text,
  label = 'Copy',
}: {
  readonly text: string
  readonly label?: string
}) {
  const [isCopied, setCopied] = useState(false)
  const copy = async () => {
    await navigator.clipboard.writeText(text)
    setCopied(true)
    setTimeout(() => setCopied(false), 1_500)
  }
  return (
    <Button isSmall kind="plain" action={copy}>
      {isCopied ? 'Copied' : label}
    </Button>
  )
}

export function Snippet({ code }: { readonly code: string }) {
  return (
    <div class="snippet">
      <pre class="code" tabIndex={0}>
        {code}
      </pre>
      <CopyButton text={code} />
    </div>
  )
}

export function State({ state }: { readonly state: string }) {
  return <span class={`state ${state}`}>{state}</span>
}

/** Head of a column of buttons, named for screen readers. */
export function ActionsHeader() {
  return (
    <th>
      <span class="unseen">Actions</span>
    </th>
  )
}
