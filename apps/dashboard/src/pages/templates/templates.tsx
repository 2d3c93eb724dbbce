import type { Template } from '@atoll/client/replies'
import { now } from '../../data/clock.ts'
import { navigate, query } from '../../data/location.ts'
import { api } from '../../data/request.ts'
import { useResource } from '../../data/resource.ts'
import { currentSession } from '../../data/session.ts'
import { formatAge } from '../../model/format.ts'
import { templatePath } from '../../model/route.ts'
import { visibleName } from '../../model/visible-text.ts'
import { ActionsHeader, Button, Snippet, State } from '../../parts/controls.tsx'
import { ErrorNote, Skeleton } from '../../parts/status.tsx'
import { NewTemplate } from './new-template.tsx'

const pollMs = 4_000

export function useTemplates() {
  return useResource(
    'templates',
    (signal) => api<Template[]>('GET', '/templates', undefined, signal),
    pollMs,
  )
}

export function TemplatesPage() {
  const templates = useTemplates()
  return (
    <div class="page">
      <div class="page-head">
        <h1>Templates</h1>
        <Button kind="main" action={() => navigate('/templates?new=1')}>
          New template
        </Button>
      </div>
      <ErrorNote resource={templates} />
      {templates.data ? (
        <TemplateTable templates={templates.data} />
      ) : (
        !templates.error && <Skeleton lines={6} />
      )}
      {(templates.data?.length ?? 0) <= 1 && <Hint />}
      {query.value.get('new') && (
        <NewTemplate onClose={() => navigate('/templates', { replace: true })} />
      )}
    </div>
  )
}

export function nameOf({
  names,
  templateID,
}: {
  readonly names: readonly string[]
  readonly templateID: string
}): string {
  return names[0] ?? templateID
}

function TemplateTable({ templates }: { readonly templates: readonly Template[] }) {
  return (
    <div class="panel scroll-x">
      <table class="table">
        <thead>
          <tr>
            <th>Name</th>
            <th>Last build</th>
            <th>Size of a sandbox</th>
            <th>Uses</th>
            <th>Last used</th>
            <th>Changed</th>
            <ActionsHeader />
          </tr>
        </thead>
        <tbody>
          {templates.map((template) => (
            <tr key={template.templateID}>
              <td>
                <a class="isolated" href={templatePath(template.templateID)}>
                  {visibleName(nameOf(template), 80)}
                </a>
                {template.public && <span class="faint"> · public</span>}
              </td>
              <td data-label="Last build">
                <State state={template.buildStatus} />
              </td>
              <td data-label="Size" class="soft number">
                {template.cpuCount > 0
                  ? `${template.cpuCount} CPU · ${template.memoryMB} MiB · ${template.diskSizeMB} MiB disk`
                  : '–'}
              </td>
              <td data-label="Uses" class="number">
                {template.spawnCount}
              </td>
              <td data-label="Last used" class="soft">
                {formatAge(template.lastSpawnedAt, now.value)}
              </td>
              <td data-label="Changed" class="soft">
                {formatAge(template.updatedAt, now.value)}
              </td>
              <td class="end">
                {template.cpuCount > 0 && (
                  <a
                    class="button small"
                    href={`/sandboxes?new=1&from=${encodeURIComponent(nameOf(template))}`}
                  >
                    Create sandbox
                  </a>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Hint() {
  const { apiUrl } = currentSession().addresses
  return (
    <section class="panel">
      <div class="panel-head">
        <h2>Build your own</h2>
      </div>
      <div class="panel-body stack">
        <p class="soft">
          A template holds what your sandboxes need, already installed and running. Use “New
          template”, or your program:
        </p>
        <Snippet
          code={[
            "import { Template } from 'e2b'",
            "const template = Template().fromBaseImage().runCmd('pip install numpy')",
            `await Template.build(template, 'science', { apiUrl: '${apiUrl}' })`,
          ].join('\n')}
        />
      </div>
    </section>
  )
}
