import { useState } from 'preact/hooks'
import type { SandboxDetail } from '@atoll/client/replies'
import { api } from '../../data/request.ts'
import { thenReload } from '../../data/sandboxes.ts'
import { findHiddenParts, toNetworkForm, toNetworkUpdate } from '../../model/network-form.ts'
import type { NetworkForm } from '../../model/network-form.ts'
import { visibleName } from '../../model/visible-text.ts'
import { Button, Field } from '../../parts/controls.tsx'
import { showToast } from '../../parts/toasts.tsx'

export function NetworkTab({ sandbox }: { readonly sandbox: SandboxDetail }) {
  const { network, sandboxID: id } = sandbox
  const [form, setForm] = useState(toNetworkForm(network))
  const [error, setError] = useState('')
  const hidden = findHiddenParts(network)
  const set = (part: Partial<NetworkForm>) => setForm({ ...form, ...part })
  const save = async () => {
    setError('')
    try {
      await thenReload(
        api('PUT', `/sandboxes/${encodeURIComponent(id)}/network`, toNetworkUpdate(form)),
      )
      showToast('The rules are in force, for open connections too')
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown.message : String(thrown))
    }
  }
  return (
    <section class="panel" style={{ maxWidth: '720px' }}>
      <div class="panel-head">
        <h2>Outgoing connections</h2>
      </div>
      <div class="panel-body stack">
        <Destinations form={form} set={set} />
        <HeaderRules rules={network?.rules ?? {}} />
        {hidden && (
          <div class="note warn">
            This sandbox has {hidden}, whose values the server does not return. A change here would
            remove it: use the SDK.
          </div>
        )}
        {error && (
          <div class="note" role="alert">
            {error}
          </div>
        )}
        <div class="row">
          <Button kind="main" disabled={hidden !== undefined} action={save}>
            Apply
          </Button>
          <Button action={() => setForm(toNetworkForm(network))}>Reset</Button>
        </div>
      </div>
    </section>
  )
}

function Destinations({
  form,
  set,
}: {
  readonly form: NetworkForm
  readonly set: (part: Partial<NetworkForm>) => void
}) {
  return (
    <>
      <Field label="Internet">
        <select
          class="input"
          value={form.mode}
          onChange={({ currentTarget: { value } }) =>
            set({ mode: value === 'some' || value === 'none' ? value : 'all' })
          }
        >
          <option value="all">Everything public</option>
          <option value="some">Only the allowed destinations</option>
          <option value="none">Nothing</option>
        </select>
      </Field>
      {form.mode !== 'none' && (
        <Field
          label="Allowed destinations"
          hint={
            form.mode === 'some'
              ? 'Domains, addresses or ranges, one per line: pypi.org, *.pythonhosted.org, 1.1.1.1'
              : 'Addresses or ranges that are allowed although a range below denies them'
          }
        >
          <textarea
            class="input"
            value={form.allowed}
            onInput={(event) => set({ allowed: event.currentTarget.value })}
          />
        </Field>
      )}
      <Field
        label="Denied destinations"
        hint="Addresses or ranges, one per line. Private ranges are never reachable."
      >
        <textarea
          class="input"
          value={form.denied}
          onInput={(event) => set({ denied: event.currentTarget.value })}
        />
      </Field>
      <Field label="SOCKS5 proxy for all TCP" hint="host:port, optional">
        <input
          class="input"
          value={form.proxy}
          onInput={(event) => set({ proxy: event.currentTarget.value })}
        />
      </Field>
    </>
  )
}

type Rules = NonNullable<NonNullable<SandboxDetail['network']>['rules']>

/** The server never returns the values. */
function HeaderRules({ rules: byDomain }: { readonly rules: Rules }) {
  return (
    <>
      {Object.entries(byDomain).map(([domain, rules]) => (
        <div key={domain} class="row">
          <span class="tag isolated">{visibleName(domain)}</span>
          <span class="soft isolated">
            sets{' '}
            {visibleName(
              rules.flatMap(({ transform }) => Object.keys(transform?.headers ?? {})).join(', '),
            )}
          </span>
        </div>
      ))}
    </>
  )
}
