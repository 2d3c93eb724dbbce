import type { SandboxDetail } from '@atoll/client/replies'
import { navigate } from '../../data/location.ts'
import { api } from '../../data/request.ts'
import { reloadAll } from '../../data/resource.ts'
import { sandboxActions, thenReload } from '../../data/sandboxes.ts'
import type { Attention, DeniedConnection } from '../../model/attention.ts'
import { formatDuration } from '../../model/format.ts'
import { findHiddenParts, toUpdateWithName } from '../../model/network-form.ts'
import { sandboxPath, templatePath } from '../../model/route.ts'
import { visibleName } from '../../model/visible-text.ts'
import { Button } from '../../parts/controls.tsx'
import { showToast } from '../../parts/toasts.tsx'

const hourSeconds = 3_600
const maxShown = 12

export function AttentionList({ items }: { readonly items: readonly Attention[] }) {
  if (items.length === 0)
    return (
      <div class="panel-body soft">
        All is well. Nothing died, expires soon, runs out of memory, failed to build or was denied a
        connection.
      </div>
    )
  return (
    <ul class="attention">
      {items.slice(0, maxShown).map((item) => (
        <li key={keyOf(item)}>
          <AttentionItem item={item} />
        </li>
      ))}
      {items.length > maxShown && <li class="soft">and {items.length - maxShown} more</li>}
    </ul>
  )
}

function keyOf(item: Attention): string {
  if (item.kind === 'build') return item.template.templateID
  if (item.kind !== 'denied') return `${item.kind}${item.sandbox.sandboxID}`
  const { sandboxID, name, address } = item.connection
  return `${item.kind}${sandboxID} ${name ?? address}`
}

function AttentionItem({ item }: { readonly item: Attention }) {
  if (item.kind === 'build') {
    const { templateID, names } = item.template
    return (
      <>
        <span class="state error grow">
          <span>
            The last build of{' '}
            <a class="link" href={templatePath(templateID)}>
              {visibleName(names[0] ?? templateID, 60)}
            </a>{' '}
            failed
          </span>
        </span>
        <a class="button small" href={templatePath(templateID)}>
          See the log
        </a>
      </>
    )
  }
  if (item.kind === 'denied') return <DeniedItem connection={item.connection} />
  const { sandboxID } = item.sandbox
  return (
    <>
      <span class={`state ${item.kind === 'expiring' ? 'paused' : 'error'} grow`}>
        <span>
          <a class="link mono" href={sandboxPath(sandboxID)}>
            {sandboxID}
          </a>{' '}
          {describe(item)}
        </span>
      </span>
      {item.kind === 'expiring' && (
        <Button
          isSmall
          action={() => thenReload(sandboxActions.setTimeout(sandboxID, hourSeconds))}
        >
          Set 1 h
        </Button>
      )}
      <a class="button small" href={sandboxPath(sandboxID)}>
        Open
      </a>
    </>
  )
}

function DeniedItem({ connection }: { readonly connection: DeniedConnection }) {
  const { sandboxID, name, address, port, count } = connection
  const destination = visibleName(name ?? `${address}:${port}`, 120)
  return (
    <>
      <span class="state paused grow">
        <span class="isolated">
          <a class="link mono" href={sandboxPath(sandboxID, 'network')}>
            {sandboxID}
          </a>{' '}
          was denied <span class="mono">{destination}</span>
          {count > 1 && ` (${count} times)`}
        </span>
      </span>
      {name !== undefined && (
        <Button
          isSmall
          aria-label={`Allow ${destination} in ${sandboxID}`}
          action={() => allow(sandboxID, name)}
        >
          Allow
        </Button>
      )}
      <a class="button small" href={sandboxPath(sandboxID, 'network')}>
        Open
      </a>
    </>
  )
}

/** Adds the name to the rules as they are now. Rules that the page cannot keep are changed on their own page. */
async function allow(sandboxID: string, name: string): Promise<void> {
  const path = `/sandboxes/${encodeURIComponent(sandboxID)}`
  const { network } = await api<SandboxDetail>('GET', path)
  if (findHiddenParts(network) !== undefined) return navigate(sandboxPath(sandboxID, 'network'))
  await api('PUT', `${path}/network`, toUpdateWithName(network, name))
  showToast(`${visibleName(name, 80)} is allowed`)
  await reloadAll('sandboxes/denied')
}

function describe(item: Exclude<Attention, { readonly kind: 'build' | 'denied' }>): string {
  if (item.kind === 'died') return visibleName(item.reason, 160)
  return item.kind === 'memory'
    ? `uses ${Math.round(item.share * 100)} % of its memory`
    : `ends in ${formatDuration(item.secondsLeft)}`
}
