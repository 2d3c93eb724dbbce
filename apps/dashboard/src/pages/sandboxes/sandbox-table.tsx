import { Component } from 'preact'
import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ListedSandbox } from '@atoll/client/replies'
import { now } from '../../data/clock.ts'
import { navigate } from '../../data/location.ts'
import type { LastLines } from '../../data/last-lines.ts'
import type { UsageById } from '../../data/sandboxes.ts'
import {
  formatAge,
  formatBytes,
  formatCount,
  formatDuration,
  secondsUntil,
} from '../../model/format.ts'
import { templateName } from '../../model/sandbox-filter.ts'
import type { SandboxFilter, SortColumn, Usage } from '../../model/sandbox-filter.ts'
import { sandboxPath } from '../../model/route.ts'
import { rowsInView } from '../../model/virtual-rows.ts'
import { visibleLine, visibleName } from '../../model/visible-text.ts'
import { State } from '../../parts/controls.tsx'
import { useKey } from '../../parts/keys.ts'
import { useIsNarrow } from '../../parts/narrow.ts'
import { Spark } from '../../parts/spark.tsx'

interface TableProps {
  /** Rows that were loaded, from the first one. */
  readonly sandboxes: readonly ListedSandbox[]
  readonly total: number
  readonly usage: UsageById
  readonly lastLines: LastLines
  readonly filter: SandboxFilter
  readonly change: (part: Partial<SandboxFilter>) => void
  readonly chosen: ReadonlySet<string>
  /** True if all matches are selected, also matches that are not loaded. */
  readonly isAll: boolean
  readonly onChoose: (ids: ReadonlySet<string>) => void
  readonly onChooseAll: () => void
  /** Called with the IDs of the rows in view, and the number of the last one. */
  readonly onView: (ids: readonly string[], last: number) => void
}

const wideRowPx = 36
/** A row on a phone has two lines. */
const narrowRowPx = 56
/** Rows and usage are asked for when scrolling pauses. */
const settledMs = 100

/** Draws only the rows in view: thousands of sandboxes scroll as smoothly as ten. */
export function SandboxTable(props: TableProps) {
  const { sandboxes, total, usage, lastLines, chosen, onChoose, onView } = props
  const body = useRef<HTMLDivElement>(null)
  const view = useScrollView(body)
  const [focused, setFocused] = useState(-1)
  const range = rowsInView({ count: total, ...view })
  const rows = sandboxes.slice(range.first, range.last)
  const inView = rows.map(({ sandboxID }) => sandboxID)
  useEffect(() => {
    const timer = setTimeout(() => onView(inView, range.last), settledMs)
    return () => clearTimeout(timer)
  }, [inView.join(), range.last])
  const move = (step: number) => {
    const next = Math.max(0, Math.min(sandboxes.length - 1, focused + step))
    setFocused(next)
    const top = next * view.rowPx
    const below = top + view.rowPx
    if (top < view.scrollPx) body.current?.scrollTo(0, top)
    if (below > view.scrollPx + view.heightPx) body.current?.scrollTo(0, below - view.heightPx)
  }
  const toggle = (id: string | undefined) => {
    if (id !== undefined) onChoose(new Set(chosen).symmetricDifference(new Set([id])))
  }
  const filterBy = (pair: string) => {
    const { metadata } = props.filter
    if (!metadata.includes(pair)) props.change({ metadata: [...metadata, pair] })
  }
  const actions = useSteady({ toggle, filterBy })
  const current = sandboxes[focused]?.sandboxID
  useKey('j', () => move(1))
  useKey('k', () => move(-1))
  useKey('x', () => toggle(current))
  useKey('Enter', () => current && navigate(sandboxPath(current)))
  return (
    <div class="panel grid-table" role="table" aria-label="Sandboxes" aria-rowcount={total}>
      <Head {...props} />
      <div class="grid-body" ref={body} role="rowgroup" tabIndex={0} aria-label="Rows">
        <div role="presentation" style={{ height: `${range.totalPx}px`, position: 'relative' }}>
          <div
            role="presentation"
            style={{ position: 'absolute', insetInline: 0, top: `${range.topPx}px` }}
          >
            {rows.map((sandbox, index) => (
              <SteadyRow
                key={sandbox.sandboxID}
                sandbox={sandbox}
                samples={usage[sandbox.sandboxID] ?? noSamples}
                printed={lastLines[sandbox.sandboxID]?.text ?? ''}
                isChosen={chosen.has(sandbox.sandboxID)}
                isFocused={range.first + index === focused}
                actions={actions}
              />
            ))}
            <Waiting count={range.last - range.first - rows.length} />
          </div>
        </div>
      </div>
    </div>
  )
}

/** Rows that are not loaded yet. */
function Waiting({ count }: { readonly count: number }) {
  return (
    <>
      {Array.from({ length: Math.max(0, count) }, (_, index) => (
        <div key={index} class="grid-row" role="row" aria-busy="true">
          <span role="cell" />
          <span role="cell" class="skeleton" />
        </div>
      ))}
    </>
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
  return { ...view, rowPx: useIsNarrow() ? narrowRowPx : wideRowPx }
}

function Head({ total, filter, change, isAll, onChoose, onChooseAll }: TableProps) {
  const sorter = (column: SortColumn, label: string, place = '') => {
    const isCurrent = filter.sort === column
    const arrow = isCurrent ? (filter.isDescending ? ' ↓' : ' ↑') : ''
    return (
      <span
        role="columnheader"
        class={place}
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
          onChange={() => (isAll ? onChoose(new Set()) : onChooseAll())}
        />
      </span>
      {sorter('state', 'State')}
      {sorter('started', 'Sandbox')}
      {sorter('template', 'Template', 'wide')}
      <span role="columnheader" class="wide">
        Metadata
      </span>
      <span role="columnheader" class="wide last-line">
        Last line
      </span>
      {sorter('ends', 'Time left', 'time')}
      {sorter('cpu', 'CPU', 'wide')}
      {sorter('memory', 'Memory', 'wide')}
      <span role="columnheader" title={`${formatCount(total)} match`}>
        {formatCount(total)}
      </span>
    </div>
  )
}

interface RowProps {
  readonly sandbox: ListedSandbox
  readonly samples: readonly Usage[]
  /** Last line that the sandbox printed, if any. */
  readonly printed: string
  readonly isChosen: boolean
  readonly isFocused: boolean
  readonly actions: RowActions
}

interface RowActions {
  toggle(id: string): void
  /** Filters the list by a pair `key=value`. */
  filterBy(pair: string): void
}

const noSamples: readonly Usage[] = []

/** Draws a row again only when its data changes: while the table scrolls, most rows stay as they are. */
class SteadyRow extends Component<RowProps> {
  override shouldComponentUpdate(next: RowProps): boolean {
    const { sandbox, samples, printed, isChosen, isFocused } = this.props
    return (
      next.sandbox !== sandbox ||
      next.samples !== samples ||
      next.printed !== printed ||
      next.isChosen !== isChosen ||
      next.isFocused !== isFocused
    )
  }

  override render() {
    return <Row {...this.props} />
  }
}

/** Returns the same object for every draw, whose functions are those of the last draw. */
function useSteady(actions: RowActions): RowActions {
  const latest = useRef(actions)
  latest.current = actions
  const steady = useRef<RowActions>({
    toggle: (id) => latest.current.toggle(id),
    filterBy: (pair) => latest.current.filterBy(pair),
  })
  return steady.current
}

function Row({ sandbox, samples, printed, isChosen, isFocused, actions }: RowProps) {
  const id = sandbox.sandboxID
  const isRunning = sandbox.state === 'running'
  const classes = ['grid-row', isChosen && 'chosen', isFocused && 'focused']
    .filter(Boolean)
    .join(' ')
  return (
    <div class={classes} role="row">
      <span role="cell">
        <input
          type="checkbox"
          aria-label={`Select ${id}`}
          checked={isChosen}
          onChange={() => actions.toggle(id)}
        />
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
      <Metadata metadata={sandbox.metadata ?? {}} onMetadata={actions.filterBy} />
      <LastLine text={printed} />
      <span role="cell" class="number soft time">
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

function Metadata({
  metadata,
  onMetadata,
}: {
  readonly metadata: Readonly<Record<string, string>>
  readonly onMetadata: (pair: string) => void
}) {
  return (
    <span role="cell" class="wide tags">
      {Object.entries(metadata)
        .slice(0, maxTags)
        .map(([key, value]) => (
          <button
            key={key}
            type="button"
            class="tag isolated"
            title={`Only sandboxes with ${visibleName(`${key}=${value}`)}`}
            onClick={() => onMetadata(`${key}=${value}`)}
          >
            {visibleName(`${key}=${value}`, 60)}
          </button>
        ))}
    </span>
  )
}

function LastLine({ text }: { readonly text: string }) {
  const shown = visibleName(visibleLine(text, maxLineChars), maxLineChars)
  return (
    <span role="cell" class="wide clip mono last-line isolated" title={shown}>
      {shown}
    </span>
  )
}

const maxLineChars = 200

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
