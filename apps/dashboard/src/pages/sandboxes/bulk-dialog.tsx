import { useEffect } from 'preact/hooks'
import { bulkJob, readBulk, startBulk, stopBulk } from '../../data/bulk.ts'
import type { BulkAction, BulkJob } from '../../data/bulk.ts'
import { reloadAll, useResource } from '../../data/resource.ts'
import { formatCount } from '../../model/format.ts'
import { sandboxPath } from '../../model/route.ts'
import { visibleName } from '../../model/visible-text.ts'
import { Button } from '../../parts/controls.tsx'
import { Dialog } from '../../parts/dialog.tsx'
import { showToast } from '../../parts/toasts.tsx'
import { ErrorNote } from '../../parts/status.tsx'

const words = {
  kill: { verb: 'Kill', done: 'killed', effect: 'Their files and processes are lost.' },
  pause: { verb: 'Pause', done: 'paused', effect: 'They keep their files and memory.' },
  extend: { verb: 'Extend', done: 'extended', effect: 'They run for at least another hour.' },
} satisfies Record<BulkAction, { verb: string; done: string; effect: string }>

const pollMs = 500

/** Asks before an action on all matches, then shows its progress and what failed. */
export function BulkDialog({ onDone }: { readonly onDone: () => void }) {
  const job = bulkJob.value
  if (!job) return null
  return job.state === 'prepared' ? (
    <Question job={job} />
  ) : (
    <Progress key={job.id} started={job} onDone={onDone} />
  )
}

const close = () => (bulkJob.value = undefined)

function sandboxes(count: number): string {
  return `${formatCount(count)} ${count === 1 ? 'sandbox' : 'sandboxes'}`
}

function Question({ job }: { readonly job: BulkJob }) {
  const { verb, effect } = words[job.action]
  if (job.total === 0) {
    return (
      <Dialog title={`Nothing to ${verb.toLowerCase()}`} onClose={close}>
        <div class="dialog-body">
          <p>No running sandbox matches the filter.</p>
        </div>
      </Dialog>
    )
  }
  return (
    <Dialog title={`${verb} ${sandboxes(job.total)}?`} onClose={close}>
      <div class="dialog-body">
        <p>
          All sandboxes that match the filter now. {effect}
          {job.isCut && ` More match: this takes the first ${formatCount(job.total)}.`}
        </p>
        <div class="dialog-actions">
          <Button action={close}>Cancel</Button>
          <Button kind={job.action === 'kill' ? 'danger' : 'main'} action={() => startBulk(job)}>
            {verb} {formatCount(job.total)}
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

function Progress({ started, onDone }: { readonly started: BulkJob; readonly onDone: () => void }) {
  const resource = useResource(
    `bulk/${started.id}`,
    (signal) => readBulk(started.id, signal),
    pollMs,
  )
  const job = resource.data ?? started
  const { verb, done } = words[job.action]
  const isOver = job.state === 'finished' || job.state === 'stopped'
  useEffect(() => {
    if (!isOver) return
    void reloadAll('sandbox')
    onDone()
    if (job.state === 'stopped' || job.failed > 0) return
    close()
    showToast(`${sandboxes(job.succeeded)} ${done}`)
  }, [isOver])
  const handled = job.succeeded + job.failed
  return (
    <Dialog title={isOver ? 'Result' : `${verb} ${sandboxes(job.total)}`} onClose={close}>
      <div class="dialog-body">
        <ErrorNote resource={resource} />
        <p role="status">
          {formatCount(handled)} of {formatCount(job.total)}: {formatCount(job.succeeded)} {done}
          {job.failed > 0 && `, ${formatCount(job.failed)} failed`}
          {job.state === 'stopped' && '. The rest was not touched.'}
        </p>
        <div class="meter">
          <i style={{ width: `${(100 * handled) / Math.max(1, job.total)}%` }} />
        </div>
        <Failures job={job} />
        {!isOver && <p class="soft">The server continues when you close this window.</p>}
        <div class="dialog-actions">
          {!isOver && <Button action={() => stopBulk(job)}>Stop</Button>}
          <Button kind="main" action={close}>
            Close
          </Button>
        </div>
      </div>
    </Dialog>
  )
}

function Failures({ job }: { readonly job: BulkJob }) {
  return (
    <>
      {job.failures.map(({ reason, count, sandboxIds }) => (
        <div key={reason} class="note" role="alert">
          <span class="grow isolated">
            {formatCount(count)}: {visibleName(reason, 300)}
            {sandboxIds.map((id) => (
              <span key={id}>
                {' '}
                <a class="link mono" href={sandboxPath(id)}>
                  {id}
                </a>
              </span>
            ))}
          </span>
        </div>
      ))}
    </>
  )
}
