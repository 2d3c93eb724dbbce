import { useState } from 'preact/hooks'
import type { TemplateWithBuilds } from '@atoll/client/replies'
import { now } from '../../data/clock.ts'
import { navigate } from '../../data/location.ts'
import { api, RequestError } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { formatAge } from '../../model/format.ts'
import { templatePath } from '../../model/route.ts'
import { visibleName } from '../../model/visible-text.ts'
import { Button, CopyButton, State } from '../../parts/controls.tsx'
import { confirmFirst } from '../../parts/dialog.tsx'
import { ErrorNote, Skeleton } from '../../parts/status.tsx'
import { BuildLog } from './build-log.tsx'
import { NewTemplate } from './new-template.tsx'
import { PublicTemplate } from './public-template.tsx'
import { nameOf } from './templates.tsx'

const pollMs = 3_000

export function TemplatePage({
  id,
  buildId,
}: {
  readonly id: string
  readonly buildId: string | undefined
}) {
  const path = `/templates/${encodeURIComponent(id)}`
  const template = useResource(
    `template/${id}`,
    (signal) => api<TemplateWithBuilds>('GET', path, undefined, signal),
    pollMs,
  )
  const [isBuilding, setBuilding] = useState(false)
  const { data, error } = template
  const isForeign = error instanceof RequestError && error.status === 403
  if (isForeign) return <PublicTemplate id={id} refusal={error.message} />
  const shown = buildId ?? data?.builds[0]?.buildID
  const name = data ? nameOf(data) : id
  const isUsable = data?.builds.some(({ status }) => status === 'ready') === true
  const remove = () =>
    confirmFirst({
      title: `Delete the template ${visibleName(name, 60)}?`,
      text: 'Sandboxes that run already keep running.',
      submit: 'Delete',
      action: async () => {
        await api('DELETE', path)
        navigate('/templates')
      },
    })
  return (
    <div class="page">
      <div class="page-head">
        <div class="row">
          <h1 class="isolated">{visibleName(name, 80)}</h1>
          <CopyButton text={name} />
        </div>
        <div class="row tight">
          {isUsable && (
            <a class="button main" href={`/sandboxes?new=1&from=${encodeURIComponent(name)}`}>
              Create sandbox
            </a>
          )}
          <Button action={() => setBuilding(true)}>Build again</Button>
          <Button kind="danger" action={remove}>
            Delete
          </Button>
        </div>
      </div>
      <ErrorNote resource={template} />
      {!data && !template.error && <Skeleton />}
      {data && <Builds template={data} shown={shown} />}
      {shown && <BuildLog key={shown} templateId={id} buildId={shown} />}
      {isBuilding && <NewTemplate templateId={id} onClose={() => setBuilding(false)} />}
    </div>
  )
}

function Builds({
  template,
  shown,
}: {
  readonly template: TemplateWithBuilds
  readonly shown: string | undefined
}) {
  if (template.builds.length === 0) return <p class="soft">There are no builds yet.</p>
  return (
    <div class="panel scroll-x">
      <table class="table">
        <thead>
          <tr>
            <th>Build</th>
            <th>Status</th>
            <th>Size</th>
            <th>Started</th>
          </tr>
        </thead>
        <tbody>
          {template.builds.map((build) => (
            <tr
              key={build.buildID}
              {...(build.buildID === shown && { 'aria-current': true as const })}
            >
              <td class="mono">
                <a href={templatePath(template.templateID, build.buildID)}>{build.buildID}</a>
              </td>
              <td data-label="Status">
                <State state={build.status} />
              </td>
              <td data-label="Size" class="soft number">
                {build.cpuCount} CPU · {build.memoryMB} MiB
              </td>
              <td data-label="Started" class="soft">
                {formatAge(build.createdAt, now.value)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}
