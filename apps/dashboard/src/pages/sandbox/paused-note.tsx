import { sandboxActions, thenReload } from '../../data/sandboxes.ts'
import { Button } from '../../parts/controls.tsx'
import { Empty } from '../../parts/status.tsx'

const resumeSeconds = 600

/** Only the button wakes the sandbox. */
export function PausedNote({ id }: { readonly id: string }) {
  return (
    <Empty title="The sandbox is paused">
      <p class="soft">
        Looking at it does not wake it. Resume it to use its terminal, files, rules and processes.
      </p>
      <Button kind="main" action={() => thenReload(sandboxActions.resume(id, resumeSeconds))}>
        Resume for 10 minutes
      </Button>
    </Empty>
  )
}
