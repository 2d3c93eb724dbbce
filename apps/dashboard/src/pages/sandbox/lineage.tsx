import { useState } from 'preact/hooks'
import type { LineageSandbox, SandboxLineage } from '@atoll/client/replies'
import { now } from '../../data/clock.ts'
import { navigate, query } from '../../data/location.ts'
import { api } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { toFamilyRows } from '../../model/family.ts'
import type { FamilyRow } from '../../model/family.ts'
import { formatAge } from '../../model/format.ts'
import { sandboxPath } from '../../model/route.ts'
import { visibleName } from '../../model/visible-text.ts'
import { Button, State } from '../../parts/controls.tsx'
import { ErrorNote, Skeleton } from '../../parts/status.tsx'
import { Changes } from './files/changes.tsx'

const pollMs = 5_000

/** Parents, forks and snapshots of the sandbox. Two of the sandboxes can be compared. */
export function LineageTab({ id }: { readonly id: string }) {
  const [ours, theirs] = (query.value.get('compare') ?? '').split(',')
  if (ours && theirs) return <Comparison id={id} ours={ours} theirs={theirs} />
  return <FamilyTree id={id} />
}

export function FamilyTree({ id }: { readonly id: string }) {
  const family = useResource(
    `sandbox/${id}/lineage`,
    (signal) =>
      api<SandboxLineage>('GET', `/sandboxes/${encodeURIComponent(id)}/lineage`, undefined, signal),
    pollMs,
  )
  const [picked, setPicked] = useState<readonly string[]>([])
  const toggle = (other: string) =>
    setPicked(
      picked.includes(other)
        ? picked.filter((each) => each !== other)
        : [...picked, other].slice(-2),
    )
  const compare = () =>
    navigate(`${sandboxPath(id, 'lineage')}?compare=${picked.toReversed().join(',')}`)
  const rows = family.data ? toFamilyRows(family.data) : []
  return (
    <>
      <ErrorNote resource={family} />
      <section class="panel family" aria-label="Family">
        <div class="panel-head">
          <h2>Parents, forks and snapshots</h2>
          <Button isSmall disabled={picked.length !== 2} action={compare}>
            Compare two
          </Button>
        </div>
        {!family.data && !family.error && <Skeleton />}
        <ul class="family-rows">
          {rows.map((row) => (
            <li key={keyOf(row)} style={{ paddingInlineStart: `${12 + row.depth * 22}px` }}>
              <Row row={row} self={id} picked={picked} onToggle={toggle} />
            </li>
          ))}
        </ul>
        {rows.length === 1 && (
          <p class="soft panel-body">
            This sandbox is no copy, and nothing was copied from it. Forks and snapshots appear
            here.
          </p>
        )}
        {family.data?.isComplete === false && (
          <p class="soft panel-body">The family is too large: a part is left out.</p>
        )}
      </section>
    </>
  )
}

function keyOf(row: FamilyRow): string {
  if (row.kind === 'sandbox') return row.sandbox.sandboxID
  return row.kind === 'snapshot' ? `snapshot ${row.snapshot.snapshotID}` : `gone ${row.id}`
}

interface RowProps {
  readonly row: FamilyRow
  readonly self: string
  readonly picked: readonly string[]
  readonly onToggle: (id: string) => void
}

function Row({ row, self, picked, onToggle }: RowProps) {
  if (row.kind === 'gone') {
    return <span class="soft mono">{row.id} (ended, no longer recorded)</span>
  }
  if (row.kind === 'snapshot') {
    const { snapshotID, createdAt } = row.snapshot
    return (
      <>
        <span class="tag">snapshot</span>
        <span class="mono isolated grow clip">{visibleName(snapshotID, 80)}</span>
        <span class="soft">{formatAge(createdAt, now.value)}</span>
      </>
    )
  }
  const { sandboxID, state, createdAt } = row.sandbox
  return (
    <>
      <input
        type="checkbox"
        aria-label={`Compare ${sandboxID}`}
        disabled={state === 'ended'}
        checked={picked.includes(sandboxID)}
        onChange={() => onToggle(sandboxID)}
      />
      <State state={state} />
      {sandboxID === self ? (
        <strong class="mono">{sandboxID}</strong>
      ) : (
        <a class="mono link" href={sandboxPath(sandboxID, 'lineage')}>
          {sandboxID}
        </a>
      )}
      <span class="soft isolated grow clip">{describe(row.sandbox)}</span>
      <span class="soft">{formatAge(createdAt, now.value)}</span>
    </>
  )
}

function describe({ parent, alias, templateID, endReason }: LineageSandbox): string {
  const origin = parent
    ? { fork: 'fork', snapshot: 'from a snapshot' }[parent.kind]
    : `from ${visibleName(alias ?? templateID, 60)}`
  return endReason === undefined ? origin : `${origin}, ${visibleName(endReason, 120)}`
}

interface ComparisonProps {
  readonly id: string
  readonly ours: string
  readonly theirs: string
}

function Comparison({ id, ours, theirs }: ComparisonProps) {
  const path = sandboxPath(id, 'lineage')
  return (
    <>
      <div class="row views">
        <a class="button small" href={path}>
          ← Family
        </a>
        <span class="soft">
          What <span class="mono">{ours}</span> has added, modified or deleted compared with{' '}
          <span class="mono">{theirs}</span>
        </span>
        <a class="button small" href={`${path}?compare=${theirs},${ours}`}>
          Swap
        </a>
      </div>
      <Changes key={ours} id={ours} other={theirs} />
    </>
  )
}
