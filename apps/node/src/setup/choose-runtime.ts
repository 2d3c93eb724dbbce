import { Fault } from '@atoll/kit/fault'
import type { Runtime } from '../domain/sandbox.ts'
import { probeGvisor, probeRunc } from './probe-runtime.ts'

/** gVisor unless runc was asked for by name: a weaker wall is never fallen back to. */
export async function chooseRuntime(wanted: 'auto' | Runtime['name']): Promise<Runtime['name']> {
  const name = wanted === 'auto' ? 'gvisor' : wanted
  const failure = await (name === 'gvisor' ? probeGvisor() : probeRunc())
  if (failure === undefined) return name
  const way = name === 'gvisor' ? ', or set ATOLL_RUNTIME=runc to run trusted code without it' : ''
  throw new Fault(
    'unavailable',
    'runtime_unusable',
    `${name} does not run here (${failure}): \`atoll doctor\` tells how to mend it${way}`,
  )
}
