export interface Command {
  readonly label: string
  readonly hint?: string
  readonly run: () => void
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
