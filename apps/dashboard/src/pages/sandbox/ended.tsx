import { visibleName } from '../../model/visible-text.ts'
import { sandboxPath } from '../../model/route.ts'
import { FamilyTree } from './lineage.tsx'
import { LogsTab } from './logs.tsx'
import { Timeline } from './timeline.tsx'

/** A sandbox that does not exist any more: its usage and last lines are kept for 7 days. */
export function EndedSandbox({ id, message }: { readonly id: string; readonly message: string }) {
  return (
    <div class="page">
      <div class="page-head">
        <div class="row">
          <h1 class="mono" style={{ fontSize: '15px' }}>
            {id}
          </h1>
          <span class="state">ended</span>
        </div>
        <a class="button" href="/sandboxes">
          All sandboxes
        </a>
      </div>
      <div class="note warn">{visibleName(message, 300)}. Usage and logs are kept for 7 days.</div>
      <Timeline id={id} hasConnections={false} />
      <FamilyTree id={id} />
      <section class="panel" aria-label={`Log of ${sandboxPath(id)}`}>
        <div class="panel-head">
          <h2>Last lines</h2>
        </div>
        <LogsTab id={id} isPlain />
      </section>
    </div>
  )
}
