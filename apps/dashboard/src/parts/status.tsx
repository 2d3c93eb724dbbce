import type { ComponentChildren } from 'preact'
import { now } from '../data/clock.ts'
import type { Resource } from '../data/resource.ts'
import { formatDuration } from '../model/format.ts'
import { Button } from './controls.tsx'

/** Shows the server's message. Data that was loaded before stays on the page, with its age. */
export function ErrorNote({ resource }: { readonly resource: Resource<unknown> }) {
  const { error, loadedAt, reload } = resource
  if (!error) return null
  const age =
    loadedAt === undefined
      ? ''
      : ` Shown is the state of ${formatDuration((now.value - loadedAt) / 1000)} ago.`
  return (
    <div class="note" role="alert">
      <span class="grow">
        {error.message}
        {age}
      </span>
      <Button isSmall action={reload}>
        Try again
      </Button>
    </div>
  )
}

export function Skeleton({ lines = 4 }: { readonly lines?: number }) {
  return (
    <div class="stack panel-body" role="status" aria-busy="true" aria-label="Loading">
      {Array.from({ length: lines }, (_, index) => (
        <div key={index} class="skeleton" style={{ width: `${90 - ((index * 23) % 50)}%` }} />
      ))}
    </div>
  )
}

export function Empty({
  title,
  children,
}: {
  readonly title: string
  readonly children?: ComponentChildren
}) {
  return (
    <div class="empty">
      <h2>{title}</h2>
      {children}
    </div>
  )
}
