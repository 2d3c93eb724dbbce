import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ListedSandbox } from '@atoll/client/replies'
import { navigate } from '../data/location.ts'
import { api } from '../data/request.ts'
import { session, signOut } from '../data/session.ts'
import { switchTheme } from '../data/theme.ts'
import { menuEntries } from '../model/command-search.ts'
import type { Command, FoundSandboxes } from '../model/command-search.ts'
import { templateName, toSearch } from '../model/sandbox-filter.ts'
import { sandboxPath } from '../model/route.ts'
import { visibleName } from '../model/visible-text.ts'
import { Dialog } from './dialog.tsx'
import { useKey } from './keys.ts'
import { showError } from './toasts.tsx'

const isOpen = signal(false)
const isHelpOpen = signal(false)

export function openCommandMenu(): void {
  isOpen.value = true
}

export function CommandMenu() {
  useKey('mod+k', () => (isOpen.value = !isOpen.value))
  useKey('?', () => (isHelpOpen.value = true))
  return (
    <>
      {isOpen.value && <Menu />}
      {isHelpOpen.value && <Help />}
    </>
  )
}

const pages: readonly Command[] = [
  { label: 'Go to Now', run: () => navigate('/') },
  { label: 'Go to Sandboxes', run: () => navigate('/sandboxes') },
  { label: 'New sandbox', run: () => navigate('/sandboxes?new=1') },
  { label: 'Go to Wall', run: () => navigate('/wall') },
  { label: 'Go to Recordings', run: () => navigate('/recordings') },
  { label: 'Go to Templates', run: () => navigate('/templates') },
  { label: 'New template', run: () => navigate('/templates?new=1') },
  { label: 'Go to Snapshots', run: () => navigate('/snapshots') },
  { label: 'Go to Secrets', run: () => navigate('/secrets') },
  { label: 'Go to Team and keys', run: () => navigate('/team') },
  { label: 'Go to Operator', run: () => navigate('/operator') },
  { label: 'Switch between light and dark', run: switchTheme },
  { label: 'Keyboard shortcuts', hint: '?', run: () => void (isHelpOpen.value = true) },
  { label: 'Sign out', run: () => void signOut().catch(showError) },
]

function Menu() {
  const [text, setText] = useState('')
  const [chosen, setAt] = useState(0)
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  const sandboxes = useFoundSandboxes(text)
  const found = menuEntries(pages, sandboxes, text)
  // An answer of the server may have fewer entries than the one before.
  const at = Math.max(0, Math.min(chosen, found.length - 1))
  const close = () => (isOpen.value = false)
  const choose = (command: Command | undefined) => {
    if (!command) return
    close()
    command.run()
  }
  // Enter right after typing an ID waits for the answer.
  const isWaiting = useRef(false)
  const enter = () => {
    isWaiting.current = found.length === 0 && sandboxes.text !== text
    choose(found[at])
  }
  useEffect(() => {
    if (isWaiting.current) choose(found[0])
    isWaiting.current = false
  }, [sandboxes])
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Enter') enter()
    else if (step) setAt((at + step + found.length) % Math.max(1, found.length))
    else return
    event.preventDefault()
  }
  return (
    <dialog ref={dialog} class="palette" aria-label="Commands" onClose={close}>
      <input
        autoFocus
        role="combobox"
        aria-expanded="true"
        aria-controls="found-commands"
        aria-activedescendant={found.length > 0 ? `found-command-${at}` : undefined}
        aria-label="Search commands and sandboxes"
        placeholder="Search commands, sandboxes, templates, metadata"
        value={text}
        onKeyDown={onKeyDown}
        onInput={(event) => {
          isWaiting.current = false
          setText(event.currentTarget.value)
          setAt(0)
        }}
      />
      <Results found={found} at={at} onChoose={choose} />
    </dialog>
  )
}

function Results({
  found,
  at,
  onChoose,
}: {
  readonly found: readonly Command[]
  readonly at: number
  readonly onChoose: (command: Command) => void
}) {
  useEffect(() => {
    document.getElementById(`found-command-${at}`)?.scrollIntoView({ block: 'nearest' })
  }, [at])
  return (
    <ul id="found-commands" role="listbox" aria-label="Results">
      {found.map((command, index) => (
        <li
          key={command.label}
          id={`found-command-${index}`}
          role="option"
          aria-selected={index === at}
          onClick={() => onChoose(command)}
        >
          <span class="clip">{command.label}</span>
          <span class="soft clip">{command.hint}</span>
        </li>
      ))}
    </ul>
  )
}

const typingMs = 200
const maxFound = 20

/** Lets the server search, when typing pauses. Without a text it finds the newest sandboxes. */
function useFoundSandboxes(text: string): FoundSandboxes {
  const [found, setFound] = useState<FoundSandboxes>({ text: '', commands: [] })
  useEffect(() => {
    // The operator's page works without a session of a team.
    if (!session.value) return undefined
    const leaving = new AbortController()
    const find = async () => {
      const search = toSearch(text)
      const query = new URLSearchParams({ limit: String(maxFound), ...(search && { search }) })
      const path = `/v2/sandboxes?${query.toString()}`
      const sandboxes = await api<ListedSandbox[]>('GET', path, undefined, leaving.signal)
      setFound({ text, commands: sandboxes.map(toCommand) })
    }
    const timer = setTimeout(
      () => void find().catch((error: unknown) => leaving.signal.aborted || showError(error)),
      text === '' ? 0 : typingMs,
    )
    return () => {
      clearTimeout(timer)
      leaving.abort()
    }
  }, [text])
  return found
}

function toCommand(sandbox: ListedSandbox): Command {
  const metadata = Object.entries(sandbox.metadata ?? {}).map((pair) => pair.join('='))
  const hint = [sandbox.state, templateName(sandbox), ...metadata].join(' · ')
  return {
    label: sandbox.sandboxID,
    hint: visibleName(hint, 80),
    run: () => navigate(sandboxPath(sandbox.sandboxID)),
  }
}

const shortcuts = [
  ['⌘K or Ctrl K', 'commands'],
  ['/', 'search in a list'],
  ['j  k', 'next and previous row'],
  ['x', 'select the row'],
  ['Enter', 'open the row'],
  ['n', 'new sandbox, in the list'],
  ['?', 'this page'],
] as const

function Help() {
  return (
    <Dialog title="Keyboard shortcuts" onClose={() => (isHelpOpen.value = false)}>
      <dl class="facts dialog-body" style={{ display: 'grid' }}>
        {shortcuts.map(([keys, meaning]) => (
          <>
            <dt key={keys}>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{meaning}</dd>
          </>
        ))}
      </dl>
    </Dialog>
  )
}
