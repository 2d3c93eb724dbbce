import { writeSync } from 'node:fs'

export type Bundle = Readonly<Record<string, unknown>>

/** Writes answers as JSON lines; blocks while the server does not read. */
export interface Answers {
  send(message: object): void
  sendResult(bundle: Bundle): void
}

/** The server reads lines of up to twice this size. */
const largestResultChars = 32 * 1024 * 1024

export function createAnswers(fd: number): Answers {
  const send = (message: object): void => {
    const line = Buffer.from(`${toAscii(JSON.stringify(message))}\n`)
    for (let at = 0; at < line.length;) at += writeSync(fd, line, at)
  }
  return {
    send,
    sendResult(data) {
      const result = { type: 'result', is_main: true, data }
      if (JSON.stringify(result).length <= largestResultChars) return send(result)
      console.error('The result is too large: left out.')
    },
  }
}

/** Escapes all other characters, so that no reader can split one. */
function toAscii(json: string): string {
  return json.replace(/[\u0080-\uffff]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  })
}
