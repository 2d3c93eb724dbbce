export interface Command {
  readonly label: string
  readonly hint?: string
  readonly run: () => void
}

/** Sandboxes that the server found, and for which text. */
export interface FoundSandboxes {
  readonly text: string
  readonly commands: readonly Command[]
}

/**
 * Commands of the menu and sandboxes that match the text. Sandboxes that the server found for this text match by more
 * than their labels show, so all of them stay. Older answers are filtered until the server has answered.
 */
export function menuEntries(
  commands: readonly Command[],
  found: FoundSandboxes,
  text: string,
): Command[] {
  const sandboxes = found.text === text ? found.commands : findCommands(found.commands, text)
  return [...findCommands(commands, text), ...sandboxes].slice(0, maxShown)
}

const maxShown = 30

/** Finds commands that contain all words; those whose label begins with the text come first. */
export function findCommands(commands: readonly Command[], text: string): Command[] {
  const wanted = text.trim().toLowerCase()
  const words = wanted.split(/\s+/).filter(Boolean)
  const matches = commands.filter(({ label, hint = '' }) => {
    const searched = `${label} ${hint}`.toLowerCase()
    return words.every((word) => searched.includes(word))
  })
  const begins = ({ label }: Command) => (label.toLowerCase().startsWith(wanted) ? 0 : 1)
  return matches.toSorted((a, b) => begins(a) - begins(b)).slice(0, maxShown)
}
