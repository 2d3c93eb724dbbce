/** CPU and memory of an idle sandbox. The baseline is a bare sandbox of the same runtime that runs `cat`. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Sandbox } from 'e2b'
import type { RuntimeName } from '../baselines.ts'
import { collectSamples, interleave, programs, runtimes } from '../scenario.ts'
import type { Samples, Scenario } from '../scenario.ts'
import { groupOf } from '../test-bed.ts'
import { groupCpuUs, groupMemoryMb, groupUsageMb } from '../usage.ts'

const watchMs = 5000

export const idleSandbox: Scenario = {
  name: 'idle-sandbox',
  rounds: 2,
  async measure(context) {
    const { testBed, signal, rounds } = context
    await using opened = new AsyncDisposableStack()
    const groups: { readonly name: string; readonly group: string }[] = []
    const sandboxes: { readonly runtime: RuntimeName; readonly sdk: Sandbox }[] = []
    for (const runtime of runtimes) {
      const bare = opened.use(await (await testBed.baselines()).startBare(runtime))
      const { cloud, handle, sdk } = opened.use(await testBed.sandbox(runtime))
      groups.push({ name: raw(runtime), group: bare.cgroup })
      groups.push({ name: atoll(runtime), group: await groupOf(cloud, handle) })
      sandboxes.push({ runtime, sdk })
    }
    const memory = collectSamples()
    const cpu = await interleave(context, [
      async (samples) => {
        const before = await Promise.all(groups.map(({ group }) => groupCpuUs(group)))
        const began = performance.now()
        await sleep(watchMs, undefined, { signal })
        const elapsedUs = (performance.now() - began) * 1000
        for (const [at, { name, group }] of groups.entries()) {
          const used = (await groupCpuUs(group)) - (before[at] ?? 0)
          samples.record(name, (used / elapsedUs) * 100)
          memory.record(name, await groupMemoryMb(group))
          memory.record(withCache(name), await groupUsageMb(group))
        }
      },
    ])
    // Measured last, because a command wakes the idle sandbox.
    for (const { runtime, sdk } of sandboxes) await recordPrivate(sdk, memory, runtime)
    return [
      {
        scenario: 'idle-sandbox-memory',
        description: 'Memory of an idle sandbox: control group, and private pages of envd alone',
        unit: 'MiB',
        rows: runtimes.flatMap((runtime) => [
          memory.row(raw(runtime)),
          memory.row(atoll(runtime), raw(runtime)),
          memory.row(withCache(raw(runtime))),
          memory.row(withCache(atoll(runtime)), withCache(raw(runtime))),
          memory.row(envd(runtime)),
        ]),
      },
      {
        scenario: 'idle-sandbox-cpu',
        description: `Processor time of an idle sandbox over ${watchMs / 1000} s, ${rounds} rounds`,
        unit: '% of a core',
        rows: runtimes.flatMap((runtime) => [
          cpu.row(raw(runtime)),
          cpu.row(atoll(runtime), raw(runtime)),
        ]),
      },
    ]
  },
}

const raw = (runtime: RuntimeName) => `${programs[runtime]} run cat`
const atoll = (runtime: RuntimeName) => `Atoll, ${runtime}`
const withCache = (name: string) => `${name}: with file cache`
const envd = (runtime: RuntimeName) => `envd alone, ${runtime}`

async function recordPrivate(
  sandbox: Sandbox,
  memory: Samples,
  runtime: RuntimeName,
): Promise<void> {
  const { stdout } = await sandbox.commands.run(privateKb, { user: 'root' })
  const kilobytes = Number(stdout)
  if (!(kilobytes > 0)) throw new Error(`Cannot find the envd process in the sandbox: ${stdout}`)
  memory.record(envd(runtime), kilobytes / 1024)
}

/** Sums the private dirty pages of envd. Its program text is shared by all sandboxes. */
const privateKb = `
for name in /proc/[0-9]*; do
  if tr '\\0' ' ' < $name/cmdline | grep -q '^/.atoll/lib/ld.so .*/envd.js'; then
    awk '/^Private_Dirty:/ { sum += $2 } END { print sum }' $name/smaps
    break
  fi
done
`
