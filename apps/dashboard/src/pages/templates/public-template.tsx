import type { Template } from '@atoll/client/replies'
import { now } from '../../data/clock.ts'
import { formatAge } from '../../model/format.ts'
import { visibleName } from '../../model/visible-text.ts'
import { CopyButton, State } from '../../parts/controls.tsx'
import { Empty, ErrorNote, Skeleton } from '../../parts/status.tsx'
import { nameOf, useTemplates } from './templates.tsx'

/** A template of another owner, such as `base`. Only its owner sees and starts builds. */
export function PublicTemplate({ id, refusal }: { readonly id: string; readonly refusal: string }) {
  const templates = useTemplates()
  const template = templates.data?.find(
    ({ templateID, names }) => templateID === id || names.includes(id),
  )
  if (!template) {
    return (
      <div class="page">
        <ErrorNote resource={templates} />
        {templates.data ? <Empty title={refusal} /> : !templates.error && <Skeleton />}
      </div>
    )
  }
  const name = nameOf(template)
  return (
    <div class="page">
      <div class="page-head">
        <div class="row">
          <h1 class="isolated">{visibleName(name, 80)}</h1>
          <CopyButton text={name} />
          <State state={template.buildStatus} />
        </div>
        <a class="button main" href={`/sandboxes?new=1&from=${encodeURIComponent(name)}`}>
          Create sandbox
        </a>
      </div>
      <Facts template={template} />
    </div>
  )
}

function Facts({ template }: { readonly template: Template }) {
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>Public template</h2>
        <span class="soft">Only its owner sees and starts builds.</span>
      </div>
      <dl class="panel-body facts">
        <dt>Size of a sandbox</dt>
        <dd>
          {template.cpuCount} CPU · {template.memoryMB} MiB memory · {template.diskSizeMB} MiB disk
        </dd>
        <dt>Uses</dt>
        <dd>{template.spawnCount}</dd>
        <dt>Last used</dt>
        <dd>{formatAge(template.lastSpawnedAt, now.value)}</dd>
        <dt>Changed</dt>
        <dd>{formatAge(template.updatedAt, now.value)}</dd>
        <dt>ID</dt>
        <dd class="mono">{template.templateID}</dd>
      </dl>
    </section>
  )
}
