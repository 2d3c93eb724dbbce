import { loadConfig } from './config.ts'
import { startEnvd } from './envd.ts'
import { stepSystemClock } from './posix/clock.ts'

const envd = await startEnvd({ ...loadConfig(process.env), stepClock: stepSystemClock })

for (const signal of ['SIGINT', 'SIGTERM'] as const) {
  process.once(signal, () => void envd.close().then(() => process.exit(0)))
}
