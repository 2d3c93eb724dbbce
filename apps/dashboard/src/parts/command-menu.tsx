import { signal } from '@preact/signals'
import { useEffect, useRef, useState } from 'preact/hooks'
import type { ListedSandbox } from '@atoll/client/replies'
import { navigate } from '../data/location.ts'
import { listAll } from '../data/request.ts'
import { signOut } from '../data/session.ts'
import { switchTheme } from '../data/theme.ts'
import { findCommands } from '../model/command-search.ts'
import type { Command } from '../model/command-search.ts'
import { templateName } from '../model/sandbox-filter.ts'
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
  const [at, setAt] = useState(0)
  const [sandboxes, setSandboxes] = useState<readonly Command[]>([])
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    dialog.current?.showModal()
    listAll<ListedSandbox>('/v2/sandboxes?limit=100')
      .then((all) => setSandboxes(all.map(toCommand)))
      .catch(showError)
  }, [])
  const found = findCommands([...pages, ...sandboxes], text)
  const close = () => (isOpen.value = false)
  const choose = (command: Command | undefined) => {
    if (!command) return
    close()
    command.run()
  }
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key]
    if (event.key === 'Enter') choose(found[at])
    else if (step) setAt((at + step + found.length) % Math.max(1, found.length))
    else return
    event.preventDefault()
  }
  return (
    <dialog ref={dialog} class="palette" aria-label="Commands" onClose={close}>
      <input
        autoFocus
        aria-label="Search commands and sandboxes"
        placeholder="Search commands, sandboxes, templates, metadata"
        value={text}
        onKeyDown={onKeyDown}
        onInput={(event) => {
          setText(event.currentTarget.value)
          setAt(0)
        }}
      />
      <ul role="listbox" aria-label="Results">
        {found.map((command, index) => (
          <li key={command.label} role="option" aria-selected={index === at}>
            <button type="button" tabIndex={-1} onClick={() => choose(command)}>
              <span class="clip">{command.label}</span>
              <span class="faint clip">{command.hint}</span>
            </button>
          </li>
        ))}
      </ul>
    </dialog>
  )
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
