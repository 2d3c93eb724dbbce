import { sandboxPath } from '../../model/route.ts'
import { LogsTab } from './logs.tsx'
import { UsagePlots } from './usage-plots.tsx'

/** A sandbox that does not exist any more: its usage and last lines are kept for 7 days. */
export function EndedSandbox({ id }: { readonly id: string }) {
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
      <div class="note warn">
        There is no sandbox {id}: it was killed, its time ran out, or it never existed. Usage and
        logs are kept for 7 days.
      </div>
      <UsagePlots id={id} />
      <section class="panel" aria-label={`Log of ${sandboxPath(id)}`}>
        <div class="panel-head">
          <h2>Last lines</h2>
        </div>
        <LogsTab id={id} isPlain />
      </section>
    </div>
  )
}
