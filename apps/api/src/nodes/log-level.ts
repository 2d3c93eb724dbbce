import { LogLevel } from '@atoll/contracts/gen/atoll/node/v1/node_pb'
import type { LogLevel as Level } from '../domain/log.ts'

export const levelValues = {
  debug: LogLevel.DEBUG,
  info: LogLevel.INFO,
  warn: LogLevel.WARN,
  error: LogLevel.ERROR,
} as const satisfies Record<Level, LogLevel>

export const levelNames = {
  [LogLevel.UNSPECIFIED]: 'info',
  [LogLevel.DEBUG]: 'debug',
  [LogLevel.INFO]: 'info',
  [LogLevel.WARN]: 'warn',
  [LogLevel.ERROR]: 'error',
} as const satisfies Record<LogLevel, Level>
