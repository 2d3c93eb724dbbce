import { tmpdir } from 'node:os'
import { Fault } from '@atoll/kit/fault'
import type { NodeConfig } from '../config.ts'
import { checkRunsc, runscFix } from './check-runsc.ts'
import { probeGvisor, probeRunc } from './probe-runtime.ts'
import type { Runtime } from '../domain/sandboxes/runtime.ts'

/** Chooses gVisor unless the configuration names runc: never falls back to weaker isolation. */
export async function chooseRuntime({
  ATOLL_RUNTIME: wanted,
  ATOLL_RUNSC: runsc,
}: Pick<NodeConfig, 'ATOLL_RUNTIME' | 'ATOLL_RUNSC'>): Promise<Runtime['name']> {
  if (runsc !== undefined) {
    const wrong = await checkRunsc(runsc)
    if (wrong !== undefined)
      throw new Fault('unavailable', 'runsc_refused', `${wrong}. ${runscFix}`)
  }
  const name = wanted === 'auto' ? 'gvisor' : wanted
  const failure = await (name === 'gvisor' ? probeGvisor(tmpdir(), runsc) : probeRunc())
  if (failure === undefined) return name
  const way = name === 'gvisor' ? ', or set ATOLL_RUNTIME=runc to run trusted code without it' : ''
  throw new Fault(
    'unavailable',
    'runtime_unusable',
    `${name} does not run on this machine (${failure}): run \`atoll doctor\` for advice${way}`,
  )
}
