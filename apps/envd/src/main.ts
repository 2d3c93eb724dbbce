import './http/wire/install-header-map.ts'
import { loadConfig } from './config.ts'
import { startEnvd } from './envd.ts'
import { lazyLibc } from './linux/libc.ts'
import { stepSystemClock } from './linux/system-clock.ts'
import { createHostNameSetter } from './linux/system-host-name.ts'
import { warmCompileCache } from './warm-compile-cache.ts'

// No top-level await: the bundle is a CommonJS script, which starts faster than a module.
const config = loadConfig(process.env)
if (process.argv[2] === 'warm-compile-cache') {
  warmCompileCache(config).catch(fail)
} else {
  const libc = lazyLibc(config.libcAddon)
  startEnvd({
    ...config,
    libc,
    setHostName: createHostNameSetter(libc),
    stepClock: stepSystemClock(libc),
    exposePorts: true,
  }).then(closeOnSignal, fail)
}

function closeOnSignal(envd: { close(): Promise<void> }): void {
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void envd.close().then(() => process.exit(0)))
  }
}

function fail(cause: unknown): void {
  console.error('envd failed to start:', cause)
  process.exit(1)
}
