import { useEffect, useState } from 'preact/hooks'
import { Skeleton } from '../../parts/status.tsx'
import { findTerminals } from '../sandbox/terminal/find-terminals.ts'
import { Screen } from '../sandbox/terminal/screen.tsx'

/** A terminal of the sandbox: one that is there already, or a new one. */
export function TileTerminal({
  id,
  isFocused,
}: {
  readonly id: string
  readonly isFocused: boolean
}) {
  const [found, setFound] = useState<{ readonly pid: number | undefined } | undefined>()
  const [error, setError] = useState('')
  const find = async () => {
    setError('')
    setFound(undefined)
    const pids = await findTerminals(id)
    setFound({ pid: pids[0] })
  }
  const begin = () =>
    void find().catch((thrown: unknown) =>
      setError(thrown instanceof Error ? thrown.message : String(thrown)),
    )
  useEffect(begin, [id])
  if (error) return <div class="tile-note">{error}</div>
  if (!found) return <Skeleton lines={2} />
  return (
    <div class="terminal-view">
      <Screen
        sandboxId={id}
        pid={found.pid}
        isHidden={false}
        takesFocus={isFocused}
        fontSize={11}
        onClose={begin}
        closeLabel="New shell"
      />
    </div>
  )
}
