/** Splits output into lines. Cuts lines that are too long. */
export interface Lines {
  add(bytes: Uint8Array): string[]
  /** Returns the text after the last line break. */
  rest(): string[]
}

const longestLine = 4096

export function createLines(): Lines {
  const decoder = new TextDecoder()
  let open = ''
  return {
    add(bytes) {
      const lines = (open + decoder.decode(bytes, { stream: true })).split(/\r?\n|\r/)
      open = lines.pop() ?? ''
      if (open.length > longestLine) {
        lines.push(open)
        open = ''
      }
      return lines.flatMap(toPieces)
    },
    rest: () => toPieces(open + decoder.decode()),
  }
}

function toPieces(line: string): string[] {
  const text = line.trim()
  const count = Math.ceil(text.length / longestLine)
  return Array.from({ length: count }, (_, at) =>
    text.slice(at * longestLine, (at + 1) * longestLine),
  )
}
