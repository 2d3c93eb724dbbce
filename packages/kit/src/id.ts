import { randomBytes } from 'node:crypto'

const alphabet = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** Random lower-case letters and digits, evenly distributed. Safe in DNS labels, paths and cgroup names. */
export function randomLabel(length: number): string {
  let label = ''
  while (label.length < length) {
    for (const byte of randomBytes(length)) {
      // 252 is the largest multiple of 36 in a byte. Larger values would favour the first letters.
      if (byte < 252 && label.length < length) label += alphabet[byte % 36]
    }
  }
  return label
}

export function newSandboxId(): string {
  return `i${randomLabel(20)}`
}

export function newTemplateId(): string {
  return randomLabel(20)
}

export function randomHex(bytes: number): string {
  return randomBytes(bytes).toString('hex')
}
