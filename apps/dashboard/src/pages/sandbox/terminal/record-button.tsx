import { Button } from '../../../parts/controls.tsx'
import type { Connection } from './connection.ts'

/** Starts and ends a recording of one terminal. */
export function RecordButton({ connection }: { readonly connection: Connection }) {
  if (connection.recording.value !== undefined) {
    return (
      <Button isSmall kind="danger" action={() => connection.record(false)}>
        <span class="recording-mark" /> Stop recording
      </Button>
    )
  }
  return (
    <Button
      isSmall
      disabled={connection.state.value !== 'open'}
      title="Records the output of this terminal, to replay or download it"
      action={() => connection.record(true)}
    >
      Record
    </Button>
  )
}
