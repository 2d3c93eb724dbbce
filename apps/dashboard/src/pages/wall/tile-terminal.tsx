import { useEffect, useRef, useState } from 'preact/hooks'
import { reconnectDelayMs } from '../../model/reconnect.ts'
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
  const timer = useRef<ReturnType<typeof setTimeout> | null>(null)
  const find = async (attempts: number) => {
    setFound(undefined)
    try {
      const pids = await findTerminals(id)
      setError('')
      setFound({ pid: pids[0] })
    } catch (thrown) {
      setError(thrown instanceof Error ? thrown.message : String(thrown))
      timer.current = setTimeout(() => void find(attempts + 1), reconnectDelayMs(attempts))
    }
  }
  useEffect(() => {
    void find(0)
    return () => clearTimeout(timer.current ?? undefined)
  }, [id])
  if (error) return <div class="tile-note">{error} Trying again…</div>
  if (!found) return <Skeleton lines={2} />
  return (
    <div class="terminal-view">
      <Screen
        sandboxId={id}
        pid={found.pid}
        isHidden={false}
        takesFocus={isFocused}
        fontSize={11}
        onClose={() => void find(0)}
        closeLabel="New shell"
      />
    </div>
  )
}
