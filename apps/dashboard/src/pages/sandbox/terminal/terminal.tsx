import { useEffect, useState } from 'preact/hooks'
import { envd } from '../../../data/request.ts'
import { Button } from '../../../parts/controls.tsx'
import { Skeleton } from '../../../parts/status.tsx'
import { showError } from '../../../parts/toasts.tsx'
import type { Connection } from './connection.ts'
import { findTerminals } from './find-terminals.ts'
import { RecordButton } from './record-button.tsx'
import { Screen } from './screen.tsx'

interface OpenTerminal {
  readonly key: number
  /** Undefined until the process has started. */
  readonly pid: number | undefined
}

let made = 0
const opened = (pid?: number): OpenTerminal => ({ key: (made += 1), pid })

export function TerminalTab({ id }: { readonly id: string }) {
  const { terminals, front, setFront, add, remove, setPid } = useTerminals(id)
  const [connections, setConnections] = useState<ReadonlyMap<number, Connection>>(new Map())
  const [focusRequest, setFocusRequest] = useState(0)
  const frontConnection = connections.get(front)
  if (!terminals) return <Skeleton />
  const end = async ({ key, pid }: OpenTerminal) => {
    remove(key)
    // A process that has ended already is no failure.
    if (pid !== undefined)
      await envd(id, 'SendSignal', { process: { pid }, signal: 'SIGNAL_SIGKILL' }).catch(() => {})
  }
  const show = (key: number) => {
    setFront(key)
    setFocusRequest((count) => count + 1)
  }
  return (
    <div class="terminals">
      <div class="terminal-bar" role="toolbar" aria-label="Terminals">
        {terminals.map((terminal, index) => (
          <span
            key={terminal.key}
            class={terminal.key === front ? 'terminal-tab current' : 'terminal-tab'}
          >
            <Button isSmall kind="plain" action={() => show(terminal.key)}>
              Terminal {index + 1}
            </Button>
            <Button
              isSmall
              kind="plain"
              aria-label={`End terminal ${index + 1}`}
              title="End its shell"
              action={() => end(terminal)}
            >
              ✕
            </Button>
          </span>
        ))}
        <Button isSmall kind="plain" aria-label="New terminal" action={add}>
          +
        </Button>
        <span class="grow" />
        {frontConnection && <RecordButton connection={frontConnection} />}
        <a class="button small plain" href="/recordings">
          Recordings
        </a>
      </div>
      <div class="terminal-view">
        {terminals.map(({ key, pid }) => (
          <Screen
            key={key}
            sandboxId={id}
            pid={pid}
            isHidden={key !== front}
            focusRequest={focusRequest}
            onConnection={(connection) =>
              setConnections((all) => new Map(all).set(key, connection))
            }
            onPid={(found) => setPid(key, found)}
            onClose={() => remove(key)}
          />
        ))}
      </div>
    </div>
  )
}

/** Finds the terminals of an earlier visit again, or opens the first one. */
function useTerminals(id: string) {
  const [terminals, setTerminals] = useState<readonly OpenTerminal[] | undefined>()
  const [front, setFront] = useState(0)
  const begin = async () => {
    const pids = await findTerminals(id).catch((error: unknown) => {
      showError(error)
      return []
    })
    const first = pids.length > 0 ? pids.map((pid) => opened(pid)) : [opened()]
    setTerminals(first)
    setFront(first[0]?.key ?? 0)
  }
  useEffect(() => void begin(), [id])
  return {
    terminals,
    front,
    setFront,
    add() {
      const next = opened()
      setTerminals((all = []) => [...all, next])
      setFront(next.key)
    },
    remove(key: number) {
      const rest = (terminals ?? []).filter((terminal) => terminal.key !== key)
      setTerminals(rest)
      if (key === front) setFront(rest.at(-1)?.key ?? 0)
    },
    setPid: (key: number, pid: number) =>
      setTerminals((all) =>
        all?.map((terminal) => (terminal.key === key ? { ...terminal, pid } : terminal)),
      ),
  }
}
