import { pino } from 'pino'
import type { DestinationStream, Logger } from 'pino'

export type { Logger } from 'pino'

/** Logs JSON lines. Removes fields whose names mark them as secrets, so callers need not. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  const options = { level, base: null, redact: { paths: secretPaths, remove: true } }
  return destination ? pino(options, destination) : pino(options)
}

export const silentLogger: Logger = pino({ level: 'silent' })

const secretNames = ['accessToken', 'apiKey', 'token', 'password', 'authorization', 'envVars']
const secretPaths = secretNames.flatMap((name) => [name, `*.${name}`, `*.*.${name}`])
