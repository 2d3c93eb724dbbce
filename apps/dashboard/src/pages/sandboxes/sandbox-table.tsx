import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ListedSandbox } from '@atoll/client/replies'
import { now } from '../../data/clock.ts'
import { navigate } from '../../data/location.ts'
import type { UsageById } from '../../data/sandboxes.ts'
import { formatAge, formatBytes, formatDuration, secondsUntil } from '../../model/format.ts'
import { templateName } from '../../model/sandbox-filter.ts'
import type { SandboxFilter, SortColumn, Usage } from '../../model/sandbox-filter.ts'
import { sandboxPath } from '../../model/route.ts'
import { rowsInView } from '../../model/virtual-rows.ts'
import { visibleName } from '../../model/visible-text.ts'
import { State } from '../../parts/controls.tsx'
import { useKey } from '../../parts/keys.ts'
import { Spark } from '../../parts/spark.tsx'

interface TableProps {
  readonly sandboxes: readonly ListedSandbox[]
  readonly usage: UsageById
  readonly filter: SandboxFilter
  readonly change: (part: Partial<SandboxFilter>) => void
  readonly chosen: ReadonlySet<string>
  readonly onChoose: (ids: ReadonlySet<string>) => void
  /** Called with the IDs of the rows in view. */
  readonly onView: (ids: readonly string[]) => void
}

const rowPx = 36
/** Usage is asked for when scrolling has stopped. */
const settledMs = 200

/** Draws only the rows in view: thousands of sandboxes scroll as smoothly as ten. */
export function SandboxTable(props: TableProps) {
  const { sandboxes, usage, chosen, onChoose, onView } = props
  const body = useRef<HTMLDivElement>(null)
  const view = useScrollView(body)
  const [focused, setFocused] = useState(-1)
  const range = rowsInView({ count: sandboxes.length, rowPx, ...view })
  const rows = sandboxes.slice(range.first, range.last)
  const inView = rows.map(({ sandboxID }) => sandboxID)
  useEffect(() => {
    const timer = setTimeout(() => onView(inView), settledMs)
    return () => clearTimeout(timer)
  }, [inView.join()])
  const move = (step: number) => {
    const next = Math.max(0, Math.min(sandboxes.length - 1, focused + step))
    setFocused(next)
    const top = next * rowPx
    if (top < view.scrollPx) body.current?.scrollTo(0, top)
    if (top + rowPx > view.scrollPx + view.heightPx)
      body.current?.scrollTo(0, top + rowPx - view.heightPx)
  }
  const toggle = (id: string | undefined) => {
    if (id !== undefined) onChoose(new Set(chosen).symmetricDifference(new Set([id])))
  }
  const current = sandboxes[focused]?.sandboxID
  useKey('j', () => move(1))
  useKey('k', () => move(-1))
  useKey('x', () => toggle(current))
  useKey('Enter', () => current && navigate(sandboxPath(current)))
  return (
    <div
      class="panel grid-table"
      role="table"
      aria-label="Sandboxes"
      aria-rowcount={sandboxes.length}
    >
      <Head {...props} />
      <div class="grid-body" ref={body} role="rowgroup" tabIndex={0} aria-label="Rows">
        <div role="presentation" style={{ height: `${range.totalPx}px`, position: 'relative' }}>
          <div
            role="presentation"
            style={{ position: 'absolute', insetInline: 0, top: `${range.topPx}px` }}
          >
            {rows.map((sandbox, index) => (
              <Row
                key={sandbox.sandboxID}
                sandbox={sandbox}
                samples={usage[sandbox.sandboxID] ?? []}
                isChosen={chosen.has(sandbox.sandboxID)}
                isFocused={range.first + index === focused}
                onToggle={() => toggle(sandbox.sandboxID)}
              />
            ))}
          </div>
        </div>
      </div>
    </div>
  )
}

function useScrollView(body: RefObject<HTMLElement>) {
  const [view, setView] = useState({ scrollPx: 0, heightPx: 600 })
  useEffect(() => {
    const element = body.current
    if (!element) return undefined
    const read = () => setView({ scrollPx: element.scrollTop, heightPx: element.clientHeight })
    const observer = new ResizeObserver(read)
    observer.observe(element)
    element.addEventListener('scroll', read, { passive: true })
    return () => {
      observer.disconnect()
      element.removeEventListener('scroll', read)
    }
  }, [])
  return view
}

function Head({ sandboxes, filter, change, chosen, onChoose }: TableProps) {
  const ids = sandboxes.map(({ sandboxID }) => sandboxID)
  const isAll = ids.length > 0 && ids.every((id) => chosen.has(id))
  const sorter = (column: SortColumn, label: string, wide = false) => {
    const isCurrent = filter.sort === column
    const arrow = isCurrent ? (filter.isDescending ? ' ↓' : ' ↑') : ''
    return (
      <span
        role="columnheader"
        class={wide ? 'wide' : ''}
        {...(isCurrent && {
          'aria-sort': filter.isDescending ? ('descending' as const) : ('ascending' as const),
        })}
      >
        <button
          type="button"
          onClick={() => change({ sort: column, isDescending: !isCurrent || !filter.isDescending })}
        >
          {label}
          {arrow}
        </button>
      </span>
    )
  }
  return (
    <div class="grid-row grid-head" role="row">
      <span role="columnheader">
        <input
          type="checkbox"
          aria-label="Select all matches"
          checked={isAll}
          onChange={() => onChoose(new Set(isAll ? [] : ids))}
        />
      </span>
      {sorter('state', 'State')}
      {sorter('started', 'Sandbox')}
      {sorter('template', 'Template', true)}
      <span role="columnheader" class="wide">
        Metadata
      </span>
      {sorter('ends', 'Time left')}
      {sorter('cpu', 'CPU', true)}
      {sorter('memory', 'Memory', true)}
      <span role="columnheader">{sandboxes.length}</span>
    </div>
  )
}

interface RowProps {
  readonly sandbox: ListedSandbox
  readonly samples: readonly Usage[]
  readonly isChosen: boolean
  readonly isFocused: boolean
  readonly onToggle: () => void
}

function Row({ sandbox, samples, isChosen, isFocused, onToggle }: RowProps) {
  const id = sandbox.sandboxID
  const isRunning = sandbox.state === 'running'
  const classes = ['grid-row', isChosen && 'chosen', isFocused && 'focused']
    .filter(Boolean)
    .join(' ')
  return (
    <div class={classes} role="row">
      <span role="cell">
        <input type="checkbox" aria-label={`Select ${id}`} checked={isChosen} onChange={onToggle} />
      </span>
      <span role="cell">
        <State state={sandbox.state} />
      </span>
      <span role="cell" class="clip">
        <a
          class="mono link"
          href={sandboxPath(id)}
          title={`Started ${formatAge(sandbox.startedAt, now.value)}`}
        >
          {id}
        </a>
      </span>
      <span role="cell" class="wide clip isolated">
        {visibleName(templateName(sandbox), 60)}
      </span>
      <Metadata metadata={sandbox.metadata ?? {}} />
      <span role="cell" class="number soft">
        {isRunning ? formatDuration(secondsUntil(sandbox.endAt, now.value)) : '–'}
      </span>
      <Sparks sandbox={sandbox} samples={samples} />
      <span role="cell">
        {isRunning && (
          <a
            class="link"
            href={sandboxPath(id, 'terminal')}
            title="Terminal"
            aria-label={`Terminal of ${id}`}
          >
            {'>_'}
          </a>
        )}
      </span>
    </div>
  )
}

const maxTags = 4

function Metadata({ metadata }: { readonly metadata: Readonly<Record<string, string>> }) {
  return (
    <span role="cell" class="wide tags">
      {Object.entries(metadata)
        .slice(0, maxTags)
        .map(([key, value]) => (
          <span key={key} class="tag isolated" title={visibleName(`${key}=${value}`)}>
            {visibleName(`${key}=${value}`, 60)}
          </span>
        ))}
    </span>
  )
}

function Sparks({ sandbox, samples }: Pick<RowProps, 'sandbox' | 'samples'>) {
  const last = samples.at(-1)
  const isRunning = sandbox.state === 'running'
  return (
    <>
      <span role="cell" class="wide">
        {isRunning && (
          <Spark
            values={samples.map(({ cpuUsedPct }) => cpuUsedPct)}
            top={100}
            label={`CPU ${last?.cpuUsedPct.toFixed(0) ?? '?'} %`}
          />
        )}
      </span>
      <span role="cell" class="wide">
        {isRunning && (
          <Spark
            values={samples.map(({ memUsed }) => memUsed)}
            top={sandbox.memoryMB * 2 ** 20}
            label={`Memory ${last ? formatBytes(last.memUsed) : '?'} of ${sandbox.memoryMB} MiB`}
          />
        )}
      </span>
    </>
  )
}
