import { useEffect, useState } from 'preact/hooks'
import type { Template } from '@atoll/client/replies'
import { api } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { parseState } from '../../model/sandbox-filter.ts'
import type { SandboxFilter } from '../../model/sandbox-filter.ts'
import { visibleName } from '../../model/visible-text.ts'
import { useKey } from '../../parts/keys.ts'

interface FiltersProps {
  readonly filter: SandboxFilter
  readonly change: (part: Partial<SandboxFilter>) => void
  /** Templates of the sandboxes in the list. */
  readonly inUse: readonly string[]
}

export function Filters({ filter, change, inUse }: FiltersProps) {
  const templates = useResource('templates', (signal) =>
    api<Template[]>('GET', '/templates', undefined, signal),
  )
  const own = (templates.data ?? []).map(({ names: [name], templateID }) => name ?? templateID)
  const names = new Set([...own, ...inUse, ...(filter.template ? [filter.template] : [])])
  return (
    <div class="row">
      <Search text={filter.text} onChange={(text) => change({ text })} />
      <select
        class="input auto"
        aria-label="State"
        value={filter.state}
        onChange={({ currentTarget: { value } }) => change({ state: parseState(value) })}
      >
        <option value="">All states</option>
        <option value="running">Running</option>
        <option value="paused">Paused</option>
        <option value="ended">Ended</option>
      </select>
      <select
        class="input auto"
        aria-label="Template"
        value={filter.template}
        onChange={(event) => change({ template: event.currentTarget.value })}
      >
        <option value="">All templates</option>
        {[...names].toSorted().map((name) => (
          <option key={name} value={name}>
            {visibleName(name, 60)}
          </option>
        ))}
      </select>
      <MetadataFilters filter={filter} change={change} />
    </div>
  )
}

const typingMs = 200

/** The list follows the text when typing pauses: the server searches. */
function Search({
  text,
  onChange,
}: {
  readonly text: string
  readonly onChange: (text: string) => void
}) {
  const [typed, setTyped] = useState(text)
  useEffect(() => setTyped(text), [text])
  useEffect(() => {
    if (typed === text) return undefined
    const timer = setTimeout(() => onChange(typed), typingMs)
    return () => clearTimeout(timer)
  }, [typed])
  useKey('/', () => document.getElementById('search')?.focus())
  return (
    <input
      id="search"
      class="input auto grow search"
      type="search"
      aria-label="Search"
      placeholder="Search ID, template, metadata  ( / )"
      maxLength={200}
      value={typed}
      onInput={(event) => setTyped(event.currentTarget.value)}
    />
  )
}

function MetadataFilters({ filter, change }: Omit<FiltersProps, 'inUse'>) {
  return (
    <>
      {filter.metadata.map((pair) => (
        <button
          key={pair}
          type="button"
          class="tag chosen isolated"
          title="Remove this filter"
          onClick={() => change({ metadata: filter.metadata.filter((other) => other !== pair) })}
        >
          {visibleName(pair, 60)} ✕
        </button>
      ))}
    </>
  )
}
